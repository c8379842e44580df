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
    /// How many have begun.
    pub(super) begun: usize,
}

pub(super) struct PhasePlan {
    pub(super) name: String,
    pub(super) within: Duration,
    pub(super) tasks: Vec<(String, Task)>,
}

pub(super) enum Task {
    Call(Box<dyn FnOnce() -> Result<(), TaskError> + Send>),
    /// Has the watcher watch an actor, which is drained, and tells who it is.
    Drain(ActorId, Box<dyn FnOnce(ActorRef<MemberWatcher<DrainedActors>>) + Send>),
}

/// A phase of a [`CoordinatedShutdown`], to register tasks in.
#[derive(Clone)]
pub struct Phase {
    pub(super) plan: Arc<Mutex<Plan>>,
    pub(super) number: usize,
}

impl Phase {
    /// Has `task` run in this phase, in a thread of its own. What it returns, or that it panics, is in the report.
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

    /// Has `actor` [drained](ActorRef::drain) in this phase: it handles what it was sent, and ends.
    ///
    /// # Errors
    /// The phase has begun.
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

/// A task was registered in a phase that has begun already, and will not be run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TooLate {
    task: String,
    phase: String,
}

impl fmt::Display for TooLate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the shutdown task {:?} comes too late: the phase {:?} has begun", self.task, self.phase)
    }
}

impl std::error::Error for TooLate {}
