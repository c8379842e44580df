//! How a run ended.

use std::collections::HashMap;

use playhouse::ShortType;

use super::state::{Part, Run};
use super::step::{Origin, Step, Who};

/// How a run ended.
#[derive(Debug)]
pub(crate) enum Ended<R> {
    /// With what the program returned.
    Returned(R),
    /// The program panicked.
    Panicked(String),
    /// Whoever chose had no interest in its rest.
    GivenUp,
    /// It made [`DELIVERIES_MAX`] deliveries, and more wait.
    Endless,
}

/// A run that is over.
#[derive(Debug)]
pub(crate) struct Ran<R> {
    pub(crate) ended: Ended<R>,
    pub(crate) steps: Vec<Step>,
    /// What the program has waited for.
    pub(crate) program: Origin,
    pub(super) people: HashMap<Who, Part>,
    /// Whose handlers wait for something that nobody will do, with what waits for them.
    pub(crate) stuck: Vec<String>,
}

impl<R> Ran<R> {
    /// What the actor is called: by its name, or by its type and number.
    pub(crate) fn name(&self, who: Who) -> String {
        name_in(&self.people, who)
    }
}

pub(super) fn name_in(people: &HashMap<Who, Part>, who: Who) -> String {
    match who {
        Who::Program => "program".to_owned(),
        Who::Clock => "clock".to_owned(),
        Who::Actor(number) => match people.get(&who) {
            Some(Part { actor, name: Some(name), .. }) => format!("{} {name:?}", ShortType(actor)),
            Some(Part { actor, .. }) => format!("{} #{number}", ShortType(actor)),
            None => format!("#{number}"),
        },
    }
}

/// Who waits for something that nobody will do.
pub(super) fn stuck(run: &Run) -> Vec<String> {
    let mut stuck: Vec<Who> =
        run.people.iter().filter(|(_, part)| run.deliveries.is_suspended(part.address)).map(|(who, _)| *who).collect();
    stuck.sort();
    let queued = |who: &Who| {
        let queued = run.waiting.iter().filter(|waiting| waiting.id.to == *who);
        queued.map(|waiting| ShortType(waiting.delivery.message).to_string()).collect::<Vec<_>>()
    };
    let handles = |who: &Who| {
        let started = run.steps.iter().rfind(|step| step.id.to == *who && !step.was_suspended);
        started.map_or_else(String::new, |step| ShortType(step.message).to_string())
    };
    let say = |who: &Who| {
        let (name, handles, queued) = (name_in(&run.people, *who), handles(who), queued(who));
        let behind = if queued.is_empty() { String::new() } else { format!(", with {} behind it", queued.join(", ")) };
        format!("{name} waits in its handler of {handles}{behind}")
    };
    stuck.iter().map(say).collect()
}
