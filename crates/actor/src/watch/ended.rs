//! The end of an actor, for threads and tasks: [`ActorRef::ended`].

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context as PollContext, Poll, Waker};
use std::thread::Thread;

use playhouse_executor::{SystemCore, WaitOutside, WaitsOutside, contained};

use crate::actor::outside::assert_outside;
use crate::actor::reference::ActorRef;
use crate::actor::{Actor, Ended, Notify, StopReason, Watcher};
use crate::lock::lock;
use crate::watch::Watch;

/// A future of the reason for which an actor ends: see [`ActorRef::ended`].
///
/// # Examples
///
/// ```
/// # use playhouse_actor::*;
/// # #[derive(Default)]
/// # struct Counter(u64);
/// # impl Actor for Counter {}
/// # #[derive(Clone)]
/// # struct Add(u64);
/// # impl Message for Add { type Reply = (); }
/// # impl Handler<Add> for Counter {
/// #     fn handle(&mut self, Add(by): Add, _: &mut Context<Self>) { self.0 += by; }
/// # }
/// # struct Get;
/// # impl Message for Get { type Reply = u64; }
/// # impl Handler<Get> for Counter {
/// #     fn handle(&mut self, _: Get, _: &mut Context<Self>) -> u64 { self.0 }
/// # }
/// # let system = System::start()?;
/// let counter = system.spawn(Counter::default());
/// let end: UntilEnded = counter.ended();
/// counter.drain();
/// assert_eq!(end.wait(), StopReason::Stopped); // async code writes `end.await`
/// # system.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "this tells the end of an actor when it is awaited or waited for"]
pub struct UntilEnded {
    end: Arc<End>,
    /// Ends the watch.
    unwatch: Box<dyn Fn() + Send + Sync>,
    /// `None` if the system does not exist any more.
    outside: Option<(Arc<SystemCore>, WaitOutside)>,
}

/// The end of one actor, as far as one waiter knows.
struct End(Mutex<State>);

#[derive(Default)]
struct State {
    reason: Option<StopReason>,
    waker: Option<Waker>,
    thread: Option<Thread>,
}

impl End {
    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.0)
    }

    /// Records the reason, if none is recorded. Returns the waker of the waiting task.
    fn note(&self, reason: StopReason) -> Option<Waker> {
        let mut state = self.lock();
        state.reason.get_or_insert(reason);
        if let Some(thread) = state.thread.take() {
            thread.unpark();
        }
        state.waker.take()
    }
}

impl WaitsOutside for End {
    fn system_ended(&self) -> Option<Waker> {
        self.note(StopReason::Shutdown)
    }
}

/// The notice of the end. A notice that is dropped uncalled belonged to a system that has ended.
struct Notice(Arc<End>);

impl Notice {
    fn give(&self, reason: StopReason) {
        if let Some(waker) = self.0.note(reason) {
            // The waker belongs to any executor. A panic in it must not reach the actor that has ended.
            contained(|| waker.wake()).unwrap_or(());
        }
    }
}

impl Drop for Notice {
    fn drop(&mut self) {
        self.give(StopReason::Shutdown);
    }
}

impl UntilEnded {
    /// Blocks this thread until the actor has ended. In a simulated system, this call runs the system until nothing is
    /// left to do.
    ///
    /// # Panics
    /// Inside an actor, because it would hold the worker: `.await` this in an async handler, or watch the actor.
    ///
    /// In a simulated system, if nothing is left to do that could end the actor.
    #[track_caller]
    #[doc(alias("join", "wait_for_shutdown", "wait_for_stop"))]
    pub fn wait(self) -> StopReason {
        assert_outside("`.wait()`", "`.await` the end in an async handler, or use `ctx.watch(..)`");
        if let Some((system, _)) = &self.outside {
            self.end.lock().thread = Some(std::thread::current());
            system.block_until(None, &mut || self.end.lock().reason.is_some());
        }
        let reason = self.end.lock().reason.clone();
        match reason {
            Some(reason) => reason,
            None => panic!(
                "nothing is left to do in the simulated system that could end the actor: stop it before you wait for its end"
            ),
        }
    }
}

impl Future for UntilEnded {
    type Output = StopReason;

    fn poll(self: Pin<&mut Self>, cx: &mut PollContext<'_>) -> Poll<StopReason> {
        // A waker may call any code when it is cloned or dropped. Both therefore happen without the lock.
        let waker = cx.waker().clone();
        let mut state = self.end.lock();
        let (reason, _former) = match state.reason.clone() {
            Some(reason) => (Some(reason), state.waker.take()),
            None => (None, state.waker.replace(waker)),
        };
        drop(state);
        reason.map_or(Poll::Pending, Poll::Ready)
    }
}

