//! Bursts: many messages at once, and then a pause.

use std::thread;
use std::time::Duration;

use playhouse::prelude::*;
use tokio::runtime::Runtime;
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};

use super::{answer, results};
use crate::harness::outcome::{Failure, check};
use crate::scaling::goal::Goal;
use crate::scaling::load::Load;
use crate::scaling::pattern::Pattern;
use crate::scaling::stopwatch::Stopwatch;
use crate::scaling::threads::{Node, Outbox, Partition, with_threads};
use crate::scaling::work::Work;

pub(crate) const BURSTY: Pattern = Pattern {
    name: "scaling-bursty",
    op: "message",
    summary: "up to 100 bursts of up to 10,000 messages from 100 actors to 1,000, with pauses in which all workers park",
    playhouse: |system, watch, load| playhouse(system, watch, &Plan::of(load)),
    tokio: |runtime, watch, load| tokio(runtime, watch, &Plan::of(load)),
    threads: |count, watch, load| threads(count, watch, &Plan::of(load)),
};

/// The pause between bursts. It begins when the last message has been handled.
const PAUSE: Duration = Duration::from_millis(1);

/// The size of one run.
struct Plan {
    sources: u32,
    targets: u32,
    /// The number of messages of each source in a burst.
    sends: u32,
    bursts: u64,
    work: Work,
}

impl Plan {
    fn of(load: &Load) -> Self {
        let (sources, targets, bursts_min, bursts_max) =
            load.size.pick((4, 20, 2, 2), (100, 1_000, 10, 100), (100, 1_000, 10, 100));
        let ops = load.ops(150);
        let sends = (ops / bursts_min / u64::from(sources)).clamp(1, 100) as u32;
        let bursts = (ops / u64::from(sources * sends)).clamp(bursts_min, bursts_max);
        Self { sources, targets, sends, bursts, work: load.work }
    }

    /// Returns the number of messages in a burst.
    fn messages(&self) -> u32 {
        self.sources * self.sends
    }

    /// Returns the targets of a source's messages.
    fn targets_of(&self, source: u32) -> impl Iterator<Item = u32> {
        let targets = self.targets;
        (source * self.sends..(source + 1) * self.sends).map(move |message| message % targets)
    }

    /// Creates the state of the target of this number.
    fn target(&self, number: u32, goal: &Goal) -> Counter {
        let quota = self.messages() / self.targets + u32::from(number < self.messages() % self.targets);
        Counter { work: self.work, quota: quota.into(), got: 0, goal: goal.clone() }
    }

    /// Runs all bursts. `idle` waits before each of them until the system is idle.
    fn play(&self, watch: &mut Stopwatch, goal: &Goal, burst: impl Fn(), idle: impl Fn()) -> Result<(), Failure> {
        let parts = self.messages().min(self.targets).into();
        for burst_number in 0..self.bursts {
            idle();
            if burst_number == 0 {
                watch.prepare();
            }
            thread::sleep(PAUSE);
            watch.time(goal, parts, &burst)?;
        }
        Ok(())
    }

    fn check(&self, got: impl IntoIterator<Item = u64>) -> Result<u64, Failure> {
        let messages = u64::from(self.messages()) * self.bursts;
        check("the messages handled", messages, got.into_iter().sum())?;
        Ok(messages)
    }
}

/// The state of a target, the same in all implementations.
struct Counter {
    work: Work,
    /// The number of its messages in a burst.
    quota: u64,
    got: u64,
    goal: Goal,
}

impl Counter {
    fn receive(&mut self) {
        self.work.run();
        self.got += 1;
        if self.got.is_multiple_of(self.quota) {
            self.goal.part_done();
        }
    }
}

struct Target(Counter);

#[actor]
impl Target {
    #[message]
    fn item(&mut self) {
        self.0.receive();
    }

    #[message]
    fn got(&self) -> u64 {
        self.0.got
    }
}

struct Source(Vec<ActorRef<Target>>);

#[actor]
impl Source {
    #[message]
    fn burst(&self) {
        self.0.iter().for_each(|target| target.tell(Item));
    }
}

