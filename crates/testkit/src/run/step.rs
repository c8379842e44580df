//! Steps of a run: their messages, their participants, and their dependence.

use std::collections::HashMap;
use std::time::Duration;

use playhouse_executor::{Delivery, Lane, MailKind};

/// A sender or receiver, with the same name in every run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Participant {
    /// The program itself, which is no actor.
    Program,
    /// The timers.
    Clock,
    /// The actor with this number in the [`ActorNumbers`].
    Actor(u32),
}

/// A channel: the messages of one sender to one receiver in one channel keep their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Channel {
    System,
    Urgent,
    Normal,
    /// Wake-ups, which overtake messages that wait for the woken handler.
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

/// A name of a message, the same in every run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct MessageId {
    pub(crate) from: Participant,
    pub(crate) to: Participant,
    pub(crate) channel: Channel,
    pub(crate) nth: u32,
}

impl MessageId {
    /// Returns the name of the passing of time: a step like a delivery, which depends on all others.
    pub(crate) fn of_time(nth: u32) -> MessageId {
        MessageId { from: Participant::Clock, to: Participant::Clock, channel: Channel::System, nth }
    }

    /// Returns whether the order of the two messages is fixed.
    pub(crate) fn is_in_channel_of(self, other: MessageId) -> bool {
        (self.from, self.to, self.channel) == (other.from, other.to, other.channel)
    }
}

/// The numbers of the actors over all runs of a program.
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

/// The steps that a message depends on.
#[derive(Clone, Debug, Default)]
pub(crate) struct Origin {
    /// All steps before this one, because the message was sent when nothing else was left to do.
    pub(crate) all_before: usize,
    /// These steps.
    pub(crate) steps: Vec<usize>,
}

/// A delivery, or the passing of time.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub(crate) id: MessageId,
    pub(crate) kind: MailKind,
    pub(crate) may_wait: bool,
    pub(crate) is_control: bool,
    pub(crate) message: &'static str,
    /// The index of the step among the enabled ones.
    pub(crate) choice: usize,
    pub(crate) origin: Origin,
    /// Whether the receiver was in a suspended handler.
    pub(crate) was_suspended: bool,
    /// Whether the receiver accepted ordinary messages.
    pub(crate) was_open: bool,
    /// The actors whose handlers the step has woken.
    pub(crate) woke: Vec<Participant>,
    /// The actors that were asked by a handler that waits for the answers.
    pub(crate) asked: Vec<Participant>,
    /// Whether the receiver was in a suspended handler with unanswered asks.
    pub(crate) gives_up_asks: bool,
    /// The system time of the step.
    pub(crate) at: Duration,
    /// The fault that happened in the step.
    pub(crate) fault: Option<Fault>,
}

/// A fault in a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    Crash(String),
    DeadLetter(String),
}

impl Step {
    /// Returns whether the order of the two steps can make a difference.
    ///
    /// A handler changes its own actor and sends messages, so steps of different actors commute. The runtime shares
    /// three things between actors: an answer that is read when its asker wakes for another reason, a request that is
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
