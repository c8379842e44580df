//! Work that waits for room in a pool.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as PollContext, Poll};

use super::queue::{Shared, State};
use super::{CancelToken, Job, JobError, TryRunError};
use crate::panics::lock;
use crate::wait::block_on;

/// Work that a pool takes when there is room: see [`ResourcePool::run`](super::ResourcePool::run).
///
/// # Cancel safety
/// Dropping it cancels the work. Queued work never begins, and running work sees the cancellation in its token.
///
/// # Examples
///
/// ```
/// use playhouse::prelude::*;
/// use playhouse::resource::ResourcePool;
///
/// let system = System::start()?;
/// let pool = ResourcePool::start(&system, 1, 0)?;
/// let runs: Vec<_> = (0..4).map(|n| pool.run(move |_| n)).collect();
/// for (n, run) in runs.into_iter().enumerate() {
///     assert_eq!(run.wait()?, n);
/// }
/// # system.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "nothing is done until it is awaited or waited for"]
pub struct Run<R, F> {
    pub(super) shared: Arc<Shared>,
    pub(super) work: Option<F>,
    pub(super) waiter: Option<u64>,
    pub(super) job: Option<Job<R>>,
}

// No field is ever pinned.
impl<R, F> Unpin for Run<R, F> {}

impl<R, F> Run<R, F>
where
    R: Send + 'static,
    F: FnOnce(&CancelToken) -> R + Send + 'static,
{
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
}

impl<R, F> Run<R, F> {
    /// Leaves the queue of tasks that wait for room.
    fn leave_queue(&mut self, state: &mut State) {
        if let Some(number) = self.waiter.take() {
            state.waiting.retain(|(other, _)| *other != number);
            self.shared.wake_first_waiter(state);
        }
    }
}

impl<R, F> Future for Run<R, F>
where
    R: Send + 'static,
    F: FnOnce(&CancelToken) -> R + Send + 'static,
{
    type Output = Result<R, JobError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut PollContext<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        if let Some(work) = this.work.take() {
            let shared = Arc::clone(&this.shared);
            let mut state = lock(&shared.state);
            match shared.enqueue(&mut state, work) {
                Ok(job) => {
                    this.job = Some(job);
                    this.leave_queue(&mut state);
                }
                Err(TryRunError::Stopped(work)) => {
                    // The work is dropped after the lock is released, because its values are the user's.
                    drop(state);
                    drop(work);
                    return Poll::Ready(Err(JobError::Stopped));
                }
                Err(TryRunError::Full(work)) => {
                    this.work = Some(work);
                    let waker = cx.waker().clone();
                    let known = this.waiter;
                    match state.waiting.iter_mut().find(|(number, _)| Some(*number) == known) {
                        Some((_, former)) => *former = waker,
                        None => {
                            let number = state.next;
                            state.next += 1;
                            this.waiter = Some(number);
                            state.waiting.push_back((number, waker));
                        }
                    }
                    return Poll::Pending;
                }
            }
        }
        let job = this.job.as_mut().expect("the pool has taken the work, and a finished future is not polled again");
        Pin::new(job).poll(cx)
    }
}

impl<R, F> Drop for Run<R, F> {
    fn drop(&mut self) {
        if self.waiter.is_some() {
            let shared = Arc::clone(&self.shared);
            self.leave_queue(&mut lock(&shared.state));
        }
    }
}

impl<R, F> fmt::Debug for Run<R, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Run").field("waits", &self.waiter.is_some()).field("job", &self.job).finish()
    }
}
