//! Topics: publish and subscribe between actors that do not know each other.
//!
//! A [`Topic`] carries one type of messages. A subscriber gets all of them, or those with a subject that matches a
//! pattern such as `orders.*.eu`. The topic watches its subscribers, and removes those that end. A subscriber may
//! live in another theater.
//!
//! A topic is a cloned handle, not an actor. Publishing sends to each subscriber directly, so the messages of one
//! publisher reach each subscriber in their order.
//!
//! # Examples
//!
//! ```
//! use playhouse::prelude::*;
//! use playhouse::topic::{Topic, WhenOverloaded};
//!
//! #[derive(Message, Clone)]
//! struct Price(u64);
//!
//! struct Trader {
//!     last: u64,
//! }
//!
//! #[actor]
//! impl Trader {
//!     #[message]
//!     fn last(&self) -> u64 { self.last }
//! }
//!
//! impl Handler<Price> for Trader {
//!     fn handle(&mut self, price: Price, _: &mut Context<Self>) {
//!         self.last = price.0;
//!     }
//! }
//!
//! let system = System::start()?;
//! let prices = Topic::new(&system);
//! let trader = system.spawn(Trader { last: 0 });
//! prices.subscribe_to("metals.*", trader, WhenOverloaded::DropNewest)?;
//! prices.publish_to("metals.gold", Price(1900))?;
//! prices.publish_to("grain", Price(7))?;
//! assert_eq!(trader.ask(Last).wait()?, 1900);
//! # system.shutdown()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Over theaters
//!
//! A topic has a home: the theater that called [`Topic::new`]. Another theater [joins](Topic::join) the topic once,
//! and then has a topic of its own system with the same methods. An actor represents each of these topics, its
//! [endpoint](Topic::endpoint).
//!
//! ```text
//!              home                                     theater that has joined
//!
//!  publish ──▶ subscribers                              subscribers ◀── endpoint ◀─┐
//!         └──▶ endpoint of each joined theater ────────────────────────────────────┘
//!  endpoint ──▶ publish  ◀──────────────────────────────── publish
//! ```
//!
//! - Each theater keeps its own subscribers. One copy of each message goes to a theater that has joined, however many
//!   subscribers it has, and with any subject.
//! - A message that is published at a joined topic goes to the home, and from the home to all subscribers, including
//!   those of the publisher's theater. Each step is between the same two actors or threads. The messages of one
//!   publisher at one handle therefore reach each subscriber in their order, in any theater.
//! - Publishing at home bypasses the endpoint, and costs the same with and without other theaters. Two publishers at
//!   one time may reach two subscribers in different orders, as in one theater.
//! - The endpoint of a joined topic is a subscriber of the home, watched, with a [`WhenOverloaded`] of its own. The
//!   endpoint ends when the topic is [disconnected](Topic::is_disconnected), so watch it to be notified.
//! - A joined topic has an endpoint too, and can be joined in turn. The topics form a tree, because a topic joins
//!   only one other topic, when it is created.
//!
//! When the last handle of the home is dropped, earlier messages of the same thread or actor still arrive. When the
//! home's theater shuts down or is lost, some messages on their way may be lost.

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

/// A policy for a published message whose subscriber is overloaded. The subscription sets it.
///
/// Overload is defined as for [`ActorRef::try_tell`]. A subscriber in another theater is overloaded if the link to
/// that theater is full.
///
/// # Examples
///
/// ```
/// use playhouse::prelude::*;
/// use playhouse::topic::{Topic, WhenOverloaded};
///
/// #[derive(Message, Clone)]
/// struct Sample(f64);
///
/// struct Plot;
/// impl Actor for Plot {}
/// impl Handler<Sample> for Plot {
///     fn handle(&mut self, _: Sample, _: &mut Context<Self>) {}
/// }
///
/// let system = System::start()?;
/// let samples = Topic::new(&system);
/// let plot = samples.subscribe(system.spawn(Plot), WhenOverloaded::DropNewest);
/// samples.publish(Sample(1.5));
/// assert_eq!(plot.dropped(), 0);
/// # system.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum WhenOverloaded {
    /// The publisher is slowed down, as by [`ActorRef::tell`], and no message is lost. One slow subscriber slows the
    /// publishers for all subscribers.
    SlowPublisher,
    /// The subscriber misses this message, and [`Subscription::dropped`] counts it.
    DropNewest,
    /// The subscription ends with this message.
    Unsubscribe,
}

