//! Fibonacci numbers the naive way, an actor per call: short lives in a deep tree.

use playhouse::prelude::*;

use crate::baselines;
use crate::harness::benchmark::{Baseline, Benchmark, Family};
use crate::harness::finish::{Finish, finish};
use crate::harness::outcome::{Failure, Outcome, Size, check};
use crate::harness::steps::Steps;
use crate::plans::fib::Plan;
use crate::report::Target;

pub(crate) const FIB: Benchmark = Benchmark {
    name: "fib",
    op: "actor",
    source: "Savina `fib` (Run, Actor, Run! §4.1.1; Kumar §6)",
    summary: "fib(25), an actor per call; a child tells its value to its parent and stops",
    stealing: None,
    workers_min: 1,
    family: Family::Local,
    workload: |system, size, _| run(system, size, Plan::of(size)),
    baseline: Some(Baseline::Hand(|size| baselines::creation::fib(&Plan::of(size)))),
    target: Target::ns(100.0),
};

/// The receiver of an actor's value.
enum Above {
    Parent(ActorRef<Fib>),
    Finish(Finish<u64>),
}

#[derive(Message)]
struct Value(u64);

struct Fib {
    above: Above,
    n: u16,
    waiting: u16,
    work: Steps,
    value: u64,
}

impl Fib {
    fn new(above: Above, n: u16, work: Steps) -> Self {
        Self { above, n, waiting: 2, work, value: 0 }
    }

    fn end(&mut self, value: u64, ctx: &mut Context<Self>) {
        match &self.above {
            Above::Parent(parent) => parent.tell(Value(value)),
            Above::Finish(finish) => finish.reached(value),
        }
        ctx.stop();
    }
}

impl Actor for Fib {
    fn started(&mut self, ctx: &mut Context<Self>) {
        self.work.work();
        if self.n < 2 {
            return self.end(u64::from(self.n), ctx);
        }
        for n in [self.n - 1, self.n - 2] {
            let above = Above::Parent(ctx.this());
            ctx.spawn(Fib::new(above, n, self.work));
        }
    }
}

impl Handler<Value> for Fib {
    fn handle(&mut self, Value(value): Value, ctx: &mut Context<Self>) {
        self.value += value;
        self.waiting -= 1;
        if self.waiting == 0 {
            self.end(self.value, ctx);
        }
    }
}

pub(crate) fn run(system: &System, size: Size, plan: Plan) -> Result<Outcome, Failure> {
    let (finish, finished) = finish(size);
    let root = Fib::new(Above::Finish(finish), plan.n as u16, plan.work);
    let (elapsed, value) = finished.time(|| {
        system.spawn(root);
    })?;
    check("the Fibonacci number", plan.value(), value)?;
    Ok(Outcome::new(plan.actors(), elapsed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_plan_knows_the_suite_s_figures() {
        let plan = Plan { n: 25, work: Steps::NONE };
        assert_eq!((plan.value(), plan.actors()), (75_025, 242_785));
    }
}
