//! The simulated driver: the workers' own code, one step at a time on the caller's thread, with virtual time.
//!
//! Every choice (which worker is next, how many messages it runs, which stage's messages come first, who steals from
//! whom) is drawn from the seed, so a run can be replayed to the last message, and different seeds explore different
//! interleavings. Choices that only reorder messages of different stages are always allowed: nothing is promised about
//! their order.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use crate::config::Stealing;
use crate::locks::lock;
use crate::system::SystemCore;
use crate::worker::Worker;

/// A generator of choices (splitmix64).
struct Choices(u64);

impl Choices {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.next().is_multiple_of(n)
    }
}

/// The driver's own state.
pub(crate) struct Simulation {
    choices: Mutex<Choices>,
}

impl Simulation {
    pub(crate) fn new(seed: u64) -> Simulation {
        Simulation { choices: Mutex::new(Choices(seed)) }
    }

    /// Runs until nothing is left to do, or `done`.
    ///
    /// # Panics
    /// From inside an actor of a simulated system.
    pub(crate) fn run(&self, system: &Arc<SystemCore>, done: &mut dyn FnMut() -> bool) {
        let Ok(mut choices) = self.choices.try_lock() else {
            panic!("a simulated system was asked to run from inside one of its own actors");
        };
        let workers: Vec<Arc<Worker>> = system.posts.iter().filter_map(|post| lock(post).clone()).collect();
        if workers.is_empty() {
            return;
        }
        loop {
            if done() {
                return;
            }
            if system.active.load(Ordering::Acquire) == 0 && !workers.iter().any(|worker| worker.office().mail.is_up())
            {
                // Everybody rests: time moves on to the next timer, if there is one.
                let next =
                    workers.iter().filter_map(|worker| worker.with_core(|core| core.wheel.next_ns()).flatten()).min();
                let Some(next) = next else { return };
                system.advance_clock(next);
                for worker in &workers {
                    worker.enter(|| {
                        worker.raise();
                        worker.flush();
                        worker.fire_timers(system.now_ns());
                    });
                }
            }
            let worker = &workers[choices.below(workers.len())];
            worker.enter(|| step(worker, &mut choices, system));
        }
    }
}

/// One step of one worker.
fn step(worker: &Worker, choices: &mut Choices, system: &SystemCore) {
    worker.raise();
    worker.attend();
    if cfg!(debug_assertions) && worker.backlog_bytes() < 4096 {
        worker.for_each_queued(|record| {
            // SAFETY: records of the worker's own queue.
            let record = unsafe { record.as_ref() };
            let runs_it = system.route[record.stage() as usize].load(Ordering::Relaxed);
            assert!(
                record.is_buried() || runs_it == worker.id,
                "I1: a record in the queue of a worker that does not run its stage"
            );
        });
    }
    if choices.one_in(2) {
        // Some stage's messages first.
        let mut stages = Vec::new();
        worker.for_each_queued(|record| {
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
        worker.write_out();
        worker.publish();
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
    // Often only one: the most interleavings.
    let bound = if choices.one_in(2) { 1 } else { 1 + choices.below(8) as u64 };
    let stop = worker.gulp(bound);
    debug_assert_ne!(stop, crate::run::Stop::Detached, "nobody takes over in simulation");
}
