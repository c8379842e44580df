//! The guide: sends actors of a spread world on trips from theater to theater, and waits for them to arrive.

use std::net::SocketAddr;

use playhouse::prelude::*;

use super::directory::Directory;
use super::messages::Rested;
use super::tour::{Travel, Travelled};
use super::world::World;
use crate::harness::random::Dice;

pub(super) struct Guide {
    directories: Vec<ActorRef<Directory>>,
    dice: Dice,
    trips: Trips,
    /// Who waits for everybody to arrive; nobody is sent on a trip any more.
    rests: Option<ActorRef<World>>,
}

/// The trips that actors were sent on.
#[derive(Clone, Debug, Default)]
pub struct Trips {
    /// Actors that have not arrived.
    pub under_way: u64,
    /// Actors that have.
    pub arrived: u64,
    /// Actors that could not go.
    pub stayed: u64,
    /// Why the first of them could not.
    pub why: Option<String>,
}

/// From outside: an actor, whichever it may be, goes to this theater.
pub(super) struct Send(pub SocketAddr);
/// From outside: how are they?
pub(super) struct Look;
/// World to guide: the world ends, and nobody may be on a trip then.
pub(super) struct Rest(pub ActorRef<World>);

impl Message for Send {
    type Reply = ();
}
impl Message for Look {
    type Reply = Trips;
}
impl Message for Rest {
    type Reply = ();
}

impl Guide {
    pub(super) fn new(directories: Vec<ActorRef<Directory>>, seed: u32) -> Guide {
        Guide { directories, dice: Dice::of_client(seed, u32::MAX), trips: Trips::default(), rests: None }
    }

    fn rest(&mut self) {
        if let (0, Some(world)) = (self.trips.under_way, self.rests) {
            world.tell(Rested);
        }
    }
}

impl Actor for Guide {}

impl Handler<Send> for Guide {
    fn handle(&mut self, Send(to): Send, ctx: &mut Context<Self>) {
        if self.rests.is_none() {
            self.trips.under_way += 1;
            let directory = self.directories[self.dice.pick(self.directories.len())];
            directory.tell(Travel { to, who: self.dice.roll(), guide: ctx.this() });
        }
    }
}

impl Handler<Travelled> for Guide {
    fn handle(&mut self, how: Travelled, _: &mut Context<Self>) {
        self.trips.under_way -= 1;
        match how {
            Travelled::Arrived => self.trips.arrived += 1,
            Travelled::NotNeeded => {}
            Travelled::Stayed(why) => {
                self.trips.stayed += 1;
                self.trips.why.get_or_insert(why);
            }
        }
        self.rest();
    }
}

impl Handler<Look> for Guide {
    fn handle(&mut self, _: Look, _: &mut Context<Self>) -> Trips {
        self.trips.clone()
    }
}

impl Handler<Rest> for Guide {
    fn handle(&mut self, rest: Rest, _: &mut Context<Self>) {
        self.rests = Some(rest.0);
        self.rest();
    }
}

playhouse::remote!(Guide: Travelled);
