//! Mute deadlocks: stages that are muted for each other, beside others that work.
//!
//! A worker may be overloaded only by the parked records of its muted stages: it is *held up*
//! ([`crate::backpressure::overload`]). If those are muted for workers that are held up as well, and so are all workers
//! that these wait for, none is ever relieved. Such workers form a *mute deadlock*. (It is the artificial deadlock of
//! bounded Kahn networks, with a part of the network in it: Parks 1995, section 4. A reader of the network would have
//! to go on with nothing to read. In this runtime writers are let go on, one stage at a time.) If all workers sleep,
//! the worker that fell asleep last breaks it at once ([`Worker::break_deadlock`]). If an actor of some worker always
//! has work, the monitor breaks it, and looks at every tick.
//!
//! *Every reported deadlock is one.* Let K be the workers that the monitor finds at one look, and again at the next
//! one. They were overloaded and held up at both looks, and waited only for workers in K. A worker is relieved when its
//! parked bytes become fewer (or when its own actors put much more before themselves, which does not depend on others).
//! Parked bytes become fewer when a stage goes on. A stage goes on when the worker it is muted for is relieved. One
//! worker of K would therefore have to be the first.
//!
//! A worker with a stage that waits for a full window waits for an event [outside](OUTSIDE) of any deadlock, which ends
//! by itself. A stuck handler may not end. Stages that wait for it do not count, and the others of its worker do not
//! wait for it. The flags are read one after the other, and a worker may therefore have been relieved and held up again
//! between two looks. A stage then goes on too early, by the number of its parked records.
//!
//! *A deadlock may span several systems.* A stage may be muted for a worker of another system
//! ([`crate::backpressure::other_systems`]). Each system's own monitor then looks at all workers that those of the
//! system wait for, and has one of its own stages go on. At the former look, workers of other systems may not have been
//! in the deadlock; a stage then goes on too early, as above.
//!
//! *Every deadlock is found.* An overloaded worker works off its queue and its inbox. Only stages that are not muted
//! yet send to them. The worker is then held up, or relieved.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;

use crate::load::mute_deadlocks::MuteDeadlocks;
use crate::policy::decisions::Idle;
use crate::sync::locks::lock;
use crate::sync::worker_requests::Signal;
use crate::worker::Worker;
use crate::worker::core::AnyWorker;
use crate::worker::inbox::{Presence, WorkerShared};
use crate::worker::system_core::SystemCore;

/// The number that stands for an event other than a worker's relief.
pub(crate) const OUTSIDE: u16 = u16::MAX;

impl MuteDeadlocks {
    /// Searches for a deadlock, and has one stage go on of a deadlock that was found at the last look too.
    pub(crate) fn look(&mut self, system: &SystemCore) {
        let lasting = system.deadlock_among(|worker| self.last.contains(&worker));
        if lasting.is_empty() {
            self.last = system.deadlock();
            return;
        }
        self.turn += 1;
        system.call_with(lasting[self.turn % lasting.len()], Signal::GO_ON);
        self.last.clear();
    }
}

impl Worker {
    /// Called by the worker that fell asleep last. If some workers are in a deadlock, lets a stage go on. Returns
    /// whether the stage is this worker's.
    pub(crate) fn break_deadlock(&self) -> bool {
        if self.system.deadlock().contains(&self.id) {
            {
                // The system knows already that this worker sleeps.
                let mut inbox = self.shared().lock();
                if inbox.presence != Presence::Parked {
                    return false;
                }
                inbox.presence = Presence::Awake;
                self.system.idle.workers.remove(self.id, Idle::Parked);
                self.system.active_more();
                self.note_departures(&inbox);
            }
            self.release_one();
            return true;
        }
        self.system.break_other_deadlocks();
        false
    }
}

impl SystemCore {
    /// Has one of the workers in a deadlock go on. Called by a thread that runs none of them.
    pub(crate) fn break_other_deadlocks(&self) {
        if let Some(worker) = self.deadlock().first() {
            self.call_with(*worker, Signal::GO_ON);
        }
    }

    /// Returns the workers that wait only for each other.
    fn deadlock(&self) -> Vec<u16> {
        self.deadlock_among(|_| true)
    }

    fn deadlock_among(&self, among: impl Fn(u16) -> bool) -> Vec<u16> {
        if !self.worker_table.made().any(|(_, shared)| shared.is_held_up()) {
            return Vec::new();
        }
        let own = self.worker_table.made().filter(|(worker, shared)| among(*worker) && shared.is_held_up());
        let mut deadlock: BTreeMap<AnyWorker, Vec<AnyWorker>> =
            own.map(|(worker, shared)| ((self.id, worker), lock(&shared.waits_for).clone())).collect();
        // Workers of other systems that those wait for, directly or over others.
        let other_systems = |worker: &AnyWorker| worker.0 != self.id;
        let mut found: Vec<AnyWorker> = deadlock.values().flatten().copied().filter(other_systems).collect();
        while let Some(at) = found.pop() {
            if let Some(system) = SystemCore::by_id(at.0).filter(|_| !deadlock.contains_key(&at))
                && let Some((_, shared)) = system.worker_table.made().find(|(worker, _)| *worker == at.1)
                && shared.is_held_up()
            {
                let waits_for = lock(&shared.waits_for).clone();
                found.extend(waits_for.iter().copied().filter(other_systems));
                deadlock.insert(at, waits_for);
            }
        }
        loop {
            let known: BTreeSet<AnyWorker> = deadlock.keys().copied().collect();
            deadlock.retain(|_, waits_for| waits_for.iter().all(|on| known.contains(on)));
            if deadlock.len() == known.len() {
                return known.into_iter().filter(|worker| !other_systems(worker)).map(|(_, worker)| worker).collect();
            }
        }
    }
}

