//! The actor through which other theaters use a topic.

use std::fmt;
use std::sync::Weak;

use playhouse_actor::wire::{Remote, WireForm};
use playhouse_actor::{Actor, ActorRef, Context, Handler, Message, StopReason, Terminated};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::WhenOverloaded;
use super::state::TopicState;
use super::subscriber::{SendOutcome, SendPublication, Subscriber, Target};

/// A message whose topics can be joined from other theaters. Implement it with [`remote_topic!`](crate::remote_topic)
/// in the crate of the message.
///
/// # Examples
///
/// ```
/// use playhouse::prelude::*;
/// use playhouse::serde::{Deserialize, Serialize};
/// use playhouse::topic::Topic;
///
/// #[derive(Message, Clone, Serialize, Deserialize)]
/// #[serde(crate = "playhouse::serde")]
/// struct Order(u64);
/// playhouse::remote_topic!(Order = "shop.Order");
///
/// let system = System::start()?;
/// let orders: Topic<Order> = Topic::new(&system);
/// let endpoint = orders.endpoint();
/// assert!(!endpoint.is_stopped());
/// # drop(orders);
/// # system.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "topics of `{Self}` cannot be joined from other theaters",
    label = "this message has no `remote_topic!`",
    note = "put `playhouse::remote_topic!({Self});` where `{Self}` is declared; `{Self}` derives `Message`, `Clone`, `Serialize` and `Deserialize`"
)]
pub trait RemoteTopic: Message + Clone + Serialize + DeserializeOwned {
    #[doc(hidden)]
    fn endpoint_name() -> &'static str;
}

/// Lets other theaters join topics of a message: `remote_topic!(Order)`. Call it once, in the crate of the message.
/// The message derives `Message`, `Clone`, `Serialize` and `Deserialize`.
///
/// All programs that share a topic use one name for it. The default is the path of the message's type. A name makes
/// the type free to move: `remote_topic!(Order = "shop.Order")`.
#[macro_export]
macro_rules! remote_topic {
    ($message:ty) => {
        $crate::remote_topic!(@ $message, ::core::any::type_name::<$message>());
    };
    ($message:ty = $name:literal) => {
        // The name on the wire stays, because theaters of earlier versions know it.
        $crate::remote_topic!(@ $message, ::core::concat!("playhouse.Desk<", $name, ">"));
    };
    (@ $message:ty, $name:expr) => {
        impl $crate::topic::RemoteTopic for $message {
            fn endpoint_name() -> &'static str {
                $name
            }
        }
        $crate::topic::remote!(
            also $crate::topic::TopicEndpoint<$message>:
                $crate::topic::JoinRequest<$message>,
                $crate::topic::PublishRequest<$message>,
                $crate::topic::Publication<$message>,
        );
    };
}

/// The actor through which other theaters use a [`Topic`](super::Topic): see
/// [`Topic::endpoint`](super::Topic::endpoint).
///
/// # Examples
///
/// ```
/// use playhouse::prelude::*;
/// use playhouse::serde::{Deserialize, Serialize};
/// use playhouse::topic::{Topic, TopicEndpoint};
///
/// #[derive(Message, Clone, Serialize, Deserialize)]
/// #[serde(crate = "playhouse::serde")]
/// struct Order(u64);
/// playhouse::remote_topic!(Order);
///
/// let system = System::start()?;
/// let orders: Topic<Order> = Topic::new(&system);
/// let endpoint: ActorRef<TopicEndpoint<Order>> = orders.endpoint(); // publish it for other theaters
/// # drop(orders);
/// # system.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct TopicEndpoint<M: Message> {
    pub(super) topic: Weak<TopicState<M>>,
    pub(super) home: Option<ActorRef<TopicEndpoint<M>>>,
}

impl<M: Message> fmt::Debug for TopicEndpoint<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TopicEndpoint").field("home", &self.home).finish()
    }
}

