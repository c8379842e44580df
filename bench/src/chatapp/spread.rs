//! A world that is spread over several theaters.
//!
//! One theater leads: it has the world and the migrator. Each theater has a context host, an actor that installs the local
//! context before other actors arrive. The directories start in all theaters in turns, their clients with them, and chats in the
//! theater of their creator. Then the migrator sends all actors from theater to theater, except world, migrator and context
//! hosts. The conversation of the actors is the same: a scenario has the same counts as on one system.
//!
//! A process plays one such world, once, in one theater.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use playhouse::prelude::*;
use playhouse::wire::{Remote, Spawns, WireForm};
use serde::{Deserialize, Serialize};

use super::directory::Directory;
use super::local_context::{LocalContext, install};
use super::messages::{Answer, CollectPartial, LastTurn, OpenSpread};
use super::migrator::{self, MigrationCounts, Migrator};
use super::report::Report;
use super::run::Progress;
use super::scenario::Scenario;
use super::world::{Outcome, World};
use crate::harness::outcome::Failure;

/// The actor that installs the local context in a theater.
#[derive(Serialize, Deserialize)]
struct ContextHost {
    here: SocketAddr,
    scenario: Scenario,
    directories: Vec<ActorRef<Directory>>,
    #[serde(skip)]
    context: Option<Arc<LocalContext>>,
}

/// The counts of a theater.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Census {
    /// Directories, clients and chats in the theater.
    pub actors: i64,
    /// Messages that its actors have received.
    pub received: u64,
    /// Messages without a receiver.
    pub dead_letters: u64,
}

#[derive(Serialize, Deserialize)]
struct Count;

/// From the leading theater to its own context host: a request for the context.
struct OwnContext;

impl Message for OwnContext {
    type Reply = Option<Arc<LocalContext>>;
}

impl Handler<OwnContext> for ContextHost {
    fn handle(&mut self, _: OwnContext, _: &mut Context<Self>) -> Option<Arc<LocalContext>> {
        self.context.clone()
    }
}

impl Message for Count {
    type Reply = Census;
    const WIRE: Option<WireForm<Count>> = Some(WireForm::of());
}

impl Actor for ContextHost {
    fn started(&mut self, _: &mut Context<Self>) {
        let directories = std::mem::take(&mut self.directories);
        let context = Arc::new(LocalContext::new(&self.scenario, None, directories, Some(self.here)));
        install(self.context.insert(context));
    }
}

impl Handler<Count> for ContextHost {
    fn handle(&mut self, _: Count, ctx: &mut Context<Self>) -> Census {
        let total = ctx.system().stats().total;
        let actors = self.context.as_ref().map_or(0, |context| context.present.load(Relaxed));
        Census { actors, received: total.received, dead_letters: total.dead_letters }
    }
}

impl Remote for ContextHost {
    fn wire_name() -> &'static str {
        "playhouse_bench::chatapp::spread::Hall"
    }
}

playhouse::remote!(also ContextHost: Count);
playhouse::wire::submit! { Spawns::of::<ContextHost>() }

/// The time within which a theater must answer.
const ANSWER_MAX: Duration = Duration::from_secs(20);

/// A world that is played in several theaters.
pub struct SpreadWorld {
    theater: Theater,
    scenario: Scenario,
    directories: Vec<ActorRef<Directory>>,
    world: ActorRef<World>,
    migrator: ActorRef<Migrator>,
    hosts: Vec<(SocketAddr, ActorRef<ContextHost>)>,
    outcome: Receiver<Outcome>,
    begun: Instant,
}

fn failure(error: impl std::fmt::Display) -> Failure {
    Failure::new(error.to_string())
}

