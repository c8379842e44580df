//! Two actors and one message between them: the latency of a message.
//!
//! `pingpong` keeps the two in one group. `pingpong-cross` forces them onto two workers; its operation is the round trip.
//! `pingpong-auto` spawns them as two unrelated roots and leaves them to the runtime, which should bring them together.

use playhouse::prelude::*;

use crate::baselines;
use crate::harness::benchmark::{Baseline, Benchmark, Family};
use crate::harness::finish::{Finish, finish};
use crate::harness::outcome::{Failure, Outcome, Size, check};
use crate::harness::placement::{placed, stage_of};
use crate::harness::steps::Steps;
use crate::plans::pingpong::Plan;
use crate::report::Target;

pub(crate) const PINGPONG: Benchmark = Benchmark {
    name: "pingpong",
    op: "message",
    source: "Savina `pingpong` (Run, Actor, Run! §4.1.1)",
    summary: "two actors of one group bounce one message, 2,000,000 round trips",
    stealing: None,
    workers_min: 1,
    family: Family::Local,
    workload: |system, size, _| {
        let group = Placement::Group(Group::new(system));
        run(system, size, Plan::of(size), group, group, 2)
    },
    baseline: Some(Baseline::Hand(|size| baselines::messages::pingpong(&Plan::of(size)))),
    target: Target::new(4.0, 12.0),
};

pub(crate) const PINGPONG_CROSS: Benchmark = Benchmark {
    name: "pingpong-cross",
    op: "round trip",
    source: "actor4j §VII.B (ping-pong grouped), one pair",
    summary: "two actors forced onto two workers bounce one message, 200,000 round trips",
    stealing: Some(Stealing::None),
    workers_min: 2,
    family: Family::Local,
    workload: |system, size, _| run(system, size, Plan::cross(size), stage_of(system, 0, 0), stage_of(system, 1, 0), 1),
    baseline: Some(Baseline::Hand(|size| baselines::cross::pingpong(&Plan::cross(size)))),
    target: Target::new(2.0, 700.0),
};

pub(crate) const PINGPONG_AUTO: Benchmark = Benchmark {
    name: "pingpong-auto",
    op: "message",
    source: "Savina `pingpong` (Run, Actor, Run! §4.1.1)",
    summary: "pingpong between two roots spread over the workers and left to the runtime",
    stealing: None,
    workers_min: 1,
    family: Family::Local,
    workload: |system, size, _| run(system, size, Plan::of(size), Placement::Spread, Placement::Spread, 2),
    baseline: Some(Baseline::Hand(|size| baselines::messages::pingpong(&Plan::of(size)))),
    target: Target::new(4.0, 12.0),
};

#[derive(Message)]
struct Ping;

#[derive(Message)]
struct Pong;

#[derive(Message)]
struct Start {
    partner: ActorRef<Ponger>,
}

struct Pinger {
    partner: Option<ActorRef<Ponger>>,
    left: u64,
    work: Steps,
    finish: Finish<()>,
}

impl Actor for Pinger {}

impl Handler<Start> for Pinger {
    fn handle(&mut self, start: Start, _: &mut Context<Self>) {
        self.partner = Some(start.partner);
        start.partner.tell(Ping);
    }
}

impl Handler<Pong> for Pinger {
    fn handle(&mut self, _: Pong, _: &mut Context<Self>) {
        self.left -= 1;
        self.work.work();
        match self.partner {
            Some(partner) if self.left > 0 => partner.tell(Ping),
            _ => self.finish.reached(()),
        }
    }
}

#[derive(Message)]
#[message(reply = u64)]
struct Seen;

struct Ponger {
    partner: ActorRef<Pinger>,
    seen: u64,
    work: Steps,
}

impl Actor for Ponger {}

impl Handler<Ping> for Ponger {
    fn handle(&mut self, _: Ping, _: &mut Context<Self>) {
        self.seen += 1;
        self.work.work();
        self.partner.tell(Pong);
    }
}

impl Handler<Seen> for Ponger {
    fn handle(&mut self, _: Seen, _: &mut Context<Self>) -> u64 {
        self.seen
    }
}

pub(crate) fn run(
    system: &System,
    size: Size,
    plan: Plan,
    pinger: Placement,
    ponger: Placement,
    ops_per_round_trip: u64,
) -> Result<Outcome, Failure> {
    let (finish, finished) = finish(size);
    let pinger =
        system.spawn_with(placed(pinger), Pinger { partner: None, left: plan.round_trips, work: plan.work, finish });
    let ponger = system.spawn_with(placed(ponger), Ponger { partner: pinger, seen: 0, work: plan.work });
    let (elapsed, ()) = finished.time(|| pinger.tell(Start { partner: ponger }))?;
    let seen = ponger.ask(Seen).wait().map_err(|error| Failure::new(format!("no answer from the ponger: {error}")))?;
    check("the pings seen", plan.round_trips, seen)?;
    Ok(Outcome::new(plan.round_trips * ops_per_round_trip, elapsed))
}
