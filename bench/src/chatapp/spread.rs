//! A world that is spread over several theaters.
//!
//! One theater leads: the world and the guide are there. In each there is a hall, an actor that has the town ready before
//! anybody comes. The directories start in all theaters by turns, their clients with them, and chats where who starts them
//! is; after that, everybody but world, guide and halls goes where the guide sends them. None of that changes what the
//! actors say to each other: a scenario has the same counts here as on one system.
//!
//! A process plays one such world, once, in one theater.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use playhouse::prelude::*;
use playhouse::wire::WireForm;
use serde::{Deserialize, Serialize};

use super::directory::Directory;
use super::guide::{self, Guide, Trips};
use super::messages::{Answer, LastTurn, OpenTown, Salvage};
use super::report::Report;
use super::run::Progress;
use super::scenario::Scenario;
use super::town::{Town, settle};
use super::world::{Outcome, World};
use crate::harness::outcome::Failure;

/// The town in a theater.
#[derive(Serialize, Deserialize)]
struct Hall {
    here: SocketAddr,
    scenario: Scenario,
    directories: Vec<ActorRef<Directory>>,
    #[serde(skip)]
    town: Option<Arc<Town>>,
}

/// What is going on in a theater.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Census {
    /// Directories, clients and chats that are there.
    pub actors: i64,
    /// Messages that its actors have received.
    pub received: u64,
    /// Messages that came to nobody.
    pub dead_letters: u64,
}

#[derive(Serialize, Deserialize)]
struct Count;

/// From the leading theater to its own hall: which town is it?
struct OwnTown;

impl Message for OwnTown {
    type Reply = Option<Arc<Town>>;
}

impl Handler<OwnTown> for Hall {
    fn handle(&mut self, _: OwnTown, _: &mut Context<Self>) -> Option<Arc<Town>> {
        self.town.clone()
    }
}

impl Message for Count {
    type Reply = Census;
    const WIRE: Option<WireForm<Count>> = Some(WireForm::of());
}

impl Actor for Hall {
    fn started(&mut self, _: &mut Context<Self>) {
        let directories = std::mem::take(&mut self.directories);
        let town = Arc::new(Town::new(&self.scenario, None, directories, Some(self.here)));
        settle(self.town.insert(town));
    }
}

impl Handler<Count> for Hall {
    fn handle(&mut self, _: Count, ctx: &mut Context<Self>) -> Census {
        let total = ctx.system().stats().total;
        let actors = self.town.as_ref().map_or(0, |town| town.present.load(Relaxed));
        Census { actors, received: total.received, dead_letters: total.dead_letters }
    }
}

playhouse::remote!(spawn Hall: Count);

/// How long a theater may take to answer.
const PATIENCE: Duration = Duration::from_secs(20);

/// A world that is played in several theaters.
pub struct Spread {
    theater: Theater,
    scenario: Scenario,
    directories: Vec<ActorRef<Directory>>,
    world: ActorRef<World>,
    guide: ActorRef<Guide>,
    halls: Vec<(SocketAddr, ActorRef<Hall>)>,
    outcome: Receiver<Outcome>,
    begun: Instant,
}

fn failure(error: impl std::fmt::Display) -> Failure {
    Failure::new(error.to_string())
}

impl Spread {
    /// Opens a world in this theater, which leads, and in these others, which know each other.
    ///
    /// # Errors
    /// The scenario contradicts itself, or a theater does not answer.
    pub fn open(
        theater: &Theater,
        others: &[Peer],
        scenario: &Scenario,
        observer: impl FnMut(&Progress) + Send + 'static,
    ) -> Result<Spread, Failure> {
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
            directory.ask(Answer).within(PATIENCE).wait().map_err(failure)?;
        }
        let guide = system.spawn(Guide::new(directories.clone(), scenario.seed));
        let mut spread = Spread {
            theater: theater.clone(),
            scenario: scenario.clone(),
            directories,
            world,
            guide,
            halls: Vec::new(),
            outcome: ended,
            begun,
        };
        let here = theater.address().ok_or_else(|| failure("a world is led in a theater that listens"))?;
        let hall = system.spawn(spread.hall(here));
        let town = hall.ask(OwnTown).within(PATIENCE).wait().map_err(failure)?;
        let town = town.ok_or_else(|| failure("the hall has no town"))?;
        spread.halls.push((here, hall));
        for other in others {
            spread.add(other)?;
        }
        world.tell(OpenTown { town, guide });
        Ok(spread)
    }

    fn hall(&self, here: SocketAddr) -> Hall {
        Hall { here, scenario: self.scenario.clone(), directories: self.directories.clone(), town: None }
    }

    /// The world is played in this theater too, as soon as actors are sent there.
    ///
    /// # Errors
    /// It does not answer.
    pub fn add(&mut self, other: &Peer) -> Result<(), Failure> {
        let address = other.address().ok_or_else(|| failure("a theater that cannot be called"))?;
        let hall = self.theater.spawn_at(other, &self.hall(address)).map_err(failure)?;
        hall.ask(Count).within(PATIENCE).wait().map_err(failure)?;
        self.halls.push((address, hall));
        Ok(())
    }

    /// That theater is to end: nobody is counted there any more.
    pub fn remove(&mut self, address: SocketAddr) {
        self.halls.retain(|(known, _)| *known != address);
    }

    /// A way to ask how things are, for another thread.
    pub fn watch(&self) -> Watch {
        Watch { guide: self.guide, halls: self.halls.clone() }
    }

    /// Sends an actor to that theater, whichever the dice choose.
    pub fn send_somebody(&self, to: SocketAddr) {
        self.guide.tell(guide::Send(to));
    }

    /// The turn that is being played is the last one.
    pub fn end_after_this_turn(&self) {
        self.world.tell(LastTurn);
    }

    /// An answer is missing: has the actors report what they have.
    pub fn salvage(&self) {
        self.world.tell(Salvage);
    }

    /// What has come of it, if the world ends within `limit`. Trips, theaters and dead letters are not in it.
    pub fn report(&self, limit: Duration) -> Option<Report> {
        match self.outcome.recv_timeout(limit) {
            Ok(outcome) => Some(Report::new(&self.scenario, outcome, self.begun.elapsed(), self.theater.system(), 0)),
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => None,
        }
    }
}

/// Asks how things are in a world that is spread over several theaters.
#[derive(Clone)]
pub struct Watch {
    guide: ActorRef<Guide>,
    halls: Vec<(SocketAddr, ActorRef<Hall>)>,
}

impl Watch {
    /// The trips of the actors; none if nobody answers.
    pub fn trips(&self) -> Trips {
        self.guide.ask(guide::Look).within(PATIENCE).wait().unwrap_or_default()
    }

    /// What is going on in each theater, the leading one first; `None` where nobody answers within `limit`.
    pub fn census(&self, limit: Duration) -> Vec<Option<Census>> {
        self.halls.iter().map(|(_, hall)| hall.ask(Count).within(limit).wait().ok()).collect()
    }
}
