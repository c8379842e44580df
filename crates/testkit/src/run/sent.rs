//! Messages as reports show them.

use std::fmt;
use std::time::Duration;

use playhouse_actor::ShortType;
use playhouse_executor::MailKind;

use super::outcome::FinishedRun;
use super::step::{Fault, MessageId, Participant, Step};

/// A delivered or waiting message, with its sender and its receiver.
///
/// # Examples
///
/// ```
/// use playhouse::prelude::*;
/// use playhouse_testkit::Kit;
///
/// struct Greeter(Recipient<Hello>);
///
/// #[derive(Message)]
/// struct Hello;
///
/// impl Actor for Greeter {
///     fn started(&mut self, _: &mut Context<Self>) {
///         self.0.tell(Hello);
///     }
/// }
///
/// let kit = Kit::new();
/// let probe = kit.probe::<Hello>();
/// let greeter = kit.system().spawn(Greeter(probe.recipient()));
/// probe.expect();
/// assert_eq!(kit.sent_by(greeter)[0].message, "Hello");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Sent {
    /// The sender: an actor by its name, or by its type and number; `program`, or `clock`.
    pub from: String,
    /// The receiver.
    pub to: String,
    /// The type of the message without its path, or `start`, `stop`, `wake-up`, and the like.
    pub message: String,
    /// The virtual time of the delivery.
    pub at: Duration,
    /// The fault that happened in the handler, if any.
    pub wrong: Option<String>,
    /// Whether the sender waits for an answer.
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

/// Returns the messages of a run, as reports show them.
pub(crate) fn sent<R>(ran: &FinishedRun<R>) -> Vec<Sent> {
    ran.steps.iter().map(|step| shown(step, &|who| ran.name(who))).collect()
}

/// Returns the sender of a message. An actor is the sender of its own timers.
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

/// Returns a waiting message, without its sender and receiver.
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
