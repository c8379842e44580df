//! Actors that go from process to process: SALSA Lite's MigrationRings, and one with a large state.

use std::fmt;
use std::net::SocketAddr;

use playhouse::prelude::*;
use playhouse::serde::de::{SeqAccess, Visitor};
use playhouse::serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::baselines;
use crate::harness::benchmark::{Baseline, Benchmark, Family};
use crate::harness::finish::{Finish, finish};
use crate::harness::outcome::{Failure, Outcome, Size, check};
use crate::harness::remote_peer::{RemotePeer, theater};
use crate::report::Target;

pub(crate) const MIGRATION_RINGS_1: Benchmark = Benchmark {
    name: "migration-rings-1",
    op: "migration",
    source: "SALSA Lite, MigrationRings (salsa-lite-migration §4.6)",
    summary: "one actor goes round the theaters of four processes, 1,000 migrations",
    stealing: None,
    workers_min: 1,
    family: Family::Remote,
    workload: |system, size, _| run(system, &Plan::rings(size, 1)),
    baseline: None,
    target: Target::any_machine(None, 50_000.0),
};

pub(crate) const MIGRATION_RINGS_32: Benchmark = Benchmark {
    name: "migration-rings-32",
    summary: "32 actors go round the theaters of four processes, 1,000 migrations each",
    workload: |system, size, _| run(system, &Plan::rings(size, 32)),
    target: Target::any_machine(None, 6_000.0),
    ..MIGRATION_RINGS_1
};

pub(crate) const MIGRATION_RINGS_320: Benchmark = Benchmark {
    name: "migration-rings-320",
    summary: "320 actors go round the theaters of four processes, 1,000 migrations each",
    workload: |system, size, _| run(system, &Plan::rings(size, 320)),
    target: Target::any_machine(None, 2_500.0),
    ..MIGRATION_RINGS_1
};

pub(crate) const MIGRATE_1MIB: Benchmark = Benchmark {
    name: "migrate-1mib",
    source: "the suite's own",
    summary: "an actor with 1 MiB of state goes to and fro between two processes, 200 migrations",
    workload: |system, size, _| run(system, &Plan::large(size)),
    baseline: Some(Baseline::Hand(|size| {
        let plan = Plan::large(size);
        baselines::links::large(plan.migrations, plan.bytes)
    })),
    target: Target::ratio(3.0),
    ..MIGRATION_RINGS_1
};

/// The amounts of the workload.
struct Plan {
    size: Size,
    actors: u64,
    /// Processes, this one among them.
    processes: usize,
    /// Migrations of each actor: whole rounds.
    migrations: u64,
    /// The bytes of each actor's state.
    bytes: usize,
}

impl Plan {
    fn rings(size: Size, actors: u64) -> Self {
        let (actors, migrations) = (size.pick(actors.min(4), actors, actors), size.pick(40, 1_000, 1_000));
        Self { size, actors, processes: 4, migrations, bytes: 0 }
    }

    fn large(size: Size) -> Self {
        Self { size, actors: 1, processes: 2, migrations: size.pick(4, 200, 200), bytes: 1 << 20 }
    }
}

/// Bytes, which the wire form takes as such and not one by one.
struct Load(Vec<u8>);

impl Load {
    fn of(bytes: usize) -> Self {
        Self((0..bytes).map(Self::byte).collect())
    }

    fn byte(at: usize) -> u8 {
        (at % 251) as u8
    }
}

impl Serialize for Load {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&self.0)
    }
}

impl<'de> Deserialize<'de> for Load {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Bytes;

        impl<'de> Visitor<'de> for Bytes {
            type Value = Load;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("bytes")
            }

            fn visit_bytes<E>(self, bytes: &[u8]) -> Result<Load, E> {
                Ok(Load(bytes.to_vec()))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut bytes: A) -> Result<Load, A::Error> {
                let mut load = Vec::new();
                while let Some(byte) = bytes.next_element()? {
                    load.push(byte);
                }
                Ok(Load(load))
            }
        }

        deserializer.deserialize_bytes(Bytes)
    }
}

