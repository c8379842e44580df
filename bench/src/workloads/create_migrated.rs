//! Actors that are started here and go to another process at once.

use std::net::SocketAddr;

use playhouse::prelude::*;
use playhouse::serde::{Deserialize, Serialize};

use super::finish::finish;
use super::remote::{Created, Master, Plan, RCREATE, StayedBehind, end};
use crate::outcome::{Failure, Outcome, Size, check};
use crate::partner::Partner;
use crate::registry::Benchmark;

pub(crate) const RCREATE_MIGRATED: Benchmark = Benchmark {
    name: "rcreate-migrated",
    source: "SALSA Lite, remote creation (salsa-lite-migration §4.4)",
    summary: "5,000 actors are started here and move to another process, and each says so there",
    workload: |system, size, _| create_and_migrate(system, size),
    target: None,
    ..RCREATE
};

#[derive(Serialize, Deserialize)]
#[serde(crate = "playhouse::serde")]
struct Emigrant {
    master: ActorRef<Master>,
    to: SocketAddr,
    moved: bool,
}

#[actor(remote, mobile)]
impl Emigrant {
    #[started]
    fn leave(&mut self, ctx: &mut Context<Self>) {
        ctx.migrate_to(self.to);
    }

    #[migrated]
    fn say_so(&mut self) {
        self.moved = true;
        self.master.tell(Created);
    }

    #[migration_failed]
    fn say_why(&mut self, why: MigrateError, _: &mut Context<Self>) {
        self.master.tell(StayedBehind(why.to_string()));
    }

    #[message]
    fn has_moved(&self) -> bool {
        self.moved
    }
}

/// Starts those that move.
struct Port {
    master: ActorRef<Master>,
    to: SocketAddr,
    last: Option<ActorRef<Emigrant>>,
}

#[actor]
impl Port {
    #[message]
    fn ship(&mut self, actors: u64, ctx: &mut Context<Self>) {
        for _ in 0..actors {
            self.last = Some(ctx.spawn(Emigrant { master: self.master, to: self.to, moved: false }));
        }
    }

    #[message]
    fn last_shipped(&self) -> Option<ActorRef<Emigrant>> {
        self.last
    }
}

fn create_and_migrate(system: &System, size: Size) -> Result<Outcome, Failure> {
    let plan = Plan::of(size);
    let partner = Partner::start(system.workers())?;
    let (here, peer) = partner.meet(system.workers())?;
    let to = peer.address().ok_or_else(|| Failure::new("the partner has no address"))?;
    let (finish, finished) = finish(size);
    let master = here.system().spawn(Master::of(plan.actors, finish));
    let port = here.system().spawn(Port { master, to, last: None });
    let (elapsed, moved) = finished.time(|| port.tell(Ship(plan.actors)))?;
    check("the actors that moved", plan.actors, moved)?;
    let last = port.ask(LastShipped).wait().ok().flatten().ok_or_else(|| Failure::new("none was made"))?;
    check("that the last one answers from there", Ok(true), last.ask(HasMoved).wait())?;
    end(here)?;
    Ok(Outcome::new(plan.actors, elapsed))
}
