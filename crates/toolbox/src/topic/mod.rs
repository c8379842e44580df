//! Topics: who publishes a message does not know who gets it.
//!
//! A [`Topic`] is for one type of messages. Subscribers take all of them, or those whose subject fits a pattern such as
//! `orders.*.eu`. Subscribers are watched, and leave when they end. They may be actors of other theaters.
//!
//! A topic is a handle to be cloned, not an actor: publishing sends to each subscriber directly, so what one publisher
//! publishes reaches each subscriber in that order.
//!
//! # Over theaters
//!
//! A topic has a home: the theater in which [`Topic::new`] was called. Others [join](Topic::join) it, once for each theater,
//! and have a topic of their own system, used like any other. In front of each stands an actor, its [endpoint](Topic::endpoint).
//!
//! ```text
//!              home                                     theater that has joined
//!
//!  publish ──▶ subscribers                              subscribers ◀── endpoint ◀─┐
//!         └──▶ endpoint of each theater that has joined ───────────────────────────┘
//!  endpoint ──▶ publish  ◀───────────────────────────────── publish
//! ```
//!
//! - Subscribers are kept where they have subscribed: one copy of each message goes to a theater that has joined, however
//!   many subscribe there, and whether or not the subject is one that they want.
//! - What is published at a topic that has joined goes to the home, and from there to all, those of the publisher's own theater
//!   included. So each step is one actor's or thread's messages to another, and what one publisher publishes (at one handle)
//!   reaches each subscriber in that order, wherever both are.
//! - Publishing at home sends directly, past the endpoint: it costs the same whether others could join or not. So what two
//!   publishers publish at one time may reach two subscribers in different orders, as it may in one theater.
//! - The endpoint of a topic that has joined is a subscriber of the home: watched, with a [`WhenOverloaded`] of its own. It ends when
//!   the topic is [cut off](Topic::is_disconnected), so to watch it is to be told.
//! - A topic that has joined can be joined in turn: it has a endpoint as well. What makes a tree of it is that a topic joins when it
//!   is made, and one only.
//!
//! Of messages on their target when the home's last handle is dropped, those of who drops it still arrive. Of those on their target when
//! the home's theater shuts down, or is lost, some may not.

mod endpoint;
mod join;
mod pattern;
mod state;
mod subscriber;
mod subscription;

use std::fmt;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock, RwLock, Weak};

#[doc(hidden)]
pub use playhouse_actor::remote;
use playhouse_actor::{Actor, ActorRef, HandledBy, Message, Placement, SpawnOptions, System, ToRecipient, Uncounted};
use serde::{Deserialize, Serialize};

#[doc(hidden)]
pub use self::endpoint::{JoinRequest, Publication, PublishRequest};
pub use self::endpoint::{RemoteTopic, TopicEndpoint};
pub use self::join::{Join, JoinError};
pub use self::pattern::SubjectError;
use self::pattern::{Pattern, check_subject};
use self::state::{Home, TopicMembership, TopicState};
use self::subscriber::{Subscriber, Target};
pub use self::subscription::Subscription;
use crate::member_watcher::MemberWatcher;

/// What is done when a message is published and a subscriber's worker is overloaded: said by who subscribes.
///
/// Overload is what [`ActorRef::try_tell`] finds: of a subscriber in another theater, that more waits to be sent there than
/// the link takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
    state: Arc<TopicState<M>>,
}

impl<M: Message> Clone for Topic<M> {
    fn clone(&self) -> Self {
        Topic { state: Arc::clone(&self.state) }
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
    /// To how many subscribers of this theater's topic it was sent. 0 at a topic that has [joined](Topic::join) another one:
    /// it comes back from the home.
    pub sent: usize,
    /// To how many other theaters it was sent. At home: those that have joined. At a topic that has joined: 1, the home, if that
    /// is not known to have ended; how many get it there is not known here.
    pub elsewhere: usize,
    /// How many did not get it since they were overloaded, and get later ones: subscribers, and theaters that have joined.
    pub dropped: usize,
    /// How many subscriptions ended with it, and how many theaters were cut off.
    pub unsubscribed: usize,
}

impl<M: Message + Clone> Topic<M> {
    /// A topic without subscribers. An actor in `system` watches them, and ends with the last handle to the topic.
    ///
    /// # Panics
    /// If the system was shut down.
    pub fn new(system: &System) -> Topic<M> {
        Topic::build(system, None)
    }

