//! Trials: measurements of whether a second worker helps with short messages.
//!
//! With messages of a microsecond, two workers do nearly twice as much as one. With shorter ones that depends on the
//! number of them that cross between the two workers, and on the memory that they share. Short work therefore stays on
//! one worker at first: a worker adopts the stages of idle workers, and shares its work only if much of it waits, or
//! some of it for long. A worker that has done all of the work then gives a part of it to an idle worker, and compares
//! the speed of both with its own speed before.
//!
//! If the trial was in vain, it asks for all stages of the other worker, and keeps its short work to itself for a
//! while. Otherwise both workers keep their stages apart for a while: neither adopts stages of the other one when that
//! is idle for a moment. The verdict holds for 16 ms at first, and 4 times as long whenever the next trial confirms it,
//! up to 1 s.

use std::sync::atomic::Ordering::Relaxed;

use crate::policy::trial_verdict::{GAIN_MIN, GAIN_MIN_AT_FIRST, HALF_NS, SHORT_NS, Trial, Verdict, does_all, gain};
use crate::sync::worker_requests::Signal;
use crate::worker::Worker;
use crate::worker::inbox::Presence;

impl Worker {
    /// Returns whether most of this worker's work lately was short messages.
    pub(crate) fn has_short_work(&self) -> bool {
        // SAFETY: in RUNTIME; short borrow.
        let core = unsafe { self.core() };
        self.average_ns.get() as f64 * core.kinds.spread() < SHORT_NS as f64
    }

    /// Returns whether a worker keeps its stages and adopts none, because a trial has shown that two workers do more
    /// than one.
    pub(crate) fn is_apart(&self, worker: u16) -> bool {
        let shown = &self.system.worker_table[usize::from(worker)].shown;
        // SAFETY: in RUNTIME; short borrow.
        shown.apart_until_ns.load(Relaxed) > unsafe { self.core() }.checked_ns
    }

    /// Returns whether the worker keeps its work to itself, because the work is short and a recent trial was in vain.
    pub(crate) fn keeps_short_work(&self) -> bool {
        // SAFETY: in RUNTIME; short borrow.
        let core = unsafe { self.core() };
        core.checked_ns < core.short_after_ns && self.has_short_work()
    }

    /// Begins a trial if this worker is about to give short work to `worker`, and has done all of the work until now.
    pub(crate) fn begin_trial(&self, worker: u16, now_ns: u64) {
        if self.system.simulation.is_some() || !self.has_short_work() {
            return;
        }
        // SAFETY: in RUNTIME; short borrow.
        let core = unsafe { self.core() };
        if core.trial.is_none() && does_all(self.idle_share_of(self.id, now_ns), self.idle_share_of(worker, now_ns)) {
            // Longer than the trial, which ends at a look at the clock.
            let apart_until_ns = now_ns + 16 * HALF_NS;
            core.trial = Some(Trial {
                worker,
                since_ns: now_ns,
                handled: self.handled_with(worker),
                is_second_half: false,
                average_ns: core.pace.average_ns(),
                apart_until_ns,
            });
            self.keep_apart(worker, apart_until_ns);
        }
    }

    /// Returns the number of messages that this worker and another one have handled. The number of the other one is as
    /// of its last look at the clock.
    fn handled_with(&self, worker: u16) -> u64 {
        self.handled_in_all().wrapping_add(self.system.worker_table[usize::from(worker)].shown.handled.load(Relaxed))
    }

    /// Notes that this worker and another one keep their stages until `until_ns`, unless both are idle for much of the
    /// time.
    fn keep_apart(&self, worker: u16, until_ns: u64) {
        for worker in [self.id, worker] {
            self.system.worker_table[usize::from(worker)].shown.apart_until_ns.fetch_max(until_ns, Relaxed);
        }
    }

    /// Takes a note of the start of a trial back. A later note stays, because another trial has left it.
    fn keep_apart_no_more(&self, trial: &Trial) {
        for worker in [self.id, trial.worker] {
            let until_ns = &self.system.worker_table[usize::from(worker)].shown.apart_until_ns;
            let _ = until_ns.compare_exchange(trial.apart_until_ns, 0, Relaxed, Relaxed);
        }
    }

