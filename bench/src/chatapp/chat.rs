//! A chat: a conversation, its members and its history.

use std::collections::VecDeque;
use std::sync::Arc;

use playhouse::prelude::*;
use serde::{Deserialize, Serialize};

use super::client::Client;
use super::local_context::LocalContext;
use super::messages::{Acknowledge, ChatClosed, Deliver, Finish, Finished, Join, Joined, Leave, Left, Post, Posted};
use super::migration_plan::{MigrateOne, MigrationEnded, MigrationPlan, Number};
use super::payload::Payload;
use super::{Fault, FaultKind};
use crate::harness::random::mix64;

/// A conversation between clients. Forwards each post to every member at the beginning of the turn.
#[derive(Serialize, Deserialize)]
pub(super) struct Chat {
    /// The turn it was started in (high half) and its creator's id (low half).
    id: u64,
    creator: ActorRef<Client>,
    /// The turn that `members` holds for.
    turn: u32,
    /// Acknowledgements that have not come back.
    outstanding: u32,
    /// The members at the beginning of `turn`; by id, except in the turn in which the chat is started.
    members: Vec<Member>,
    /// The ids of the members that leave at the end of `turn`.
    leaving: Vec<u32>,
    /// The posters that are told when nothing is outstanding.
    posters: Vec<ActorRef<Client>>,
    history: History,
    totals: ChatTotals,
    fault: Option<Fault>,
    plan: Option<Box<MigrationPlan>>,
    /// Theaters that it was in before this one.
    migrations: u16,
}

#[derive(Serialize, Deserialize)]
struct Member {
    id: u32,
    client: ActorRef<Client>,
}

/// The counts of a chat.
#[derive(Clone, Copy, Default, Serialize, Deserialize)]
pub(super) struct ChatTotals {
    pub posts: u64,
    pub posted: u64,
    pub expected: u64,
    pub expected_sum: u64,
    /// Objects of the posts, times the members.
    pub objects: u64,
    pub acknowledged: u64,
    pub acknowledged_sum: u64,
    pub joined: u64,
    pub left: u64,
}

impl ChatTotals {
    pub(super) fn add(&mut self, other: &ChatTotals) {
        self.posts += other.posts;
        self.posted += other.posted;
        self.expected += other.expected;
        self.expected_sum = self.expected_sum.wrapping_add(other.expected_sum);
        self.objects += other.objects;
        self.acknowledged += other.acknowledged;
        self.acknowledged_sum = self.acknowledged_sum.wrapping_add(other.acknowledged_sum);
        self.joined += other.joined;
        self.left += other.left;
    }
}

/// The identity of a chat.
pub(super) fn chat_id(turn: u32, creator: u32) -> u64 {
    u64::from(turn) << 32 | u64::from(creator)
}

/// The turn in which a chat was started.
pub(super) fn turn_of(chat_id: u64) -> u32 {
    (chat_id >> 32) as u32
}

/// Returns the name of a post: a client makes at most one post per turn.
#[inline]
pub(super) fn post_name(chat_id: u64, turn: u32, poster: u32) -> u64 {
    mix64(chat_id ^ mix64(u64::from(turn) << 32 | u64::from(poster)))
}

/// Returns the proof that client `id` has received a post.
#[inline]
pub(super) fn receipt(content: u64, id: u32) -> u64 {
    mix64(content.wrapping_add(u64::from(id).wrapping_mul(0x9E37_79B9_7F4A_7C15)))
}

impl Chat {
    pub(super) fn new(id: u64, creator: ActorRef<Client>, context: &Arc<LocalContext>) -> Chat {
        Chat {
            id,
            creator,
            turn: turn_of(id),
            outstanding: 0,
            members: vec![Member { id: id as u32, client: creator }],
            leaving: Vec::new(),
            posters: Vec::new(),
            history: History { posts: VecDeque::new(), posts_max: context.scenario.message.history as usize },
            totals: ChatTotals::default(),
            fault: context.fault,
            plan: MigrationPlan::of(context).map(Box::new),
            migrations: 0,
        }
    }

    /// Makes `members` right for `turn`: joins and leaves take effect when the first message of a later turn arrives.
    /// By then every change of the turns before is known, because turns end only when everything in them is answered.
    fn begin(&mut self, turn: u32) {
        if turn == self.turn {
            return;
        }
        debug_assert!(turn > self.turn && self.outstanding == 0);
        if self.turn == turn_of(self.id) {
            self.members.sort_unstable_by_key(|member| member.id);
            self.members.shrink_to_fit();
        }
        self.turn = turn;
        self.forget_leavers();
    }

    fn forget_leavers(&mut self) {
        if !self.leaving.is_empty() {
            self.leaving.sort_unstable();
            let leaving = &self.leaving;
            self.members.retain(|member| leaving.binary_search(&member.id).is_err());
            self.leaving.clear();
        }
    }
}

impl Actor for Chat {
    fn stopped(&mut self, _: &mut Context<Self>) {
        self.plan.iter_mut().for_each(|plan| plan.ended());
    }

    fn migrating(&mut self, _: &mut Context<Self>) {
        self.plan.iter_mut().for_each(|plan| plan.departing());
    }

    fn migrated(&mut self, _: &mut Context<Self>) {
        self.migrations = self.migrations.wrapping_add(1);
        self.plan.iter_mut().for_each(|plan| plan.arrived());
    }

    fn migration_failed(&mut self, why: MigrateError, _: &mut Context<Self>) {
        self.plan.iter_mut().for_each(|plan| plan.stayed(&why));
    }
}

