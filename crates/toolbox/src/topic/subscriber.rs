//! Who gets what is published: actors, and topics that have joined.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use playhouse_actor::{ActorId, ActorRef, Message, Recipient, TrySendError};

use super::WhenOverloaded;
use super::desk::{Desk, Issue};
use super::pattern::Pattern;

pub(super) struct Subscriber<M: Message> {
    pub(super) way: Way<M>,
    pub(super) pattern: Option<Pattern>,
    pub(super) when_overloaded: WhenOverloaded,
    pub(super) dropped: AtomicU64,
    pub(super) active: AtomicBool,
}

/// To whom a subscription sends.
pub(super) enum Way<M: Message> {
    Actor(Recipient<M>),
    /// A topic that has joined this one.
    Desk(ActorRef<Desk<M>>, Recipient<Issue<M>>),
}

/// What has become of a message for a subscriber.
pub(super) enum Sent {
    Taken,
    Overloaded,
    Ended,
}

impl<M: Message> Way<M> {
    pub(super) fn id(&self) -> ActorId {
        match self {
            Way::Actor(to) => to.id(),
            Way::Desk(desk, _) => desk.id(),
        }
    }
}

impl<M: Message> fmt::Debug for Way<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Way::Actor(to) => to.fmt(f),
            Way::Desk(desk, _) => desk.fmt(f),
        }
    }
}

impl<M: Message> Subscriber<M> {
    pub(super) fn new(way: Way<M>, pattern: Option<Pattern>, when_overloaded: WhenOverloaded) -> Subscriber<M> {
        let (dropped, active) = (AtomicU64::new(0), AtomicBool::new(true));
        Subscriber { way, pattern, when_overloaded, dropped, active }
    }

    pub(super) fn is_for(&self, subject: Option<&str>) -> bool {
        self.pattern.as_ref().is_none_or(|pattern| subject.is_some_and(|subject| pattern.fits(subject)))
    }

    /// Sends a clone of `message`.
    pub(super) fn send(&self, subject: Option<&str>, message: &M) -> Sent
    where
        M: Clone,
    {
        match &self.way {
            Way::Actor(to) => self.send_to(*to, message.clone()),
            Way::Desk(_, to) => {
                let (subject, missed) = (subject.map(str::to_owned), self.dropped.load(Ordering::Relaxed));
                self.send_to(*to, Issue { subject, missed, message: message.clone() })
            }
        }
    }

    fn send_to<T>(&self, to: Recipient<T>, message: T) -> Sent {
        if self.when_overloaded == WhenOverloaded::SlowPublisher {
            to.tell(message);
            return Sent::Taken;
        }
        match to.try_tell(message) {
            Ok(()) => Sent::Taken,
            Err(TrySendError::Stopped(_)) => Sent::Ended,
            Err(_) => Sent::Overloaded,
        }
    }
}