impl Drop for UntilEnded {
    fn drop(&mut self) {
        let (is_known, _waker) = {
            let mut state = self.end.lock();
            (state.reason.is_some(), state.waker.take())
        };
        if !is_known {
            (self.unwatch)();
        }
    }
}

impl std::fmt::Debug for UntilEnded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("UntilEnded").field("reason", &self.end.lock().reason).finish_non_exhaustive()
    }
}

/// The last number that was given to a watch from outside.
static LAST_OUTSIDE: AtomicU64 = AtomicU64::new(0);

impl<A: Actor> ActorRef<A> {
    /// Returns the end of the actor, to await in a task or an async handler, or to [wait](UntilEnded::wait) for in a
    /// thread. Actors use [`ctx.watch`](crate::Context::watch), which notifies by a call.
    ///
    /// The watch begins with this call, and ends when the future is dropped. The actor has ended when its `stopped`
    /// hook has returned and no restart follows.
    ///
    /// The reason is [`StopReason::NotAlive`] if the actor had ended before, or was about to end; the reason of an
    /// actor that has migrated may still be known. It is [`StopReason::TheaterLost`] if the actor's theater is lost or
    /// was shut down.
    ///
    /// An actor that awaits its own end waits forever. Two actors that await each other's end do, too. This is not
    /// detected as a cycle, because no ask is part of it.
    ///
    /// # Cancel safety
    /// The future can be polled in `select!` repeatedly. Every poll after the end returns the same reason.
    ///
    /// ```
    /// # use playhouse_actor::*;
    /// struct Job;
    /// impl Actor for Job {}
    ///
    /// let system = System::start().unwrap();
    /// let job = system.spawn(Job);
    /// let ended = job.ended();
    /// job.stop();
    /// assert_eq!(ended.wait(), StopReason::Stopped);
    /// assert_eq!(job.ended().wait(), StopReason::NotAlive);
    /// ```
    #[doc(alias("monitor", "join", "wait_for_shutdown"))]
    pub fn ended(self) -> UntilEnded {
        let end = Arc::new(End(Mutex::default()));
        let outside = SystemCore::by_id(self.address.raw().system()).map(|system| {
            let outside = system.wait_outside(&end);
            (system, outside)
        });
        // Relaxed: the numbers only have to differ.
        let watcher = Watcher::Outside(LAST_OUTSIDE.fetch_add(1, Ordering::Relaxed));
        if outside.is_some() {
            let notice = Notice(Arc::clone(&end));
            let notify = Notify::Call(Box::new(move |ended: Ended| notice.give(ended.reason)));
            self.address.send_control(Watch::Begin { watcher, notify, who: self.id() });
        } else {
            drop(end.note(StopReason::NotAlive));
        }
        let unwatch = Box::new(move || self.address.send_control(Watch::End { watcher }));
        UntilEnded { end, unwatch, outside }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use super::*;
    use crate::actor::context::Context;
    use crate::actor::watcher::HasWatches;
    use crate::message::{Handler, Message};
    use crate::system::System;

    struct Job;
    impl Actor for Job {}

    struct CountWatchers;
    impl Message for CountWatchers {
        type Reply = usize;
    }

    impl Handler<CountWatchers> for Job {
        fn handle(&mut self, _: CountWatchers, ctx: &mut Context<Self>) -> usize {
            ctx.cx.with_extra(|extra| extra.watches().watchers.len())
        }
    }

    #[test]
    fn an_end_that_is_dropped_is_not_watched_any_more() {
        let system = System::builder().simulated(1).start().unwrap();
        let job = system.spawn(Job);
        let kept = job.ended();
        for _ in 0..1_000 {
            let ended = pin!(job.ended());
            assert!(ended.poll(&mut PollContext::from_waker(Waker::noop())).is_pending());
        }
        assert_eq!(job.ask(CountWatchers).wait(), Ok(1));
        drop(kept);
        assert_eq!(job.ask(CountWatchers).wait(), Ok(0));
    }

    #[test]
    fn an_end_that_is_known_can_be_polled_again() {
        let system = System::builder().simulated(1).start().unwrap();
        let job = system.spawn(Job);
        let mut ended = pin!(job.ended());
        job.kill();
        system.run_until_idle();
        let mut cx = PollContext::from_waker(Waker::noop());
        assert_eq!([(); 2].map(|()| ended.as_mut().poll(&mut cx)), [(); 2].map(|()| Poll::Ready(StopReason::Killed)));
    }
}
