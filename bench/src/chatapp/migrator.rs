//! The migrator: sends actors of a spread world from theater to theater, and waits for their arrival.

use std::net::SocketAddr;

use playhouse::prelude::*;
use playhouse::wire::Remote;

use super::directory::Directory;
use super::messages::MigrationsFinished;
use super::migration_plan::{MigrateOne, MigrationEnded};
use super::world::World;
use crate::harness::random::Dice;

pub(super) struct Migrator {
    directories: Vec<ActorRef<Directory>>,
    dice: Dice,
    migrations: MigrationCounts,
    /// The world that waits for the end of all migrations; the migrator begins no more.
    finishing: Option<ActorRef<World>>,
}

/// The migrations of the actors.
#[derive(Clone, Debug, Default)]
pub struct MigrationCounts {
    /// Migrations in progress.
    pub under_way: u64,
    /// Actors that have arrived.
    pub arrived: u64,
    /// Actors that could not migrate.
    pub stayed: u64,
    /// The reason of the first of them.
    pub why: Option<String>,
}

/// From outside: some actor migrates to this theater.
pub(super) struct SendOne(pub SocketAddr);
/// From outside: a request for the counts.
pub(super) struct Status;
/// World to migrator: the world ends; no actor may be migrating then.
pub(super) struct FinishMigrations(pub ActorRef<World>);

impl Message for SendOne {
    type Reply = ();
}
impl Message for Status {
    type Reply = MigrationCounts;
}
impl Message for FinishMigrations {
    type Reply = ();
}

impl Migrator {
    pub(super) fn new(directories: Vec<ActorRef<Directory>>, seed: u32) -> Migrator {
        Migrator {
            directories,
            dice: Dice::of_client(seed, u32::MAX),
            migrations: MigrationCounts::default(),
            finishing: None,
        }
    }

    fn finish(&mut self) {
        if let (0, Some(world)) = (self.migrations.under_way, self.finishing) {
            world.tell(MigrationsFinished);
        }
    }
}

impl Actor for Migrator {}

impl Handler<SendOne> for Migrator {
    fn handle(&mut self, SendOne(to): SendOne, ctx: &mut Context<Self>) {
        if self.finishing.is_none() {
            self.migrations.under_way += 1;
            let directory = self.directories[self.dice.pick(self.directories.len())];
            directory.tell(MigrateOne { to, who: self.dice.roll(), migrator: ctx.this() });
        }
    }
}

impl Handler<MigrationEnded> for Migrator {
    fn handle(&mut self, how: MigrationEnded, _: &mut Context<Self>) {
        self.migrations.under_way -= 1;
        match how {
            MigrationEnded::Arrived => self.migrations.arrived += 1,
            MigrationEnded::NotNeeded => {}
            MigrationEnded::Stayed(why) => {
                self.migrations.stayed += 1;
                self.migrations.why.get_or_insert(why);
            }
        }
        self.finish();
    }
}

impl Handler<Status> for Migrator {
    fn handle(&mut self, _: Status, _: &mut Context<Self>) -> MigrationCounts {
        self.migrations.clone()
    }
}

impl Handler<FinishMigrations> for Migrator {
    fn handle(&mut self, finish: FinishMigrations, _: &mut Context<Self>) {
        self.finishing = Some(finish.0);
        self.finish();
    }
}

impl Remote for Migrator {
    fn wire_name() -> &'static str {
        "playhouse_bench::chatapp::guide::Guide"
    }
}

playhouse::remote!(also Migrator: MigrationEnded);
