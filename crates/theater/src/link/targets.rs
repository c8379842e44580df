//! The actors that the handles of the other end of a link mean.

use std::sync::TryLockError;
use std::sync::atomic::Ordering;

use playhouse_actor::{ActorId, Tell, Watcher};
use playhouse_executor::Lane;
use rustc_hash::{FxHashMap, FxHashSet};

use super::fault::{Fault, HANDLES_MAX};
use crate::link::frame::{Handle, Head};
use crate::link::{Link, READS, TARGETS};
use crate::lock::lock;

/// The meaning of one handle of the other end.
#[derive(Clone, Copy)]
pub(crate) struct Target {
    pub(crate) id: ActorId,
    /// The receiver of mail to the actor, as long as there is an arrival buffer.
    pub(crate) arrival_buffer: Option<ActorId>,
    /// Whether anything was sent to it since the last fence.
    pub(crate) is_reached: bool,
    /// Whether it was an incoming actor that came over this link at the last look.
    pub(crate) is_incoming: bool,
    /// The number of messages and requests to it since the actor has left. The other end was told so at the first one.
    pub(crate) told: u32,
    /// Whether the other end was told that it has ended.
    pub(crate) told_end: bool,
}

impl Target {
    pub(super) fn receiver(&self) -> ActorId {
        self.arrival_buffer.unwrap_or(self.id)
    }
}

/// The meanings of the other end's handles.
#[derive(Default)]
pub(super) struct Targets {
    pub(super) all: Vec<Option<Target>>,
    /// Handles with mail to an arrival buffer, by that buffer: few of many.
    pub(super) before: FxHashMap<ActorId, Vec<Handle>>,
    /// Handles that have got mail since the last fence, except by an arrival buffer.
    pub(super) reached: FxHashSet<Handle>,
    /// Handles that were given to actors which had ended already, and of which the other end was not told.
    pub(super) unbound: FxHashSet<Handle>,
    /// The position at which the search for ended actors goes on.
    pub(super) looked_at: usize,
}

impl Targets {
    pub(super) fn get(&self, handle: Handle) -> Option<Target> {
        self.all.get(handle as usize).copied().flatten()
    }

    /// Reserves `handle` for the other end: for now it means no actor. Handles come one after the other, and again when they were released.
    pub(super) fn reserve(&mut self, handle: Handle) -> Result<(), Fault> {
        let next = self.all.len();
        match self.all.get(handle as usize) {
            Some(None) => Ok(()),
            None if handle as usize != next => Err(Fault::Handle { found: handle, next }),
            None if next >= HANDLES_MAX => Err(Fault::Handles),
            None => {
                self.all.push(None);
                Ok(())
            }
            Some(Some(_)) => Err(Fault::Handle { found: handle, next }),
        }
    }

    /// Binds a reserved handle to this target, or to none.
    pub(super) fn bind(&mut self, handle: Handle, target: Option<Target>) {
        if let Some(free @ None) = self.all.get_mut(handle as usize) {
            let has_ended = target.is_none_or(|target| target.id.address().is_stale());
            *free = target.map(|target| Target { told_end: has_ended, ..target });
            if has_ended {
                self.unbound.insert(handle);
            } else {
                self.unbound.remove(&handle);
            }
            let Some(target) = target else { return };
            if let Some(arrival_buffer) = target.arrival_buffer {
                self.before.entry(arrival_buffer).or_default().push(handle);
            }
        }
    }

    pub(super) fn release(&mut self, handle: Handle) {
        let released = self.all.get_mut(handle as usize).and_then(Option::take);
        self.reached.remove(&handle);
        self.unbound.remove(&handle);
        if let Some(arrival_buffer) = released.and_then(|target| target.arrival_buffer)
            && let Some(before) = self.before.get_mut(&arrival_buffer)
        {
            before.retain(|known| *known != handle);
        }
    }

    /// Returns some ended actors of which the other end was not told. Frequent calls find all of them.
    pub(super) fn ended(&mut self) -> Vec<Handle> {
        /// The least number of handles that one call examines.
        const LOOKED_AT: usize = 1_024;
        /// The share of handles that one call examines, 1 in 64, so that all are examined within seconds.
        const ONE_IN: usize = 64;
        let count = LOOKED_AT.max(self.all.len() / ONE_IN).min(self.all.len());
        let mut ended: Vec<Handle> = self.unbound.drain().collect();
        ended.sort_unstable();
        for _ in 0..count {
            self.looked_at = (self.looked_at + 1) % self.all.len();
            if let Some(target) = &mut self.all[self.looked_at]
                && !target.told_end
                && target.id.address().is_stale()
            {
                target.told_end = true;
                ended.push(self.looked_at as Handle);
            }
        }
        ended
    }