impl Handler<Join> for Chat {
    fn handle(&mut self, join: Join, _: &mut Context<Self>) {
        debug_assert_eq!(self.turn, turn_of(self.id), "clients join in the turn in which a chat is started");
        self.members.push(Member { id: join.id, client: join.client });
        self.totals.joined += 1;
        join.client.tell(Joined { inviter: join.inviter });
    }
}

impl Handler<Leave> for Chat {
    fn handle(&mut self, leave: Leave, ctx: &mut Context<Self>) {
        self.begin(leave.turn);
        self.leaving.push(leave.id);
        if self.leaving.len() < self.members.len() {
            self.totals.left += 1;
            leave.client.tell(Left { closed: false });
        } else {
            // No member is left to post. The creator keeps the counts, and then answers the last leaver in the chat's
            // stead, because the turn must not end before the counts have arrived.
            debug_assert_eq!(self.outstanding, 0);
            self.creator.tell(ChatClosed { chat_id: self.id, last: leave.client, totals: Box::new(self.totals) });
            ctx.stop();
        }
    }
}

impl Handler<Post> for Chat {
    fn handle(&mut self, post: Post, ctx: &mut Context<Self>) {
        self.begin(post.turn);
        let chat = ctx.this();
        let name = post_name(self.id, post.turn, post.id);
        // Members must walk through the objects of the poster; the chat does not walk.
        let made = post.payload.made();
        let content = post.payload.content(name, made);
        let fault = self.fault.filter(|fault| fault.turn == post.turn).map(|fault| fault.kind);
        assert!(fault != Some(FaultKind::Crash), "a fault was asked for");
        let mut sum = 0u64;
        self.totals.posts += 1;
        let number = Number { post: self.totals.posts as u32, chat_migrations: self.migrations };
        for (at, member) in self.members.iter().enumerate() {
            sum = sum.wrapping_add(receipt(content, member.id));
            if at == 0 && fault == Some(FaultKind::Lose) {
                continue;
            }
            let payload = match fault {
                Some(FaultKind::Exchange) if at == 0 => post.payload.with_graph(!name, made.objects as u32),
                Some(FaultKind::Prune) if at == 0 => {
                    post.payload.with_graph(name, (made.objects as u32).saturating_sub(1))
                }
                _ => post.payload.clone(),
            };
            member.client.tell(Deliver { chat, post: name, number, payload });
        }
        let members = self.members.len() as u32;
        self.totals.expected += u64::from(members);
        self.totals.expected_sum = self.totals.expected_sum.wrapping_add(sum);
        self.totals.objects += made.objects * u64::from(members);
        self.outstanding += members;
        self.posters.push(post.client);
        if fault == Some(FaultKind::Duplicate) {
            self.outstanding += 1;
            self.members[0].client.tell(Deliver { chat, post: name, number, payload: post.payload.clone() });
        }
        self.history.keep(post.turn, post.id, post.payload);
    }
}

impl Handler<Acknowledge> for Chat {
    #[inline]
    fn handle(&mut self, ack: Acknowledge, _: &mut Context<Self>) {
        self.totals.acknowledged += 1;
        self.totals.acknowledged_sum = self.totals.acknowledged_sum.wrapping_add(ack.receipt);
        self.outstanding -= 1;
        if self.outstanding == 0 {
            let deliveries = self.members.len() as u32;
            self.totals.posted += self.posters.len() as u64;
            for poster in self.posters.drain(..) {
                poster.tell(Posted { deliveries });
            }
        }
    }
}

impl Handler<Finish> for Chat {
    fn handle(&mut self, finish: Finish, ctx: &mut Context<Self>) {
        finish.client.tell(Finished { totals: Box::new(self.totals) });
        ctx.stop();
    }
}

impl Handler<MigrateOne> for Chat {
    fn handle(&mut self, migrate: MigrateOne, ctx: &mut Context<Self>) {
        match &mut self.plan {
            Some(plan) => plan.begin(&migrate).into_iter().for_each(|to| ctx.migrate_to(to)),
            None => migrate.migrator.tell(MigrationEnded::NotNeeded),
        }
    }
}

playhouse::remote!(mobile Chat: Join, Leave, Post, Acknowledge, Finish, MigrateOne);

/// The latest posts of a chat, by turn and then by poster: which are kept depends on no order of arrival.
#[derive(Serialize, Deserialize)]
struct History {
    posts: VecDeque<(u32, u32, Payload)>,
    posts_max: usize,
}

impl History {
    fn keep(&mut self, turn: u32, poster: u32, payload: Payload) {
        let after = self.posts.iter().rev().take_while(|&&(t, p, _)| (t, p) > (turn, poster)).count();
        self.posts.insert(self.posts.len() - after, (turn, poster, payload));
        if self.posts.len() > self.posts_max {
            self.posts.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn history_does_not_depend_on_the_order_of_arrival() {
        let posts = [(1, 4), (2, 1), (2, 2), (2, 9), (3, 5), (3, 7)];
        let kept = |order: &[usize]| {
            let mut history = History { posts: VecDeque::new(), posts_max: 3 };
            for &at in order {
                history.keep(posts[at].0, posts[at].1, Payload::default());
            }
            history.posts.iter().map(|&(turn, poster, _)| (turn, poster)).collect::<Vec<_>>()
        };
        assert_eq!(kept(&[0, 1, 2, 3, 4, 5]), [(2, 9), (3, 5), (3, 7)]);
        assert_eq!(kept(&[0, 3, 1, 2, 5, 4]), kept(&[0, 2, 3, 1, 4, 5]));
    }

    #[test]
    fn receipts_name_the_content_and_the_receiver() {
        let one = receipt(5, 1);
        assert_ne!(one, receipt(6, 1));
        assert_ne!(one, receipt(5, 2));
    }
}
