//! Work that a pool has taken.

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

/// The result of a job, and the waker of the task that waits for it.
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

/// Work that a pool has taken. Use `.await`, `.wait()` in a thread outside, or `.then(ctx, ..)` in a handler.
///
/// # Cancel safety
/// Dropping the job cancels the work. Queued work never begins, and running work sees the cancellation in its token.
///
/// # Examples
///
/// ```
/// use playhouse::prelude::*;
/// use playhouse::resource::{Job, ResourcePool};
///
/// let system = System::start()?;
/// let pool = ResourcePool::start(&system, 1, 10)?;
/// let job: Job<usize> = pool.try_run(|_| std::env::args().count())?;
/// assert!(job.wait()? > 0);
/// # system.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
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
    /// The work has panicked, or the pool was stopped: see [`JobError`].
    ///
    /// # Panics
    /// The call is made inside an actor, because it would block the worker.
    #[track_caller]
    pub fn wait(self) -> Result<R, JobError> {
        let shared = Arc::clone(&self.shared);
        block_on(shared.system.core(), self).unwrap_or(Err(JobError::Stopped))
    }

    /// Calls `then` with the result as a message of this actor, which handles other messages in the meantime. The end
    /// of the actor cancels the work. A restart does not: `then` is called on the new state, and
    /// [`Context::incarnation`] tells the incarnations apart.
    #[doc(alias = "pipeToSelf")]
    #[doc(alias = "pipe_to")]
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
        // The work is dropped after the lock is released, because its values are the user's.
        drop(entry);
    }
}

impl<R> fmt::Debug for Job<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Job").field("number", &self.number).field("cancelled", &self.token.is_cancelled()).finish()
    }
}
