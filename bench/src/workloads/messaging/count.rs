//! One producer, one counter: the price of a stream of messages.
//!
//! `count` keeps both actors on one stage. `count-cross` forces them onto two workers, and every message crosses.

use playhouse::prelude::*;

use crate::baselines;
use crate::harness::benchmark::{Baseline, Benchmark, Family};
use crate::harness::finish::{Finish, finish};
use crate::harness::outcome::{Failure, Outcome, Size, check};
use crate::harness::placement::{placed, stage_of};
use crate::harness::steps::Steps;
use crate::plans::count::Plan;
use crate::report::Target;

pub(crate) const COUNT: Benchmark = Benchmark {
    name: "count",
    op: "message",
    source: "Savina `count` (Run, Actor, Run! §4.1.1)",
    summary: "a producer sends 10,000,000 increments to a counter in its group, then asks for the count",
    stealing: None,
    workers_min: 1,
    family: Family::Local,
    workload: |system, size, _| {
        let group = Placement::Group(Group::new(system));
        run(system, size, Plan::of(size), group, group)
    },
    baseline: Some(Baseline::Hand(|size| baselines::messages::count(&Plan::of(size)))),
    target: Target::new(2.0, 9.0),
};

pub(crate) const COUNT_CROSS: Benchmark = Benchmark {
    name: "count-cross",
    op: "message",
    source: "Savina `count` (Run, Actor, Run! §4.1.1)",
    summary: "count with the producer forced onto one worker and the counter onto another",
    stealing: Some(Stealing::None),
    workers_min: 2,
    family: Family::Local,
    workload: |system, size, _| run(system, size, Plan::of(size), stage_of(system, 0, 0), stage_of(system, 1, 0)),
    baseline: Some(Baseline::Hand(|size| baselines::cross::count(&Plan::of(size)))),
    target: Target::new(2.5, 12.0),
};

#[derive(Message)]
struct Increment;

#[derive(Message)]
#[message(reply = u64)]
struct Get;

struct Counter {
    count: u64,
    work: Steps,
}

impl Actor for Counter {}

impl Handler<Increment> for Counter {
    fn handle(&mut self, _: Increment, _: &mut Context<Self>) {
        self.count += 1;
        self.work.work();
    }
}

impl Handler<Get> for Counter {
    fn handle(&mut self, _: Get, _: &mut Context<Self>) -> u64 {
        self.count
    }
}

#[derive(Message)]
struct Produce;

struct Producer {
    counter: ActorRef<Counter>,
    left: u64,
    finish: Finish<u64>,
}

impl Actor for Producer {}

impl Handler<Produce> for Producer {
    fn handle(&mut self, _: Produce, ctx: &mut Context<Self>) {
        let slice = self.left.min(Plan::SLICE);
        for _ in 0..slice {
            self.counter.tell(Increment);
        }
        self.left -= slice;
        if self.left > 0 {
            ctx.this().tell(Produce);
            return;
        }
        ctx.ask(self.counter, Get).then(|this, answer, _| match answer {
            Ok(count) => this.finish.reached(count),
            Err(error) => this.finish.missed(format!("the counter did not answer: {error}")),
        });
    }
}

pub(crate) fn run(
    system: &System,
    size: Size,
    plan: Plan,
    producer: Placement,
    counter: Placement,
) -> Result<Outcome, Failure> {
    let (finish, finished) = finish(size);
    let counter = system.spawn_with(placed(counter), Counter { count: 0, work: plan.work });
    let producer = system.spawn_with(placed(producer), Producer { counter, left: plan.increments, finish });
    let (elapsed, count) = finished.time(|| producer.tell(Produce))?;
    check("the count", plan.increments, count)?;
    Ok(Outcome::new(plan.increments, elapsed))
}
