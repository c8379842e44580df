//! Cancelling.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use playhouse_actor::ActorId;

/// Says to work under way that nobody waits for it any more.
#[derive(Clone, Debug)]
pub struct CancelToken {
    pub(super) cancelled: Arc<AtomicBool>,
    pub(super) pool_stopped: Arc<AtomicBool>,
    pub(super) owner: Arc<OnceLock<ActorId>>,
}

impl CancelToken {
    /// Whether the work is for nothing: its [`Job`] was dropped, the actor that was to have it has ended, or the pool was
    /// stopped. Long work looks now and then, and returns.
    pub fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
            || self.pool_stopped.load(Ordering::Relaxed)
            || self.owner.get().is_some_and(|owner| owner.address().is_stale())
    }
}
