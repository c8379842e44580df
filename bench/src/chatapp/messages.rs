//! The messages between the actors of the world; `counts.rs` lists their senders and receivers.

use std::sync::Arc;

use playhouse::prelude::*;
use playhouse::wire::WireForm;
use serde::{Deserialize, Serialize};

use super::chat::{Chat, ChatTotals};
use super::client::Client;
use super::counts::Totals;
use super::driven::Act;
use super::local_context::{LocalContext, in_place};
use super::migration_plan::Number;
use super::migrator::Migrator;
use super::payload::Payload;
use crate::harness::busy_work::Work;

/// A phase that the world begins in a directory.
#[derive(Clone, Serialize, Deserialize)]
pub(super) enum Phase {
    /// Create your clients.
    Open(#[serde(with = "in_place")] Arc<LocalContext>),
    /// Have them make friends.
    Meet,
    /// Have them move.
    Turn(u32),
    /// Have them log out.
    Close,
}

/// World to itself, from outside: begin.
pub(super) struct Open;
/// To the world, from outside, after a stall: collect the counts.
pub(super) struct CollectPartial;
/// To the world, from outside: begin, with the directories of this context.
pub(super) struct OpenSpread {
    pub context: Arc<LocalContext>,
    pub migrator: ActorRef<Migrator>,
}
/// To the world, from outside: the current turn is the last one.
pub(super) struct LastTurn;
/// Migrator to world: no migration is in progress, and none will begin.
pub(super) struct MigrationsFinished;
#[derive(Serialize, Deserialize)]
pub(super) struct Begin(pub Phase);
/// To the world, from outside, and world to directory: the driver's orders for the clients in a phase; by rising id.
pub(super) enum Direct {
    /// Orders for all clients.
    Meet(Vec<(u32, Engage)>),
    /// Orders for this turn; a client without one does nothing.
    Turn(u32, Vec<(u32, Act)>),
}
/// To the world, from outside: log every client out.
pub(super) struct EndDriven;
/// Directory to client, instead of meet: your work, and the clients that you befriend.
pub(super) struct Engage {
    pub work: Work,
    pub friends: Box<[u32]>,
}
/// Directory to client, instead of a roll of the dice: do this.
pub(super) struct Perform {
    pub turn: u32,
    pub act: Act,
}
#[derive(Serialize, Deserialize)]
pub(super) struct PhaseDone {
    /// Messages sent in the phase on behalf of the directory's clients.
    pub sent: u64,
}
#[derive(Serialize, Deserialize)]
pub(super) struct Closed {
    pub sent: u64,
    pub totals: Box<Totals>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct Meet;
#[derive(Serialize, Deserialize)]
pub(super) struct MakeMove {
    pub turn: u32,
}
#[derive(Serialize, Deserialize)]
pub(super) struct LogOut;
#[derive(Serialize, Deserialize)]
pub(super) struct Done {
    /// Messages that the client's move caused, this one and the one that told it to move included.
    pub sent: u64,
}
#[derive(Serialize, Deserialize)]
pub(super) struct Offline {
    pub id: u32,
    pub sent: u64,
    pub totals: Box<Totals>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct Lookup {
    pub id: u32,
    pub from: ActorRef<Client>,
}
#[derive(Serialize, Deserialize)]
pub(super) struct Found {
    pub client: ActorRef<Client>,
}
#[derive(Serialize, Deserialize)]
pub(super) struct Befriend {
    pub id: u32,
    pub from: ActorRef<Client>,
}
#[derive(Serialize, Deserialize)]
pub(super) struct Befriended;

#[derive(Serialize, Deserialize)]
pub(super) struct Invite {
    pub chat: ActorRef<Chat>,
    pub chat_id: u64,
    pub inviter: ActorRef<Client>,
}
#[derive(Serialize, Deserialize)]
pub(super) struct Join {
    pub id: u32,
    pub client: ActorRef<Client>,
    pub inviter: ActorRef<Client>,
}
#[derive(Serialize, Deserialize)]
pub(super) struct Joined {
    pub inviter: ActorRef<Client>,
}
#[derive(Serialize, Deserialize)]
pub(super) struct Accepted;

#[derive(Serialize, Deserialize)]
pub(super) struct Leave {
    pub turn: u32,
    pub id: u32,
    pub client: ActorRef<Client>,
}
#[derive(Serialize, Deserialize)]
pub(super) struct Left {
    pub closed: bool,
}
#[derive(Serialize, Deserialize)]
pub(super) struct ChatClosed {
    pub chat_id: u64,
    pub last: ActorRef<Client>,
    pub totals: Box<ChatTotals>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct Post {
    pub turn: u32,
    pub id: u32,
    pub client: ActorRef<Client>,
    pub payload: Payload,
}
#[derive(Serialize, Deserialize)]
pub(super) struct Deliver {
    pub chat: ActorRef<Chat>,
    /// Names the post: a hash of chat, turn and poster.
    pub post: u64,
    pub number: Number,
    pub payload: Payload,
}
#[derive(Serialize, Deserialize)]
pub(super) struct Acknowledge {
    /// The receipt: a hash of the post, its content and the receiver.
    pub receipt: u64,
}
#[derive(Serialize, Deserialize)]
pub(super) struct Posted {
    pub deliveries: u32,
}

#[derive(Serialize, Deserialize)]
pub(super) struct Finish {
    pub client: ActorRef<Client>,
}
#[derive(Serialize, Deserialize)]
pub(super) struct Finished {
    pub totals: Box<ChatTotals>,
}

macro_rules! without_reply {
    ($($message:ty),* $(,)?) => {
        $(impl Message for $message { type Reply = (); })*
    };
}

/// Messages that may go to another theater.
macro_rules! without_reply_remote {
    ($($message:ty),* $(,)?) => {
        $(impl Message for $message {
            type Reply = ();
            const WIRE: Option<WireForm<$message>> = Some(WireForm::of());
        })*
    };
}

/// To a directory: a request for an empty answer.
#[derive(Serialize, Deserialize)]
pub(super) struct Answer;

without_reply!(Open, OpenSpread, LastTurn, MigrationsFinished, CollectPartial, Direct, EndDriven, Engage, Perform);
without_reply_remote!(
    Answer,
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
