//! The state of a member that other threads read.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use playhouse_actor::Message;

use super::clock::Clock;
use crate::membership::{End, Time};
use crate::view::{MemberId, SLOTS_MAX, View};

/// The cluster from the view of one member. [`Cluster::watch`](crate::Cluster::watch) sends it as a message.
///
/// # Examples
///
/// ```
/// use playhouse_actor::{Actor, Context, Handler};
/// use playhouse_cluster::ClusterState;
///
/// struct Display;
/// impl Actor for Display {}
/// impl Handler<ClusterState> for Display {
///     fn handle(&mut self, state: ClusterState, _: &mut Context<Self>) {
///         let members = state.view.map_or(0, |view| view.members.len());
///         println!("{members} members, {} slots are open", state.open);
///     }
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClusterState {
    /// The present id of this member. A member that was declared dead has another one afterwards.
    pub me: MemberId,
    /// The last adopted view, or `None` before the ledger was read.
    pub view: Option<Arc<View>>,
    /// The number of slots that this member runs, as long as its lease lasts.
    pub open: usize,
    /// The end of the last life of this member, if there was one. After [`End::Left`] there is no other life.
    pub end: Option<End>,
    /// Whether the ledger has lost or replaced views that this member knows. The member then changes nothing, and its lease ends. It goes on
    /// when the views are back. Otherwise end all members, and start them again.
    pub is_frozen: bool,
}

impl Message for ClusterState {
    type Reply = ();
}

/// One member's run of a slot: 0, or twice the epoch, and 1 more if no other member runs the slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Run(u64);

impl Run {
    /// The member does not run the slot.
    pub(crate) const NONE: Run = Run(0);

    /// Returns the run of a slot that no other member runs, or that its epoch protects. An epoch is at most the number of views.
    pub(crate) fn new(epoch: u64, is_exclusive: bool) -> Run {
        Run(epoch << 1 | u64::from(is_exclusive))
    }

    fn epoch(self, is_exclusive: bool) -> Option<u64> {
        (self != Run::NONE && (self.0 & 1 == 1 || !is_exclusive)).then_some(self.0 >> 1)
    }
}

/// The state that the actor writes, and all threads read.
pub(crate) struct Shared {
    pub(crate) clock: Clock,
    /// The end of the lease in nanoseconds, or 0 without a lease.
    lease_end: AtomicU64,
    /// The run of each slot. An epoch never comes back once it was replaced.
    runs: Box<[AtomicU64]>,
    /// The version of the adopted view, or 0.
    version: AtomicU64,
    state: Mutex<ClusterState>,
}

impl Shared {
    pub(crate) fn new(clock: Clock) -> Shared {
        let state = ClusterState { me: MemberId(0), view: None, open: 0, end: None, is_frozen: false };
        // A later life may find a cluster with another number of slots. Room for all costs 512 KiB.
        let runs = (0..SLOTS_MAX).map(|_| AtomicU64::new(0)).collect();
        Shared { clock, lease_end: AtomicU64::new(0), runs, version: AtomicU64::new(0), state: Mutex::new(state) }
    }

    fn run(&self, slot: usize) -> Run {
        // Acquire: pairs with the Release in `set_run`.
        Run(self.runs.get(slot).map_or(0, |run| run.load(Ordering::Acquire)))
    }

    /// Returns the epoch of a slot that this member runs now. `is_exclusive`: and no other one.
    pub(crate) fn runs(&self, slot: usize, is_exclusive: bool) -> Option<u64> {
        let epoch = self.run(slot).epoch(is_exclusive)?;
        self.runs_at(slot, epoch, is_exclusive).map(|_| epoch)
    }

    /// Returns the epoch of a slot that this member and no other one runs while it has a lease.
    pub(crate) fn epoch(&self, slot: usize) -> Option<u64> {
        self.run(slot).epoch(true)
    }

    /// Returns the present time, if this member runs a slot at this epoch now. `is_exclusive`: and no other one.
    pub(crate) fn runs_at(&self, slot: usize, epoch: u64, is_exclusive: bool) -> Option<Time> {
        let is_same = || self.run(slot).epoch(is_exclusive) == Some(epoch);
        if !is_same() {
            return None;
        }
        let lease_end = self.lease_end.load(Ordering::Acquire);
        let now = self.clock.now();
        // The lease may be that of a later life, in which the slot is not open. An equal epoch shows that it is the lease of this one, because the
        // epochs of a life are cleared before the next one has a lease.
        (is_same() && now < Duration::from_nanos(lease_end)).then_some(now)
    }

    pub(crate) fn set_lease_end(&self, end: Option<Time>) {
        let nanos = end.map_or(0, |end| u64::try_from(end.as_nanos()).unwrap_or(u64::MAX));
        // Release: pairs with the Acquire in `runs`. A slot is opened after the lease is written.
        self.lease_end.store(nanos, Ordering::Release);
    }

    pub(crate) fn version(&self) -> u64 {
        // Relaxed: a caller that reads an old value sends its call to the former owner, which forwards it.
        self.version.load(Ordering::Relaxed)
    }

    pub(crate) fn set_version(&self, version: u64) {
        self.version.store(version, Ordering::Relaxed);
    }

    /// Returns whether this member has a lease now.
    pub(crate) fn has_lease(&self) -> bool {
        self.clock.now() < Duration::from_nanos(self.lease_end.load(Ordering::Acquire))
    }

    /// Sets the run of a slot. Only the actor calls it.
    pub(crate) fn set_run(&self, slot: usize, run: Run) {
        if let Some(shared) = self.runs.get(slot)
            && shared.load(Ordering::Relaxed) != run.0
        {
            // Release: pairs with the Acquire in `runs`.
            shared.store(run.0, Ordering::Release);
        }
    }

    /// Ends the life of this member: nothing runs.
    pub(crate) fn stop(&self) {
        self.set_lease_end(None);
        (0..self.runs.len()).for_each(|slot| self.set_run(slot, Run::NONE));
        self.change(|state| state.open = 0);
    }

    pub(crate) fn state(&self) -> ClusterState {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Changes the state.
    pub(crate) fn change<R>(&self, change: impl FnOnce(&mut ClusterState) -> R) -> R {
        change(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
