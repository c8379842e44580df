//! Answers that a thread waits for or a task awaits.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use playhouse_executor::SystemCore;

use crate::lock::lock;
use crate::node::core::TheaterCore;

/// A future answer.
pub(crate) struct Answer<T> {
    state: Mutex<State<T>>,
    arrived: Condvar,
    /// The system that is run while a thread waits, in simulation.
    runs: Option<Arc<SystemCore>>,
}

struct State<T> {
    found: Option<T>,
    waker: Option<Waker>,
}

impl<T> Answer<T> {
    pub(crate) fn new(theater_core: &TheaterCore) -> Arc<Answer<T>> {
        let state = Mutex::new(State { found: None, waker: None });
        Arc::new(Answer { state, arrived: Condvar::new(), runs: theater_core.simulated().cloned() })
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        lock(&self.state)
    }

    /// Gives the answer; the first one counts.
    pub(crate) fn give(&self, found: T) {
        let waker = {
            let mut state = self.lock();
            state.found.get_or_insert(found);
            state.waker.take()
        };
        self.arrived.notify_all();
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Blocks this thread until the answer has come.
    #[track_caller]
    pub(crate) fn wait(&self) -> T {
        playhouse_actor::assert_outside("`.wait()`", "`.await` it in an async handler");
        if let Some(system) = &self.runs {
            system.block_until(None, &mut || self.lock().found.is_some());
            let found = self.lock().found.take();
            return found.expect("the simulation has nothing left to do, and no answer has come");
        }
        let mut state = self.lock();
        loop {
            if let Some(found) = state.found.take() {
                return found;
            }
            state = self.arrived.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn poll(&self, cx: &mut Context<'_>) -> Poll<T> {
        let mut state = self.lock();
        match state.found.take() {
            Some(found) => Poll::Ready(found),
            None => {
                state.waker = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }
}

macro_rules! awaited {
    ($(#[$doc:meta])* $name:ident<$($param:ident: $bound:path)?> -> $output:ty, $why:literal) => {
        $(#[$doc])*
        pub struct $name<$($param: $bound)?>(pub(crate) Arc<Answer<$output>>);

        impl<$($param: $bound)?> $name<$($param)?> {
            /// Blocks this thread until the answer has come.
            ///
            /// # Errors
            #[doc = $why]
            /// # Panics
            /// Inside an actor, because it would block the worker. Use `.await` in actors.
            #[track_caller]
            pub fn wait(self) -> $output {
                self.0.wait()
            }
        }

        impl<$($param: $bound)?> Future for $name<$($param)?> {
            type Output = $output;

            fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<$output> {
                self.0.poll(cx)
            }
        }

        impl<$($param: $bound)?> std::fmt::Debug for $name<$($param)?> {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(stringify!($name))
            }
        }
    };
}

awaited! {
    /// A look-up in progress: see [`Theater::find`](crate::Theater::find). It continues if this is dropped.
    #[must_use = "a look-up returns its result when it is awaited or waited for"]
    Find<A: playhouse_actor::wire::Remote> -> Result<playhouse_actor::ActorRef<A>, crate::FindError>, "The reason why no actor was found."
}

awaited! {
    /// A migration in progress: see [`Theater::migrate`](crate::Theater::migrate). It continues if this is dropped.
    ///
    /// # Examples
    ///
    /// ```
    /// # use playhouse_actor::{ActorRef, Mobile, MigrateError};
    /// # use playhouse_theater::*;
    /// fn move_there<A: Mobile>(theater: &Theater, actor: ActorRef<A>, peer: &Peer) -> Result<(), MigrateError> {
    ///     let migration: Migration = theater.migrate(actor, peer);
    ///     migration.wait() // in async code: `migration.await`
    /// }
    /// ```
    #[must_use = "a migration returns its result when it is awaited or waited for"]
    Migration<> -> Result<(), playhouse_actor::MigrateError>, "The reason why the actor stays in its theater."
}
