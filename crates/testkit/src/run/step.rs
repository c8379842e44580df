//! What a run is made of: who sends, which message, which step, and which steps depend on each other.

use std::collections::HashMap;
use std::time::Duration;

use playhouse_executor::{Delivery, Lane, MailKind};

/// Participant sends or receives: the same in every run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Participant {
    /// The program itself, which is no actor.
    Program,
    /// Timers.
    Clock,
    /// The actor with this number in the [`ActorNumbers`].
    Actor(u32),
}

/// Which messages keep their order among each other: those of one sender to one receiver in one of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Channel {
    System,
    Urgent,
    Normal,
    /// Wake-ups pass by messages that wait for the handler that they wake.
    WakeUp,
}

impl Channel {
    pub(crate) fn of(delivery: &Delivery) -> Channel {
        match (delivery.kind, delivery.lane) {
            (MailKind::WakeUp, _) => Channel::WakeUp,
            (_, Lane::System) => Channel::System,
            (_, Lane::Urgent) => Channel::Urgent,
            (_, Lane::Normal) => Channel::Normal,
        }
    }
}

/// Which message: the same in every run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct MessageId {
    pub(crate) from: Participant,
    pub(crate) to: Participant,
    pub(crate) channel: Channel,
    pub(crate) nth: u32,
}

impl MessageId {
    /// That time passes for the so-manyth time: a step like a delivery, which depends on all others.
    pub(crate) fn of_time(nth: u32) -> MessageId {
        MessageId { from: Participant::Clock, to: Participant::Clock, channel: Channel::System, nth }
    }

    /// Whether the order of the two is fixed.
    pub(crate) fn is_in_channel_of(self, other: MessageId) -> bool {
        (self.from, self.to, self.channel) == (other.from, other.to, other.channel)
    }
}

/// Participant has a part in any run of a program.
#[derive(Default)]
pub(crate) struct ActorNumbers {
    numbers: HashMap<(Participant, u32), u32>,
}

impl ActorNumbers {
    pub(crate) fn number(&mut self, creator: Participant, nth: u32) -> Participant {
        let next = self.numbers.len() as u32;
        Participant::Actor(*self.numbers.entry((creator, nth)).or_insert(next))
    }
}

/// What a message needs to have happened before.
#[derive(Clone, Debug, Default)]
pub(crate) struct Origin {
    /// All steps before this one: it was sent when nothing else was left to do.
    pub(crate) all_before: usize,
    /// These steps.
    pub(crate) steps: Vec<usize>,
}

/// A delivery.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub(crate) id: MessageId,
    pub(crate) kind: MailKind,
    pub(crate) may_wait: bool,
    pub(crate) is_control: bool,
    pub(crate) message: &'static str,
    /// Which one it was of those that were enabled.
    pub(crate) choice: usize,
    pub(crate) origin: Origin,
    /// Whether the receiver was in a handler that waits.
    pub(crate) was_suspended: bool,
    /// Whether the receiver took ordinary messages.
    pub(crate) was_open: bool,
    /// Whose handlers it has woken.
    pub(crate) woke: Vec<Participant>,
    /// Participant was asked, where the asker waits for the answer.
    pub(crate) asked: Vec<Participant>,
    /// Whether the receiver was in a handler that waits for an answer which has not come.
    pub(crate) gives_up_asks: bool,
    /// When, in the system's time.
    pub(crate) at: Duration,
    /// What went wrong in it.
    pub(crate) fault: Option<Fault>,
}

/// What can go wrong in a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    Crash(String),
    DeadLetter(String),
}

impl Step {
    /// Whether the order of the two steps can make a difference.
    ///
    /// A handler works on its own actor and sends messages, so steps of different actors commute, but for what the runtime
    /// itself shares between them: an answer that is looked at when its asker wakes up for another reason, a request that is
    /// taken back, and the search for cycles of asks.
    pub(crate) fn depends_on(&self, other: &Step) -> bool {
        let one_way = |a: &Step, b: &Step| {
            b.was_suspended && (a.woke.contains(&b.id.to) || a.kind == MailKind::Request && a.id.from == b.id.to)
                || b.may_wait && (a.asked.contains(&b.id.to) || a.gives_up_asks)
        };
        let lets_time_pass = |step: &Step| step.id.to == Participant::Clock;
        self.id.to == other.id.to
            || lets_time_pass(self)
            || lets_time_pass(other)
            || one_way(self, other)
            || one_way(other, self)
    }
}
