//! How a shutdown went.

use std::fmt;
use std::time::Duration;

/// What has become of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome {
    /// It has finished, or its actor has ended.
    Finished,
    /// It has returned an error or panicked, or its actor has crashed: why.
    Failed(String),
    /// Its phase was over before it had finished. It goes on.
    Unfinished,
}

/// What has become of one task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskReport {
    /// Its name.
    pub name: String,
    /// What has become of it.
    pub outcome: Outcome,
}

/// How a phase went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PhaseReport {
    /// Its name.
    pub name: String,
    /// How long it took, in the system's time.
    pub took: Duration,
    /// Its tasks, in the order in which they were registered.
    pub tasks: Vec<TaskReport>,
}

/// How a shutdown went. Shown to people, it names what did not finish, a line each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// The phases that were gone through, in their order.
    pub phases: Vec<PhaseReport>,
}

impl Report {
    /// Whether every task has finished.
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
