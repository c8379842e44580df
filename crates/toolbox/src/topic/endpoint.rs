//! The actor in front of a topic, which other theaters send to.

use std::fmt;
use std::sync::Weak;

use playhouse_actor::wire::{Remote, WireForm};
use playhouse_actor::{Actor, ActorRef, Context, Handler, Message, StopReason, Terminated};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::WhenOverloaded;
use super::state::TopicState;
use super::subscriber::{SendOutcome, SendPublication, Subscriber, Target};

/// Messages whose topics reach over theaters: by [`remote_topic!`](crate::remote_topic), which the crate of the message says.
#[diagnostic::on_unimplemented(
    message = "topics of `{Self}` do not reach over theaters",
    label = "no topic of this message can be joined from another theater",
    note = "put `playhouse::remote_topic!({Self});` where `{Self}` is declared; it derives `Message`, `Clone`, `Serialize` and `Deserialize`"
)]
pub trait RemoteTopic: Message + Clone + Serialize + DeserializeOwned {
    #[doc(hidden)]
    fn endpoint_name() -> &'static str;
}

/// Has topics of a message reach over theaters: `remote_topic!(Order)`, once, in the crate of the message, which derives
/// `Message`, `Clone`, `Serialize` and `Deserialize`.
///
/// Programs that share a topic call it alike: as the type of the message, with its path, or, where that may be renamed or
/// moved, by a name: `remote_topic!(Order = "shop.Order")`.
#[macro_export]
macro_rules! remote_topic {
    ($message:ty) => {
        $crate::remote_topic!(@ $message, ::core::any::type_name::<$message>());
    };
    ($message:ty = $name:literal) => {
        $crate::remote_topic!(@ $message, ::core::concat!("playhouse.TopicEndpoint<", $name, ">"));
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

/// The actor in front of a [`Topic`](super::Topic): see [`Topic::endpoint`](super::Topic::endpoint).
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

    /// A home that stops has us drained, behind what it has sent; the news of its end may be here before that.
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

/// To the endpoint of a topic: another one joins it. False: the topic has ended.
#[doc(hidden)]
#[derive(Serialize, Deserialize)]
#[serde(bound = "M: RemoteTopic")]
pub struct JoinRequest<M: Message> {
    /// The name of the field is part of the wire form.
    #[serde(rename = "desk")]
    pub(super) endpoint: ActorRef<TopicEndpoint<M>>,
    pub(super) when_overloaded: WhenOverloaded,
}

/// To the home: what was published at a topic that has joined it.
#[doc(hidden)]
#[derive(Serialize, Deserialize)]
pub struct PublishRequest<M> {
    pub(super) subject: Option<String>,
    pub(super) message: M,
}

/// From the home: what was published.
#[doc(hidden)]
#[derive(Serialize, Deserialize)]
pub struct Publication<M> {
    pub(super) subject: Option<String>,
    /// How many before it were dropped, since the target was overloaded.
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
