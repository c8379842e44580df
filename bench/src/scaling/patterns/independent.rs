//! Independent actors: each sends messages only to itself.

use playhouse::prelude::*;
use tokio::runtime::Runtime;
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};

use super::{answer, results, spread};
use crate::harness::outcome::{Failure, check};
use crate::scaling::goal::Goal;
use crate::scaling::load::Load;
use crate::scaling::pattern::Pattern;
use crate::scaling::stopwatch::Stopwatch;
use crate::scaling::threads::{Node, Outbox, Partition, with_threads};
use crate::scaling::work::Work;

pub(crate) const INDEPENDENT: Pattern = Pattern {
    name: "scaling-independent",
    op: "message",
    summary: "1,000 actors send messages to themselves, one after the other",
    playhouse: |system, watch, load| playhouse(system, watch, &Plan::of(load)),
    tokio: |runtime, watch, load| tokio(runtime, watch, &Plan::of(load)),
    threads: |count, watch, load| threads(count, watch, &Plan::of(load)),
};

/// The size of one run.
struct Plan {
    actors: u32,
    /// The number of messages of each actor.
    messages: u64,
    work: Work,
}

impl Plan {
    fn of(load: &Load) -> Self {
        let actors = load.size.pick(20, 1_000, 1_000);
        Self { actors, messages: (load.ops(120) / u64::from(actors)).max(1), work: load.work }
    }

    fn check(&self, got: impl IntoIterator<Item = u64>) -> Result<u64, Failure> {
        let got: Vec<_> = got.into_iter().collect();
        check("the messages of each actor", vec![self.messages; self.actors as usize], got)?;
        Ok(u64::from(self.actors) * self.messages)
    }
}

/// The state of an actor, the same in all implementations.
struct Counter {
    work: Work,
    got: u64,
    goal: Goal,
}

impl Counter {
    fn new(plan: &Plan, goal: &Goal) -> Self {
        Self { work: plan.work, got: 0, goal: goal.clone() }
    }

    /// Does the work with a message. Returns whether another message follows.
    fn receive(&mut self, left: u64) -> bool {
        self.work.run();
        self.got += 1;
        if left == 0 {
            self.goal.part_done();
        }
        left > 0
    }
}

struct SelfSender(Counter);

#[actor]
impl SelfSender {
    #[message]
    fn item(&mut self, left: u64, ctx: &mut Context<Self>) {
        if self.0.receive(left) {
            ctx.this().tell(Item(left - 1));
        }
    }

    #[message]
    fn got(&self) -> u64 {
        self.0.got
    }
}

fn playhouse(system: &System, watch: &mut Stopwatch, plan: &Plan) -> Result<u64, Failure> {
    let goal = Goal::new();
    let actor = |_| system.spawn_with(spread(), SelfSender(Counter::new(plan, &goal)));
    let actors: Vec<_> = (0..plan.actors).map(actor).collect();
    system.run_until_idle();
    watch.time(&goal, plan.actors.into(), || actors.iter().for_each(|actor| actor.tell(Item(plan.messages - 1))))?;
    let got: Result<Vec<_>, _> = actors.iter().map(|actor| answer(actor.ask(Got).wait())).collect();
    plan.check(got?)
}

async fn task(mut counter: Counter, mut items: UnboundedReceiver<u64>, own: UnboundedSender<u64>) -> u64 {
    while let Some(left) = items.recv().await {
        if !counter.receive(left) {
            break;
        }
        let _ = own.send(left - 1);
    }
    counter.got
}

fn tokio(runtime: &Runtime, watch: &mut Stopwatch, plan: &Plan) -> Result<u64, Failure> {
    let goal = Goal::new();
    let task = |_| {
        let (sender, items) = mpsc::unbounded_channel();
        let task = runtime.spawn(task(Counter::new(plan, &goal), items, sender.clone()));
        (sender, task)
    };
    let (senders, tasks): (Vec<_>, Vec<_>) = (0..plan.actors).map(task).unzip();
    watch.time(&goal, plan.actors.into(), || {
        for sender in &senders {
            // A lost message shows in the counts.
            let _ = sender.send(plan.messages - 1);
        }
    })?;
    plan.check(results(runtime, tasks)?)
}

impl Node for Counter {
    type Message = u64;

    fn handle(&mut self, me: u32, left: u64, out: &mut Outbox<'_, u64>) {
        if self.receive(left) {
            out.send(me, left - 1);
        }
    }
}

fn threads(count: usize, watch: &mut Stopwatch, plan: &Plan) -> Result<u64, Failure> {
    let goal = Goal::new();
    let nodes = (0..plan.actors).map(|_| Counter::new(plan, &goal)).collect();
    let nodes = with_threads(count, Partition::Blocks, nodes, |injector| {
        watch.time(&goal, plan.actors.into(), || {
            injector.send((0..plan.actors).map(|node| (node, plan.messages - 1)));
        })
    })?;
    plan.check(nodes.iter().map(|node| node.got))
}
