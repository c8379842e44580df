//! The messages between the actors of members.

use std::sync::Arc;
use std::time::Duration;

use playhouse_actor::wire::WireForm;
use playhouse_actor::{ActorRef, Message as ActorMessage};
use serde::{Deserialize, Serialize};

use super::member::MemberActor;
use crate::membership::Message;
use crate::view::{MemberId, View};

/// The name of the actor in each theater.
pub(super) const NAME: &str = "playhouse.member";

/// A message between members.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Letter {
    /// The sender's id at the time of sending.
    pub(super) from: MemberId,
    /// The intended receiver. The actor at its address may be a later life by now.
    pub(super) to: MemberId,
    /// The sender's actor, because the receiver's view may lack the sender.
    pub(super) sender: ActorRef<MemberActor>,
    pub(super) content: Content,
}

impl ActorMessage for Letter {
    type Reply = ();
    const WIRE: Option<WireForm<Letter>> = Some(WireForm::of());
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Content {
    Ask {
        version: u64,
        fingerprint: u64,
        at: Duration,
    },
    Acknowledge {
        version: u64,
        fingerprint: u64,
        at: Duration,
        read_age: Option<Duration>,
    },
    /// The bytes of a view.
    View(Vec<u8>),
    /// The life to which a letter was addressed has ended.
    Ended(MemberId),
}

impl Content {
    pub(super) fn of(message: &Message) -> Content {
        match *message {
            Message::Ask { version, fingerprint, at } => Content::Ask { version, fingerprint, at },
            Message::Acknowledge { version, fingerprint, at, read_age } => {
                Content::Acknowledge { version, fingerprint, at, read_age }
            }
            Message::View(ref view) => Content::View(view.encode()),
        }
    }

    /// Returns the message for the machine, if it is one. The bytes of a view that cannot be read are logged: the sender has another version of this
    /// program.
    pub(super) fn into_message(self) -> Option<Message> {
        match self {
            Content::Ask { version, fingerprint, at } => Some(Message::Ask { version, fingerprint, at }),
            Content::Acknowledge { version, fingerprint, at, read_age } => {
                Some(Message::Acknowledge { version, fingerprint, at, read_age })
            }
            Content::View(bytes) => match View::decode(&bytes) {
                Ok(view) => Some(Message::View(Arc::new(view))),
                Err(error) => {
                    tracing::warn!(%error, "a member has sent a view that cannot be read");
                    None
                }
            },
            Content::Ended(_) => None,
        }
    }
}