    /// Checks this worker's trial, at each look at the clock.
    pub(crate) fn look_at_trial(&self, now_ns: u64) {
        // SAFETY: in RUNTIME; short borrow.
        let core = unsafe { self.core() };
        let Some(mut trial) = core.trial.take() else { return };
        let ns = now_ns.saturating_sub(trial.since_ns);
        if ns < HALF_NS {
            core.trial = Some(trial);
            return;
        }
        let handled = self.handled_with(trial.worker);
        let gain = gain(trial.average_ns, handled.wrapping_sub(trial.handled), ns);
        if !trial.is_second_half && gain > GAIN_MIN_AT_FIRST {
            (trial.since_ns, trial.handled, trial.is_second_half) = (now_ns, handled, true);
            core.trial = Some(trial);
            return;
        }
        let in_vain = gain <= GAIN_MIN;
        let verdict = Verdict::after(core.verdict, in_vain);
        core.verdict = Some(verdict);
        let holds_until_ns = now_ns.saturating_add(verdict.holds_ns);
        if !in_vain {
            self.keep_apart(trial.worker, holds_until_ns);
        } else {
            self.keep_apart_no_more(&trial);
            core.short_after_ns = holds_until_ns;
            let mut inbox = self.system.worker_table[usize::from(trial.worker)].lock();
            // An idle worker is not asked, because other workers adopt its stages.
            if inbox.presence == Presence::Awake {
                inbox.asks_for_all = Some(self.id);
                inbox.signal.raise(Signal::THIEF);
            }
        }
    }

    /// Notes that this worker was idle for `ns` nanoseconds. A trial with such a long time without work tells nothing.
    pub(crate) fn note_idle_time(&self, ns: u64) {
        if ns < HALF_NS {
            return;
        }
        // SAFETY: in RUNTIME; short borrow.
        if let Some(trial) = unsafe { self.core() }.trial.take() {
            self.keep_apart_no_more(&trial);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::policy::trial_verdict::HOLDS_NS_MIN;
    use crate::worker::core::Core;
    use crate::*;

    /// Returns the verdicts after both halves of a trial in which both workers have handled `first` and then `second`
    /// messages.
    fn judge(first: u64, second: u64) -> [Option<Verdict>; 2] {
        let system = SystemCore::start(Config { workers: 2, simulated: Some(0), ..Config::new() }).unwrap();
        let trial = || {
            Some(Trial {
                worker: 1,
                since_ns: 0,
                handled: 0,
                is_second_half: false,
                average_ns: 50,
                apart_until_ns: 4 * HALF_NS,
            })
        };
        let mut core = Core::new(1);
        core.trial = trial();
        let worker = Worker::new(&system, 0, Arc::default(), core);
        let verdicts = worker.enter(|| {
            // A new thread of a worker does not go on with the trial of its predecessor, whose counters it does not
            // have.
            assert!(worker.with_core(|core| std::mem::replace(&mut core.trial, trial())).unwrap().is_none());
            worker.look_at_trial(HALF_NS - 1);
            assert_eq!(worker.with_core(|core| core.verdict), Some(None));
            [(first, HALF_NS), (first + second, 2 * HALF_NS)].map(|(handled, now_ns)| {
                worker.handled.set(handled);
                worker.look_at_trial(now_ns);
                worker.with_core(|core| core.verdict).unwrap()
            })
        });
        let are_apart = |of: usize| system.worker_table[of].shown.apart_until_ns.load(Relaxed) > 2 * HALF_NS;
        assert_eq!([0, 1].map(are_apart), [verdicts[1].is_some_and(|verdict| !verdict.in_vain); 2]);
        system.end(std::time::Duration::ZERO, &mut |_, _, _| {});
        verdicts
    }

    #[test]
    fn a_trial_is_judged_by_the_speed_of_both_workers() {
        let verdict = |in_vain| Some(Verdict { in_vain, holds_ns: HOLDS_NS_MIN });
        // The messages of 50 ns that one worker handles in a half, in percent.
        let judge = |first, second| judge(HALF_NS / 50 * first / 100, HALF_NS / 50 * second / 100);
        assert_eq!(judge(90, 90), [None, verdict(true)]);
        assert_eq!(judge(90, 180), [None, verdict(false)], "cold caches");
        assert_eq!(judge(50, 180), [verdict(true); 2], "much slower");
    }
}
