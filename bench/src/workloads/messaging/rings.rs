//! Rings of actors with tokens going round: the price of switching from actor to actor.
//!
//! `threadring` is one ring with one token, where never more than one actor has work. `ringmulti` is a hundred such rings at
//! once. Both keep a ring in one group. Their `-near` variants place every member near its creator, which scatters the ring over
//! the stages of a worker. `nfold-ring` forces one ring onto each worker.

use playhouse::prelude::*;

use crate::baselines;
use crate::harness::benchmark::{Baseline, Benchmark, Family};
use crate::harness::finish::{Finish, finish};
use crate::harness::outcome::{Failure, Outcome, Size, check};
use crate::harness::placement::{placed, stage_of};
use crate::harness::steps::Steps;
use crate::plans::rings::Plan;
use crate::report::Target;

pub(crate) const THREADRING: Benchmark = Benchmark {
    name: "threadring",
    op: "hop",
    source: "Savina `threadring` (Run, Actor, Run! §4.1.1; Kumar §6; SALSA Lite §4.2)",
    summary: "one token goes round 503 actors of one group, 5,000,000 hops",
    stealing: None,
    workers_min: 1,
    family: Family::Local,
    workload: |system, size, _| run(system, size, Plan::one(size), |_| Placement::Group(Group::new(system))),
    baseline: Some(Baseline::Hand(|size| baselines::rings::rings(&Plan::one(size)))),
    target: Target::new(4.5, 12.0),
};

pub(crate) const THREADRING_NEAR: Benchmark = Benchmark {
    name: "threadring-near",
    summary: "threadring with every actor spawned near, so that hops go from stage to stage",
    workload: |system, size, _| run(system, size, Plan::one(size), |_| Placement::Near),
    target: None,
    ..THREADRING
};

pub(crate) const RINGMULTI: Benchmark = Benchmark {
    name: "ringmulti",
    op: "hop",
    source: "the suite's own (after Savina `threadring`)",
    summary: "100 tokens go round 100 rings of 100 actors, a group per ring, 100,000 hops each",
    stealing: None,
    workers_min: 1,
    family: Family::Local,
    workload: |system, size, _| run(system, size, Plan::many(size), |_| Placement::Group(Group::new(system))),
    baseline: Some(Baseline::Hand(|size| baselines::rings::rings(&Plan::many(size)))),
    target: Target::new(3.5, 7.0),
};

pub(crate) const RINGMULTI_NEAR: Benchmark = Benchmark {
    name: "ringmulti-near",
    summary: "ringmulti with every actor spawned near, so that hops go from stage to stage",
    workload: |system, size, _| run(system, size, Plan::many(size), |_| Placement::Near),
    target: None,
    ..RINGMULTI
};

pub(crate) const NFOLD_RING: Benchmark = Benchmark {
    name: "nfold-ring",
    op: "hop",
    source: "actor4j §VII.A",
    summary: "eight rings of 1,000 actors, dealt to the workers, one token per ring, 1,000,000 hops each",
    stealing: Some(Stealing::None),
    workers_min: 1,
    family: Family::Local,
    workload: |system, size, _| run(system, size, Plan::nfold(size), |ring| stage_of(system, ring, 0)),
    baseline: Some(Baseline::Hand(|size| baselines::rings::rings(&Plan::nfold(size)))),
    target: None,
};

/// A token with this number of hops left.
#[derive(Message)]
struct Token(u64);

/// Closes the ring.
#[derive(Message)]
struct Close {
    first: ActorRef<Member>,
}

struct Member {
    next: Option<ActorRef<Member>>,
    position: u32,
    work: Steps,
    judge: ActorRef<Judge>,
}

impl Actor for Member {}

impl Handler<Token> for Member {
    fn handle(&mut self, Token(left): Token, _: &mut Context<Self>) {
        self.work.work();
        match self.next {
            Some(next) if left > 0 => next.tell(Token(left - 1)),
            _ => self.judge.tell(Arrived { position: self.position }),
        }
    }
}

impl Handler<Close> for Member {
    fn handle(&mut self, close: Close, _: &mut Context<Self>) {
        self.next = Some(close.first);
    }
}

/// A token has no hops left, at this position of its ring.
#[derive(Message)]
struct Arrived {
    position: u32,
}

/// Waits for all tokens.
struct Judge {
    expected: u64,
    positions_sum: u64,
    finish: Finish<u64>,
}

impl Actor for Judge {}

impl Handler<Arrived> for Judge {
    fn handle(&mut self, arrived: Arrived, _: &mut Context<Self>) {
        self.positions_sum += u64::from(arrived.position);
        self.expected -= 1;
        if self.expected == 0 {
            self.finish.reached(self.positions_sum);
        }
    }
}

/// Builds one ring and answers with its first member.
#[derive(Message)]
#[message(reply = ActorRef<Member>)]
struct Build {
    members: u32,
    work: Steps,
    placement: Placement,
    judge: ActorRef<Judge>,
}

struct Architect;

impl Actor for Architect {}

impl Handler<Build> for Architect {
    fn handle(&mut self, build: Build, ctx: &mut Context<Self>) -> ActorRef<Member> {
        let mut spawn = |next, position| {
            ctx.spawn_with(placed(build.placement), Member { next, position, work: build.work, judge: build.judge })
        };
        let last = spawn(None, build.members - 1);
        let first = (0..build.members - 1).rev().fold(last, |next, position| spawn(Some(next), position));
        last.tell(Close { first });
        ctx.stop();
        first
    }
}

pub(crate) fn run(
    system: &System,
    size: Size,
    plan: Plan,
    placement: impl Fn(usize) -> Placement,
) -> Result<Outcome, Failure> {
    let (finish, finished) = finish(size);
    let judge = system.spawn(Judge { expected: plan.tokens_total(), positions_sum: 0, finish });
    let mut firsts = Vec::new();
    for ring in 0..plan.rings as usize {
        let build = Build { members: plan.members, work: plan.work, placement: placement(ring), judge };
        let first = system.spawn(Architect).ask(build).wait();
        firsts.push(first.map_err(|error| Failure::new(format!("ring {ring} was not built: {error}")))?);
    }
    system.run_until_idle();

    let (elapsed, positions_sum) = finished.time(|| {
        for first in &firsts {
            for _ in 0..plan.tokens {
                first.tell(Token(plan.hops));
            }
        }
    })?;
    check("the sum of the positions at which the tokens stop", plan.positions_sum(), positions_sum)?;
    Ok(Outcome::new(plan.hops_total(), elapsed))
}
