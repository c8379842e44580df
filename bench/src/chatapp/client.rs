//! A client: the server's side of a person who chats.

use std::sync::Arc;

use playhouse::prelude::*;
use serde::{Deserialize, Serialize};

use super::chat::{Chat, chat_id, post_name, receipt, turn_of};
use super::counts::Totals;
use super::dice::Choice;
use super::directory::Directory;
use super::driven::Act;
use super::local_context::{LocalContext, in_place};
use super::messages::{
    Accepted, Acknowledge, Befriend, Befriended, ChatClosed, Deliver, Done, Engage, Finish, Finished, Found, Invite,
    Join, Joined, Leave, Left, LogOut, Lookup, MakeMove, Meet, Offline, Perform, Post, Posted,
};
use super::migration_plan::{MigrateOne, MigrationEnded, MigrationPlan, Order, PostOrder, SpreadState};
use super::payload::Payload;
use super::scenario::MessageShape;
use super::tally::{Membership, Move, OwnChats, Tally};
use crate::harness::busy_work::Work;
use crate::harness::random::{Dice, mix32, mix64};

/// A client makes one move per turn: it does its work, rolls its die, and starts, leaves or posts to a chat, or does
/// nothing. It tells its directory when everything that came of the move has been answered.
#[derive(Serialize, Deserialize)]
pub(super) struct Client {
    #[serde(with = "in_place")]
    context: Arc<LocalContext>,
    id: u32,
    dice: Dice,
    work: Work,
    /// Answers that the current move waits for.
    waiting: u32,
    /// Messages that the current move has caused.
    sent: u64,
    /// The ids of friends; in order from the first turn on.
    friends: Vec<u32>,
    /// The chats of the client. It may post to or leave the first `settled`. The dice choose by their order, which depends
    /// only on the moves; the others were joined in this turn, and lie in order of arrival.
    chats: Vec<Membership>,
    settled: u32,
    own: Option<Box<OwnChats>>,
    tally: Tally,
    spread: Option<Box<SpreadState>>,
}

impl Client {
    pub(super) fn new(context: Arc<LocalContext>, id: u32) -> Client {
        let mut dice = Dice::of_client(context.scenario.seed, id);
        let work = context.scenario.work_of(&mut dice);
        let spread =
            MigrationPlan::of(&context).map(|plan| Box::new(SpreadState { plan, post_order: PostOrder::default() }));
        Client {
            context,
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
            spread,
        }
    }

    fn directory(&self) -> ActorRef<Directory> {
        self.context.directory_of(self.id)
    }

    /// Begins a move (or the start-up) of which nothing is outstanding yet.
    fn begin(&mut self) {
        self.waiting = 0;
        // The message that told the client to move, and the one that will say that the move is done.
        self.sent = 2;
    }

    /// Takes an answer that ends an exchange of this number of messages.
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

    /// Updates `settled` for `turn`: the chats joined since the last move follow the earlier ones, by id.
    fn settle(&mut self, turn: u32) {
        let joined = &mut self.chats[self.settled as usize..];
        if !joined.is_empty() {
            joined.sort_unstable_by_key(|membership| membership.id);
            // Other clients may be ahead in this turn: their invitations wait for the next one.
            self.settled += joined.partition_point(|membership| turn_of(membership.id) < turn) as u32;
        }
    }

    fn look_up(&mut self, id: u32, ctx: &mut Context<Self>) {
        self.waiting += 1;
        self.context.directory_of(id).tell(Lookup { id, from: ctx.this() });
    }

    /// Begins a move: the common part of all moves.
    fn begin_move(&mut self, turn: u32) {
        self.begin();
        if let Some(spread) = &mut self.spread {
            spread.post_order.begin();
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
        let chat = ctx.spawn(Chat::new(id, ctx.this(), &self.context));
        let membership = Membership { id, chat };
        self.chats.push(membership);
        let own = self.own.get_or_insert_default();
        own.open.insert(turn, chat);
        own.latest = Some(membership);
    }

    fn invite_by_dice(&mut self, ctx: &mut Context<Self>) {
        let friends = std::mem::take(&mut self.friends);
        for &friend in &friends {
            if self.dice.happens(self.context.move_dice.invite) {
                self.look_up(friend, ctx);
            }
        }
        self.friends = friends;
    }

    /// Returns the index of a chat that the client may post to or leave.
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
        if let Some(spread) = &mut self.spread {
            spread.post_order.leave(membership.chat);
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
        let order = self.spread.as_ref().map_or(Order::default(), |spread| spread.post_order.order);
        Totals { order, ..self.tally.totals(own, friendships, memberships, self.state_sum()) }
    }

    /// Returns a hash of the state (work, friends and chats), independent of any order, and of the source of the moves.
    fn state_sum(&self) -> u64 {
        let start = mix64(u64::from(self.id) << 32 | u64::from(self.tally.worked));
        let friends = self.friends.iter().fold(start, |sum, &friend| mix64(sum ^ u64::from(friend)));
        self.chats.iter().fold(friends, |sum, membership| mix64(sum ^ membership.id))
    }
}

impl Actor for Client {
    fn migrating(&mut self, _: &mut Context<Self>) {
        self.spread.iter_mut().for_each(|spread| spread.plan.departing());
    }

    fn migrated(&mut self, _: &mut Context<Self>) {
        self.spread.iter_mut().for_each(|spread| spread.plan.arrived());
    }

    fn migration_failed(&mut self, why: MigrateError, _: &mut Context<Self>) {
        self.spread.iter_mut().for_each(|spread| spread.plan.stayed(&why));
    }
}

impl Handler<Meet> for Client {
    fn handle(&mut self, _: Meet, ctx: &mut Context<Self>) {
        self.begin();
        let (befriend, mut from) = (self.context.move_dice.befriend, 0);
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
        let outcome = match self.context.move_dice.choose(&mut self.dice, self.settled as usize) {
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
                let MessageShape { size, objects, .. } = self.context.scenario.message;
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
        if let Some(spread) = &mut self.spread {
            spread.post_order.received(message.chat, message.number);
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

impl Handler<MigrateOne> for Client {
    fn handle(&mut self, mut migrate: MigrateOne, ctx: &mut Context<Self>) {
        match (migrate.choose(self.chats.len()), &mut self.spread) {
            (Some(chat), _) => self.chats[chat].chat.tell(migrate),
            (None, Some(spread)) => spread.plan.begin(&migrate).into_iter().for_each(|to| ctx.migrate_to(to)),
            (None, None) => migrate.migrator.tell(MigrationEnded::NotNeeded),
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
    MigrateOne
);