    /// Returns the actors that got mail since the last call.
    pub(super) fn take_reached(&mut self) -> Vec<ActorId> {
        let mut reached: Vec<Handle> = self.reached.drain().collect();
        reached.sort_unstable();
        let target = |handle: Handle| {
            let target = self.all.get_mut(handle as usize)?.as_mut()?;
            std::mem::take(&mut target.is_reached).then_some(target.id)
        };
        reached.into_iter().filter_map(target).collect()
    }

    /// Notes that the other end was not told after all that the actor has left.
    pub(super) fn forget_told(&mut self, handle: Handle) {
        if let Some(Some(target)) = self.all.get_mut(handle as usize) {
            target.told = 0;
        }
    }

    /// Directs mail for this handle to the arrival buffer, if there is one.
    pub(super) fn open_arrival_buffer(&mut self, handle: Handle, arrival_buffer: Option<ActorId>) {
        let Some(Some(target)) = self.all.get_mut(handle as usize) else { return };
        target.is_incoming = false;
        if arrival_buffer.is_some() {
            target.arrival_buffer = arrival_buffer;
        }
        if let Some(arrival_buffer) = arrival_buffer {
            self.before.entry(arrival_buffer).or_default().push(handle);
        }
    }

    pub(super) fn close_arrival_buffer(&mut self, arrival_buffer: ActorId) {
        for handle in self.before.remove(&arrival_buffer).unwrap_or_default() {
            if let Some(target) = &mut self.all[handle as usize] {
                target.arrival_buffer = None;
            }
        }
    }
}

impl Link {
    /// Returns the target of the other end's `handle`. Mail to an incoming actor that was committed goes to an arrival buffer.
    pub(crate) fn meaning(&self, handle: Handle) -> Option<Target> {
        let target = TARGETS.with_borrow(|targets| targets.get(handle))?;
        if !target.is_incoming {
            return Some(target);
        }
        let arrival_buffer = self.directory.open_arrival_buffer(self.number, target.id);
        TARGETS.with_borrow_mut(|targets| targets.open_arrival_buffer(handle, arrival_buffer));
        TARGETS.with_borrow(|targets| targets.get(handle))
    }

    /// Calls `f` with the watchers of the incoming actor of the other end's handle, if its source has committed it, according to this theater.
    pub(super) fn with_incoming_watchers<R>(
        &self,
        handle: Handle,
        f: impl FnOnce(&mut Vec<(Watcher, Tell)>) -> R,
    ) -> Option<R> {
        let target = TARGETS.with_borrow(|targets| targets.get(handle))?;
        if !target.is_incoming && target.arrival_buffer.is_none() {
            return None;
        }
        self.directory.with_incoming_watchers(self.number, target.id, f)
    }

    /// Returns whether another thread reads this link now.
    pub(crate) fn is_read_by_another_thread(&self) -> bool {
        READS.get() != Some(self.number) && matches!(self.inn.try_lock(), Err(TryLockError::WouldBlock))
    }

    /// Closes an arrival buffer in which nothing waits any more: later mail goes to the actor.
    pub(crate) fn close_arrival_buffer(&self, arrival_buffer: ActorId) {
        if READS.get() == Some(self.number) {
            TARGETS.with_borrow_mut(|targets| targets.close_arrival_buffer(arrival_buffer));
        } else {
            lock(&self.inn).targets.close_arrival_buffer(arrival_buffer);
        }
    }

    /// Tells the other end that the actor that it calls `handle` has moved. Returns false if it has come, and its cell has not learned that yet.
    pub(super) fn tell_moved(&self, handle: Handle, target: &Target) -> bool {
        if self.registry.migration_vtable(target.id).is_none() {
            return true;
        }
        if !self.directory.is_remote(target.id) {
            return false;
        }
        if target.told == 1 {
            // Relaxed: it is a counter only.
            self.link_table.told_moved.fetch_add(1, Ordering::Relaxed);
        }
        let _ = self.send(Lane::Normal, |out| Head::Moved { handle }.write(out));
        true
    }
}