fn playhouse(system: &System, watch: &mut Stopwatch, plan: &Plan) -> Result<u64, Failure> {
    let goal = Goal::new();
    let target = |number| system.spawn(Target(plan.target(number, &goal)));
    let targets: Vec<_> = (0..plan.targets).map(target).collect();
    let targets_of = |source| plan.targets_of(source).map(|target| targets[target as usize]).collect();
    let sources: Vec<_> = (0..plan.sources).map(|source| system.spawn(Source(targets_of(source)))).collect();
    plan.play(watch, &goal, || sources.iter().for_each(|source| source.tell(Burst)), || system.run_until_idle())?;
    let got: Result<Vec<_>, _> = targets.iter().map(|target| answer(target.ask(Got).wait())).collect();
    plan.check(got?)
}

async fn receive(mut counter: Counter, mut items: UnboundedReceiver<()>) -> u64 {
    while items.recv().await.is_some() {
        counter.receive();
    }
    counter.got
}

/// Sends one message to each receiver. A lost message shows in the counts.
fn send_all(receivers: &[UnboundedSender<()>]) {
    for receiver in receivers {
        let _ = receiver.send(());
    }
}

async fn send(targets: Vec<UnboundedSender<()>>, mut bursts: UnboundedReceiver<()>) {
    while bursts.recv().await.is_some() {
        send_all(&targets);
    }
}

fn tokio(runtime: &Runtime, watch: &mut Stopwatch, plan: &Plan) -> Result<u64, Failure> {
    let goal = Goal::new();
    let (mut targets, mut tasks, mut sources) = (Vec::new(), Vec::new(), Vec::new());
    for number in 0..plan.targets {
        let (sender, items) = mpsc::unbounded_channel();
        targets.push(sender);
        tasks.push(runtime.spawn(receive(plan.target(number, &goal), items)));
    }
    for source in 0..plan.sources {
        let (sender, bursts) = mpsc::unbounded_channel();
        sources.push(sender);
        let targets = plan.targets_of(source).map(|target| targets[target as usize].clone()).collect();
        runtime.spawn(send(targets, bursts));
    }
    plan.play(watch, &goal, || send_all(&sources), || ())?;
    // The sources end with their last senders, and the targets with theirs.
    drop((sources, targets));
    plan.check(results(runtime, tasks)?)
}

/// A node: the targets have the numbers before those of the sources.
enum Role {
    Source(Vec<u32>),
    Target(Counter),
}

impl Node for Role {
    type Message = ();

    fn handle(&mut self, _: u32, (): (), out: &mut Outbox<'_, ()>) {
        match self {
            Self::Source(targets) => targets.iter().for_each(|&target| out.send(target, ())),
            Self::Target(counter) => counter.receive(),
        }
    }
}

fn threads(count: usize, watch: &mut Stopwatch, plan: &Plan) -> Result<u64, Failure> {
    let goal = Goal::new();
    let targets = (0..plan.targets).map(|number| Role::Target(plan.target(number, &goal)));
    let sources = (0..plan.sources).map(|source| Role::Source(plan.targets_of(source).collect()));
    let nodes = with_threads(count, Partition::RoundRobin, targets.chain(sources).collect(), |injector| {
        let burst = || injector.send((0..plan.sources).map(|source| (plan.targets + source, ())));
        plan.play(watch, &goal, burst, || ())
    })?;
    plan.check(nodes.iter().map(|node| if let Role::Target(counter) = node { counter.got } else { 0 }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::outcome::Size;

    #[test]
    fn quotas_are_what_the_sources_send() {
        for (ns, messages, bursts) in [(0, 10_000, 100), (1_000, 10_000, 34), (10_000, 3_900, 10), (100_000, 300, 13)] {
            let plan = Plan::of(&Load { work: Work::of_ns(ns), size: Size::Default });
            assert_eq!((plan.messages(), plan.bursts), (messages, bursts), "{ns} ns");
            let mut got = vec![0; plan.targets as usize];
            (0..plan.sources).flat_map(|source| plan.targets_of(source)).for_each(|target| got[target as usize] += 1);
            let goal = Goal::new();
            let quotas: Vec<_> = (0..plan.targets).map(|number| plan.target(number, &goal).quota).collect();
            assert_eq!(got, quotas, "{ns} ns");
            let parts = quotas.iter().filter(|&&quota| quota > 0).count();
            assert_eq!(parts, plan.messages().min(plan.targets) as usize);
        }
    }
}
