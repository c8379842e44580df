//! Looking somebody up in another theater.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use playhouse_actor::ActorRef;
use playhouse_actor::wire::Remote;

use crate::error::FindError;

/// An answer to come.
pub(crate) struct Answer<A: Remote> {
    state: Mutex<State<A>>,
    here: Condvar,
}

struct State<A: Remote> {
    found: Option<Result<ActorRef<A>, FindError>>,
    waker: Option<Waker>,
}

impl<A: Remote> Answer<A> {
    pub(crate) fn new() -> Arc<Answer<A>> {
        Arc::new(Answer { state: Mutex::new(State { found: None, waker: None }), here: Condvar::new() })
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State<A>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn give(&self, found: Result<ActorRef<A>, FindError>) {
        let waker = {
            let mut state = self.lock();
            state.found.get_or_insert(found);
            state.waker.take()
        };
        self.here.notify_all();
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

/// A look-up under way: see [`Theater::find`](crate::Theater::find). It goes on if this is dropped.
#[must_use = "a look-up tells its result when it is awaited or waited for"]
pub struct Find<A: Remote>(pub(crate) Arc<Answer<A>>);

impl<A: Remote> Find<A> {
    /// Blocks this thread until the answer is there.
    ///
    /// # Errors
    /// Why nobody was found.
    ///
    /// # Panics
    /// Inside an actor: it would hold the worker. Use `.await` there.
    pub fn wait(self) -> Result<ActorRef<A>, FindError> {
        assert!(
            playhouse_executor::with_current_system(|system| system.is_none()),
            "`.wait()` was called inside an actor, whose worker it would hold: `.await` the look-up in an async handler"
        );
        let mut state = self.0.lock();
        loop {
            if let Some(found) = state.found.take() {
                return found;
            }
            state = self.0.here.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl<A: Remote> Future for Find<A> {
    type Output = Result<ActorRef<A>, FindError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut state = self.0.lock();
        match state.found.take() {
            Some(found) => Poll::Ready(found),
            None => {
                state.waker = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }
}
