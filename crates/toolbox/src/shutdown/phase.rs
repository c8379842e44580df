//! Phases and their tasks.

use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use playhouse_actor::{Actor, ActorId, ActorRef};

use super::progress::DrainedActors;
use crate::member_watcher::{MemberWatcher, WatchMember};
use crate::panics::lock;

/// Any error of a task.
pub(super) type TaskError = Box<dyn std::error::Error + Send + Sync>;

#[derive(Default)]
pub(super) struct Plan {
    pub(super) phases: Vec<PhasePlan>,
    /// The number of phases that have begun.
    pub(super) begun: usize,
}

pub(super) struct PhasePlan {
    pub(super) name: String,
    pub(super) within: Duration,
    pub(super) tasks: Vec<(String, Task)>,
}

pub(super) enum Task {
    Call(Box<dyn FnOnce() -> Result<(), TaskError> + Send>),
    /// The drain of an actor: its id, and a function that has the watcher watch it and then drains it.
    Drain(ActorId, Box<dyn FnOnce(ActorRef<MemberWatcher<DrainedActors>>) + Send>),
}

/// A phase of a [`CoordinatedShutdown`](super::CoordinatedShutdown), in which tasks are registered.
///
/// # Examples
///
/// ```
/// use playhouse::prelude::*;
/// use playhouse::shutdown::{CoordinatedShutdown, Phase};
/// use std::time::Duration;
///
/// let system = System::start()?;
/// let shutdown = CoordinatedShutdown::new(&system);
/// let flush: Phase = shutdown.phase("flush", Duration::from_secs(5));
/// flush.task("metrics", || Ok(()))?;
/// # system.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Phase {
    pub(super) plan: Arc<Mutex<Plan>>,
    pub(super) number: usize,
}

impl Phase {
    /// Registers `task`, which runs on a thread of its own in this phase. Its error or its panic is in the report.
    ///
    /// # Errors
    /// The phase has begun.
    pub fn task(
        &self,
        name: impl Into<String>,
        task: impl FnOnce() -> Result<(), TaskError> + Send + 'static,
    ) -> Result<(), TooLate> {
        self.add(name.into(), Task::Call(Box::new(task)))
    }

    /// Registers the [drain](ActorRef::drain) of `actor` in this phase. The actor handles the messages that it has,
    /// and ends.
    ///
    /// # Errors
    /// The phase has begun.
    #[doc(alias = "gracefulStop")]
    pub fn drain<A: Actor>(&self, name: impl Into<String>, actor: ActorRef<A>) -> Result<(), TooLate> {
        let begin = move |watcher: ActorRef<MemberWatcher<DrainedActors>>| {
            watcher.tell_urgent(WatchMember { member: actor, watch: true });
            actor.drain();
        };
        self.add(name.into(), Task::Drain(actor.id(), Box::new(begin)))
    }

    pub(super) fn add(&self, name: String, task: Task) -> Result<(), TooLate> {
        let mut plan = lock(&self.plan);
        let late = self.number < plan.begun;
        let phase = &mut plan.phases[self.number];
        if late {
            return Err(TooLate { task: name, phase: phase.name.clone() });
        }
        phase.tasks.push((name, task));
        Ok(())
    }
}

impl fmt::Debug for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Phase({:?})", lock(&self.plan).phases[self.number].name)
    }
}

/// An error: a task was registered in a phase that has begun, and will not run.
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
/// let flush = shutdown.phase("flush", Duration::from_secs(5));
/// shutdown.run();
/// let late = flush.task("metrics", || Ok(())).unwrap_err();
/// assert!(late.to_string().contains("has begun"));
/// # system.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TooLate {
    task: String,
    phase: String,
}

impl fmt::Display for TooLate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the shutdown task {:?} is too late: the phase {:?} has begun; register tasks before `run`",
            self.task, self.phase
        )
    }
}

impl std::error::Error for TooLate {}
