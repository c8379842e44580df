//! A client: the server's side of somebody who chats.

use std::sync::Arc;

use playhouse::prelude::*;
use serde::{Deserialize, Serialize};

use super::chat::{Chat, chat_id, post_name, receipt, turn_of};
use super::counts::Totals;
use super::directory::Directory;
use super::driven::Act;
use super::messages::{
    Accepted, Acknowledge, Befriend, Befriended, ChatClosed, Deliver, Done, Engage, Finish, Finished, Found, Invite,
    Join, Joined, Leave, Left, LogOut, Lookup, MakeMove, Meet, Offline, Perform, Post, Posted,
};
use super::odds::Choice;
use super::payload::Payload;
use super::random::{Dice, mix32, mix64};
use super::scenario::MessageShape;
use super::tally::{Membership, Move, OwnChats, Tally};
use super::tour::{Heard, Luggage, Order, Tour, Travel, Travelled};
use super::town::{Town, in_place};
use super::work::Work;

/// A client makes one move per turn: it does its work, rolls its die, and starts, leaves or posts to a chat, or does
/// nothing. It tells its directory when everything that came of the move has been answered.
#[derive(Serialize, Deserialize)]
pub(super) struct Client {
    #[serde(with = "in_place")]
    town: Arc<Town>,
    id: u32,
    dice: Dice,
    work: Work,
    /// Answers that the current move waits for.
    waiting: u32,
    /// Messages that the current move has caused.
    sent: u64,
    /// The ids of friends; in order from the first turn on.
    friends: Vec<u32>,
    /// The chats it is in. The first `settled` are those it can post to or leave. Their order is what the die chooses
    /// from, so it depends on nothing but the moves; the others were joined in this turn, and lie in order of arrival.
    chats: Vec<Membership>,
    settled: u32,
    own: Option<Box<OwnChats>>,
    tally: Tally,
    luggage: Option<Box<Luggage>>,
}

impl Client {
    pub(super) fn new(town: Arc<Town>, id: u32) -> Client {
        let mut dice = Dice::of_client(town.scenario.seed, id);
        let work = town.scenario.work_of(&mut dice);
        let luggage = Tour::of(&town).map(|tour| Box::new(Luggage { tour, heard: Heard::default() }));
        Client {
            town,
            id,
            dice,
            work,
            waiting: 0,
            sent: 0,
            friends: Vec::new(),
            chats: Vec::new(),
            settled: 0,
            own: None,
            tally: Tally::default(),
            luggage,
        }
    }

    fn directory(&self) -> ActorRef<Directory> {
        self.town.directory_of(self.id)
    }

    /// Begins a move (or the start-up) of which nothing is outstanding yet.
    fn begin(&mut self) {
        self.waiting = 0;
        // The message that told the client to move, and the one that will say that the move is done.
        self.sent = 2;
    }

    /// Takes an answer that ends an exchange of so many messages.
    #[inline]
    fn answered(&mut self, messages: u64) {
        self.sent += messages;
        self.waiting -= 1;
        self.end_if_answered();
    }

    fn end_if_answered(&mut self) {
        if self.waiting == 0 {
            self.directory().tell(Done { sent: self.sent });
        }
    }

    /// Makes `settled` right for `turn`: the chats joined since the last move follow those before, by id.
    fn settle(&mut self, turn: u32) {
        let joined = &mut self.chats[self.settled as usize..];
        if !joined.is_empty() {
            joined.sort_unstable_by_key(|membership| membership.id);
            // Others may be ahead in this turn already: what they invited to waits for the next.
            self.settled += joined.partition_point(|membership| turn_of(membership.id) < turn) as u32;
        }
    }

    fn look_up(&mut self, id: u32, ctx: &mut Context<Self>) {
        self.waiting += 1;
        self.town.directory_of(id).tell(Lookup { id, from: ctx.this() });
    }

    /// Begins a move: what all moves have in common.
    fn begin_move(&mut self, turn: u32) {
        self.begin();
        if let Some(luggage) = &mut self.luggage {
            luggage.heard.begin();
        }
        if turn == 1 {
            self.friends.sort_unstable();
        }
        self.settle(turn);
        let result = self.work.perform(mix32(self.id ^ mix32(turn)));
        self.tally.worked = self.tally.worked.rotate_left(1) ^ result;
    }

    fn start_chat(&mut self, turn: u32, ctx: &mut Context<Self>) {
        let id = chat_id(turn, self.id);
        let chat = ctx.spawn(Chat::new(id, ctx.this(), &self.town));
        let membership = Membership { id, chat };
        self.chats.push(membership);
        let own = self.own.get_or_insert_default();
        own.open.insert(turn, chat);
        own.latest = Some(membership);
    }

    fn invite_by_dice(&mut self, ctx: &mut Context<Self>) {
        let friends = std::mem::take(&mut self.friends);
        for &friend in &friends {
            if self.dice.happens(self.town.odds.invite) {
                self.look_up(friend, ctx);
            }
        }
        self.friends = friends;
    }