/// A handle to a topic of messages of type `M`: see [the module](self). Clones are handles to the same topic.
///
/// # Examples
///
/// ```
/// use playhouse::prelude::*;
/// use playhouse::topic::{Topic, WhenOverloaded};
///
/// #[derive(Message, Clone)]
/// struct Note(String);
///
/// #[derive(Default)]
/// struct Reader(Vec<String>);
///
/// #[actor]
/// impl Reader {
///     #[message]
///     fn count(&self) -> usize { self.0.len() }
/// }
///
/// impl Handler<Note> for Reader {
///     fn handle(&mut self, note: Note, _: &mut Context<Self>) {
///         self.0.push(note.0);
///     }
/// }
///
/// let system = System::start()?;
/// let notes = Topic::new(&system);
/// let reader = system.spawn(Reader::default());
/// let subscription = notes.subscribe(reader, WhenOverloaded::SlowPublisher);
/// assert_eq!(notes.publish(Note("hello".to_owned())).sent, 1);
/// subscription.cancel();
/// assert_eq!(notes.publish(Note("anybody?".to_owned())).sent, 0);
/// assert_eq!(reader.ask(Count).wait()?, 1);
/// # system.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(alias = "pubsub")]
#[doc(alias = "PubSub")]
#[doc(alias = "eventbus")]
#[doc(alias = "EventBus")]
#[doc(alias = "EventStream")]
#[doc(alias = "DistributedPubSub")]
#[doc(alias = "Broker")]
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

/// The fate of a published message, in numbers.
///
/// # Examples
///
/// ```
/// use playhouse::prelude::*;
/// use playhouse::topic::{Published, Topic};
///
/// #[derive(Message, Clone)]
/// struct Note;
///
/// let system = System::start()?;
/// let notes = Topic::new(&system);
/// assert_eq!(notes.publish(Note), Published::default()); // no subscriber
/// # system.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Published {
    /// The number of subscribers of this theater that got the message. The number is 0 at a topic that has
    /// [joined](Topic::join) another one, because the message comes back from the home.
    pub sent: usize,
    /// The number of other theaters that got the message. At home, these are the theaters that have joined. At a
    /// joined topic the number is 1, or 0 if the home is known to have ended.
    pub elsewhere: usize,
    /// The number of overloaded subscribers and joined theaters that missed the message, and get later ones.
    pub dropped: usize,
    /// The number of subscriptions and joined theaters that this message has ended, because they were overloaded.
    pub unsubscribed: usize,
}

impl<M: Message + Clone> Topic<M> {
    /// Creates a topic without subscribers. An actor in `system` watches subscribers, and ends with the last handle
    /// to the topic.
    ///
    /// # Panics
    /// The system was shut down.
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

    /// Subscribes `actor` to every message that is published from now on, with and without a subject.
    ///
    /// Each subscription delivers on its own: an actor with two subscriptions gets each message twice.
    pub fn subscribe<A: Actor, Mode>(&self, actor: ActorRef<A>, when_overloaded: WhenOverloaded) -> Subscription<M>
    where
        M: HandledBy<A, Mode>,
    {
        self.add(actor, None, when_overloaded)
    }

    /// Subscribes `actor` to the messages with a subject that matches `pattern`.
    ///
    /// A subject has parts between dots: `orders.42.eu`. In a pattern, the part `*` matches any one part, and `>` at
    /// the end matches one or more parts.
    ///
    /// # Errors
    /// `pattern` is malformed, and nobody was subscribed.
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

