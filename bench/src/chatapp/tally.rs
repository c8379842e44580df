//! The counts of a client.

use std::collections::HashMap;

use playhouse::prelude::*;
use serde::{Deserialize, Serialize};

use super::chat::{Chat, ChatTotals};
use super::counts::{Delivery, Graphs, Growth, Messages, Moves, Totals};
use super::directory::IdHash;
use super::migration_plan::Order;

/// The counts of a client; small, because there are millions of clients.
#[derive(Default, Serialize, Deserialize)]
pub(super) struct Tally {
    pub received: u64,
    pub received_sum: u64,
    /// Objects of the received posts.
    pub walked: u64,
    pub worked: u32,
    /// The moves, by [`Move`].
    pub moves: [u32; 5],
    pub befriended: u32,
    pub invited: u32,
    pub joined: u32,
}

/// The result of a move: an index into [`Tally::moves`].
#[derive(Clone, Copy)]
pub(super) enum Move {
    Nothing,
    NewChat,
    Leave,
    Post,
    NoChat,
}

/// A client's place in a chat.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub(super) struct Membership {
    pub id: u64,
    pub chat: ActorRef<Chat>,
}

/// The chats that a client has started, and the counts of those that have ended.
#[derive(Default, Serialize, Deserialize)]
pub(super) struct OwnChats {
    /// The open chats, by the turn in which they were started.
    pub open: HashMap<u32, ActorRef<Chat>, IdHash>,
    /// The one started last.
    pub latest: Option<Membership>,
    pub closed: u64,
    pub totals: ChatTotals,
}

impl Tally {
    /// The client's part of the world's totals, and that of the chats it has started.
    pub(super) fn totals(&self, own: &OwnChats, friendships: u64, memberships: u64, state_sum: u64) -> Totals {
        let [nothing, new_chat, leave, post, no_chat] = self.moves.map(u64::from);
        let (befriended, invited, joined) =
            (u64::from(self.befriended), u64::from(self.invited), u64::from(self.joined));
        let open = own.open.len() as u64;
        Totals {
            // The other kinds are sent, and counted, by directories and the world.
            messages: Messages {
                done: 1 + nothing + new_chat + leave + post + no_chat,
                offline: 1,
                lookup: befriended + invited,
                befriend: befriended,
                befriended: friendships,
                invite: invited,
                join: joined,
                joined: own.totals.joined,
                accepted: joined,
                leave,
                left: own.totals.left + own.closed,
                closed: own.closed,
                post,
                deliver: own.totals.expected,
                acknowledge: self.received,
                posted: own.totals.posted,
                finish: open,
                finished: open,
                ..Messages::default()
            },
            moves: Moves { nothing, new_chat, leave, post, no_chat },
            delivery: Delivery {
                posts: own.totals.posts,
                expected: own.totals.expected,
                expected_sum: own.totals.expected_sum,
                received: self.received,
                received_sum: self.received_sum,
                acknowledged: own.totals.acknowledged,
                acknowledged_sum: own.totals.acknowledged_sum,
                posted: post,
            },
            growth: Growth {
                friendships,
                chats_started: new_chat,
                chats_closed: own.closed,
                joins: joined,
                leaves: leave,
                memberships,
            },
            graphs: Graphs { expected: own.totals.objects, walked: self.walked },
            state_sum,
            order: Order::default(),
        }
    }
}
