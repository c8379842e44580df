//! The simulated driver: the workers' own code, one step at a time on the caller's thread, with virtual time.
//!
//! Every choice is drawn from the seed: which worker is next, the number of messages it runs, which stage's messages
//! come first, and the victim of each steal. A run can therefore be replayed to the last message, and different seeds
//! explore different interleavings. Choices that only reorder messages of different stages are always allowed, because
//! their order is not promised.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::policy::choices::Choices;
use crate::policy::config::Stealing;
use crate::scheduler::poll;
use crate::sync::locks::lock;
use crate::sync::turns::Turn;
use crate::worker::Worker;
use crate::worker::simulation::{Driver, Simulation};
use crate::worker::system_core::SystemCore;

/// Returns the time in nanoseconds. A larger time than 2^63 - 1 nanoseconds counts as that, because no timer is set for
/// later.
pub fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX / 2)
}

impl Simulation {
    /// Runs until no work is left, or until `done`. With a time: until that has passed, with all work that is due in
    /// it, or until `done`. If another thread runs the system, the two take turns.
    ///
    /// # Panics
    /// From inside an actor of this system; and if this thread runs another simulated system, and another thread runs this one.
    pub(crate) fn run(&self, system: &Arc<SystemCore>, time: Option<Duration>, done: &mut dyn FnMut() -> bool) {
        if let Some(driver) = self.driver.get() {
            return driver.run(time, done);
        }
        let until = time.map(|time| system.now().saturating_add(time));
        let mut drive = self.driving.drive();
        let Some(steps) = system.steps() else { return };
        while !done() {
            let turn = drive.turn();
            if steps.has_ended(&turn) {
                return;
            }
            if steps.rests() {
                // All workers are idle: time moves on to the next timer, if there is one.
                match (steps.next_timer_in(&turn), until) {
                    (Some(next), until) if until.is_none_or(|until| next <= until) => {
                        steps.advance_clock(next);
                        steps.wake_in(&turn);
                    }
                    (_, Some(until)) => return steps.advance_clock(until),
                    (_, None) => return,
                }
            }
            steps.step_in(&turn);
            drop(turn);
            drive.give_way();
        }
    }
}

impl SystemCore {
    /// Has each thread that waits for this simulated system (`run_until_idle`, `wait`) run `driver` instead. Can be
    /// called once; returns false if there is a driver already, or the system is not simulated.
    pub fn set_driver(&self, driver: Arc<dyn Driver>) -> bool {
        self.simulation.as_ref().is_some_and(|simulation| simulation.driver.set(driver).is_ok())
    }

    /// Returns the steps of a simulated system, for its driver. Returns `None` if the system is not simulated, or has
    /// ended.
    pub fn steps(self: &Arc<Self>) -> Option<Steps> {
        self.simulation.as_ref()?;
        let workers: Vec<Arc<Worker>> = self.threads.posts.iter().filter_map(|post| lock(post).clone()).collect();
        (!workers.is_empty()).then(|| Steps { system: Arc::clone(self), workers })
    }
}

/// A simulated system, one step at a time. Its choices are drawn from the system's own seed.
///
/// INVARIANT: the workers are touched only within a turn (`turns.rs`).
pub struct Steps {
    system: Arc<SystemCore>,
    workers: Vec<Arc<Worker>>,
}

impl Steps {
    pub(crate) fn workers(&self) -> &[Arc<Worker>] {
        &self.workers
    }

