//! Every actor talks to every other: pings to pseudo-random others, one at a time per actor.

use std::sync::Arc;

use playhouse::prelude::*;

use crate::baselines;
use crate::harness::benchmark::{Baseline, Benchmark, Family};
use crate::harness::finish::{Finish, finish};
use crate::harness::outcome::{Failure, Outcome, Size, check};
use crate::harness::steps::Steps;
use crate::plans::big::{Dice, Plan};
use crate::report::Target;

pub(crate) const BIG: Benchmark = Benchmark {
    name: "big",
    op: "message",
    source: "Savina `big` (Run, Actor, Run! §4.1.1)",
    summary: "120 actors, each sends 20,000 pings to pseudo-random others and waits for each pong",
    stealing: None,
    workers_min: 1,
    family: Family::Local,
    workload: |system, size, _| run(system, size, Plan::of(size)),
    baseline: Some(Baseline::Hand(|size| baselines::meetings::big(&Plan::of(size)))),
    target: Target::ns(15.0),
};

/// Tells a member the members.
#[derive(Message)]
struct Meet(Arc<[ActorRef<Member>]>);

#[derive(Message)]
struct Begin;

#[derive(Message)]
struct Ping {
    from: ActorRef<Member>,
}

#[derive(Message)]
struct Pong;

#[derive(Message)]
#[message(reply = u64)]
struct Pinged;

struct Member {
    members: Arc<[ActorRef<Member>]>,
    number: u32,
    dice: Dice,
    left: u32,
    pinged: u64,
    work: Steps,
    judge: ActorRef<Judge>,
}

impl Member {
    fn ping(&mut self, ctx: &Context<Self>) {
        let other = self.dice.other(self.number, self.members.len() as u32);
        self.members[other as usize].tell(Ping { from: ctx.this() });
    }
}

impl Actor for Member {}

impl Handler<Meet> for Member {
    fn handle(&mut self, Meet(members): Meet, _: &mut Context<Self>) {
        self.members = members;
    }
}

impl Handler<Begin> for Member {
    fn handle(&mut self, _: Begin, ctx: &mut Context<Self>) {
        self.ping(ctx);
    }
}

impl Handler<Ping> for Member {
    fn handle(&mut self, ping: Ping, _: &mut Context<Self>) {
        self.pinged += 1;
        self.work.work();
        ping.from.tell(Pong);
    }
}

impl Handler<Pong> for Member {
    fn handle(&mut self, _: Pong, ctx: &mut Context<Self>) {
        self.left -= 1;
        if self.left > 0 {
            self.ping(ctx);
        } else {
            self.judge.tell(Done);
        }
    }
}

impl Handler<Pinged> for Member {
    fn handle(&mut self, _: Pinged, _: &mut Context<Self>) -> u64 {
        self.pinged
    }
}

/// A member has all its pongs.
#[derive(Message)]
struct Done;

struct Judge {
    expected: u32,
    finish: Finish<()>,
}

impl Actor for Judge {}

impl Handler<Done> for Judge {
    fn handle(&mut self, _: Done, _: &mut Context<Self>) {
        self.expected -= 1;
        if self.expected == 0 {
            self.finish.reached(());
        }
    }
}

/// Creates the members near each other; that they stay on one worker or not is left to the runtime.
struct Host;

#[derive(Message)]
#[message(reply = Arc<[ActorRef<Member>]>)]
struct Invite {
    plan: Plan,
    judge: ActorRef<Judge>,
}

impl Actor for Host {}

impl Handler<Invite> for Host {
    fn handle(&mut self, Invite { plan, judge }: Invite, ctx: &mut Context<Self>) -> Arc<[ActorRef<Member>]> {
        let nobody: Arc<[ActorRef<Member>]> = Arc::new([]);
        let members: Arc<[_]> = (0..plan.members)
            .map(|number| {
                let members = Arc::clone(&nobody);
                let dice = Dice::of(number);
                ctx.spawn(Member { members, number, dice, left: plan.pings, pinged: 0, work: plan.work, judge })
            })
            .collect();
        for member in members.iter() {
            member.tell(Meet(Arc::clone(&members)));
        }
        ctx.stop();
        members
    }
}

pub(crate) fn run(system: &System, size: Size, plan: Plan) -> Result<Outcome, Failure> {
    let (finish, finished) = finish(size);
    let judge = system.spawn(Judge { expected: plan.members, finish });
    let members = system.spawn(Host).ask(Invite { plan, judge }).wait();
    let members = members.map_err(|error| Failure::new(format!("the members were not created: {error}")))?;
    system.run_until_idle();

    let (elapsed, ()) = finished.time(|| {
        for member in members.iter() {
            member.tell(Begin);
        }
    })?;
    let mut pinged = 0;
    for member in members.iter() {
        pinged +=
            member.ask(Pinged).wait().map_err(|error| Failure::new(format!("a member does not answer: {error}")))?;
    }
    let pings = plan.pings_total();
    check("the pings received", pings, pinged)?;
    Ok(Outcome::new(2 * pings, elapsed))
}
