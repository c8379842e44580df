//! Coordinated shutdown: the tasks of a program before its end, in phases.
//!
//! Phases run one after the other, in the order of their creation, each with a deadline. The tasks of a phase run at
//! the same time. A task is a closure, or the drain of an actor. A task that misses the deadline is left behind, and
//! the report names it.
//!
//! # Examples
//!
//! ```
//! use playhouse::prelude::*;
//! use playhouse::shutdown::CoordinatedShutdown;
//! use std::time::Duration;
//!
//! struct Gate;
//! #[actor]
//! impl Gate {}
//!
//! let system = System::start()?;
//! let shutdown = CoordinatedShutdown::new(&system);
//! shutdown.phase("stop intake", Duration::from_secs(5)).drain("gate", system.spawn(Gate))?;
//! shutdown.phase("flush", Duration::from_secs(5)).task("log", || Ok(()))?;
//!
//! let report = shutdown.run();
//! assert!(report.is_clean(), "{report}");
//! system.shutdown()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

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

/// A plan of the tasks before the end of a program: see [the module](self). Clones are handles to the same plan, so
/// that each part of a program can register its tasks.
///
/// The plan does not end the system: call [`System::shutdown`] after it.
///
/// # Examples
///
/// ```
/// use playhouse::prelude::*;
/// use playhouse::shutdown::CoordinatedShutdown;
/// use std::time::Duration;
///
/// let system = System::start()?;
/// let shutdown = CoordinatedShutdown::new(&system);
/// let last = shutdown.phase("last", Duration::from_secs(1));
/// last.task("fails", || Err("no disk".into()))?;
/// assert!(!shutdown.run().is_clean());
/// # system.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(alias = "graceful_shutdown")]
#[doc(alias = "terminate")]
#[derive(Clone)]
pub struct CoordinatedShutdown {
    system: System,
    plan: Arc<Mutex<Plan>>,
    /// The lock of the thread that runs the phases.
    running: Arc<Mutex<()>>,
}

impl CoordinatedShutdown {
    /// Creates a plan without phases.
    pub fn new(system: &System) -> CoordinatedShutdown {
        CoordinatedShutdown { system: system.clone(), plan: Arc::default(), running: Arc::default() }
    }

    /// Adds a phase behind the existing ones. Its tasks share the deadline `within`.
    pub fn phase(&self, name: impl Into<String>, within: Duration) -> Phase {
        let mut plan = lock(&self.plan);
        plan.phases.push(PhasePlan { name: name.into(), within, tasks: Vec::new() });
        Phase { plan: Arc::clone(&self.plan), number: plan.phases.len() - 1 }
    }

    /// Runs the phases that have not run yet, and blocks until they are over, also if another thread runs them. A
    /// phase without tasks takes no time.
    ///
    /// In a simulated system, the closures run on this thread, one after the other, and deadlines are in virtual
    /// time.
    ///
    /// # Panics
    /// The call is made inside an actor, because it would block the worker. The system was shut down before, and an
    /// actor is to be drained.
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
                        progress.finish(
                            number,
                            Outcome::Failed(format!("the thread of the task could not be started: {error}")),
                        );
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
        // Virtual time advances only to a timer.
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
