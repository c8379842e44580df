//! Tasks of tokio that ask an actor, as those of a web server do.
//!
//! The baseline is the same written with tokio's channels: a task that owns the state and takes requests from a channel, each with a channel for
//! its answer.

use std::time::{Duration, Instant};

use playhouse::prelude::*;
use tokio::runtime::Runtime;
use tokio::sync::{mpsc, oneshot};

use crate::harness::benchmark::{Baseline, Benchmark, Family};
use crate::harness::outcome::{Failure, Outcome, Size, check};
use crate::report::Target;

pub(crate) const ASKS_FROM_TOKIO: Benchmark = Benchmark {
    name: "asks-from-tokio",
    op: "ask",
    source: "the suite's own",
    summary: "64 tasks of tokio ask one actor, 5,000 times each; the asking threads run the workers",
    stealing: None,
    workers_min: 1,
    family: Family::Local,
    workload: |system, size, _| run(system, &Plan::many(size)),
    baseline: Some(Baseline::Hand(|size| by_hand(&Plan::many(size)))),
    target: Target::any_machine(None, 200.0),
};

pub(crate) const ASKS_FROM_TOKIO_1: Benchmark = Benchmark {
    name: "asks-from-tokio-1",
    summary: "one task of tokio asks an actor, 100,000 times, one ask after the other; the asking threads run the workers",
    workload: |system, size, _| run(system, &Plan::one(size)),
    baseline: Some(Baseline::Hand(|size| by_hand(&Plan::one(size)))),
    target: Target::any_machine(None, 3_000.0),
    ..ASKS_FROM_TOKIO
};

/// The number of tasks, and of asks of each.
struct Plan {
    tasks: u64,
    asks: u64,
}

impl Plan {
    fn many(size: Size) -> Plan {
        Plan { tasks: 64, asks: size.pick(50, 5_000, 5_000) }
    }

    fn one(size: Size) -> Plan {
        Plan { tasks: 1, asks: size.pick(200, 100_000, 100_000) }
    }

    fn outcome(&self, count: u64, elapsed: Duration) -> Result<Outcome, Failure> {
        let asked = self.tasks * self.asks;
        check("asks", asked, count)?;
        Ok(Outcome::new(asked, elapsed))
    }
}

struct Counter(u64);

#[actor]
impl Counter {
    #[message]
    fn count(&mut self) -> u64 {
        self.0 += 1;
        self.0
    }
}

fn runtime(workers: usize) -> Result<Runtime, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(workers).build();
    runtime.map_err(|error| Failure::new(format!("tokio's threads could not be started: {error}")))
}

/// Lets all tasks call `ask`; returns the time and the largest answer.
fn time<F>(
    runtime: &Runtime,
    plan: &Plan,
    ask: impl Fn() -> F + Clone + Send + 'static,
) -> Result<(Duration, u64), Failure>
where
    F: Future<Output = Option<u64>> + Send,
{
    let started = Instant::now();
    let asks = plan.asks;
    let tasks: Vec<_> = (0..plan.tasks)
        .map(|_| {
            let ask = ask.clone();
            runtime.spawn(async move {
                let mut last = None;
                for _ in 0..asks {
                    last = Some(ask().await?);
                }
                last
            })
        })
        .collect();
    let ended = tasks.into_iter().map(|task| runtime.block_on(task).ok().flatten());
    let largest = ended.collect::<Option<Vec<u64>>>().and_then(|answers| answers.into_iter().max());
    let elapsed = started.elapsed();
    Ok((elapsed, largest.ok_or_else(|| Failure::new("a task has got no answer"))?))
}

fn run(system: &System, plan: &Plan) -> Result<Outcome, Failure> {
    let workers = system.workers();
    // The option is one of the whole system.
    let system = System::builder().workers(workers).run_by_askers(true).start();
    let system = system.map_err(|error| Failure::new(error.to_string()))?;
    let runtime = runtime(workers)?;
    let counter = system.spawn(Counter(0));
    let (elapsed, count) = time(&runtime, plan, move || async move { counter.ask(Count).await.ok() })?;
    system.shutdown().map_err(|error| Failure::new(error.to_string()))?;
    plan.outcome(count, elapsed)
}

/// The baseline, on two threads.
fn by_hand(plan: &Plan) -> Result<Outcome, Failure> {
    let runtime = runtime(2)?;
    let (requests, mut taken) = mpsc::unbounded_channel::<oneshot::Sender<u64>>();
    runtime.spawn(async move {
        let mut count = 0;
        while let Some(answer) = taken.recv().await {
            count += 1;
            // The task that asks waits for it.
            let _ = answer.send(count);
        }
    });
    let ask = move || {
        let (answer, answered) = oneshot::channel();
        let sent = requests.send(answer);
        async move {
            sent.ok()?;
            answered.await.ok()
        }
    };
    let (elapsed, count) = time(&runtime, plan, ask)?;
    plan.outcome(count, elapsed)
}
