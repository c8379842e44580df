//! What clients, chats and directories carry where the world is spread over several theaters: how they move, and what
//! they look out for.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;

use playhouse::prelude::*;
use playhouse::wire::WireForm;
use serde::{Deserialize, Serialize};

use super::chat::Chat;
use super::local_context::{LocalContext, in_place};
use super::migrator::Migrator;

/// Migrator to directory, directory to client, client to chat: whoever `who` chooses goes to the theater `to`.
#[derive(Serialize, Deserialize)]
pub(super) struct MigrateOne {
    pub to: SocketAddr,
    pub who: u32,
    pub migrator: ActorRef<Migrator>,
}

/// To the migrator: how a trip has ended.
#[derive(Serialize, Deserialize)]
pub(super) enum MigrationEnded {
    Arrived,
    /// The actor was there already, is on another trip, or has ended.
    NotNeeded,
    /// It could not go: why.
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
    /// Chooses between `others` and the actor itself, and leaves what decides the next choice.
    pub(super) fn choose(&mut self, others: usize) -> Option<usize> {
        let choices = others as u32 + 1;
        let choice = self.who % choices;
        self.who /= choices;
        (choice < others as u32).then_some(choice as usize)
    }
}

/// An actor's migrations.
#[derive(Serialize, Deserialize)]
pub(super) struct MigrationPlan {
    #[serde(with = "in_place")]
    pub context: Arc<LocalContext>,
    /// Who waits to hear of the trip that the actor is on.
    migrator: Option<ActorRef<Migrator>>,
    /// It has packed.
    #[serde(skip)]
    leaving: bool,
}

impl MigrationPlan {
    /// Of an actor that was born in `context`, if that is one that actors migrate in.
    pub(super) fn of(context: &Arc<LocalContext>) -> Option<MigrationPlan> {
        context.here?;
        context.counts(1);
        Some(MigrationPlan { context: Arc::clone(context), migrator: None, leaving: false })
    }

    /// The actor was told to migrate; where it has to go for that.
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

    /// The actor ends.
    pub(super) fn ended(&mut self) {
        self.context.counts(-1);
        self.tell(MigrationEnded::NotNeeded);
    }
}

/// What a client has heard in its chats: whether the posts of each came in their order.
///
/// Order is promised wherever the receiver goes. Where the sender went from one theater to another between two messages, the
/// second may take a shorter way; that is counted, too, and is not wrong.
#[derive(Default, Serialize, Deserialize)]
pub(super) struct PostOrder {
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
    pub chat_migrations: u16,
}

/// Posts that did not come behind the one before them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order {
    /// Though the chat has sent both from the same theater.
    pub wrong: u64,
    /// The chat had gone to another theater in between.
    pub over_a_move: u64,
}

impl PostOrder {
    /// A post has come. Who is in a chat is in it from its first post on, so none is missing.
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

    /// A new turn begins: all posts of those before have come.
    pub(super) fn begin(&mut self) {
        if let Some(chat) = self.left.take() {
            self.last.remove(&chat);
        }
    }
}

/// What a client carries.
#[derive(Serialize, Deserialize)]
pub(super) struct SpreadState {
    pub plan: MigrationPlan,
    pub post_order: PostOrder,
}
