//! Senders to actors of another system in this process.
//!
//! A worker of system A that sends to an actor of system B is no thread that B may block, because it has others to run.
//! Its stage is muted in A, like for a receiver in A. It is muted while the worker in B is pressed, if the stage is a
//! source by its account ([`crate::load::accounts`]); and while that worker is overloaded, source or not. (No relay is
//! noted over systems. The parked records of the muted stage count for its worker, and the overload therefore reaches
//! that stage's senders.) Requests are exempt: no sender is slowed that waits for an answer.
//!
//! *The stage goes on.* Its worker registers with the worker in B, and then checks whether that is pressed (I4, as in
//! `overload.rs`). It sees the flag down, or is roused when that goes down, and when the worker in B admits sources. If
//! the stage in B is full, the worker that lowers it rouses all workers that have registered with any worker of B. A
//! registered worker is roused as well when B ends, and sees that. The monitor of A rouses it now and then besides.
//!
//! *No worker waits for ever.* Two systems that flood each other may mute all stages that would work off the parked
//! records. Such deadlocks are searched for over all systems ([`crate::backpressure::deadlock`]).
//!
//! *Simulated systems.* A simulated system runs only while a thread runs it, and no thread waits for it. The thread
//! that runs it is a thread outside for other systems, and waits like one, but not for long, because the other system
//! may wait for that thread.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::load::accounts::IN_OTHER_SYSTEM;
use crate::sync::locks::lock;
use crate::worker::Worker;
use crate::worker::core::{MuteRequest, Reason, SystemEpoch};
use crate::worker::inbox::WorkerShared;
use crate::worker::system_core::{SLOTS, SystemCore};

/// The largest time that a thread that runs a simulated system waits for another system, for each message.
const SIMULATED_WAIT: Duration = Duration::from_millis(50);

impl SystemEpoch {
    fn of(system: &SystemCore) -> SystemEpoch {
        SystemEpoch { system: system.id, epoch: SLOTS[usize::from(system.id)].epoch.load(Ordering::Acquire) }
    }

    /// Returns the system, unless it has ended.
    pub(crate) fn find(self) -> Option<Arc<SystemCore>> {
        let system = SystemCore::by_id(self.system)?;
        // After the system was found, because another one may have taken the slot before.
        let epoch = SLOTS[usize::from(self.system)].epoch.load(Ordering::Acquire);
        (epoch == self.epoch).then_some(system)
    }
}

impl Worker {
    /// Notes a message in the normal lane to stage `target` of another `system`. Asks to mute the sender if that stage
    /// is full, or its worker is pressed by the sender.
    pub(crate) fn note_sent_to_other_system(&self, system: &SystemCore, target: u16, bytes: usize) {
        if self.system.simulation.is_some() {
            return system.wait_while_overloaded_for(target, bytes as u64, Some(SIMULATED_WAIT));
        }
        let claimed = self.ownership.claimed();
        let in_handler = self.ownership.is_user() && !claimed.is_null();
        if !in_handler || system.simulation.is_some() || usize::from(target) >= system.routing.route.len() {
            return system.note_unslowed(target);
        }
        // SAFETY: the claimed record stays readable until the next one is claimed.
        let sender = unsafe { (*claimed).stage() };
        let other_system = Some(SystemEpoch::of(system));
        let worker = system.routing.route[usize::from(target)].load(Ordering::Relaxed);
        if system.routing.full[usize::from(target)].is_full() {
            self.request_mute(MuteRequest { sender, receiver: worker, target, source: None, other_system });
        }
        let pressed = system.pressed_by(worker, target);
        if pressed.is_none() && !self.holding.get() {
            return;
        }
        let source = self.accounts.borrow_mut().charge(sender, bytes, pressed.map(|_| IN_OTHER_SYSTEM));
        let Some(receiver) = pressed else { return };
        let shared = &system.worker_table[usize::from(receiver)];
        if source.is_some() {
            system.note_source(receiver);
        } else if !self.accounts.borrow().are_kept() {
            // Without accounts, this worker cannot tell whether the sender is a source.
            shared.standing.note_source();
        }
        let overloads = || shared.overloaded.load(Ordering::Relaxed).then(|| u32::try_from(bytes).unwrap_or(u32::MAX));
        if let Some(owed) = source.or_else(overloads) {
            self.request_mute(MuteRequest { sender, receiver, target, source: Some(owed), other_system });
        }
    }

    /// Registers with the worker that stage `target` of another system is muted for, and then checks whether the stage
    /// stays muted. Returns that worker, and whether the target is full.
    pub(crate) fn stays_muted_in_other_systems(
        &self,
        system: &SystemCore,
        target: u16,
        source: bool,
    ) -> Option<(u16, bool)> {
        let target = usize::from(target);
        // `None`: the system had ended when the sender noted its epoch, and another one had taken the slot.
        let worker = system.routing.route.get(target)?.load(Ordering::Acquire);
        let receiver = if source { system.pressed_by(worker, target as u16).unwrap_or(worker) } else { worker };
        let shared = &system.worker_table[usize::from(receiver)];
        {
            let mut muted = lock(&shared.muted_of_other_systems);
            let me = (self.system_id, self.id);
            if !muted.contains(&me) {
                muted.push(me);
            }
        }
        // SeqCst: as in `stays_muted`. The lock orders this with the end of that system.
        if source {
            shared.muted_on_me.store(true, Ordering::SeqCst);
        }
        if system.shutdown.closed.load(Ordering::Acquire) {
            return None;
        }
        let full = system.routing.full[target].wait_for();
        let pressed = source && shared.is_pressed();
        if pressed {
            system.note_source(receiver);
        }
        (full || pressed).then_some((receiver, full))
    }

    /// Returns the muted stages of this worker, and the reasons.
    pub(crate) fn muted(&self) -> Vec<(u16, Reason)> {
        // SAFETY: in RUNTIME; short borrow.
        let parked = &unsafe { self.core() }.parked;
        let muted = parked.iter().filter(|(_, parked)| matches!(parked.reason, Reason::Muted { .. }));
        muted.map(|(stage, parked)| (*stage, parked.reason)).collect()
    }
}

impl WorkerShared {
    /// Rouses the workers of other systems with stages that are muted for this worker. Those that stay muted register
    /// again.
    pub(crate) fn rouse_other_systems(&self) {
        let muted = std::mem::take(&mut *lock(&self.muted_of_other_systems));
        for (system, worker) in muted {
            // Another system may have this number by now.
            if let Some(system) =
                SystemCore::by_id(system).filter(|system| usize::from(worker) < system.worker_table.len())
            {
                system.rouse(worker);
            }
        }
    }
}

impl SystemCore {
    /// Returns whether a stage of `shared` is muted for another system.
    fn waits_for_other_systems(&self, shared: &WorkerShared) -> bool {
        lock(&shared.waits_for).iter().any(|(system, _)| *system != self.id)
    }

    /// Returns whether a stage is muted for another system.
    pub(crate) fn is_muted_in_other_systems(&self) -> bool {
        self.worker_table.made().any(|(_, shared)| self.waits_for_other_systems(shared))
    }

    /// Rouses the workers with stages that are muted for another system.
    pub(crate) fn rouse_muted_of_other_systems(&self) {
        for (worker, shared) in self.worker_table.made() {
            if self.waits_for_other_systems(shared) {
                self.rouse(worker);
            }
        }
    }
}
