//! Creation alone: a master creates actors, and each acknowledges its start.

use playhouse::prelude::*;

use crate::baselines;
use crate::harness::benchmark::{Baseline, Benchmark, Family};
use crate::harness::finish::{Finish, finish};
use crate::harness::outcome::{Failure, Outcome, Size, check};
use crate::plans::creation::Plan;

pub(crate) const CREATION: Benchmark = Benchmark {
    name: "creation",
    op: "actor",
    source: "SALSA Lite §4.3 (local actors)",
    summary: "a master creates 600,000 actors; each acknowledges its creation and lives on",
    stealing: None,
    workers_min: 1,
    family: Family::Local,
    workload: |system, size, _| run(system, size),
    baseline: Some(Baseline::Hand(|size| baselines::creation::creation(&Plan::of(size)))),
    target: None,
};

struct Child {
    master: ActorRef<Master>,
}

impl Actor for Child {
    fn started(&mut self, _: &mut Context<Self>) {
        self.master.tell(Created);
    }
}

#[derive(Message)]
struct Create;

#[derive(Message)]
struct Created;

struct Master {
    left: u64,
    expected: u64,
    created: u64,
    finish: Finish<u64>,
}

impl Actor for Master {}

impl Handler<Create> for Master {
    fn handle(&mut self, _: Create, ctx: &mut Context<Self>) {
        let master = ctx.this();
        let slice = self.left.min(Plan::SLICE);
        for _ in 0..slice {
            ctx.spawn(Child { master });
        }
        self.left -= slice;
        if self.left > 0 {
            master.tell(Create);
        }
    }
}

impl Handler<Created> for Master {
    fn handle(&mut self, _: Created, _: &mut Context<Self>) {
        self.created += 1;
        if self.created == self.expected {
            self.finish.reached(self.created);
        }
    }
}

fn run(system: &System, size: Size) -> Result<Outcome, Failure> {
    let plan = Plan::of(size);
    let (finish, finished) = finish(size);
    let master = system.spawn(Master { left: plan.actors, expected: plan.actors, created: 0, finish });
    let (elapsed, created) = finished.time(|| master.tell(Create))?;
    check("the actors created", plan.actors, created)?;
    Ok(Outcome::new(created, elapsed))
}
