//! Messages as they are shown.

use std::fmt;
use std::time::Duration;

use playhouse::ShortType;
use playhouse_executor::MailKind;

use super::outcome::FinishedRun;
use super::step::{Fault, MessageId, Participant, Step};

/// A message on its way from its sender to its receiver, in the order of delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Sent {
    /// Participant sent it: an actor by its name, or by its type and number; `program`, or `clock`.
    pub from: String,
    /// Participant was sent it.
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

/// What was sent in a run, as it is shown.
pub(crate) fn sent<R>(ran: &FinishedRun<R>) -> Vec<Sent> {
    ran.steps.iter().map(|step| shown(step, &|who| ran.name(who))).collect()
}

/// Whose message it is: that of a timer is the actor's own.
pub(crate) fn sender(id: MessageId, kind: MailKind) -> Participant {
    if (id.from, kind) == (Participant::Clock, MailKind::Timer) { id.to } else { id.from }
}

pub(crate) fn shown(step: &Step, name: &dyn Fn(Participant) -> String) -> Sent {
    Sent {
        from: name(sender(step.id, step.kind)),
        to: name(step.id.to),
        wrong: step.fault.as_ref().map(|fault| match fault {
            Fault::Crash(why) => format!("crash: {why}"),
            Fault::DeadLetter(what) => format!("dead letter: {what}"),
        }),
        ..pending_sent(step.kind, step.message, step.at)
    }
}

/// A message that pending_sent, between whom it may be.
pub(crate) fn pending_sent(kind: MailKind, message: &'static str, at: Duration) -> Sent {
    Sent {
        from: String::new(),
        to: String::new(),
        message: ShortType(message).to_string(),
        at,
        wrong: None,
        is_request: kind == MailKind::Request,
    }
}
