//! The progress of a phase.

use std::sync::{Arc, Mutex};
use std::thread::Thread;

use playhouse_actor::{ActorId, Context, StopReason, Terminated};

use super::Outcome;
use crate::member_watcher::{MemberWatcher, Membership};
use crate::panics::lock;

/// The outcomes of a phase's tasks so far.
pub(super) struct Progress {
    pub(super) outcomes: Mutex<Vec<Option<Outcome>>>,
    pub(super) waiting: Thread,
}

impl Progress {
    pub(super) fn finish(&self, number: usize, outcome: Outcome) {
        // Outcomes after the end of the phase are ignored.
        if let Some(place) = lock(&self.outcomes).get_mut(number) {
            *place = Some(outcome);
        }
        self.waiting.unpark();
    }

    pub(super) fn is_over(&self) -> bool {
        lock(&self.outcomes).iter().all(Option::is_some)
    }
}

/// The reaction of a phase to the end of its drained actors.
pub(super) struct DrainedActors {
    pub(super) drained: Vec<(ActorId, usize)>,
    pub(super) progress: Arc<Progress>,
}

impl Membership for DrainedActors {
    fn ended(&mut self, terminated: &Terminated, _: &mut Context<MemberWatcher<Self>>) {
        for (_, number) in self.drained.iter().filter(|(who, _)| *who == terminated.who) {
            let outcome = match &terminated.reason {
                StopReason::Panicked(_) | StopReason::Failed(_) | StopReason::TheaterLost => {
                    Outcome::Failed(terminated.reason.to_string())
                }
                _ => Outcome::Finished,
            };
            self.progress.finish(*number, outcome);
        }
    }
}