    /// Where among the chats is one that it may post to or leave.
    fn place_of(&self, chat: u64) -> usize {
        let settled = &self.chats[..self.settled as usize];
        settled.iter().position(|known| known.id == chat).expect("INVARIANT: who is told to use a chat is in it")
    }

    fn leave_chat(&mut self, turn: u32, at: usize, ctx: &mut Context<Self>) {
        let last = self.settled as usize - 1;
        self.chats.swap(at, last);
        let membership = self.chats.swap_remove(last);
        self.settled -= 1;
        self.waiting += 1;
        if let Some(luggage) = &mut self.luggage {
            luggage.heard.leave(membership.chat);
        }
        membership.chat.tell(Leave { turn, id: self.id, client: ctx.this() });
    }

    fn post(&mut self, turn: u32, at: usize, bytes: (u32, u8), objects: u32, ctx: &mut Context<Self>) {
        let Membership { id, chat } = self.chats[at];
        let payload = Payload::new(post_name(id, turn, self.id), bytes, objects);
        self.waiting += 1;
        chat.tell(Post { turn, id: self.id, client: ctx.this(), payload });
    }

    fn totals(&self) -> Totals {
        let (friendships, memberships) = (self.friends.len() as u64, self.chats.len() as u64);
        let nobody = OwnChats::default();
        let own = self.own.as_deref().unwrap_or(&nobody);
        let order = self.luggage.as_ref().map_or(Order::default(), |luggage| luggage.heard.order);
        Totals { order, ..self.tally.totals(own, friendships, memberships, self.state_sum()) }
    }

    /// A hash of the state that must not depend on any order, nor on who chose the moves: work, friends and chats.
    fn state_sum(&self) -> u64 {
        let start = mix64(u64::from(self.id) << 32 | u64::from(self.tally.worked));
        let friends = self.friends.iter().fold(start, |sum, &friend| mix64(sum ^ u64::from(friend)));
        self.chats.iter().fold(friends, |sum, membership| mix64(sum ^ membership.id))
    }
}

impl Actor for Client {
    fn migrating(&mut self, _: &mut Context<Self>) {
        self.luggage.iter_mut().for_each(|luggage| luggage.tour.departing());
    }

    fn migrated(&mut self, _: &mut Context<Self>) {
        self.luggage.iter_mut().for_each(|luggage| luggage.tour.arrived());
    }

    fn migration_failed(&mut self, why: MigrateError, _: &mut Context<Self>) {
        self.luggage.iter_mut().for_each(|luggage| luggage.tour.stayed(&why));
    }
}

impl Handler<Meet> for Client {
    fn handle(&mut self, _: Meet, ctx: &mut Context<Self>) {
        self.begin();
        let (befriend, mut from) = (self.town.odds.befriend, 0);
        while let Some(older) = self.dice.next_success(befriend, from, self.id) {
            self.tally.befriended += 1;
            self.look_up(older, ctx);
            from = older + 1;
        }
        self.end_if_answered();
    }
}

impl Handler<Engage> for Client {
    fn handle(&mut self, engage: Engage, ctx: &mut Context<Self>) {
        self.begin();
        self.work = engage.work;
        for &older in &engage.friends {
            self.tally.befriended += 1;
            self.look_up(older, ctx);
        }
        self.end_if_answered();
    }
}

impl Handler<MakeMove> for Client {
    fn handle(&mut self, MakeMove { turn }: MakeMove, ctx: &mut Context<Self>) {
        self.begin_move(turn);
        let outcome = match self.town.odds.choose(&mut self.dice, self.settled as usize) {
            Choice::Nothing => Move::Nothing,
            Choice::NoChat => Move::NoChat,
            Choice::NewChat => {
                self.start_chat(turn, ctx);
                self.invite_by_dice(ctx);
                Move::NewChat
            }
            Choice::Leave { at } => {
                self.leave_chat(turn, at, ctx);
                Move::Leave
            }
            Choice::Post { at, byte } => {
                let MessageShape { size, objects, .. } = self.town.scenario.message;
                self.post(turn, at, (size, byte), objects, ctx);
                Move::Post
            }
        };
        self.tally.moves[outcome as usize] += 1;
        self.end_if_answered();
    }
}

impl Handler<Perform> for Client {
    fn handle(&mut self, Perform { turn, act }: Perform, ctx: &mut Context<Self>) {
        self.begin_move(turn);
        let outcome = match act {
            Act::Nothing => Move::Nothing,
            Act::NoChat => Move::NoChat,
            Act::NewChat(invited) => {
                self.start_chat(turn, ctx);
                invited.iter().for_each(|&friend| self.look_up(friend, ctx));
                Move::NewChat
            }
            Act::Leave(chat) => {
                self.leave_chat(turn, self.place_of(chat), ctx);
                Move::Leave
            }
            Act::Post { chat, size, byte, objects } => {
                self.post(turn, self.place_of(chat), (size, byte), objects, ctx);
                Move::Post
            }
        };
        self.tally.moves[outcome as usize] += 1;
        self.end_if_answered();
    }
}

