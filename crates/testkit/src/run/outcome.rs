//! The outcome of a run.

use std::collections::HashMap;

use playhouse_actor::ShortType;

use super::state::{ActorInfo, RunState};
use super::step::{Origin, Participant, Step};

/// The end of a run.
#[derive(Debug)]
pub(crate) enum RunEnd<R> {
    /// The program returned this value.
    Returned(R),
    /// The program panicked.
    Panicked(String),
    /// The scheduler abandoned the run.
    Abandoned,
    /// The run made [`DELIVERIES_MAX`](super::DELIVERIES_MAX) deliveries, and more messages wait.
    Endless,
}

/// A finished run.
#[derive(Debug)]
pub(crate) struct FinishedRun<R> {
    pub(crate) ended: RunEnd<R>,
    pub(crate) steps: Vec<Step>,
    /// The steps that the program has waited for.
    pub(crate) program: Origin,
    pub(super) actors: HashMap<Participant, ActorInfo>,
    /// Actors whose handlers wait forever, with the messages that wait behind them.
    pub(crate) stuck: Vec<String>,
}

impl<R> FinishedRun<R> {
    /// Returns the name of an actor, or its type and number.
    pub(crate) fn name(&self, who: Participant) -> String {
        name_in(&self.actors, who)
    }
}

pub(super) fn name_in(actors: &HashMap<Participant, ActorInfo>, who: Participant) -> String {
    match who {
        Participant::Program => "program".to_owned(),
        Participant::Clock => "clock".to_owned(),
        Participant::Actor(number) => match actors.get(&who) {
            Some(ActorInfo { actor, name: Some(name), .. }) => format!("{} {name:?}", ShortType(actor)),
            Some(ActorInfo { actor, .. }) => format!("{} #{number}", ShortType(actor)),
            None => format!("#{number}"),
        },
    }
}

/// Describes the actors whose handlers wait forever.
pub(super) fn stuck(run: &RunState) -> Vec<String> {
    let mut stuck: Vec<Participant> =
        run.actors.iter().filter(|(_, part)| run.deliveries.is_suspended(part.address)).map(|(who, _)| *who).collect();
    stuck.sort();
    let queued = |who: &Participant| {
        let queued = run.pending.iter().filter(|pending| pending.id.to == *who);
        queued.map(|pending| ShortType(pending.delivery.message).to_string()).collect::<Vec<_>>()
    };
    let handles = |who: &Participant| {
        let started = run.steps.iter().rfind(|step| step.id.to == *who && !step.was_suspended);
        started.map_or_else(String::new, |step| ShortType(step.message).to_string())
    };
    let say = |who: &Participant| {
        let (name, handles, queued) = (name_in(&run.actors, *who), handles(who), queued(who));
        let behind = if queued.is_empty() { String::new() } else { format!(", with {} behind it", queued.join(", ")) };
        format!("{name} waits in its handler of {handles}{behind}")
    };
    stuck.iter().map(say).collect()
}
