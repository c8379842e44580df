//! Cancellation of work.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use playhouse_actor::ActorId;

/// A token that tells running work whether its result is still wanted.
///
/// # Examples
///
/// ```
/// use playhouse::prelude::*;
/// use playhouse::resource::ResourcePool;
///
/// let system = System::start()?;
/// let pool = ResourcePool::start(&system, 1, 10)?;
/// let sum = pool.run(|token| {
///     let mut sum = 0_u64;
///     for n in 0..1_000_000 {
///         if n % 1_000 == 0 && token.is_cancelled() {
///             break;
///         }
///         sum += n;
///     }
///     sum
/// });
/// assert_eq!(sum.wait()?, 499_999_500_000);
/// # system.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct CancelToken {
    pub(super) cancelled: Arc<AtomicBool>,
    pub(super) pool_stopped: Arc<AtomicBool>,
    pub(super) owner: Arc<OnceLock<ActorId>>,
}

impl CancelToken {
    /// Returns whether nobody waits for the result: the [`Job`](super::Job) was dropped, the owning actor has ended,
    /// or the pool was stopped. Long work checks this from time to time, and returns early.
    pub fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
            || self.pool_stopped.load(Ordering::Relaxed)
            || self.owner.get().is_some_and(|owner| owner.address().is_stale())
    }
}
