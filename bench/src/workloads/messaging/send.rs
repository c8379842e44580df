//! The latency of a single send: to an existing actor, and to one that is created for it.

use playhouse::prelude::*;

use crate::baselines;
use crate::harness::benchmark::{Baseline, Benchmark, Family};
use crate::harness::finish::{Finish, finish};
use crate::harness::outcome::{Failure, Outcome, Size, check};
use crate::plans::send::Plan;

pub(crate) const SEND_STATIC: Benchmark = Benchmark {
    name: "send-static",
    op: "message",
    source: "cforall-actors, Performance, Message Sends (static)",
    summary: "an actor sends itself one message, 50,000,000 times",
    stealing: None,
    workers_min: 1,
    family: Family::Local,
    workload: |system, size, _| run_static(system, size),
    baseline: Some(Baseline::Hand(|size| baselines::messages::send_static(&Plan::of_static(size)))),
    target: None,
};

pub(crate) const SEND_DYNAMIC: Benchmark = Benchmark {
    name: "send-dynamic",
    op: "message",
    source: "cforall-actors, Performance, Message Sends (dynamic)",
    summary: "an actor creates another, sends it a message and stops, 5,000,000 times",
    stealing: None,
    workers_min: 1,
    family: Family::Local,
    workload: |system, size, _| run_dynamic(system, size),
    baseline: Some(Baseline::Hand(|size| baselines::creation::send_dynamic(&Plan::of_dynamic(size)))),
    target: None,
};

#[derive(Message)]
struct Again;

struct Looper {
    left: u64,
    received: u64,
    finish: Finish<u64>,
}

impl Actor for Looper {}

impl Handler<Again> for Looper {
    fn handle(&mut self, _: Again, ctx: &mut Context<Self>) {
        self.received += 1;
        self.left -= 1;
        if self.left > 0 {
            ctx.this().tell(Again);
        } else {
            self.finish.reached(self.received);
        }
    }
}

fn run_static(system: &System, size: Size) -> Result<Outcome, Failure> {
    let plan = Plan::of_static(size);
    let (finish, finished) = finish(size);
    let looper = system.spawn(Looper { left: plan.sends, received: 0, finish });
    let (elapsed, received) = finished.time(|| looper.tell(Again))?;
    check("the messages received", plan.sends, received)?;
    Ok(Outcome::new(plan.sends, elapsed))
}

#[derive(Message)]
struct Hit;

/// An actor of the chain.
struct Runner {
    number: u64,
    sends: u64,
    /// Handed on from runner to runner.
    finish: Option<Finish<u64>>,
}

impl Actor for Runner {}

impl Handler<Hit> for Runner {
    fn handle(&mut self, _: Hit, ctx: &mut Context<Self>) {
        if self.number < self.sends {
            let next = Self { number: self.number + 1, sends: self.sends, finish: self.finish.take() };
            ctx.spawn(next).tell(Hit);
        } else if let Some(finish) = &self.finish {
            finish.reached(self.number);
        }
        ctx.stop();
    }
}

fn run_dynamic(system: &System, size: Size) -> Result<Outcome, Failure> {
    let plan = Plan::of_dynamic(size);
    let (finish, finished) = finish(size);
    let first = Runner { number: 1, sends: plan.sends, finish: Some(finish) };
    let (elapsed, received) = finished.time(|| system.spawn(first).tell(Hit))?;
    check("the actors that received a message", plan.sends, received)?;
    Ok(Outcome::new(plan.sends, elapsed))
}
