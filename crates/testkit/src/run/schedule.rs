//! Schedules: in which order messages were delivered.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use playhouse::ShortType;
use playhouse_executor::MailKind;

use crate::run::{Choose, Ran};
use crate::step::{MessageId, Step, Who, Wrong};

/// A message on its way from its sender to its receiver, in the order of delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Sent {
    /// Who sent it: an actor by its name, or by its type and number; `program`, or `clock`.
    pub from: String,
    /// Who was sent it.
    pub to: String,
    /// The type of the message, without its path; for what is none: `start`, `stop`, `wake-up`, ...
    pub message: String,
    /// When it was delivered, in virtual time.
    pub at: Duration,
    /// What went wrong as it was handled, if anything did.
    pub wrong: Option<String>,
    /// Whether its sender waits for an answer.
    pub is_request: bool,
}

impl fmt::Display for Sent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} -> {}: {}", self.from, self.to, self.message)?;
        match &self.wrong {
            Some(wrong) => write!(f, " -- {wrong}"),
            None => Ok(()),
        }
    }
}

/// An order of deliveries, to be repeated.
///
/// As text, it is the choices: which of the messages that could be delivered was, by its place in the order of sending,
/// `0.0.2.1`. Where it ends, the oldest message is always the next.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct Schedule(Vec<usize>);

impl Schedule {
    pub(crate) fn of(steps: &[Step]) -> Schedule {
        let mut choices: Vec<usize> = steps.iter().map(|step| step.choice).collect();
        while choices.last() == Some(&0) {
            choices.pop();
        }
        Schedule(choices)
    }

    /// Who makes the same choices again.
    pub(crate) fn chooser(&self) -> Box<dyn Choose> {
        let choices = self.0.clone();
        Box::new(ByNumbers(choices))
    }
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (nth, choice) in self.0.iter().enumerate() {
            write!(f, "{}{choice}", if nth == 0 { "" } else { "." })?;
        }
        Ok(())
    }
}

/// A text is no schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoSchedule(String);

impl fmt::Display for NoSchedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} is no schedule: it has to be numbers with dots between them, such as 0.0.2.1", self.0)
    }
}

impl std::error::Error for NoSchedule {}

impl FromStr for Schedule {
    type Err = NoSchedule;

    fn from_str(text: &str) -> Result<Schedule, NoSchedule> {
        let text = text.trim();
        if text.is_empty() {
            return Ok(Schedule::default());
        }
        let choices: Result<Vec<usize>, _> = text.split('.').map(str::parse).collect();
        choices.map(Schedule).map_err(|_| NoSchedule(text.to_owned()))
    }
}

struct ByNumbers(Vec<usize>);

impl Choose for ByNumbers {
    fn choose(&mut self, steps: &[Step], enabled: &[MessageId]) -> Option<usize> {
        let choice = self.0.get(steps.len()).copied().unwrap_or(0);
        Some(choice.min(enabled.len() - 1))
    }
}

/// Delivers these messages in this order, and then the oldest.
pub(crate) struct ByName(pub(crate) Vec<MessageId>);

impl Choose for ByName {
    fn choose(&mut self, steps: &[Step], enabled: &[MessageId]) -> Option<usize> {
        match self.0.get(steps.len()) {
            Some(id) => enabled.iter().position(|enabled| enabled == id),
            None => Some(0),
        }
    }
}

/// What was sent in a run, as it is shown.
pub(crate) fn sent<R>(ran: &Ran<R>) -> Vec<Sent> {
    ran.steps.iter().map(|step| shown(step, &|who| ran.name(who))).collect()
}

/// Whose message it is: that of a timer is the actor's own.
pub(crate) fn sender(id: MessageId, kind: MailKind) -> Who {
    if (id.from, kind) == (Who::Clock, MailKind::Timer) { id.to } else { id.from }
}

pub(crate) fn shown(step: &Step, name: &dyn Fn(Who) -> String) -> Sent {
    Sent {
        from: name(sender(step.id, step.kind)),
        to: name(step.id.to),
        wrong: step.wrong.as_ref().map(|wrong| match wrong {
            Wrong::Crash(why) => format!("crash: {why}"),
            Wrong::DeadLetter(what) => format!("dead letter: {what}"),
        }),
        ..waits(step.kind, step.message, step.at)
    }
}

/// A message that waits, between whom it may be.
pub(crate) fn waits(kind: MailKind, message: &'static str, at: Duration) -> Sent {
    Sent {
        from: String::new(),
        to: String::new(),
        message: ShortType(message).to_string(),
        at,
        wrong: None,
        is_request: kind == MailKind::Request,
    }
}