impl<M: Message> Actor for TopicEndpoint<M> {
    fn started(&mut self, ctx: &mut Context<Self>) {
        if let Some(home) = self.home {
            ctx.watch(home);
        }
    }

    fn stopped(&mut self, _: &mut Context<Self>) {
        if let Some(topic) = self.topic.upgrade() {
            topic.disconnect_all();
        }
    }

    /// A home that stops drains this actor behind its last messages. The notice of its end may arrive before them, so
    /// an ordinary stop is ignored.
    fn terminated(&mut self, terminated: Terminated, ctx: &mut Context<Self>) {
        if !matches!(terminated.reason, StopReason::Stopped | StopReason::NotAlive) {
            ctx.this().drain();
        }
    }
}

impl<M: RemoteTopic> Remote for TopicEndpoint<M> {
    fn wire_name() -> &'static str {
        M::endpoint_name()
    }
}

/// A request to join a topic. The answer is false if the topic has ended.
#[doc(hidden)]
#[derive(Serialize, Deserialize)]
#[serde(bound = "M: RemoteTopic")]
#[serde(rename = "Enroll")]
pub struct JoinRequest<M: Message> {
    /// The name of the field is part of the wire form.
    #[serde(rename = "desk")]
    pub(super) endpoint: ActorRef<TopicEndpoint<M>>,
    pub(super) when_overloaded: WhenOverloaded,
}

/// A message that was published at a joined topic, on its way to the home.
#[doc(hidden)]
#[derive(Serialize, Deserialize)]
#[serde(rename = "Submission")]
pub struct PublishRequest<M> {
    pub(super) subject: Option<String>,
    pub(super) message: M,
}

/// A published message, on its way from the home.
#[doc(hidden)]
#[derive(Serialize, Deserialize)]
#[serde(rename = "Issue")]
pub struct Publication<M> {
    pub(super) subject: Option<String>,
    /// The number of earlier messages that were dropped, because the link was overloaded.
    pub(super) missed: u64,
    pub(super) message: M,
}

macro_rules! message {
    ($message:ident, $name:literal -> $reply:ty) => {
        impl<M: RemoteTopic> Message for $message<M> {
            type Reply = $reply;
            const WIRE: Option<WireForm<Self>> = Some(WireForm::named($name));
        }
    };
}

message!(JoinRequest, "playhouse.Enroll" -> bool);
message!(PublishRequest, "playhouse.Submission" -> ());
message!(Publication, "playhouse.Issue" -> ());

impl<M: RemoteTopic> Handler<JoinRequest<M>> for TopicEndpoint<M> {
    fn handle(&mut self, JoinRequest { endpoint, when_overloaded }: JoinRequest<M>, _: &mut Context<Self>) -> bool {
        let Some(topic) = self.topic.upgrade() else { return false };
        let send: SendPublication<M> = |endpoint, publication, when_overloaded| {
            SendOutcome::by(
                when_overloaded,
                publication,
                |publication| endpoint.tell(publication),
                |publication| endpoint.try_tell(publication),
            )
        };
        topic.add(endpoint, Subscriber::new(Target::Endpoint(endpoint, send), None, when_overloaded));
        true
    }
}

impl<M: RemoteTopic> Handler<PublishRequest<M>> for TopicEndpoint<M> {
    fn handle(&mut self, PublishRequest { subject, message }: PublishRequest<M>, _: &mut Context<Self>) {
        if let Some(topic) = self.topic.upgrade() {
            topic.publish(subject.as_deref(), message);
        }
    }
}

impl<M: RemoteTopic> Handler<Publication<M>> for TopicEndpoint<M> {
    fn handle(&mut self, Publication { subject, missed, message }: Publication<M>, _: &mut Context<Self>) {
        if let Some(topic) = self.topic.upgrade() {
            topic.record_missed(missed);
            topic.deliver(subject.as_deref(), message);
        }
    }
}
