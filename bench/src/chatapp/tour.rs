//! What clients, chats and directories carry where the world is spread over several theaters: how they move, and what
//! they look out for.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;

use playhouse::prelude::*;
use playhouse::wire::WireForm;
use serde::{Deserialize, Serialize};

use super::chat::Chat;
use super::guide::Guide;
use super::town::{Town, in_place};

/// Guide to directory, directory to client, client to chat: whoever `who` chooses goes to the theater `to`.
#[derive(Serialize, Deserialize)]
pub(super) struct Travel {
    pub to: SocketAddr,
    pub who: u32,
    pub guide: ActorRef<Guide>,
}

/// To the guide: how a trip has ended.
#[derive(Serialize, Deserialize)]
pub(super) enum Travelled {
    Arrived,
    /// The actor was there already, is on another trip, or has ended.
    NotNeeded,
    /// It could not go: why.
    Stayed(String),
}

impl Message for Travel {
    type Reply = ();
    const WIRE: Option<WireForm<Travel>> = Some(WireForm::of());
}

impl Message for Travelled {
    type Reply = ();
    const WIRE: Option<WireForm<Travelled>> = Some(WireForm::of());
}

impl Travel {
    /// Chooses between `others` and the actor itself, and leaves what decides the next choice.
    pub(super) fn choose(&mut self, others: usize) -> Option<usize> {
        let choices = others as u32 + 1;
        let choice = self.who % choices;
        self.who /= choices;
        (choice < others as u32).then_some(choice as usize)
    }
}

/// An actor's trips.
#[derive(Serialize, Deserialize)]
pub(super) struct Tour {
    #[serde(with = "in_place")]
    pub town: Arc<Town>,
    /// Who waits to hear of the trip that the actor is on.
    guide: Option<ActorRef<Guide>>,
    /// It has packed.
    #[serde(skip)]
    leaving: bool,
}

impl Tour {
    /// Of an actor that was born in `town`, if that is one that actors travel in.
    pub(super) fn of(town: &Arc<Town>) -> Option<Tour> {
        town.here?;
        town.counts(1);
        Some(Tour { town: Arc::clone(town), guide: None, leaving: false })
    }

    /// The actor was told to travel; where it has to go for that.
    pub(super) fn begin(&mut self, travel: &Travel) -> Option<SocketAddr> {
        if self.guide.is_some() || self.town.here == Some(travel.to) {
            travel.guide.tell(Travelled::NotNeeded);
            return None;
        }
        self.guide = Some(travel.guide);
        Some(travel.to)
    }

    fn tell(&mut self, how: Travelled) {
        if let Some(guide) = self.guide.take() {
            guide.tell(how);
        }
    }

    pub(super) fn departing(&mut self) {
        self.leaving = true;
        self.town.counts(-1);
    }

    pub(super) fn arrived(&mut self) {
        self.town.counts(1);
        self.tell(Travelled::Arrived);
    }

    pub(super) fn stayed(&mut self, why: &MigrateError) {
        if std::mem::take(&mut self.leaving) {
            self.town.counts(1);
        }
        self.tell(Travelled::Stayed(why.to_string()));
    }

    /// The actor ends.
    pub(super) fn ended(&mut self) {
        self.town.counts(-1);
        self.tell(Travelled::NotNeeded);
    }
}

/// What a client has heard in its chats: whether the posts of each came in their order.
///
/// Order is promised wherever the receiver goes. Where the sender went from one theater to another between two messages, the
/// second may take a shorter way; that is counted, too, and is not wrong.
#[derive(Default, Serialize, Deserialize)]
pub(super) struct Heard {
    last: HashMap<ActorRef<Chat>, Number>,
    /// A chat that it has left: what is on its way from there still comes within the turn.
    left: Option<ActorRef<Chat>>,
    pub order: Order,
}

/// The number of a post in its chat.
#[derive(Clone, Copy, Default, Serialize, Deserialize)]
pub(super) struct Number {
    /// From 1 on.
    pub post: u32,
    /// The how manyth theater it was that the chat sent it from.
    pub stay: u16,
}

/// Posts that did not come behind the one before them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order {
    /// Though the chat has sent both from the same theater.
    pub wrong: u64,
    /// The chat had gone to another theater in between.
    pub over_a_move: u64,
}

impl Heard {
    /// A post has come. Who is in a chat is in it from its first post on, so none is missing.
    pub(super) fn hear(&mut self, chat: ActorRef<Chat>, number: Number) {
        let last = self.last.entry(chat).or_insert(Number { post: 0, stay: number.stay });
        if number.post != last.post.wrapping_add(1) {
            let count = if number.stay == last.stay { &mut self.order.wrong } else { &mut self.order.over_a_move };
            *count += 1;
        }
        *last = number;
    }

    pub(super) fn leave(&mut self, chat: ActorRef<Chat>) {
        self.left = Some(chat);
    }

    /// A new turn begins: all posts of those before have come.
    pub(super) fn begin(&mut self) {
        if let Some(chat) = self.left.take() {
            self.last.remove(&chat);
        }
    }
}

/// What a client carries.
#[derive(Serialize, Deserialize)]
pub(super) struct Luggage {
    pub tour: Tour,
    pub heard: Heard,
}
