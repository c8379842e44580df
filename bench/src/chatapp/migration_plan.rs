//! The state that clients, chats and directories carry in a world of several theaters: their migrations, and checks of the order
//! of posts.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;

use playhouse::prelude::*;
use playhouse::wire::WireForm;
use serde::{Deserialize, Serialize};

use super::chat::Chat;
use super::local_context::{LocalContext, in_place};
use super::migrator::Migrator;

/// Migrator to directory, directory to client, client to chat: the actor that `who` chooses migrates to the theater `to`.
#[derive(Serialize, Deserialize)]
pub(super) struct MigrateOne {
    pub to: SocketAddr,
    pub who: u32,
    pub migrator: ActorRef<Migrator>,
}

/// To the migrator: the end of a migration.
#[derive(Serialize, Deserialize)]
pub(super) enum MigrationEnded {
    Arrived,
    /// The actor was already in that theater, is migrating, or has ended.
    NotNeeded,
    /// The actor could not migrate: the reason.
    Stayed(String),
}

impl Message for MigrateOne {
    type Reply = ();
    const WIRE: Option<WireForm<MigrateOne>> = Some(WireForm::named("playhouse_bench::chatapp::tour::Travel"));
}

impl Message for MigrationEnded {
    type Reply = ();
    const WIRE: Option<WireForm<MigrationEnded>> = Some(WireForm::named("playhouse_bench::chatapp::tour::Travelled"));
}

impl MigrateOne {
    /// Chooses between `others` and the actor itself, and keeps the remaining bits for the next choice.
    pub(super) fn choose(&mut self, others: usize) -> Option<usize> {
        let choices = others as u32 + 1;
        let choice = self.who % choices;
        self.who /= choices;
        (choice < others as u32).then_some(choice as usize)
    }
}

/// The migrations of an actor.
#[derive(Serialize, Deserialize)]
pub(super) struct MigrationPlan {
    #[serde(with = "in_place")]
    pub context: Arc<LocalContext>,
    /// The migrator that waits for the end of the current migration.
    migrator: Option<ActorRef<Migrator>>,
    /// The actor has departed, and not yet arrived.
    #[serde(skip)]
    leaving: bool,
}

impl MigrationPlan {
    /// Creates the plan of an actor in `context`, if that belongs to a world of several theaters.
    pub(super) fn of(context: &Arc<LocalContext>) -> Option<MigrationPlan> {
        context.here?;
        context.counts(1);
        Some(MigrationPlan { context: Arc::clone(context), migrator: None, leaving: false })
    }

    /// Begins a migration; returns the target, if the actor has to migrate.
    pub(super) fn begin(&mut self, migrate: &MigrateOne) -> Option<SocketAddr> {
        if self.migrator.is_some() || self.context.here == Some(migrate.to) {
            migrate.migrator.tell(MigrationEnded::NotNeeded);
            return None;
        }
        self.migrator = Some(migrate.migrator);
        Some(migrate.to)
    }

    fn tell(&mut self, how: MigrationEnded) {
        if let Some(migrator) = self.migrator.take() {
            migrator.tell(how);
        }
    }

    pub(super) fn departing(&mut self) {
        self.leaving = true;
        self.context.counts(-1);
    }

    pub(super) fn arrived(&mut self) {
        self.context.counts(1);
        self.tell(MigrationEnded::Arrived);
    }

    pub(super) fn stayed(&mut self, why: &MigrateError) {
        if std::mem::take(&mut self.leaving) {
            self.context.counts(1);
        }
        self.tell(MigrationEnded::Stayed(why.to_string()));
    }

    /// Ends the plan with its actor.
    pub(super) fn ended(&mut self) {
        self.context.counts(-1);
        self.tell(MigrationEnded::NotNeeded);
    }
}

/// The order of the posts that a client has received in each of its chats.
///
/// Order is promised wherever the receiver goes. After a migration of the sender between two messages, the second may take a
/// shorter route; that is counted, too, but is no error.
#[derive(Default, Serialize, Deserialize)]
pub(super) struct PostOrder {
    last: HashMap<ActorRef<Chat>, Number>,
    /// A chat that the client has left: posts in flight still arrive within the turn.
    left: Option<ActorRef<Chat>>,
    pub order: Order,
}

/// The number of a post in its chat.
#[derive(Clone, Copy, Default, Serialize, Deserialize)]
pub(super) struct Number {
    /// The number, from 1 on.
    pub post: u32,
    /// The number of migrations of the chat before it sent the post.
    pub chat_migrations: u16,
}

/// Posts that arrived out of order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order {
    /// Though the chat has sent both from the same theater.
    pub wrong: u64,
    /// The chat had gone to another theater in between.
    pub over_a_move: u64,
}

impl PostOrder {
    /// Takes a post. A member of a chat is a member from the first post on; none is missing.
    pub(super) fn received(&mut self, chat: ActorRef<Chat>, number: Number) {
        let last = self.last.entry(chat).or_insert(Number { post: 0, chat_migrations: number.chat_migrations });
        if number.post != last.post.wrapping_add(1) {
            let count = if number.chat_migrations == last.chat_migrations {
                &mut self.order.wrong
            } else {
                &mut self.order.over_a_move
            };
            *count += 1;
        }
        *last = number;
    }

    pub(super) fn leave(&mut self, chat: ActorRef<Chat>) {
        self.left = Some(chat);
    }

    /// Begins a turn: all posts of earlier turns have arrived.
    pub(super) fn begin(&mut self) {
        if let Some(chat) = self.left.take() {
            self.last.remove(&chat);
        }
    }
}

/// The state of a client in a world of several theaters.
#[derive(Serialize, Deserialize)]
pub(super) struct SpreadState {
    pub plan: MigrationPlan,
    pub post_order: PostOrder,
}
