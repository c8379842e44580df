//! A tree of a million actors: creation spread over the workers by stealing, and a sum coming back.

use playhouse::prelude::*;

use crate::baselines;
use crate::harness::benchmark::{Baseline, Benchmark, Family};
use crate::harness::finish::{Finish, finish};
use crate::harness::outcome::{Failure, Outcome, Size, check};
use crate::plans::skynet::Plan;
use crate::report::Target;

pub(crate) const SKYNET: Benchmark = Benchmark {
    name: "skynet",
    op: "actor",
    source: "Skynet 1M (actor4j §VII.D, with stopping the actors)",
    summary: "every actor spawns ten, down to 1,000,000 leaves; their numbers are summed on the way back",
    stealing: None,
    workers_min: 1,
    family: Family::Local,
    workload: |system, size, _| run(system, size),
    baseline: Some(Baseline::Hand(|size| baselines::creation::skynet(&Plan::of(size)))),
    target: Target::ns(100.0),
};

/// The receiver of a node's sum.
enum Above {
    Parent(ActorRef<Node>),
    Finish(Finish<u64>),
}

#[derive(Message)]
struct Sum(u64);

struct Node {
    above: Above,
    /// The number of the first leaf below.
    number: u64,
    /// The number of leaves below.
    leaves: u64,
    sum: u64,
    waiting: u64,
}

impl Node {
    fn new(above: Above, number: u64, leaves: u64) -> Self {
        Self { above, number, leaves, sum: 0, waiting: Plan::DEGREE }
    }

    fn end(&mut self, sum: u64, ctx: &mut Context<Self>) {
        match &self.above {
            Above::Parent(parent) => parent.tell(Sum(sum)),
            Above::Finish(finish) => finish.reached(sum),
        }
        ctx.stop();
    }
}

impl Actor for Node {
    fn started(&mut self, ctx: &mut Context<Self>) {
        if self.leaves == 1 {
            return self.end(self.number, ctx);
        }
        let leaves = self.leaves / Plan::DEGREE;
        for child in 0..Plan::DEGREE {
            let above = Above::Parent(ctx.this());
            ctx.spawn(Node::new(above, self.number + child * leaves, leaves));
        }
    }
}

impl Handler<Sum> for Node {
    fn handle(&mut self, Sum(sum): Sum, ctx: &mut Context<Self>) {
        self.sum += sum;
        self.waiting -= 1;
        if self.waiting == 0 {
            self.end(self.sum, ctx);
        }
    }
}

fn run(system: &System, size: Size) -> Result<Outcome, Failure> {
    let plan = Plan::of(size);
    let (finish, finished) = finish(size);
    let root = Node::new(Above::Finish(finish), 0, plan.leaves);
    let (elapsed, sum) = finished.time(|| {
        system.spawn(root);
    })?;
    check("the sum of the leaves", plan.sum(), sum)?;
    Ok(Outcome::new(plan.actors(), elapsed))
}
