//! Many idle actors: their memory.

use playhouse::prelude::*;

use crate::harness::benchmark::{Benchmark, Family};
use crate::harness::finish::{Finish, finish};
use crate::harness::memory::check_peak;
use crate::harness::outcome::{Failure, Outcome, Size, check};

pub(crate) const IDLE: Benchmark = Benchmark {
    name: "idle",
    op: "actor",
    source: "the suite's own",
    summary: "10,000,000 actors with 8 bytes of state, alive at one time; within 1 GiB",
    stealing: None,
    workers_min: 1,
    family: Family::Local,
    workload: |system, size, _| run(system, size),
    baseline: None,
    target: None,
};

/// The amounts of `idle`.
struct Plan {
    /// Actors created, all alive at the end.
    actors: u64,
    /// The most memory of the process.
    peak_mb_max: f64,
}

impl Plan {
    /// Actors created before the master lets others run and goes on by a message to itself.
    const SLICE: u64 = 1_000;
    /// At the end, one actor out of this number is asked.
    const SAMPLE: u64 = 100;

    fn of(size: Size) -> Self {
        // In small the program itself is the larger part of it.
        let (actors, peak_mb_max) = size.pick((10_000, 256.0), (10_000_000, 1_024.0), (10_000_000, 1_024.0));
        Self { actors, peak_mb_max }
    }

    fn samples(&self) -> impl Iterator<Item = u64> {
        (0..self.actors).step_by(Self::SAMPLE as usize)
    }
}

#[derive(Message)]
struct Report {
    to: ActorRef<Master>,
}

struct Idle(u64);

impl Actor for Idle {}

impl Handler<Report> for Idle {
    fn handle(&mut self, Report { to }: Report, _: &mut Context<Self>) {
        to.tell(Here(self.0));
    }
}

#[derive(Message)]
struct Create;

#[derive(Message)]
struct Here(u64);

struct Master {
    plan: Plan,
    created: u64,
    sample: Vec<ActorRef<Idle>>,
    here: usize,
    sum: u64,
    finish: Finish<u64>,
}

impl Actor for Master {}

impl Handler<Create> for Master {
    fn handle(&mut self, _: Create, ctx: &mut Context<Self>) {
        let until = (self.created + Plan::SLICE).min(self.plan.actors);
        for number in self.created..until {
            let idle = ctx.spawn(Idle(number));
            if number.is_multiple_of(Plan::SAMPLE) {
                self.sample.push(idle);
            }
        }
        self.created = until;
        if until < self.plan.actors {
            ctx.this().tell(Create);
            return;
        }
        for idle in &self.sample {
            idle.tell(Report { to: ctx.this() });
        }
    }
}

impl Handler<Here> for Master {
    fn handle(&mut self, Here(number): Here, _: &mut Context<Self>) {
        self.sum += number;
        self.here += 1;
        if self.here == self.sample.len() {
            self.finish.reached(self.sum);
        }
    }
}

fn run(system: &System, size: Size) -> Result<Outcome, Failure> {
    let plan = Plan::of(size);
    let (ops, peak_mb_max, expected) = (plan.actors, plan.peak_mb_max, plan.samples().sum());
    let (finish, finished) = finish(size);
    let sample = Vec::with_capacity(plan.samples().count());
    let master = system.spawn(Master { plan, created: 0, sample, here: 0, sum: 0, finish });
    let (elapsed, sum) = finished.time(|| master.tell(Create))?;
    check("the sum of the actors that are there", expected, sum)?;
    // Counters are exact while the system is idle.
    system.run_until_idle();
    let total = system.stats().total;
    check("the actors that live, the master among them", ops + 1, total.spawned - total.stopped)?;
    check_peak(peak_mb_max)?;
    Ok(Outcome::new(ops, elapsed))
}