    /// Sends a clone of `message` to each subscriber without a pattern.
    ///
    /// At a topic that has [joined](Topic::join) another one, the message goes to the home, as by [`ActorRef::tell`].
    /// An overloaded link to the home slows the publisher. If the home has ended, the message is a dead letter.
    pub fn publish(&self, message: M) -> Published {
        self.state.publish(None, message)
    }

    /// Sends a clone of `message` to each subscriber whose pattern matches `subject`, and to those without a pattern.
    /// See [`publish`](Topic::publish) for the rest.
    ///
    /// The time is proportional to the number of subscriptions.
    ///
    /// # Errors
    /// `subject` is malformed, and the message was sent to nobody.
    pub fn publish_to(&self, subject: &str, message: M) -> Result<Published, SubjectError> {
        check_subject(subject)?;
        Ok(self.state.publish(Some(subject), message))
    }

    /// Returns the actor through which other theaters join this topic. Publish it with `theater.publish("orders",
    /// topic.endpoint())`, and find it with `theater.find(..)`. The first call starts the actor. The actor ends with
    /// the last handle to the topic, so keep one.
    ///
    /// # Panics
    /// The system was shut down.
    #[doc(alias = "mediator")]
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

    /// Joins the topic behind `endpoint`, an actor of another theater. The result is a topic of this `system`, which
    /// gets every message that the home publishes from then on. Join once per theater and clone the handle, because
    /// each further join costs another copy of each message.
    ///
    /// `when_overloaded` applies to the link between the theaters, when it is full or this theater is overloaded.
    /// [`SlowPublisher`](WhenOverloaded::SlowPublisher) slows publishers in every theater. With
    /// [`DropNewest`](WhenOverloaded::DropNewest), [`missed`](Topic::missed) counts the lost messages.
    /// [`Unsubscribe`](WhenOverloaded::Unsubscribe) [disconnects](Topic::is_disconnected) the topic. Each local
    /// subscriber has a policy of its own besides.
    ///
    /// The home forgets this topic when its last handle is dropped, or its theater is lost.
    ///
    /// # Errors
    /// The awaited result is an error if the topic has ended, its theater is lost, or its program has no
    /// [`remote_topic!`](crate::remote_topic) of this message.
    pub fn join(system: &System, endpoint: ActorRef<TopicEndpoint<M>>, when_overloaded: WhenOverloaded) -> Join<M>
    where
        M: RemoteTopic,
    {
        Join { system: system.clone(), home: endpoint, when_overloaded }
    }
}

impl<M: Message> Topic<M> {
    /// Returns the number of subscriptions in this theater.
    pub fn subscriptions(&self) -> usize {
        self.state.subscribers().iter().filter(|subscriber| matches!(subscriber.target, Target::Actor(_))).count()
    }

    /// Returns the number of topics that have [joined](Topic::join) this topic and are connected.
    pub fn joined(&self) -> usize {
        self.state.subscribers().iter().filter(|subscriber| matches!(subscriber.target, Target::Endpoint(..))).count()
    }

    /// Returns whether the home sends nothing any more: it has ended, its theater is lost, or it has unsubscribed
    /// this topic for overload. A disconnected topic stays so; join again. The result is always false at home.
    ///
    /// The [endpoint](Topic::endpoint) of a disconnected topic has ended, so watch it to be notified. Subscriptions
    /// stay, and get nothing. Published messages still go to the home if it lives, and are dead letters otherwise.
    pub fn is_disconnected(&self) -> bool {
        self.state.home.is_some() && self.state.endpoint.get().is_some_and(|endpoint| endpoint.is_stopped())
    }

    /// Returns the number of messages that were lost on the way from the home by [`WhenOverloaded::DropNewest`], as
    /// of the last message that has arrived. The result is always 0 at home.
    pub fn missed(&self) -> u64 {
        self.state.home.as_ref().map_or(0, |home| home.missed.load(Ordering::Relaxed))
    }
}
