//! The report of a shutdown.

use std::fmt;
use std::time::Duration;

/// The outcome of a task.
///
/// # Examples
///
/// ```
/// use playhouse::prelude::*;
/// use playhouse::shutdown::{CoordinatedShutdown, Outcome};
/// use std::time::Duration;
///
/// let system = System::start()?;
/// let shutdown = CoordinatedShutdown::new(&system);
/// shutdown.phase("flush", Duration::from_secs(5)).task("disk", || Err("it is full".into()))?;
/// let report = shutdown.run();
/// assert_eq!(report.phases[0].tasks[0].outcome, Outcome::Failed("it is full".to_owned()));
/// # system.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome {
    /// The task has finished, or its actor has ended.
    Finished,
    /// The task has returned an error or panicked, or its actor has crashed. The text is the cause.
    Failed(String),
    /// The phase was over before the task had finished. The task goes on.
    Unfinished,
}

/// The outcome of one task.
///
/// # Examples
///
/// ```
/// use playhouse::shutdown::{Outcome, TaskReport};
/// # use playhouse::prelude::*;
/// # use playhouse::shutdown::CoordinatedShutdown;
/// # use std::time::Duration;
/// #
/// # let system = System::start()?;
/// # let shutdown = CoordinatedShutdown::new(&system);
/// # shutdown.phase("flush", Duration::from_secs(5)).task("log", || Ok(()))?;
/// let report = shutdown.run();
/// let task: &TaskReport = &report.phases[0].tasks[0];
/// assert_eq!((&*task.name, &task.outcome), ("log", &Outcome::Finished));
/// # system.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskReport {
    /// The name of the task.
    pub name: String,
    /// The outcome of the task.
    pub outcome: Outcome,
}

/// The course of one phase.
///
/// # Examples
///
/// ```
/// use playhouse::shutdown::PhaseReport;
/// # use playhouse::prelude::*;
/// # use playhouse::shutdown::CoordinatedShutdown;
/// # use std::time::Duration;
/// #
/// # let system = System::start()?;
/// # let shutdown = CoordinatedShutdown::new(&system);
/// # shutdown.phase("flush", Duration::from_secs(5)).task("log", || Ok(()))?;
/// let report = shutdown.run();
/// let phase: &PhaseReport = &report.phases[0];
/// assert_eq!((&*phase.name, phase.tasks.len()), ("flush", 1));
/// # system.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PhaseReport {
    /// The name of the phase.
    pub name: String,
    /// The duration of the phase, in the time of the system.
    pub took: Duration,
    /// The tasks, in the order of registration.
    pub tasks: Vec<TaskReport>,
}

/// The course of a shutdown. As text, it names each task that did not finish, one per line.
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
/// shutdown.phase("flush", Duration::from_secs(5)).task("log", || Ok(()))?;
/// assert_eq!(shutdown.run().to_string(), "1 of 1 shutdown tasks finished");
/// # system.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// The phases that have run, in their order.
    pub phases: Vec<PhaseReport>,
}

impl Report {
    /// Returns whether every task has finished.
    pub fn is_clean(&self) -> bool {
        self.phases.iter().flat_map(|phase| &phase.tasks).all(|task| task.outcome == Outcome::Finished)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tasks: usize = self.phases.iter().map(|phase| phase.tasks.len()).sum();
        let mut finished = 0;
        let mut wrong = Vec::new();
        for phase in &self.phases {
            for task in &phase.tasks {
                let (phase, name) = (&phase.name, &task.name);
                match &task.outcome {
                    Outcome::Finished => finished += 1,
                    Outcome::Failed(why) => wrong.push(format!("{phase:?}: {name:?} failed: {why}")),
                    Outcome::Unfinished => wrong.push(format!("{phase:?}: {name:?} did not finish in time")),
                }
            }
        }
        write!(f, "{finished} of {tasks} shutdown tasks finished")?;
        for line in wrong {
            write!(f, "\n{line}")?;
        }
        Ok(())
    }
}