impl Handler<Found> for Client {
    fn handle(&mut self, Found { client }: Found, ctx: &mut Context<Self>) {
        // Handles are for invitations to the chat just started; before the first one, for requests to be friends.
        match self.own.as_ref().and_then(|own| own.latest) {
            None => client.tell(Befriend { id: self.id, from: ctx.this() }),
            Some(Membership { id, chat }) => {
                self.tally.invited += 1;
                client.tell(Invite { chat, chat_id: id, inviter: ctx.this() });
            }
        }
    }
}

impl Handler<Befriend> for Client {
    fn handle(&mut self, request: Befriend, _: &mut Context<Self>) {
        self.friends.push(request.id);
        request.from.tell(Befriended);
    }
}

impl Handler<Befriended> for Client {
    fn handle(&mut self, _: Befriended, _: &mut Context<Self>) {
        // Lookup, found, befriend, befriended.
        self.answered(4);
    }
}

impl Handler<Invite> for Client {
    fn handle(&mut self, invite: Invite, ctx: &mut Context<Self>) {
        self.tally.joined += 1;
        self.chats.push(Membership { id: invite.chat_id, chat: invite.chat });
        invite.chat.tell(Join { id: self.id, client: ctx.this(), inviter: invite.inviter });
    }
}

impl Handler<Joined> for Client {
    fn handle(&mut self, joined: Joined, _: &mut Context<Self>) {
        joined.inviter.tell(Accepted);
    }
}

impl Handler<Accepted> for Client {
    fn handle(&mut self, _: Accepted, _: &mut Context<Self>) {
        // Lookup, found, invite, join, joined, accepted.
        self.answered(6);
    }
}

impl Handler<Left> for Client {
    fn handle(&mut self, left: Left, _: &mut Context<Self>) {
        // Leave, left, and closed if the chat did.
        self.answered(2 + u64::from(left.closed));
    }
}

impl Handler<Deliver> for Client {
    #[inline]
    fn handle(&mut self, message: Deliver, _: &mut Context<Self>) {
        let walk = message.payload.walk();
        let receipt = receipt(message.payload.content(message.post, walk), self.id);
        self.tally.walked += walk.objects;
        self.tally.received += 1;
        self.tally.received_sum = self.tally.received_sum.wrapping_add(receipt);
        if let Some(luggage) = &mut self.luggage {
            luggage.heard.hear(message.chat, message.number);
        }
        message.chat.tell(Acknowledge { receipt });
    }
}

impl Handler<Posted> for Client {
    fn handle(&mut self, posted: Posted, _: &mut Context<Self>) {
        // Post, posted, and two per delivery.
        self.answered(2 + 2 * u64::from(posted.deliveries));
    }
}

impl Handler<ChatClosed> for Client {
    fn handle(&mut self, closed: ChatClosed, _: &mut Context<Self>) {
        let own = self.own.get_or_insert_default();
        own.open.remove(&turn_of(closed.chat_id));
        own.closed += 1;
        own.totals.add(&closed.totals);
        closed.last.tell(Left { closed: true });
    }
}

impl Handler<LogOut> for Client {
    fn handle(&mut self, _: LogOut, ctx: &mut Context<Self>) {
        self.begin();
        self.settle(u32::MAX);
        let client = ctx.this();
        if let Some(own) = &self.own {
            self.waiting = own.open.len() as u32;
            for chat in own.open.values() {
                chat.tell(Finish { client });
            }
        }
        self.log_out_if_answered();
    }
}

impl Handler<Finished> for Client {
    fn handle(&mut self, finished: Finished, _: &mut Context<Self>) {
        self.own.get_or_insert_default().totals.add(&finished.totals);
        self.sent += 2;
        self.waiting -= 1;
        self.log_out_if_answered();
    }
}

impl Client {
    fn log_out_if_answered(&mut self) {
        if self.waiting == 0 {
            self.directory().tell(Offline { id: self.id, sent: self.sent, totals: Box::new(self.totals()) });
        }
    }
}

impl Handler<Travel> for Client {
    fn handle(&mut self, mut travel: Travel, ctx: &mut Context<Self>) {
        match (travel.choose(self.chats.len()), &mut self.luggage) {
            (Some(chat), _) => self.chats[chat].chat.tell(travel),
            (None, Some(luggage)) => luggage.tour.begin(&travel).into_iter().for_each(|to| ctx.migrate_to(to)),
            (None, None) => travel.guide.tell(Travelled::NotNeeded),
        }
    }
}

playhouse::remote!(
    mobile Client: Meet,
    MakeMove,
    LogOut,
    Found,
    Befriend,
    Befriended,
    Invite,
    Joined,
    Accepted,
    Left,
    ChatClosed,
    Deliver,
    Posted,
    Finished,
    Travel
);
