//! A process that is drained while its actors work: all of them migrate to another process, and asks are answered all the time.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use playhouse::prelude::*;
use playhouse::serde::{Deserialize, Serialize};

use crate::harness::benchmark::{Benchmark, Family};
use crate::harness::finish::{Finish, finish};
use crate::harness::outcome::{Failure, Outcome, Size, check};
use crate::harness::remote_peer::RemotePeer;
use crate::report::Target;

pub(crate) const DRAIN: Benchmark = Benchmark {
    name: "drain",
    op: "actor",
    source: "the suite's own",
    summary: "100,000 actors move to another process, one of them asked each ms (p99 should be within 50 ms)",
    stealing: None,
    workers_min: 1,
    family: Family::Remote,
    workload: |system, size, _| run(system, size),
    baseline: None,
    target: Target::any_machine(None, 20_000.0),
};

/// The amounts of `drain`.
struct Plan {
    actors: u64,
}

impl Plan {
    /// The pause of the asker after each answer.
    const INTERVAL: Duration = Duration::from_millis(1);

    fn of(size: Size) -> Self {
        Self { actors: size.pick(1_000, 100_000, 100_000) }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(crate = "playhouse::serde")]
struct Tenant {
    number: u64,
    moves: u64,
}

#[actor(remote = "bench.drain.Tenant", mobile)]
impl Tenant {
    #[migrated]
    fn moved(&mut self) {
        self.moves += 1;
    }

    #[message(remote = "playhouse_bench::workloads::drain::Number")]
    fn number(&self) -> u64 {
        self.number
    }

    #[message(remote = "playhouse_bench::workloads::drain::Register")]
    fn register(&self, census: ActorRef<Census>) {
        census.tell(LivesThere(self.number, self.moves));
    }
}

/// Counts every actor at its place.
struct Census {
    expected: u64,
    /// The sum of the numbers of the counted actors, and that of their migrations.
    numbers: u64,
    moves: u64,
    finish: Finish<(u64, u64)>,
}

#[actor(remote = "bench.drain.Census")]
impl Census {
    #[message(remote = "playhouse_bench::workloads::drain::LivesThere")]
    fn lives_there(&mut self, number: u64, moves: u64) {
        self.numbers += number;
        self.moves += moves;
        self.expected -= 1;
        if self.expected == 0 {
            self.finish.reached((self.numbers, self.moves));
        }
    }
}

fn run(system: &System, size: Size) -> Result<Outcome, Failure> {
    let plan = Plan::of(size);
    let remote_peer = RemotePeer::start(system.workers())?;
    let (here, peer) = remote_peer.meet(system.workers())?;
    let tenants: Vec<_> = (0..plan.actors).map(|number| here.system().spawn(Tenant { number, moves: 0 })).collect();
    here.system().run_until_idle();

    let (over, is_over) = channel::<()>();
    let (elapsed, evacuation, times_ns) = std::thread::scope(|scope| {
        let tenants = &tenants;
        let asker = scope.spawn(move || -> Result<Vec<u64>, Failure> {
            let mut times_ns = Vec::new();
            let mut at = 0;
            loop {
                // A step that has no divisor in common with their number: each is asked before one is asked again.
                at = (at + 61_803) % tenants.len();
                let asked = Instant::now();
                let answer = tenants[at].ask(Number).within(size.deadline()).wait();
                check("the actor that answers", Ok(at as u64), answer)?;
                times_ns.push(asked.elapsed().as_nanos() as u64);
                if let Err(RecvTimeoutError::Disconnected) = is_over.recv_timeout(Plan::INTERVAL) {
                    return Ok(times_ns);
                }
            }
        });
        let begun = Instant::now();
        let evacuation = here.evacuate(&[peer]);
        let elapsed = begun.elapsed();
        drop(over);
        (elapsed, evacuation, asker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    });
    check("the actors that stayed", 0, evacuation.stayed.len())?;
    check("the actors that moved", plan.actors, evacuation.moved as u64)?;

    let (finish, finished) = finish(size);
    let census = Census { expected: plan.actors, numbers: 0, moves: 0, finish };
    let census = here.system().spawn(census);
    let (_, (numbers, moves)) = finished.time(|| {
        for tenant in &tenants {
            tenant.tell(Register(census));
        }
    })?;
    check("the sum of the numbers of the migrated actors", plan.actors * (plan.actors - 1) / 2, numbers)?;
    check("their moves", plan.actors, moves)?;
    here.shutdown().map_err(|error| Failure::new(error.to_string()))?;
    Ok(Outcome::new(plan.actors, elapsed).with_waits(times_ns?))
}
