//! Work that a pool has taken, or is to take.

use std::fmt;
use std::pin::Pin;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::task::{Context as PollContext, Poll, Waker};

use playhouse_actor::{Actor, Context};

use super::queue::Shared;
use super::{CancelToken, JobError};
use crate::panics::lock;
use crate::wait::{block_on, pipe};

/// Where a result is waited for.
pub(super) struct ResultSlot<R> {
    pub(super) result: Option<Result<R, JobError>>,
    pub(super) waker: Option<Waker>,
}

pub(super) fn complete<R>(slot: &Mutex<ResultSlot<R>>, result: Result<R, JobError>) {
    let waker = {
        let mut slot = lock(slot);
        slot.result = Some(result);
        slot.waker.take()
    };
    waker.inspect(Waker::wake_by_ref);
}

/// Work that a pool has taken. `.await` it, or `.wait()` in a thread outside, or `.then(ctx, ..)` in a handler.
///
/// # Cancel safety
/// Dropping it cancels the work: it is not begun any more, and if it runs, it can see so.
#[must_use = "the work is cancelled when this is dropped"]
pub struct Job<R> {
    pub(super) shared: Arc<Shared>,
    pub(super) number: u64,
    pub(super) token: CancelToken,
    pub(super) slot: Arc<Mutex<ResultSlot<R>>>,
}

impl<R: Send + 'static> Job<R> {
    /// Blocks this thread until the work is done.
    ///
    /// # Errors
    /// Why there is no result.
    ///
    /// # Panics
    /// Inside an actor: it would hold the worker.
    #[track_caller]
    pub fn wait(self) -> Result<R, JobError> {
        let shared = Arc::clone(&self.shared);
        block_on(shared.system.core(), self).unwrap_or(Err(JobError::Stopped))
    }

    /// Has the result handled by `then`, as a message of this actor, which goes on with others meanwhile. When the actor ends,
    /// the work is cancelled.
    pub fn then<A: Actor>(
        self,
        ctx: &mut Context<A>,
        then: impl FnOnce(&mut A, Result<R, JobError>, &mut Context<A>) + Send + 'static,
    ) {
        let _it_has_one_owner = self.token.owner.set(ctx.this().id());
        pipe(ctx, self, then);
    }
}

impl<R> Future for Job<R> {
    type Output = Result<R, JobError>;

    fn poll(self: Pin<&mut Self>, cx: &mut PollContext<'_>) -> Poll<Self::Output> {
        let mut slot = lock(&self.slot);
        match slot.result.take() {
            Some(result) => Poll::Ready(result),
            None => {
                slot.waker = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }
}

impl<R> Drop for Job<R> {
    fn drop(&mut self) {
        self.token.cancelled.store(true, Ordering::Relaxed);
        let entry = {
            let mut state = lock(&self.shared.state);
            let at = state.queue.iter().position(|entry| entry.number == self.number);
            let entry = at.and_then(|at| state.queue.remove(at));
            if entry.is_some() {
                self.shared.wake_first_waiter(&state);
            }
            entry
        };
        // What the work owns is dropped behind the lock.
        drop(entry);
    }
}

impl<R> fmt::Debug for Job<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Job").field("number", &self.number).field("cancelled", &self.token.is_cancelled()).finish()
    }
}
