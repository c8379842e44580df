//! Scatter and gather: a master asks all worker actors, round by round.

use playhouse::prelude::*;
use tokio::runtime::Runtime;
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use tokio::sync::oneshot;

use super::{answer, results, spread};
use crate::harness::outcome::{Failure, check};
use crate::scaling::goal::Goal;
use crate::scaling::load::Load;
use crate::scaling::pattern::Pattern;
use crate::scaling::stopwatch::Stopwatch;
use crate::scaling::threads::{Node, Outbox, Partition, with_threads};
use crate::scaling::work::Work;

pub(crate) const SCATTER: Pattern = Pattern {
    name: "scaling-scatter",
    op: "request",
    summary: "a master asks 100 worker actors at once, and begins the next round when it has all answers",
    playhouse: |system, watch, load| playhouse(system, watch, &Plan::of(load)),
    tokio: |runtime, watch, load| tokio(runtime, watch, &Plan::of(load)),
    threads: |count, watch, load| threads(count, watch, &Plan::of(load)),
};

/// The size of one run.
struct Plan {
    workers: u64,
    rounds: u64,
    work: Work,
}

impl Plan {
    fn of(load: &Load) -> Self {
        let workers = load.size.pick(10, 100, 100);
        Self { workers, rounds: (load.ops(400) / workers).max(2), work: load.work }
    }

    /// Checks the sum of all answers. Worker actor `i` answers `i + 1`.
    fn check(&self, sum: u64) -> Result<u64, Failure> {
        check("the sum of the answers", self.rounds * self.workers * (self.workers + 1) / 2, sum)?;
        Ok(self.rounds * self.workers)
    }
}

struct Worker {
    work: Work,
}

#[actor]
impl Worker {
    #[message]
    fn job(&mut self, number: u64) -> u64 {
        self.work.run();
        number + 1
    }
}

struct Master {
    workers: Vec<ActorRef<Worker>>,
    rounds_left: u64,
    open: u64,
    sum: u64,
    goal: Goal,
}

#[actor]
impl Master {
    #[message]
    fn begin(&mut self, rounds: u64, ctx: &mut Context<Self>) {
        self.rounds_left = rounds;
        self.round(ctx);
    }

    #[message]
    fn sum(&self) -> u64 {
        self.sum
    }
}

impl Master {
    fn round(&mut self, ctx: &mut Context<Self>) {
        if self.rounds_left == 0 {
            return self.goal.part_done();
        }
        self.rounds_left -= 1;
        self.open = self.workers.len() as u64;
        for number in 0..self.workers.len() {
            ctx.ask(self.workers[number], Job(number as u64)).then(|this, answer, ctx| {
                // A failed ask shows in the sum.
                this.sum += answer.unwrap_or(0);
                this.open -= 1;
                if this.open == 0 {
                    this.round(ctx);
                }
            });
        }
    }
}

fn playhouse(system: &System, watch: &mut Stopwatch, plan: &Plan) -> Result<u64, Failure> {
    let goal = Goal::new();
    let workers = (0..plan.workers).map(|_| system.spawn_with(spread(), Worker { work: plan.work })).collect();
    let master = system.spawn(Master { workers, rounds_left: 0, open: 0, sum: 0, goal: goal.clone() });
    system.run_until_idle();
    watch.time(&goal, 1, || master.tell(Begin(plan.rounds)))?;
    plan.check(answer(master.ask(Sum).wait())?)
}

/// A request: a number, and the channel for the answer.
type Request = (u64, oneshot::Sender<u64>);

async fn serve(mut requests: UnboundedReceiver<Request>, work: Work) {
    while let Some((number, back)) = requests.recv().await {
        work.run();
        // A missing answer shows in the sum.
        let _ = back.send(number + 1);
    }
}

async fn lead(workers: Vec<UnboundedSender<Request>>, rounds: u64, goal: Goal) -> u64 {
    let mut sum = 0;
    for _ in 0..rounds {
        let mut answers = Vec::with_capacity(workers.len());
        for (worker, number) in workers.iter().zip(0..) {
            let (back, answer) = oneshot::channel();
            let _ = worker.send((number, back));
            answers.push(answer);
        }
        for answer in answers {
            sum += answer.await.unwrap_or(0);
        }
    }
    goal.part_done();
    sum
}

fn tokio(runtime: &Runtime, watch: &mut Stopwatch, plan: &Plan) -> Result<u64, Failure> {
    let goal = Goal::new();
    let workers = (0..plan.workers).map(|_| {
        let (sender, requests) = mpsc::unbounded_channel();
        runtime.spawn(serve(requests, plan.work));
        sender
    });
    let workers = workers.collect();
    let mut master = None;
    watch.time(&goal, 1, || master = Some(runtime.spawn(lead(workers, plan.rounds, goal.clone()))))?;
    plan.check(results(runtime, master)?.into_iter().sum())
}

#[derive(Clone, Copy)]
enum Letter {
    Round,
    Job(u64),
    Answer(u64),
}

/// A node: the master has the number 0.
enum Role {
    Master { workers: u32, rounds_left: u64, open: u32, sum: u64, goal: Goal },
    Worker(Work),
}

impl Node for Role {
    type Message = Letter;

    fn handle(&mut self, _: u32, letter: Letter, out: &mut Outbox<'_, Letter>) {
        match (self, letter) {
            (Self::Worker(work), Letter::Job(number)) => {
                work.run();
                out.send(0, Letter::Answer(number + 1));
            }
            (Self::Master { workers, rounds_left, open, sum, goal }, letter) => {
                if let Letter::Answer(number) = letter {
                    *sum += number;
                    *open -= 1;
                }
                if *open > 0 {
                    return;
                }
                if *rounds_left == 0 {
                    return goal.part_done();
                }
                (*rounds_left, *open) = (*rounds_left - 1, *workers);
                (0..*workers).for_each(|worker| out.send(worker + 1, Letter::Job(worker.into())));
            }
            (Self::Worker(_), Letter::Round | Letter::Answer(_)) => {}
        }
    }
}

fn threads(count: usize, watch: &mut Stopwatch, plan: &Plan) -> Result<u64, Failure> {
    let goal = Goal::new();
    let workers = plan.workers as u32;
    let master = Role::Master { workers, rounds_left: plan.rounds, open: 0, sum: 0, goal: goal.clone() };
    let nodes = [master].into_iter().chain((0..workers).map(|_| Role::Worker(plan.work))).collect();
    let nodes = with_threads(count, Partition::Blocks, nodes, |injector| {
        watch.time(&goal, 1, || injector.send([(0, Letter::Round)]))
    })?;
    let sums = nodes.iter().map(|node| if let Role::Master { sum, .. } = node { *sum } else { 0 });
    plan.check(sums.sum())
}