impl SpreadWorld {
    /// Opens a world in this theater, which leads, and in these others, which know each other.
    ///
    /// # Errors
    /// The scenario contradicts itself, or a theater does not answer.
    pub fn open(
        theater: &Theater,
        others: &[Peer],
        scenario: &Scenario,
        observer: impl FnMut(&Progress) + Send + 'static,
    ) -> Result<SpreadWorld, Failure> {
        scenario.check().map_err(failure)?;
        let begun = Instant::now();
        let system = theater.system();
        let (outcome, ended) = mpsc::channel();
        let world = system.spawn(World::new(scenario.clone(), None, Box::new(observer), outcome));
        let mut directories = Vec::new();
        for index in 0..scenario.directories {
            let directory = Directory::new(index, world);
            directories.push(match (index as usize % (others.len() + 1)).checked_sub(1) {
                None => system.spawn(directory),
                Some(other) => theater.spawn_at(&others[other], &directory).map_err(failure)?,
            });
        }
        // Others are told of them by the names that they were born with, which are known when they have answered.
        for directory in &directories {
            directory.ask(Answer).within(ANSWER_MAX).wait().map_err(failure)?;
        }
        let migrator = system.spawn(Migrator::new(directories.clone(), scenario.seed));
        let mut spread = SpreadWorld {
            theater: theater.clone(),
            scenario: scenario.clone(),
            directories,
            world,
            migrator,
            hosts: Vec::new(),
            outcome: ended,
            begun,
        };
        let here = theater.address().ok_or_else(|| failure("a world is led in a theater that listens"))?;
        let host = system.spawn(spread.host(here));
        let context = host.ask(OwnContext).within(ANSWER_MAX).wait().map_err(failure)?;
        let context = context.ok_or_else(|| failure("the host has no context"))?;
        spread.hosts.push((here, host));
        for other in others {
            spread.add(other)?;
        }
        world.tell(OpenSpread { context, migrator });
        Ok(spread)
    }

    fn host(&self, here: SocketAddr) -> ContextHost {
        ContextHost { here, scenario: self.scenario.clone(), directories: self.directories.clone(), context: None }
    }

    /// Adds this theater to the world, as a target of migrations.
    ///
    /// # Errors
    /// It does not answer.
    pub fn add(&mut self, other: &Peer) -> Result<(), Failure> {
        let address = other.address().ok_or_else(|| failure("a theater that cannot be called"))?;
        let host = self.theater.spawn_at(other, &self.host(address)).map_err(failure)?;
        host.ask(Count).within(ANSWER_MAX).wait().map_err(failure)?;
        self.hosts.push((address, host));
        Ok(())
    }

    /// Removes a theater that is about to end from the counts.
    pub fn remove(&mut self, address: SocketAddr) {
        self.hosts.retain(|(known, _)| *known != address);
    }

    /// Returns a handle for asking about the world from another thread.
    pub fn watch(&self) -> Watch {
        Watch { migrator: self.migrator, hosts: self.hosts.clone() }
    }

    /// Sends an actor to that theater; the dice choose which.
    pub fn send_one_actor(&self, to: SocketAddr) {
        self.migrator.tell(migrator::SendOne(to));
    }

    /// Makes the current turn the last one.
    pub fn end_after_this_turn(&self) {
        self.world.tell(LastTurn);
    }

    /// Collects the counts of the actors after a stall.
    pub fn collect_partial(&self) {
        self.world.tell(CollectPartial);
    }

    /// Returns the report, if the world ends within `limit`. It leaves out migrations, theaters and dead letters.
    pub fn report(&self, limit: Duration) -> Option<Report> {
        match self.outcome.recv_timeout(limit) {
            Ok(outcome) => Some(Report::new(&self.scenario, outcome, self.begun.elapsed(), self.theater.system(), 0)),
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => None,
        }
    }
}

/// Asks for the counts of a world that is spread over several theaters.
#[derive(Clone)]
pub struct Watch {
    migrator: ActorRef<Migrator>,
    hosts: Vec<(SocketAddr, ActorRef<ContextHost>)>,
}

impl Watch {
    /// Returns the counts of the migrations; zeros without an answer.
    pub fn migrations(&self) -> MigrationCounts {
        self.migrator.ask(migrator::Status).within(ANSWER_MAX).wait().unwrap_or_default()
    }

    /// Returns the counts of each theater, the leading one first; `None` without an answer within `limit`.
    pub fn census(&self, limit: Duration) -> Vec<Option<Census>> {
        self.hosts.iter().map(|(_, host)| host.ask(Count).within(limit).wait().ok()).collect()
    }
}