#[derive(Serialize, Deserialize)]
#[serde(crate = "playhouse::serde")]
struct Traveller {
    /// The theaters of the round; the first is the actor's first one.
    theaters: Vec<SocketAddr>,
    migrations: u64,
    until: u64,
    load: Load,
    judge: ActorRef<Judge>,
}

#[actor(remote = "bench.migration.Traveller", mobile)]
impl Traveller {
    #[message(remote = "playhouse_bench::workloads::migration::Depart")]
    fn depart(&mut self, until: u64, ctx: &mut Context<Self>) {
        self.until = until;
        self.go(ctx);
    }

    fn go(&mut self, ctx: &mut Context<Self>) {
        let next = (self.migrations as usize + 1) % self.theaters.len();
        ctx.migrate_to(self.theaters[next]);
    }

    #[migrated]
    fn has_come(&mut self, ctx: &mut Context<Self>) {
        self.migrations += 1;
        if self.migrations == self.until {
            self.judge.tell(CameHome);
        } else {
            self.go(ctx);
        }
    }

    #[migration_failed]
    fn is_stuck(&mut self, why: MigrateError, _: &mut Context<Self>) {
        self.judge.tell(Stuck(format!("after {} migrations: {why}", self.migrations)));
    }

    /// Returns the number of migrations, if the load is intact.
    #[message(remote = "playhouse_bench::workloads::migration::Migrations")]
    fn migrations(&self) -> Option<u64> {
        let whole = self.load.0.iter().enumerate().all(|(at, byte)| *byte == Load::byte(at));
        whole.then_some(self.migrations)
    }
}

struct Judge {
    expected: u64,
    finish: Finish<()>,
}

#[actor(remote = "bench.migration.Judge")]
impl Judge {
    #[message(remote = "playhouse_bench::workloads::migration::CameHome")]
    fn came_home(&mut self) {
        self.expected -= 1;
        if self.expected == 0 {
            self.finish.reached(());
        }
    }

    #[message(remote = "playhouse_bench::workloads::migration::Stuck")]
    fn stuck(&mut self, why: String) {
        self.finish.missed(format!("an actor is stuck {why}"));
    }
}

fn run(system: &System, plan: &Plan) -> Result<Outcome, Failure> {
    let failed = |error: &dyn fmt::Display| Failure::new(error.to_string());
    let remote_peers: Vec<RemotePeer> =
        (1..plan.processes).map(|_| RemotePeer::start(system.workers())).collect::<Result<_, Failure>>()?;
    let here = theater(system.workers())?;
    let mut theaters = Vec::from_iter(here.address());
    let mut peers = Vec::new();
    for remote_peer in &remote_peers {
        let peer = remote_peer.join(&here)?;
        theaters.extend(peer.address());
        peers.push(peer);
    }
    let set_out = |actors: u64, migrations: u64| -> Result<_, Failure> {
        let (finish, finished) = finish(plan.size);
        let judge = here.system().spawn(Judge { expected: actors, finish });
        let traveller = || {
            let load = Load::of(plan.bytes);
            here.system().spawn(Traveller { theaters: theaters.clone(), migrations: 0, until: 0, load, judge })
        };
        let travellers: Vec<_> = (0..actors).map(|_| traveller()).collect();
        here.system().run_until_idle();
        let (elapsed, ()) = finished.time(|| {
            for traveller in &travellers {
                traveller.tell(Depart(migrations));
            }
        })?;
        for traveller in travellers {
            let moved =
                traveller.ask(Migrations).within(plan.size.deadline()).wait().map_err(|error| failed(&error))?;
            check("the migrations of an actor with all that it carries", Some(migrations), moved)?;
            traveller.stop();
        }
        Ok(elapsed)
    };
    // The first one has the theaters call each other.
    set_out(1, 2 * plan.processes as u64)?;
    let elapsed = set_out(plan.actors, plan.migrations)?;
    here.shutdown().map_err(|error| failed(&error))?;
    Ok(Outcome::new(plan.actors * plan.migrations, elapsed))
}
