//! Topics: who publishes a message does not know who gets it.
//!
//! A [`Topic`] is for one type of messages. Subscribers take all of them, or those whose subject fits a pattern such as
//! `orders.*.eu`. Subscribers are watched, and leave when they end. They may be actors of other theaters.
//!
//! A topic is a handle to be cloned, not an actor: publishing sends to each subscriber directly, so what one publisher
//! publishes reaches each subscriber in that order.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockWriteGuard, Weak};

use playhouse_actor::{
    Actor, ActorId, ActorRef, Context, Down, HandledBy, Message, Placement, Recipient, SpawnOptions, System,
    TrySendError,
};

use crate::keeper::{Keeper, Observe, Table};

/// What is done when a message is published and a subscriber's worker is overloaded: said by who subscribes.
///
/// Overload is what [`ActorRef::try_tell`] finds: of a subscriber in another theater, that more waits to be sent there than
/// the link takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WhenOverloaded {
    /// Who publishes is slowed down, as by [`ActorRef::tell`]; no message is lost. One slow subscriber slows the publishers for
    /// all of them.
    SlowPublisher,
    /// The subscriber does not get this message, and it is counted: [`Subscription::dropped`].
    DropNewest,
    /// The subscriber does not get this message nor any later one: the subscription ends.
    Unsubscribe,
}

/// A topic for messages of type `M`: see [the module](self). Clones are handles to the same topic.
pub struct Topic<M: Message> {
    inner: Arc<Inner<M>>,
}

struct Inner<M: Message> {
    subscribers: RwLock<Subscribers<M>>,
    keeper: ActorRef<Keeper<Roll<M>>>,
}

/// Copied where it changes, so that nobody publishes under the lock.
type Subscribers<M> = Arc<Vec<Arc<Subscriber<M>>>>;

struct Subscriber<M> {
    to: Recipient<M>,
    pattern: Option<Pattern>,
    when_overloaded: WhenOverloaded,
    dropped: AtomicU64,
    active: AtomicBool,
}

impl<M: Message> Clone for Topic<M> {
    fn clone(&self) -> Self {
        Topic { inner: Arc::clone(&self.inner) }
    }
}

impl<M: Message> fmt::Debug for Topic<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Topic").field("subscriptions", &self.subscriptions()).finish()
    }
}

/// What has become of a message that was published.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Published {
    /// To how many subscribers it was sent.
    pub sent: usize,
    /// How many did not get it since they were overloaded, and get later ones.
    pub dropped: usize,
    /// How many subscriptions ended with it.
    pub unsubscribed: usize,
}

impl<M: Message + Clone> Topic<M> {
    /// A topic without subscribers. An actor in `system` watches them, and ends with the last handle to the topic.
    ///
    /// # Panics
    /// If the system was shut down.
    pub fn new(system: &System) -> Topic<M> {
        let inner = Arc::new_cyclic(|topic: &Weak<Inner<M>>| {
            let roll = Keeper(Roll { topic: Weak::clone(topic) });
            Inner {
                subscribers: RwLock::default(),
                keeper: system.spawn_with(SpawnOptions::new().placement(Placement::Spread), roll),
            }
        });
        Topic { inner }
    }

    /// Has `actor` get every message that is published from now on, with and without a subject.
    ///
    /// Each subscription delivers on its own: who subscribes twice gets messages twice.
    pub fn subscribe<A: Actor, Mode>(&self, actor: ActorRef<A>, when_overloaded: WhenOverloaded) -> Subscription<M>
    where
        M: HandledBy<A, Mode>,
    {
        self.add(actor, None, when_overloaded)
    }

    /// Has `actor` get the messages that are published to a subject that fits `pattern`.
    ///
    /// A subject is some parts between dots: `orders.42.eu`. In a pattern, the part `*` stands for any one part, and `>` at the
    /// end for one or more.
    ///
    /// # Errors
    /// It is no pattern: nobody was subscribed.
    pub fn subscribe_to<A: Actor, Mode>(
        &self,
        pattern: &str,
        actor: ActorRef<A>,
        when_overloaded: WhenOverloaded,
    ) -> Result<Subscription<M>, SubjectError>
    where
        M: HandledBy<A, Mode>,
    {
        Ok(self.add(actor, Some(Pattern::new(pattern)?), when_overloaded))
    }

