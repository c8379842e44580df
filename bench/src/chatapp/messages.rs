//! The messages between the actors of the world; `counts.rs` says who sends which to whom.

use std::sync::Arc;

use playhouse::prelude::*;

use super::chat::{Chat, ChatTotals};
use super::client::Client;
use super::counts::Totals;
use super::world::Town;

/// What the world tells a directory to see to.
#[derive(Clone)]
pub(super) enum Phase {
    /// Create your clients.
    Open(Arc<Town>),
    /// Have them make friends.
    Meet,
    /// Have them move.
    Turn(u32),
    /// Have them log out.
    Close,
}

/// World to itself, from outside: begin.
pub(super) struct Open;
/// To the world, from outside, when nothing moves any more: collect what was counted.
pub(super) struct Salvage;
pub(super) struct Begin(pub Phase);
pub(super) struct PhaseDone {
    /// Messages sent in the phase on behalf of the directory's clients.
    pub sent: u64,
}
pub(super) struct Closed {
    pub sent: u64,
    pub totals: Box<Totals>,
}

pub(super) struct Meet;
pub(super) struct MakeMove {
    pub turn: u32,
}
pub(super) struct LogOut;
pub(super) struct Done {
    /// Messages that the client's move caused, this one and the one that told it to move included.
    pub sent: u64,
}
pub(super) struct Offline {
    pub id: u32,
    pub sent: u64,
    pub totals: Box<Totals>,
}

pub(super) struct Lookup {
    pub id: u32,
    pub from: ActorRef<Client>,
}
pub(super) struct Found {
    pub client: ActorRef<Client>,
}
pub(super) struct Befriend {
    pub id: u32,
    pub from: ActorRef<Client>,
}
pub(super) struct Befriended;

pub(super) struct Invite {
    pub chat: ActorRef<Chat>,
    pub chat_id: u64,
    pub inviter: ActorRef<Client>,
}
pub(super) struct Join {
    pub id: u32,
    pub client: ActorRef<Client>,
    pub inviter: ActorRef<Client>,
}
pub(super) struct Joined {
    pub inviter: ActorRef<Client>,
}
pub(super) struct Accepted;

pub(super) struct Leave {
    pub turn: u32,
    pub id: u32,
    pub client: ActorRef<Client>,
}
pub(super) struct Left {
    pub closed: bool,
}
pub(super) struct ChatClosed {
    pub chat_id: u64,
    pub last: ActorRef<Client>,
    pub totals: Box<ChatTotals>,
}

/// The bytes of a post. Every member gets the same immutable bytes by reference count: that is what sending a large
/// message without a copy costs here. An empty post is `None` and costs not even that.
pub(super) type Payload = Option<Arc<[u8]>>;

pub(super) struct Post {
    pub turn: u32,
    pub id: u32,
    pub client: ActorRef<Client>,
    pub payload: Payload,
}
pub(super) struct Deliver {
    pub chat: ActorRef<Chat>,
    /// Names the post: a hash of chat, turn and poster.
    pub post: u64,
    pub payload: Payload,
}
pub(super) struct Acknowledge {
    /// The receipt: a hash of the post, its content and the receiver.
    pub receipt: u64,
}
pub(super) struct Posted {
    pub deliveries: u32,
}

pub(super) struct Finish {
    pub client: ActorRef<Client>,
}
pub(super) struct Finished {
    pub totals: Box<ChatTotals>,
}

macro_rules! without_reply {
    ($($message:ty),* $(,)?) => {
        $(impl Message for $message { type Reply = (); })*
    };
}

without_reply!(
    Open,
    Salvage,
    Begin,
    PhaseDone,
    Closed,
    Meet,
    MakeMove,
    LogOut,
    Done,
    Offline,
    Lookup,
    Found,
    Befriend,
    Befriended,
    Invite,
    Join,
    Joined,
    Accepted,
    Leave,
    Left,
    ChatClosed,
    Post,
    Deliver,
    Acknowledge,
    Posted,
    Finish,
    Finished,
);
