//! A million actors that live at the same time: creation, one message each, and an end. `waves` repeats that, and the memory of
//! the first two waves must suffice for all.

use playhouse::prelude::*;

use crate::baselines;
use crate::harness::benchmark::{Baseline, Benchmark, Family};
use crate::harness::finish::{Finish, finish};
use crate::harness::memory;
use crate::harness::outcome::{Failure, Outcome, Size, check};
use crate::harness::steps::Steps;
use crate::plans::fjcreate::{Plan, work};
use crate::report::Target;

pub(crate) const FJCREATE: Benchmark = Benchmark {
    name: "fjcreate",
    op: "actor",
    source: "Savina `fjcreate` (Run, Actor, Run! §4.1.1)",
    summary: "a master creates 1,000,000 actors, then tells each to work; each acknowledges and stops",
    stealing: None,
    workers_min: 1,
    family: Family::Local,
    workload: |system, size, _| run(system, size, Plan::of(size), 1),
    baseline: Some(Baseline::Hand(|size| baselines::creation::fjcreate(&Plan::of(size)))),
    target: Target::new(1.3, 100.0),
};

pub(crate) const WAVES: Benchmark = Benchmark {
    name: "waves",
    op: "actor",
    source: "the suite's own",
    summary: "fjcreate 10 times in one system (paper: 100 times); memory must not grow after the second",
    workload: |system, size, _| run(system, size, Plan::of(size), size.pick(10, 10, 100)),
    baseline: None,
    target: None,
    ..FJCREATE
};

#[derive(Message)]
struct Work {
    number: u32,
    besides: Steps,
}

struct Child {
    master: ActorRef<Master>,
}

impl Actor for Child {}

impl Handler<Work> for Child {
    fn handle(&mut self, Work { number, besides }: Work, ctx: &mut Context<Self>) {
        besides.work();
        self.master.tell(Done(work(u64::from(number))));
        ctx.stop();
    }
}

#[derive(Message)]
struct Create;

#[derive(Message)]
struct Employ;

#[derive(Message)]
struct Done(u64);

struct Master {
    plan: Plan,
    waves: u64,
    /// The actors of this wave.
    children: Vec<ActorRef<Child>>,
    employed: u64,
    /// The actors of all waves.
    done: u64,
    sum: u64,
    /// Peak memory once it should have settled.
    settled_mb: Option<f64>,
    finish: Finish<Waved>,
}

/// The results of all waves.
struct Waved {
    sum: u64,
    settled_mb: Option<f64>,
}

impl Actor for Master {}

impl Handler<Create> for Master {
    fn handle(&mut self, _: Create, ctx: &mut Context<Self>) {
        let master = ctx.this();
        let created = self.children.len() as u64;
        for _ in created..(created + Plan::SLICE).min(self.plan.actors) {
            self.children.push(ctx.spawn(Child { master }));
        }
        if (self.children.len() as u64) < self.plan.actors {
            master.tell(Create);
        } else {
            master.tell(Employ);
        }
    }
}

impl Handler<Employ> for Master {
    fn handle(&mut self, _: Employ, ctx: &mut Context<Self>) {
        let until = (self.employed + Plan::SLICE).min(self.plan.actors);
        for number in self.employed..until {
            self.children[number as usize].tell(Work { number: number as u32, besides: self.plan.work });
        }
        self.employed = until;
        if until < self.plan.actors {
            ctx.this().tell(Employ);
        }
    }
}

impl Handler<Done> for Master {
    fn handle(&mut self, Done(result): Done, ctx: &mut Context<Self>) {
        self.sum = self.sum.wrapping_add(result);
        self.done += 1;
        if !self.done.is_multiple_of(self.plan.actors) {
            return;
        }
        let wave = self.done / self.plan.actors;
        if wave == self.waves {
            self.finish.reached(Waved { sum: self.sum, settled_mb: self.settled_mb });
            return;
        }
        if wave == Plan::WAVES_TO_SETTLE {
            self.settled_mb = memory::peak_rss_mb();
        }
        self.children.clear();
        self.employed = 0;
        ctx.this().tell(Create);
    }
}

pub(crate) fn run(system: &System, size: Size, plan: Plan, waves: u64) -> Result<Outcome, Failure> {
    let (ops, expected) = (plan.actors * waves, plan.sum().wrapping_mul(waves));
    let (finish, finished) = finish(size);
    let children = Vec::with_capacity(plan.actors as usize);
    let master = Master { plan, waves, children, employed: 0, done: 0, sum: 0, settled_mb: None, finish };
    let master = system.spawn(master);
    let (elapsed, Waved { sum, settled_mb }) = finished.time(|| master.tell(Create))?;
    check("the sum of the acknowledgements", expected, sum)?;
    if let Some(settled_mb) = settled_mb {
        memory::check_peak(settled_mb + Plan::growth_mb_max(size))?;
    }
    Ok(Outcome::new(ops, elapsed))
}
