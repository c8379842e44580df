//! Actors that start in this process and migrate to another one at once.

use std::net::SocketAddr;

use playhouse::prelude::*;
use playhouse::serde::{Deserialize, Serialize};

use crate::harness::benchmark::Benchmark;
use crate::harness::finish::finish;
use crate::harness::outcome::{Failure, Outcome, Size, check};
use crate::harness::remote_peer::RemotePeer;
use crate::plans::links::Plan;
use crate::workloads::remote::links::{Created, Master, RCREATE, StayedBehind, end};

pub(crate) const RCREATE_MIGRATED: Benchmark = Benchmark {
    name: "rcreate-migrated",
    source: "SALSA Lite, remote creation (salsa-lite-migration §4.4)",
    summary: "5,000 actors are started in this process and migrate to another, and each acknowledges its arrival",
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

#[actor(remote = "playhouse_bench::workloads::create_migrated::Emigrant", mobile)]
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

    #[message(remote = "playhouse_bench::workloads::create_migrated::HasMoved")]
    fn has_moved(&self) -> bool {
        self.moved
    }
}

/// Starts the migrating actors.
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
    let remote_peer = RemotePeer::start(system.workers())?;
    let (here, peer) = remote_peer.meet(system.workers())?;
    let to = peer.address().ok_or_else(|| Failure::new("the remote peer has no address"))?;
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
