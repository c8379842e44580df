//! A million actors that live at the same time: creation, one message each, and an end.

use playhouse::prelude::*;

use super::finish::{Finish, finish};
use crate::limit;
use crate::outcome::{Failure, Outcome, Size, check};
use crate::registry::{Benchmark, Target};

pub(crate) const FJCREATE: Benchmark = Benchmark {
    name: "fjcreate",
    op: "actor",
    source: "Savina `fjcreate` (Run, Actor, Run! §4.1.1)",
    summary: "a master creates 1,000,000 actors, then tells each to work; each acknowledges and stops",
    stealing: None,
    workers_min: 1,
    workload: run,
    limit: |size| limit::creation::fjcreate(&Plan::of(size)),
    target: Target::new(1.3, 100.0),
};

/// How much `fjcreate` does.
pub(crate) struct Plan {
    /// Actors created, all alive before the first of them gets its message.
    pub(crate) actors: u64,
}

impl Plan {
    /// Actors created, or told to work, before the master lets others run and goes on by a message to itself.
    pub(crate) const SLICE: u64 = 1_000;

    fn of(size: Size) -> Self {
        Self { actors: size.pick(2_000, 1_000_000, 1_000_000) }
    }

    /// What the acknowledgements must add up to.
    pub(crate) fn sum(&self) -> u64 {
        (0..self.actors).map(work).fold(0, u64::wrapping_add)
    }
}

/// The trivial work of one actor.
pub(crate) fn work(number: u64) -> u64 {
    number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32
}

#[derive(Message)]
struct Work(u64);

struct Child {
    master: ActorRef<Master>,
}

impl Actor for Child {}

impl Handler<Work> for Child {
    fn handle(&mut self, Work(number): Work, ctx: &mut Context<Self>) {
        self.master.tell(Done(work(number)));
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
    children: Vec<ActorRef<Child>>,
    employed: u64,
    done: u64,
    sum: u64,
    finish: Finish<u64>,
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
            self.children[number as usize].tell(Work(number));
        }
        self.employed = until;
        if until < self.plan.actors {
            ctx.this().tell(Employ);
        }
    }
}

impl Handler<Done> for Master {
    fn handle(&mut self, Done(result): Done, _: &mut Context<Self>) {
        self.sum = self.sum.wrapping_add(result);
        self.done += 1;
        if self.done == self.plan.actors {
            self.finish.reached(self.sum);
        }
    }
}

fn run(system: &System, size: Size) -> Result<Outcome, Failure> {
    let plan = Plan::of(size);
    let (ops, expected) = (plan.actors, plan.sum());
    let (finish, finished) = finish(size);
    let children = Vec::with_capacity(ops as usize);
    let master = system.spawn(Master { plan, children, employed: 0, done: 0, sum: 0, finish });
    let (elapsed, sum) = finished.time(|| master.tell(Create))?;
    check("the sum of the acknowledgements", expected, sum)?;
    Ok(Outcome { ops, elapsed })
}
