//! A flood of messages within many groups: the price of a send while all actors send.
//!
//! `executor` places every group of actors in one group of the runtime. `executor-spread` deals the actors one by one to all
//! stages, like the paper's round robin: half of the messages change the worker.

use std::sync::Arc;

use playhouse::prelude::*;

use crate::baselines;
use crate::harness::benchmark::{Baseline, Benchmark, Family};
use crate::harness::finish::{Finish, finish};
use crate::harness::outcome::{Failure, Outcome, Size, check};
use crate::harness::placement::placed;
use crate::plans::executor::Plan;
use crate::report::Target;

pub(crate) const EXECUTOR: Benchmark = Benchmark {
    name: "executor",
    op: "message",
    source: "cforall-actors, Performance, Executor",
    summary: "40,000 actors in groups of 100; each sends 400 messages round its group, one per message received",
    stealing: None,
    workers_min: 1,
    family: Family::Local,
    workload: |system, size, _| run(system, size, Plan::of(size), |_| Placement::Group(Group::new(system))),
    baseline: Some(Baseline::Hand(|size| baselines::executor::executor(&Plan::of(size)))),
    target: Target::new(0.8, 6.0),
};

pub(crate) const EXECUTOR_SPREAD: Benchmark = Benchmark {
    name: "executor-spread",
    summary: "executor with the actors dealt one by one to all stages",
    workload: |system, size, _| run(system, size, Plan::of(size), |_| Placement::Spread),
    target: None,
    ..EXECUTOR
};

/// Tells an actor the members of its group.
#[derive(Message)]
struct Meet(Arc<[ActorRef<Member>]>);

/// Tells an actor to send every member of its group the start message.
#[derive(Message)]
struct Begin;

/// The start message, and all others.
#[derive(Message)]
struct Token;

struct Member {
    group: Arc<[ActorRef<Member>]>,
    judge: ActorRef<Judge>,
    /// The next member of the group to receive a message.
    next: u32,
    sends_left: u32,
    /// Messages still to come: one per send of this actor's share, and the start message.
    recs_left: u32,
}

impl Actor for Member {}

impl Handler<Meet> for Member {
    fn handle(&mut self, Meet(group): Meet, _: &mut Context<Self>) {
        self.group = group;
    }
}

impl Handler<Begin> for Member {
    fn handle(&mut self, _: Begin, _: &mut Context<Self>) {
        for member in self.group.iter() {
            member.tell(Token);
        }
    }
}

impl Handler<Token> for Member {
    fn handle(&mut self, _: Token, _: &mut Context<Self>) {
        if self.sends_left > 0 {
            self.sends_left -= 1;
            self.group[self.next as usize].tell(Token);
            self.next = if self.next as usize + 1 < self.group.len() { self.next + 1 } else { 0 };
        }
        self.recs_left -= 1;
        if self.recs_left == 0 {
            self.judge.tell(Done);
        }
    }
}

/// An actor has received all it should.
#[derive(Message)]
struct Done;

/// Waits for all actors.
struct Judge {
    expected: u64,
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

#[derive(Message)]
#[message(reply = (u32, u32))]
struct Left;

impl Handler<Left> for Member {
    fn handle(&mut self, _: Left, _: &mut Context<Self>) -> (u32, u32) {
        (self.sends_left, self.recs_left)
    }
}

/// Runs `plan` with the actors of each group placed by `placement`.
pub(super) fn run(
    system: &System,
    size: Size,
    plan: Plan,
    placement: impl Fn(usize) -> Placement,
) -> Result<Outcome, Failure> {
    let (finish, finished) = finish(size);
    let judge = system.spawn(Judge { expected: plan.actors(), finish });
    let nobody: Arc<[ActorRef<Member>]> = Arc::new([]);
    let mut groups: Vec<Arc<[ActorRef<Member>]>> = Vec::new();
    for number in 0..plan.groups {
        let placement = placement(number);
        let member =
            || Member { group: Arc::clone(&nobody), judge, next: 0, sends_left: plan.sends, recs_left: plan.sends + 1 };
        let group: Arc<[_]> = (0..Plan::GROUP).map(|_| system.spawn_with(placed(placement), member())).collect();
        for member in group.iter() {
            member.tell(Meet(Arc::clone(&group)));
        }
        groups.push(group);
    }
    system.run_until_idle();

    let (elapsed, ()) = finished.time(|| {
        for group in &groups {
            group[0].tell(Begin);
        }
    })?;
    for group in &groups {
        let left = group[Plan::GROUP / 2].ask(Left).wait();
        let left = left.map_err(|error| Failure::new(format!("an actor does not answer: {error}")))?;
        check("what an actor still has to send and receive", (0, 0), left)?;
    }
    Ok(Outcome::new(plan.sends_total(), elapsed))
}
