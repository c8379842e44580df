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
}

impl Message for ClusterState {
    type Reply = ();
}

/// The state that the actor writes, and all threads read.
pub(crate) struct Shared {
    pub(crate) clock: Clock,
    /// The end of the lease in nanoseconds, or 0 without a lease.
    lease_end: AtomicU64,
    /// The epoch of each slot that is open, or 0. An epoch never comes back once it was replaced.
    epochs: Box<[AtomicU64]>,
    /// The version of the adopted view, or 0.
    version: AtomicU64,
    state: Mutex<ClusterState>,
}

impl Shared {
    pub(crate) fn new(clock: Clock) -> Shared {
        let state = ClusterState { me: MemberId(0), view: None, open: 0, end: None };
        // A later life may find a cluster with another number of slots. Room for all costs 512 KiB.
        let epochs = (0..SLOTS_MAX).map(|_| AtomicU64::new(0)).collect();
        let (lease_end, version) = (AtomicU64::new(0), AtomicU64::new(0));
        Shared { clock, lease_end, epochs, version, state: Mutex::new(state) }
    }

    /// Returns the epoch of a slot that this member runs now.
    pub(crate) fn runs(&self, slot: usize) -> Option<u64> {
        let epoch = self.epoch(slot);
        if epoch == 0 { None } else { self.runs_at(slot, epoch).map(|_| epoch) }
    }

    /// Returns the epoch of a slot that this member runs while it has a lease, or 0.
    pub(crate) fn epoch(&self, slot: usize) -> u64 {
        self.epochs.get(slot).map_or(0, |epoch| epoch.load(Ordering::Acquire))
    }

    /// Returns the present time, if this member runs a slot at this epoch now.
    pub(crate) fn runs_at(&self, slot: usize, epoch: u64) -> Option<Time> {
        if self.epoch(slot) != epoch {
            return None;
        }
        let lease_end = self.lease_end.load(Ordering::Acquire);
        let now = self.clock.now();
        // The lease may be that of a later life, in which the slot is not open. An equal epoch shows that it is the lease of this one, because the
        // epochs of a life are cleared before the next one has a lease.
        (self.epoch(slot) == epoch && now < Duration::from_nanos(lease_end)).then_some(now)
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

    /// Sets the epoch of an open slot, or 0 for a closed one. Only the actor calls it.
    pub(crate) fn set_epoch(&self, slot: usize, epoch: u64) {
        if let Some(shared) = self.epochs.get(slot)
            && shared.load(Ordering::Relaxed) != epoch
        {
            // Release: pairs with the Acquire in `runs`.
            shared.store(epoch, Ordering::Release);
        }
    }

    /// Ends the life of this member: nothing runs.
    pub(crate) fn stop(&self) {
        self.set_lease_end(None);
        (0..self.epochs.len()).for_each(|slot| self.set_epoch(slot, 0));
        self.change(|state| state.open = 0);
    }

    pub(crate) fn state(&self) -> ClusterState {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Changes the state, and returns whether it is another one.
    pub(crate) fn change(&self, change: impl FnOnce(&mut ClusterState)) -> bool {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let former = state.clone();
        change(&mut state);
        *state != former
    }
}