impl WorkerShared {
    /// Returns whether the worker is overloaded only by the parked records of its muted stages.
    fn is_held_up(&self) -> bool {
        // Relaxed, all of it, because two looks have to agree.
        self.muted_stages.load(Ordering::Relaxed) > 0
            && (self.overloaded.load(Ordering::Relaxed) || self.pressed.load(Ordering::Relaxed))
            && self.held_up.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::Ordering;

    use super::*;
    use crate::sync::worker_requests::Signal;
    use crate::{Config, SystemCore};

    /// Starts a system in which each worker waits for the given ones; a worker that waits for none is overloaded by its
    /// mail.
    fn waiting(waits_for: &[&[u16]]) -> Arc<SystemCore> {
        let config = Config { workers: waits_for.len(), stages: waits_for.len(), simulated: Some(0), ..Config::new() };
        let system = SystemCore::start(config).unwrap();
        for ((_, shared), waits_for) in system.worker_table.made().zip(waits_for) {
            shared.overloaded.store(true, Ordering::Relaxed);
            shared.held_up.store(!waits_for.is_empty(), Ordering::Relaxed);
            shared.muted_stages.store(waits_for.len(), Ordering::Relaxed);
            *shared.waits_for.lock().unwrap() = waits_for.iter().map(|on| (system.id, *on)).collect();
        }
        system
    }

    fn called(system: &SystemCore) -> Vec<usize> {
        let is_called = |at: &usize| system.worker_table[*at].lock().signal.get() & Signal::GO_ON != 0;
        (0..system.worker_table.len()).filter(is_called).collect()
    }

    fn end(system: &Arc<SystemCore>) {
        system.end(std::time::Duration::ZERO, &mut |_, _, _| {});
    }

    #[test]
    fn a_mute_deadlock_contains_only_workers_that_wait_for_each_other() {
        for (waits_for, deadlock) in [
            (&[&[1][..], &[0], &[]][..], &[0, 1][..]),
            (&[&[1], &[2], &[0]], &[0, 1, 2]),
            (&[&[0], &[0], &[]], &[0, 1]),
            (&[&[1], &[2], &[]], &[]),
            (&[&[1], &[0, 2], &[]], &[]),
            (&[&[1], &[0, OUTSIDE], &[1]], &[]),
            (&[&[1], &[0], &[3], &[2]], &[0, 1, 2, 3]),
        ] {
            let system = waiting(waits_for);
            assert_eq!(system.deadlock(), deadlock, "{waits_for:?}");
            end(&system);
        }
    }

    #[test]
    fn a_mute_deadlock_over_several_systems_is_found_by_each_of_them() {
        let systems = [waiting(&[&[0], &[]]), waiting(&[&[0], &[]])];
        for (at, system) in systems.iter().enumerate() {
            *system.worker_table[0].waits_for.lock().unwrap() = vec![(systems[1 - at].id, 0)];
        }
        assert_eq!(systems.each_ref().map(|system| system.deadlock()), [[0], [0]]);
        // One worker waits for a worker that runs.
        *systems[1].worker_table[0].waits_for.lock().unwrap() = vec![(systems[0].id, 1)];
        assert_eq!(systems.each_ref().map(|system| system.deadlock()), [[], []]);
        // One worker waits for a worker of a system that has ended.
        end(&systems[1]);
        assert_eq!(systems[0].deadlock(), []);
        end(&systems[0]);
    }

    #[test]
    fn a_relieved_worker_is_in_no_mute_deadlock() {
        let system = waiting(&[&[1], &[0]]);
        system.worker_table[1].overloaded.store(false, Ordering::Relaxed);
        assert_eq!(system.deadlock(), []);
        end(&system);
    }

    #[test]
    fn workers_in_a_mute_deadlock_at_two_looks_are_relieved_in_turn() {
        let system = waiting(&[&[1], &[0], &[]]);
        let mut deadlocks = MuteDeadlocks::default();
        for turn in [1, 0] {
            deadlocks.look(&system);
            assert_eq!(called(&system), []);
            deadlocks.look(&system);
            assert_eq!(called(&system), [turn]);
            system.worker_table[turn].lock().signal.clear(Signal::GO_ON);
        }
        end(&system);
    }

    #[test]
    fn the_last_worker_to_fall_asleep_wakes_one_of_a_mute_deadlock() {
        let system = waiting(&[&[1], &[0], &[]]);
        let last = system.threads.posts[2].lock().unwrap().clone().unwrap();
        assert!(!last.enter(|| last.break_deadlock()));
        assert_eq!(called(&system), [0]);
        end(&system);
    }
}