    /// Begins a turn: no other thread runs the workers.
    ///
    /// # Panics
    /// From inside an actor of the system.
    pub(crate) fn turn(&self) -> Turn<'_> {
        self.simulation().driving.turn()
    }

    /// Returns the same as [`Steps::turn`], or `None` inside an actor of the system.
    pub(crate) fn try_turn(&self) -> Option<Turn<'_>> {
        self.simulation().driving.try_turn()
    }

    /// Returns whether the system's workers have ended, or it has been swept.
    pub(crate) fn has_ended(&self, _: &Turn<'_>) -> bool {
        self.are_workers_ended()
    }

    /// Returns whether the system's workers have ended, or it has been swept. Outside of a turn the answer may be out
    /// of date.
    pub fn are_workers_ended(&self) -> bool {
        self.simulation().has_ended() || self.system.shutdown.ending.load(Ordering::Acquire)
    }

    fn simulation(&self) -> &Simulation {
        self.system.simulation.as_ref().expect("the system is simulated")
    }

    /// Returns whether no worker has work before the next timer. A system that has ended has none.
    pub fn rests(&self) -> bool {
        let is_any_up = || self.workers.iter().any(|worker| worker.shared().mail.is_up());
        self.are_workers_ended() || self.system.active() == 0 && !is_any_up()
    }

    /// Returns the time at which the next timer is due, in the system's time.
    ///
    /// # Panics
    /// From inside an actor of the system.
    pub fn next_timer(&self) -> Option<Duration> {
        self.next_timer_in(&self.turn())
    }

    pub(crate) fn next_timer_in(&self, turn: &Turn<'_>) -> Option<Duration> {
        if self.has_ended(turn) {
            return None;
        }
        let next = self.workers.iter().filter_map(|worker| worker.with_core(|core| core.wheel.next_ns()).flatten());
        next.min().map(Duration::from_nanos)
    }

    /// Sets the clock to `now`, unless it is later.
    pub fn advance_clock(&self, now: Duration) {
        self.system.advance_clock(nanoseconds(now));
    }

    /// Fires the timers that are due, with all workers awake.
    ///
    /// # Panics
    /// From inside an actor of the system.
    pub fn wake(&self) {
        self.wake_in(&self.turn());
    }

    pub(crate) fn wake_in(&self, turn: &Turn<'_>) {
        if self.has_ended(turn) {
            return;
        }
        for worker in &self.workers {
            worker.enter(|| {
                worker.raise();
                worker.flush();
                worker.fire_timers(self.system.now_ns());
            });
        }
    }

    /// Makes one step of one worker.
    ///
    /// # Panics
    /// From inside an actor of the system.
    pub fn step(&self) {
        self.step_in(&self.turn());
    }

    fn step_in(&self, turn: &Turn<'_>) {
        if self.has_ended(turn) {
            return;
        }
        let mut choices = lock(&self.simulation().choices);
        let worker = &self.workers[choices.below(self.workers.len())];
        worker.enter(|| step(worker, &mut choices, &self.system));
        if choices.one_in(64) {
            lock(&self.simulation().deadlocks).look(&self.system);
        }
    }

    /// Has a worker poll the reactor, like one without work would, or (if not all are idle) like one that polls now and
    /// then.
    ///
    /// # Panics
    /// From inside an actor of the system.
    pub fn poll(&self) {
        let turn = self.turn();
        if self.has_ended(&turn) {
            return;
        }
        let timeout = if self.rests() { None } else { Some(Duration::ZERO) };
        let mut choices = lock(&self.simulation().choices);
        let worker = &self.workers[choices.below(self.workers.len())];
        worker.enter(|| {
            worker.raise();
            worker.attend();
            let Some(reactor) = worker.begin_to_poll() else { return };
            if poll::found(reactor, timeout) {
                worker.dispatch(reactor);
            }
            worker.end_to_poll();
        });
    }
}

impl std::fmt::Debug for Steps {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Steps({:?})", self.system)
    }
}

/// Makes one step of one worker.
fn step(worker: &Worker, choices: &mut Choices, system: &SystemCore) {
    worker.raise();
    worker.attend();
    // If another thread drives, time passes while others run.
    if worker.with_core(|core| core.wheel.next_ns()).flatten().is_some_and(|next| next <= system.now_ns()) {
        worker.fire_timers(system.now_ns());
    }
    if cfg!(debug_assertions) && worker.waiting_bytes() < 4096 {
        worker.for_each_waiting(|record| {
            // SAFETY: records of the worker's own queue.
            let record = unsafe { record.as_ref() };
            let runs_it = system.routing.route[record.stage() as usize].load(Ordering::Relaxed);
            assert!(
                record.is_buried() || runs_it == worker.id,
                "I1: a record in the queue of a worker that does not run its stage"
            );
        });
    }
    // A long queue is partitioned more rarely.
    if choices.one_in(2 + worker.waiting_bytes() / 4096) {
        // The messages of one stage first.
        let mut stages = Vec::new();
        worker.for_each_waiting(|record| {
            // SAFETY: records of the worker's own queue.
            let record = unsafe { record.as_ref() };
            if !record.is_buried() && !stages.contains(&record.stage()) {
                stages.push(record.stage());
            }
        });
        if stages.len() > 1 {
            let first = stages[choices.below(stages.len())];
            worker.put_back(worker.extract(|stage| stage == first));
        }
    }
    if choices.one_in(8) {
        worker.checkup();
    }
    if !worker.advance() {
        worker.publish_empty();
        if worker.dirty.get() || worker.advance() {
            return worker.flush();
        }
        worker.weigh();
        if worker.lower()
            && worker.sleep()
            && system.config.stealing != Stealing::None
            && choices.one_in(2)
            && system.config.workers > 1
        {
            let victim = choices.below(system.config.workers) as u16;
            if victim != worker.id {
                worker.ask_for_stages(victim);
            }
        }
        return;
    }
    // Often only one, which gives the most interleavings.
    let bound = if choices.one_in(2) { 1 } else { 1 + choices.below(8) as u64 };
    let stop = worker.gulp(bound);
    debug_assert_ne!(stop, crate::worker::run::GulpEnd::Detached, "a simulated system has no monitor that takes over");
}