    fn add<A: Actor, Mode>(
        &self,
        actor: ActorRef<A>,
        pattern: Option<Pattern>,
        when_overloaded: WhenOverloaded,
    ) -> Subscription<M>
    where
        M: HandledBy<A, Mode>,
    {
        let subscriber = Arc::new(Subscriber {
            to: actor.recipient(),
            pattern,
            when_overloaded,
            dropped: AtomicU64::new(0),
            active: AtomicBool::new(true),
        });
        Arc::make_mut(&mut self.inner.write()).push(Arc::clone(&subscriber));
        self.inner.keeper.tell_urgent(Observe { who: actor, watch: true });
        Subscription { topic: Arc::downgrade(&self.inner), subscriber }
    }

    /// Sends a clone of `message` to each subscriber that has not narrowed its subscription by a pattern.
    pub fn publish(&self, message: M) -> Published {
        self.send(message, |subscriber| subscriber.pattern.is_none())
    }

    /// Sends a clone of `message` to each subscriber whose pattern fits `subject`, and to those without a pattern.
    ///
    /// Takes time in proportion to the number of subscriptions.
    ///
    /// # Errors
    /// It is no subject: the message was sent to nobody.
    pub fn publish_to(&self, subject: &str, message: M) -> Result<Published, SubjectError> {
        check_subject(subject)?;
        Ok(self.send(message, |subscriber| subscriber.pattern.as_ref().is_none_or(|pattern| pattern.fits(subject))))
    }

    fn send(&self, message: M, is_for: impl Fn(&Subscriber<M>) -> bool) -> Published {
        let subscribers = Arc::clone(&self.inner.subscribers.read().unwrap_or_else(PoisonError::into_inner));
        let mut published = Published::default();
        let mut over = Vec::new();
        for subscriber in subscribers.iter().filter(|subscriber| is_for(subscriber)) {
            if subscriber.to.id().address().is_stale() || !subscriber.active.load(Ordering::Relaxed) {
                continue;
            }
            let sent = match subscriber.when_overloaded {
                WhenOverloaded::SlowPublisher => {
                    subscriber.to.tell(message.clone());
                    Ok(())
                }
                WhenOverloaded::DropNewest | WhenOverloaded::Unsubscribe => subscriber.to.try_tell(message.clone()),
            };
            match sent {
                Ok(()) => published.sent += 1,
                // The keeper will hear of it.
                Err(TrySendError::Stopped(_)) => {}
                Err(_) if subscriber.when_overloaded == WhenOverloaded::DropNewest => {
                    subscriber.dropped.fetch_add(1, Ordering::Relaxed);
                    published.dropped += 1;
                }
                Err(_) => over.push(Arc::clone(subscriber)),
            }
        }
        for subscriber in over {
            // Of several that publish at this moment, one ends it.
            published.unsubscribed += usize::from(self.inner.end(&subscriber));
        }
        published
    }
}

impl<M: Message> Topic<M> {
    /// How many subscriptions there are.
    pub fn subscriptions(&self) -> usize {
        self.inner.subscribers.read().unwrap_or_else(PoisonError::into_inner).len()
    }
}

impl<M: Message> Inner<M> {
    fn write(&self) -> RwLockWriteGuard<'_, Subscribers<M>> {
        self.subscribers.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends a subscription. False if it has ended before.
    fn end(&self, subscriber: &Arc<Subscriber<M>>) -> bool {
        Arc::make_mut(&mut self.write()).retain(|other| !Arc::ptr_eq(other, subscriber));
        subscriber.active.swap(false, Ordering::Relaxed)
    }

    fn forget(&self, who: ActorId) {
        Arc::make_mut(&mut self.write()).retain(|subscriber| {
            let stays = subscriber.to.id() != who;
            if !stays {
                subscriber.active.store(false, Ordering::Relaxed);
            }
            stays
        });
    }
}

impl<M: Message> Drop for Inner<M> {
    fn drop(&mut self) {
        self.keeper.drain();
    }
}

/// What the keeper of a topic does.
struct Roll<M: Message> {
    topic: Weak<Inner<M>>,
}

impl<M: Message> Table for Roll<M> {
    fn ended(&mut self, down: &Down, _: &mut Context<Keeper<Self>>) {
        if let Some(topic) = self.topic.upgrade() {
            topic.forget(down.who);
        }
    }
}

/// What an actor has subscribed to. It goes on when this is dropped.
pub struct Subscription<M: Message> {
    topic: Weak<Inner<M>>,
    subscriber: Arc<Subscriber<M>>,
}

impl<M: Message> Subscription<M> {
    /// Whether messages still come: it was not cancelled, and has not ended by [`WhenOverloaded::Unsubscribe`] or with its actor.
    pub fn is_active(&self) -> bool {
        self.subscriber.active.load(Ordering::Relaxed)
    }

