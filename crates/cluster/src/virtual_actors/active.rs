//! An activation as its callers see it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use playhouse_actor::ActorRef;

use super::actor::{Activation, VirtualActor};
use super::directory::Directory;
use crate::driver::state::Shared;

/// An activation: one value for the directory, its callers and their messages.
pub struct Active<A: VirtualActor> {
    pub(super) activation: Activation,
    pub(super) directory: ActorRef<Directory<A>>,
    pub(super) actor: OnceLock<ActorRef<A>>,
    shared: Arc<Shared>,
    /// Whether calls may run. It stays `false` from the beginning of the passivation on.
    is_open: AtomicBool,
    /// Whether a handler of a call runs.
    is_running: AtomicBool,
    /// Whether a handler of a call has begun.
    has_run: AtomicBool,
    /// The time of the last call that was admitted, or 0.
    called_ns: AtomicU64,
}

impl<A: VirtualActor> Active<A> {
    pub(super) fn new(activation: Activation, directory: ActorRef<Directory<A>>, shared: Arc<Shared>) -> Active<A> {
        Active {
            activation,
            directory,
            actor: OnceLock::new(),
            shared,
            is_open: AtomicBool::new(true),
            is_running: AtomicBool::new(false),
            has_run: AtomicBool::new(false),
            called_ns: AtomicU64::new(0),
        }
    }

    /// Returns the actor, if calls may be sent to it. The time of the lease is checked when they run.
    #[inline]
    pub(super) fn for_calls(&self) -> Option<ActorRef<A>> {
        let Activation { slot, epoch, .. } = self.activation;
        // Relaxed: a caller that reads an old value sends a call that comes back.
        let is_open = self.is_open.load(Ordering::Relaxed) && self.shared.epoch(slot) == Some(epoch);
        if is_open { self.actor.get().copied() } else { None }
    }

    /// Returns whether a call may run now, and notes the time.
    #[inline]
    pub(super) fn admits(&self) -> bool {
        let Activation { slot, epoch, .. } = self.activation;
        // Acquire: pairs with the Release in `close`.
        if !self.is_open.load(Ordering::Acquire) {
            return false;
        }
        let Some(now) = self.shared.runs_at(slot, epoch, true) else { return false };
        self.called_ns.store(now.as_nanos() as u64, Ordering::Relaxed);
        true
    }

    /// Refuses all further calls.
    pub(super) fn close(&self) {
        self.is_open.store(false, Ordering::Release);
    }

    pub(super) fn set_running(&self, is_running: bool) {
        self.is_running.store(is_running, Ordering::Relaxed);
        if is_running && !self.has_run.load(Ordering::Relaxed) {
            self.has_run.store(true, Ordering::Relaxed);
        }
    }

    /// Returns the time since the last call, if no handler of a call runs.
    pub(super) fn idle_for(&self, now: Duration, activated_at: Duration) -> Option<Duration> {
        let called = Duration::from_nanos(self.called_ns.load(Ordering::Relaxed)).max(activated_at);
        (!self.is_running.load(Ordering::Relaxed)).then(|| now.saturating_sub(called))
    }

    /// Returns whether a handler of a call has begun. A call that its guard has deferred has none yet.
    pub(super) fn has_run(&self) -> bool {
        self.has_run.load(Ordering::Relaxed)
    }
}
