//! The receivers of published messages: actors, and topics that have joined.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use playhouse_actor::{ActorId, ActorRef, Message, Recipient, TrySendError};

use super::WhenOverloaded;
use super::endpoint::{Publication, TopicEndpoint};
use super::pattern::Pattern;

pub(super) struct Subscriber<M: Message> {
    pub(super) target: Target<M>,
    pub(super) pattern: Option<Pattern>,
    pub(super) when_overloaded: WhenOverloaded,
    pub(super) dropped: AtomicU64,
    pub(super) active: AtomicBool,
}

/// The receiver of a subscription.
pub(super) enum Target<M: Message> {
    Actor(Recipient<M>),
    /// The endpoint of a topic that has joined this one, and the function that sends to it.
    Endpoint(ActorRef<TopicEndpoint<M>>, SendPublication<M>),
}

pub(super) type SendPublication<M> = fn(ActorRef<TopicEndpoint<M>>, Publication<M>, WhenOverloaded) -> SendOutcome;

/// The fate of a message for one subscriber.
pub(super) enum SendOutcome {
    Sent,
    Overloaded,
    Stopped,
}

impl SendOutcome {
    /// Sends with `tell` or `try_tell`, as the policy says.
    pub(super) fn by<T>(
        when_overloaded: WhenOverloaded,
        message: T,
        tell: impl FnOnce(T),
        try_tell: impl FnOnce(T) -> Result<(), TrySendError<T>>,
    ) -> SendOutcome {
        if when_overloaded == WhenOverloaded::SlowPublisher {
            tell(message);
            return SendOutcome::Sent;
        }
        match try_tell(message) {
            Ok(()) => SendOutcome::Sent,
            Err(TrySendError::Stopped(_)) => SendOutcome::Stopped,
            Err(_) => SendOutcome::Overloaded,
        }
    }
}

impl<M: Message> Target<M> {
    pub(super) fn id(&self) -> ActorId {
        match self {
            Target::Actor(to) => to.id(),
            Target::Endpoint(endpoint, _) => endpoint.id(),
        }
    }
}

impl<M: Message> fmt::Debug for Target<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::Actor(to) => to.fmt(f),
            Target::Endpoint(endpoint, _) => endpoint.fmt(f),
        }
    }
}

impl<M: Message> Subscriber<M> {
    pub(super) fn new(target: Target<M>, pattern: Option<Pattern>, when_overloaded: WhenOverloaded) -> Subscriber<M> {
        let (dropped, active) = (AtomicU64::new(0), AtomicBool::new(true));
        Subscriber { target, pattern, when_overloaded, dropped, active }
    }

    pub(super) fn is_for(&self, subject: Option<&str>) -> bool {
        self.pattern.as_ref().is_none_or(|pattern| subject.is_some_and(|subject| pattern.fits(subject)))
    }

    /// Sends a clone of `message`.
    pub(super) fn send(&self, subject: Option<&str>, message: &M) -> SendOutcome
    where
        M: Clone,
    {
        match &self.target {
            Target::Actor(to) => SendOutcome::by(
                self.when_overloaded,
                message.clone(),
                |message| to.tell(message),
                |message| to.try_tell(message),
            ),
            Target::Endpoint(endpoint, send) => {
                let (subject, missed) = (subject.map(str::to_owned), self.dropped.load(Ordering::Relaxed));
                send(*endpoint, Publication { subject, missed, message: message.clone() }, self.when_overloaded)
            }
        }
    }
}