    /// How many messages the subscriber has not got, by [`WhenOverloaded::DropNewest`].
    pub fn dropped(&self) -> u64 {
        self.subscriber.dropped.load(Ordering::Relaxed)
    }

    /// Ends it. What was sent before still arrives.
    pub fn cancel(&self) {
        if let Some(topic) = self.topic.upgrade() {
            topic.end(&self.subscriber);
        }
    }
}

impl<M: Message> fmt::Debug for Subscription<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscription")
            .field("to", &self.subscriber.to)
            .field("pattern", &self.subscriber.pattern)
            .field("active", &self.is_active())
            .field("dropped", &self.dropped())
            .finish()
    }
}

/// Which subjects a subscription is for.
#[derive(Clone, Debug)]
struct Pattern(String);

impl Pattern {
    fn new(text: &str) -> Result<Pattern, SubjectError> {
        check_parts("pattern", text)?;
        let inner = text.strip_suffix('>').unwrap_or(text);
        let error = |why| SubjectError { what: "pattern", text: text.to_owned(), why };
        for part in inner.split('.') {
            if part.contains('>') {
                return Err(error("`>` stands for all further parts, and must be the whole last one"));
            }
            if part.contains('*') && part != "*" {
                return Err(error("`*` stands for one whole part"));
            }
        }
        if text.ends_with('>') && !(inner.is_empty() || inner.ends_with('.')) {
            return Err(error("`>` stands for all further parts, and must be the whole last one"));
        }
        Ok(Pattern(text.to_owned()))
    }

    fn fits(&self, subject: &str) -> bool {
        let mut parts = subject.split('.');
        for wanted in self.0.split('.') {
            match (wanted, parts.next()) {
                (_, None) => return false,
                (">", Some(_)) => return true,
                (wanted, Some(part)) if wanted == "*" || wanted == part => {}
                (_, Some(_)) => return false,
            }
        }
        parts.next().is_none()
    }
}

fn check_parts(what: &'static str, text: &str) -> Result<(), SubjectError> {
    if text.split('.').any(str::is_empty) {
        return Err(SubjectError {
            what,
            text: text.to_owned(),
            why: "there must be something before, between and behind its dots",
        });
    }
    Ok(())
}

fn check_subject(text: &str) -> Result<(), SubjectError> {
    check_parts("subject", text)?;
    if text.contains(['*', '>']) {
        let why = "`*` and `>` are for the patterns of subscribers";
        return Err(SubjectError { what: "subject", text: text.to_owned(), why });
    }
    Ok(())
}

/// A text is no subject, or no pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubjectError {
    what: &'static str,
    text: String,
    why: &'static str,
}

impl fmt::Display for SubjectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} is no {}: {}", self.text, self.what, self.why)
    }
}

impl std::error::Error for SubjectError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_fit_by_parts() {
        let cases = [
            ("orders.*.eu", "orders.42.eu", true),
            ("orders.*.eu", "orders.42.us", false),
            ("orders.*.eu", "orders.eu", false),
            ("orders.*.eu", "orders.42.eu.north", false),
            ("orders.>", "orders.42", true),
            ("orders.>", "orders.42.eu", true),
            ("orders.>", "orders", false),
            ("orders.>", "orderss.42", false),
            ("*.*", "a.b", true),
            ("*.*", "a", false),
            ("*", "a", true),
            (">", "a.b.c", true),
            ("orders", "orders", true),
            ("orders", "order", false),
            ("*.42.>", "orders.42.eu.north", true),
        ];
        for (pattern, subject, fits) in cases {
            assert_eq!(Pattern::new(pattern).unwrap().fits(subject), fits, "{pattern} {subject}");
        }
    }

    #[test]
    fn what_is_no_pattern_and_no_subject_is_said() {
        for pattern in ["", ".", "a..b", ".a", "a.", "a.>.b", "a>", "a.b>", ">.a", "a*", "a.*b", ">>"] {
            let error = Pattern::new(pattern).unwrap_err().to_string();
            assert!(error.starts_with(&format!("{pattern:?} is no pattern: ")), "{error}");
        }
        for subject in ["", "a..b", "a.", "a.*", ">"] {
            let error = check_subject(subject).unwrap_err().to_string();
            assert!(error.starts_with(&format!("{subject:?} is no subject: ")), "{error}");
        }
        assert_eq!(
            Pattern::new("a.>.b").unwrap_err().to_string(),
            "\"a.>.b\" is no pattern: `>` stands for all further parts, and must be the whole last one"
        );
    }
}