    fn build(system: &System, home: Option<Home<M>>) -> Topic<M> {
        let state = Arc::new_cyclic(|topic: &Weak<TopicState<M>>| {
            let membership = MemberWatcher(TopicMembership { topic: Weak::clone(topic) });
            TopicState {
                system: Uncounted::of(system),
                subscribers: RwLock::default(),
                watcher: system.spawn_with(SpawnOptions::new().placement(Placement::Spread), membership),
                endpoint: OnceLock::new(),
                home,
            }
        });
        Topic { state }
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
        let subscriber = Subscriber::new(Target::Actor(actor.recipient()), pattern, when_overloaded);
        Subscription { topic: Arc::downgrade(&self.state), subscriber: self.state.add(actor, subscriber) }
    }

    /// Sends a clone of `message` to each subscriber that has not narrowed its subscription by a pattern.
    ///
    /// At a topic that has [joined](Topic::join) another one, it is sent to the home, as by [`ActorRef::tell`]: who publishes is
    /// slowed while the target there is overloaded. Where the home has ended, it is a dead letter.
    pub fn publish(&self, message: M) -> Published {
        self.state.publish(None, message)
    }

    /// Sends a clone of `message` to each subscriber whose pattern fits `subject`, and to those without a pattern. Otherwise as
    /// [`publish`](Topic::publish).
    ///
    /// Takes time in proportion to the number of subscriptions.
    ///
    /// # Errors
    /// It is no subject: the message was sent to nobody.
    pub fn publish_to(&self, subject: &str, message: M) -> Result<Published, SubjectError> {
        check_subject(subject)?;
        Ok(self.state.publish(Some(subject), message))
    }

    /// The actor in front of this topic, for other theaters to join it: published by `theater.publish("orders", topic.endpoint())`,
    /// found by `theater.find(..)`. It is started by the first call, and ends with the last handle to the topic: keep one.
    ///
    /// # Panics
    /// If the system was shut down.
    pub fn endpoint(&self) -> ActorRef<TopicEndpoint<M>>
    where
        M: RemoteTopic,
    {
        *self.state.endpoint.get_or_init(|| {
            let home = self.state.home.as_ref().map(|home| home.endpoint);
            let endpoint = TopicEndpoint { topic: Arc::downgrade(&self.state), home };
            self.state.system.system().spawn_with(SpawnOptions::new().placement(Placement::Spread), endpoint)
        })
    }

    /// Joins the topic behind `endpoint`, which was found in another theater: gives a topic of this `system`, with the same methods.
    /// Once that is there, all that is published at home from then on is received. A theater needs to join once, and clones the
    /// handle: for each time, a copy of each message comes.
    ///
    /// What was published crosses to this theater as `when_overloaded` says, if the target is overloaded: more waits to be sent than
    /// the link takes, or than this theater handles. [`SlowPublisher`](WhenOverloaded::SlowPublisher) slows who publishes, wherever;
    /// for [`DropNewest`](WhenOverloaded::DropNewest), [`missed`](Topic::missed) counts;
    /// [`Unsubscribe`](WhenOverloaded::Unsubscribe) [cuts it off](Topic::is_disconnected). Subscribers here each have their own, besides.
    ///
    /// When its last handle is dropped, or this theater is lost, the home forgets it.
    ///
    /// # Errors
    /// When awaited: the topic has ended, its theater is lost, or the program there has no
    /// [`remote_topic!`](crate::remote_topic) of this message.
    pub fn join(system: &System, endpoint: ActorRef<TopicEndpoint<M>>, when_overloaded: WhenOverloaded) -> Join<M>
    where
        M: RemoteTopic,
    {
        Join { system: system.clone(), home: endpoint, when_overloaded }
    }
}

impl<M: Message> Topic<M> {
    /// How many subscriptions there are in this theater.
    pub fn subscriptions(&self) -> usize {
        self.state.subscribers().iter().filter(|subscriber| matches!(subscriber.target, Target::Actor(_))).count()
    }

    /// How many have [joined](Topic::join) this topic, and are not cut off.
    pub fn joined(&self) -> usize {
        self.state.subscribers().iter().filter(|subscriber| matches!(subscriber.target, Target::Endpoint(..))).count()
    }

    /// Whether nothing comes from the home any more: it has ended, its theater is lost, or this one was unsubscribed for overload.
    /// Then it stays so; join again. Always false at home.
    ///
    /// Its [endpoint](Topic::endpoint) has ended then, for who wants to be told. Subscriptions stay and get nothing. What is published
    /// here still goes to the home, if that lives, and is a dead letter otherwise.
    pub fn is_disconnected(&self) -> bool {
        self.state.home.is_some() && self.state.endpoint.get().is_some_and(|endpoint| endpoint.is_stopped())
    }

    /// How many messages have not come from the home since the target was overloaded, by [`WhenOverloaded::DropNewest`]; as told by
    /// the last one that has come. Always 0 at home.
    pub fn missed(&self) -> u64 {
        self.state.home.as_ref().map_or(0, |home| home.missed.load(Ordering::Relaxed))
    }
}
