//! A pipeline: each item goes through all of its actors.

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

pub(crate) const PIPELINE: Pattern = Pattern {
    name: "scaling-pipeline",
    op: "message",
    summary: "items go through 8 actors, one after the other; a feeder sends them in batches of 100",
    playhouse: |system, watch, load| playhouse(system, watch, &Plan::of(load)),
    tokio: |runtime, watch, load| tokio(runtime, watch, &Plan::of(load)),
    threads: |count, watch, load| threads(count, watch, &Plan::of(load)),
};

/// The number of actors in the pipeline.
const LENGTH: u64 = 8;
/// The number of items that the feeder sends before it lets other actors run.
const BATCH: u64 = 100;

/// The size of one run.
struct Plan {
    items: u64,
    work: Work,
}

impl Plan {
    fn of(load: &Load) -> Self {
        Self { items: (load.ops(120) / LENGTH).max(2), work: load.work }
    }

    fn pipe(&self, at: u64, goal: &Goal) -> Pipe {
        let goal = (at == LENGTH - 1).then(|| goal.clone());
        Pipe { at, items: self.items, work: self.work, got: 0, misplaced: 0, goal }
    }

    fn check(&self, totals: impl IntoIterator<Item = (u64, u64)>) -> Result<u64, Failure> {
        let totals: Vec<_> = totals.into_iter().collect();
        check("the items handled and those out of order", vec![(self.items, 0); LENGTH as usize], totals)?;
        Ok(self.items * LENGTH)
    }
}

/// The state of an actor of the pipeline, the same in all implementations.
struct Pipe {
    /// The number of actors before it.
    at: u64,
    items: u64,
    work: Work,
    got: u64,
    misplaced: u64,
    /// The goal, in the last actor only.
    goal: Option<Goal>,
}

impl Pipe {
    /// Does the work with an item, and returns it for the next actor. Each actor adds 1 to it.
    fn receive(&mut self, item: u64) -> u64 {
        self.work.run();
        self.misplaced += u64::from(item != self.got + self.at);
        self.got += 1;
        if let Some(goal) = self.goal.as_ref().filter(|_| self.got == self.items) {
            goal.part_done();
        }
        item + 1
    }

    fn totals(&self) -> (u64, u64) {
        (self.got, self.misplaced)
    }
}

struct Stage {
    pipe: Pipe,
    next: Option<ActorRef<Stage>>,
}

#[actor]
impl Stage {
    #[message]
    fn item(&mut self, item: u64) {
        let item = self.pipe.receive(item);
        if let Some(next) = self.next {
            next.tell(Item(item));
        }
    }

    #[message]
    fn totals(&self) -> (u64, u64) {
        self.pipe.totals()
    }
}

struct Feeder {
    first: ActorRef<Stage>,
    items: u64,
}

#[actor]
impl Feeder {
    #[message]
    fn feed(&mut self, from: u64, ctx: &mut Context<Self>) {
        let end = self.items.min(from + BATCH);
        (from..end).for_each(|item| self.first.tell(Item(item)));
        if end < self.items {
            ctx.this().tell(Feed(end));
        }
    }
}

fn playhouse(system: &System, watch: &mut Stopwatch, plan: &Plan) -> Result<u64, Failure> {
    let goal = Goal::new();
    let mut stages: Vec<ActorRef<Stage>> = Vec::new();
    for at in (0..LENGTH).rev() {
        let next = stages.last().copied();
        stages.push(system.spawn_with(spread(), Stage { pipe: plan.pipe(at, &goal), next }));
    }
    let feeder = system.spawn(Feeder { first: stages[stages.len() - 1], items: plan.items });
    system.run_until_idle();
    watch.time(&goal, 1, || feeder.tell(Feed(0)))?;
    let totals: Result<Vec<_>, _> = stages.iter().map(|stage| answer(stage.ask(Totals).wait())).collect();
    plan.check(totals?)
}

async fn pass(mut pipe: Pipe, mut items: UnboundedReceiver<u64>, next: Option<UnboundedSender<u64>>) -> (u64, u64) {
    while let Some(item) = items.recv().await {
        let item = pipe.receive(item);
        if let Some(next) = &next {
            // A lost item shows in the counts.
            let _ = next.send(item);
        }
    }
    pipe.totals()
}

async fn feed(first: UnboundedSender<u64>, items: u64) {
    for item in 0..items {
        let _ = first.send(item);
        if (item + 1) % BATCH == 0 {
            tokio::task::yield_now().await;
        }
    }
}

fn tokio(runtime: &Runtime, watch: &mut Stopwatch, plan: &Plan) -> Result<u64, Failure> {
    let goal = Goal::new();
    let (mut next, mut tasks) = (None, Vec::new());
    for at in (0..LENGTH).rev() {
        let (sender, items) = mpsc::unbounded_channel();
        tasks.push(runtime.spawn(pass(plan.pipe(at, &goal), items, next.replace(sender))));
    }
    watch.time(&goal, 1, || {
        if let Some(first) = next {
            runtime.spawn(feed(first, plan.items));
        }
    })?;
    plan.check(results(runtime, tasks)?)
}

/// A node: the feeder has the number 0, and the actors of the pipeline have the numbers after it.
enum Role {
    Feeder(u64),
    Pipe(Pipe),
}

impl Node for Role {
    type Message = u64;

    fn handle(&mut self, me: u32, item: u64, out: &mut Outbox<'_, u64>) {
        match self {
            Self::Feeder(items) => {
                let end = (*items).min(item + BATCH);
                (item..end).for_each(|item| out.send(1, item));
                if end < *items {
                    out.send(me, end);
                }
            }
            Self::Pipe(pipe) => {
                let item = pipe.receive(item);
                if pipe.goal.is_none() {
                    out.send(me + 1, item);
                }
            }
        }
    }
}

fn threads(count: usize, watch: &mut Stopwatch, plan: &Plan) -> Result<u64, Failure> {
    let goal = Goal::new();
    let pipes = (0..LENGTH).map(|at| Role::Pipe(plan.pipe(at, &goal)));
    let nodes = [Role::Feeder(plan.items)].into_iter().chain(pipes).collect();
    let nodes =
        with_threads(count, Partition::Blocks, nodes, |injector| watch.time(&goal, 1, || injector.send([(0, 0)])))?;
    let totals = nodes.iter().filter_map(|node| if let Role::Pipe(pipe) = node { Some(pipe.totals()) } else { None });
    plan.check(totals)
}
