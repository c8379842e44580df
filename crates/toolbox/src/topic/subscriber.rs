//! Who gets what is published: actors, and topics that have joined.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use playhouse_actor::{ActorId, ActorRef, Message, Recipient, TrySendError};

use super::WhenOverloaded;
use super::endpoint::{Desk, Issue};
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
    /// A topic that has joined this one, and how it is sent to.
    Desk(ActorRef<Desk<M>>, SendIssue<M>),
}

pub(super) type SendIssue<M> = fn(ActorRef<Desk<M>>, Issue<M>, WhenOverloaded) -> Sent;

/// What has become of a message for a subscriber.
pub(super) enum Sent {
    Taken,
    Overloaded,
    Ended,
}

impl Sent {
    /// Sends by one of two functions.
    pub(super) fn by<T>(
        when_overloaded: WhenOverloaded,
        message: T,
        tell: impl FnOnce(T),
        try_tell: impl FnOnce(T) -> Result<(), TrySendError<T>>,
    ) -> Sent {
        if when_overloaded == WhenOverloaded::SlowPublisher {
            tell(message);
            return Sent::Taken;
        }
        match try_tell(message) {
            Ok(()) => Sent::Taken,
            Err(TrySendError::Stopped(_)) => Sent::Ended,
            Err(_) => Sent::Overloaded,
        }
    }
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
            Way::Actor(to) => Sent::by(
                self.when_overloaded,
                message.clone(),
                |message| to.tell(message),
                |message| to.try_tell(message),
            ),
            Way::Desk(desk, send) => {
                let (subject, missed) = (subject.map(str::to_owned), self.dropped.load(Ordering::Relaxed));
                send(*desk, Issue { subject, missed, message: message.clone() }, self.when_overloaded)
            }
        }
    }
}
