//! Coordinated shutdown: what a program does before it ends, in phases.
//!
//! Phases come one after the other, in the order in which they were made, each with a deadline. The tasks of a phase run at the
//! same time: closures, and actors that are drained. What has not finished in time is left behind, and the report names it.

mod phase;
mod progress;
mod report;
#[cfg(unix)]
mod signal;

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use playhouse_actor::System;

pub use self::phase::{Phase, TooLate};
use self::phase::{PhasePlan, Plan, Task, TaskError};
use self::progress::{DrainedActors, Progress};
pub use self::report::{Outcome, PhaseReport, Report, TaskReport};
#[cfg(unix)]
pub use self::signal::Signal;
use crate::member_watcher::MemberWatcher;
use crate::panics::{describe, lock};

/// What a program does before it ends: see [the module](self). Clones are handles to the same plan, for the parts of a program
/// that register their own tasks.
///
/// It does not end the system: [`System::shutdown`] comes behind it.
#[derive(Clone)]
pub struct CoordinatedShutdown {
    system: System,
    plan: Arc<Mutex<Plan>>,
    /// Held by who goes through the phases.
    running: Arc<Mutex<()>>,
}

impl CoordinatedShutdown {
    /// A plan without phases.
    pub fn new(system: &System) -> CoordinatedShutdown {
        CoordinatedShutdown { system: system.clone(), plan: Arc::default(), running: Arc::default() }
    }

    /// Another phase, behind those that there are. Its tasks have `within` together.
    pub fn phase(&self, name: impl Into<String>, within: Duration) -> Phase {
        let mut plan = lock(&self.plan);
        plan.phases.push(PhasePlan { name: name.into(), within, tasks: Vec::new() });
        Phase { plan: Arc::clone(&self.plan), number: plan.phases.len() - 1 }
    }

    /// Goes through the phases that have not been gone through, and blocks meanwhile, also while another thread does. A phase
    /// without tasks takes no time.
    ///
    /// In a simulated system, closures are run on this thread, one after the other, and deadlines are in virtual time.
    ///
    /// # Panics
    /// Inside an actor: it would hold the worker. If the system was shut down before, and an actor is to be drained.
    #[track_caller]
    pub fn run(&self) -> Report {
        playhouse_actor::assert_outside("`CoordinatedShutdown::run`", "run it in the main thread");
        let _running = lock(&self.running);
        let mut phases = Vec::new();
        loop {
            let next = {
                let mut plan = lock(&self.plan);
                let begun = plan.begun;
                let next = plan
                    .phases
                    .get_mut(begun)
                    .map(|phase| (phase.name.clone(), phase.within, std::mem::take(&mut phase.tasks)));
                plan.begun += usize::from(next.is_some());
                next
            };
            let Some((name, within, tasks)) = next else { return Report { phases } };
            phases.push(self.run_phase(name, within, tasks));
        }
    }

    fn run_phase(&self, phase: String, within: Duration, tasks: Vec<(String, Task)>) -> PhaseReport {
        let core = self.system.core();
        let start = core.now();
        let deadline = start.saturating_add(within);
        let (names, tasks): (Vec<_>, Vec<_>) = tasks.into_iter().unzip();
        let progress =
            Arc::new(Progress { outcomes: Mutex::new(vec![None; names.len()]), waiting: std::thread::current() });
        let simulated = core.config().simulated.is_some();
        let mut drained = Vec::new();
        for (number, task) in tasks.into_iter().enumerate() {
            match task {
                Task::Drain(who, begin) => drained.push((number, who, begin)),
                Task::Call(call) => {
                    let done = Arc::clone(&progress);
                    let call = move || done.finish(number, outcome_of(call));
                    if simulated {
                        call();
                    } else if let Err(error) =
                        std::thread::Builder::new().name("playhouse-shutdown".to_owned()).spawn(call)
                    {
                        progress.finish(number, Outcome::Failed(format!("its thread could not be started: {error}")));
                    }
                }
            }
        }
        let watcher = (!drained.is_empty()).then(|| {
            let known = drained.iter().map(|(number, who, _)| (*who, *number)).collect();
            let watcher =
                self.system.spawn(MemberWatcher(DrainedActors { drained: known, progress: Arc::clone(&progress) }));
            for (_, _, begin) in drained {
                begin(watcher);
            }
            watcher
        });
        // In simulation, time goes on for a timer only.
        let timer = core.start_timer(within, Box::new(|| None));
        core.block_until(Some(deadline), &mut || progress.is_over() || core.now() >= deadline);
        core.cancel_timer(timer);
        if let Some(watcher) = watcher {
            watcher.stop();
        }
        let outcomes = std::mem::take(&mut *lock(&progress.outcomes));
        let outcomes = outcomes.into_iter().map(|outcome| outcome.unwrap_or(Outcome::Unfinished));
        PhaseReport {
            name: phase,
            took: core.now() - start,
            tasks: names.into_iter().zip(outcomes).map(|(name, outcome)| TaskReport { name, outcome }).collect(),
        }
    }
}

impl fmt::Debug for CoordinatedShutdown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plan = lock(&self.plan);
        let phases: Vec<_> = plan.phases.iter().map(|phase| &phase.name).collect();
        f.debug_struct("CoordinatedShutdown").field("phases", &phases).field("begun", &plan.begun).finish()
    }
}

fn outcome_of(call: Box<dyn FnOnce() -> Result<(), TaskError> + Send>) -> Outcome {
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(Ok(())) => Outcome::Finished,
        Ok(Err(error)) => Outcome::Failed(error.to_string()),
        Err(panic) => Outcome::Failed(format!("it panicked: {}", describe(&*panic))),
    }
}
