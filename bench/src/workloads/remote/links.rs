//! Actors in two processes on one machine, over the loopback.

use playhouse::prelude::*;
use playhouse::serde::{Deserialize, Serialize};

use crate::baselines;
use crate::harness::benchmark::{Baseline, Benchmark, Family};
use crate::harness::finish::{Finish, finish};
use crate::harness::outcome::{Failure, Outcome, Size, check};
use crate::harness::remote_peer::RemotePeer;
use crate::plans::links::Plan;
use crate::report::Target;

pub(crate) const RPINGPONG: Benchmark = Benchmark {
    name: "rpingpong",
    op: "message",
    source: "the suite's own",
    summary: "two actors in two processes bounce one message with a number, 100,000 round trips",
    stealing: None,
    workers_min: 1,
    family: Family::Remote,
    workload: |system, size, _| pingpong(&RemotePeer::start(system.workers())?, system, size),
    baseline: Some(Baseline::Hand(baselines::links::pingpong)),
    target: Target::any_machine(Some(1.3), 14_300.0),
};

pub(crate) const RTHROUGHPUT: Benchmark = Benchmark {
    name: "rthroughput",
    summary: "an actor sends 2,000,000 numbers to one in another process, at most 10,000 at one time, acknowledged by 1,000",
    workload: |system, size, _| throughput(&RemotePeer::start(system.workers())?, system, size),
    baseline: Some(Baseline::Hand(baselines::links::throughput)),
    target: Target::any_machine(Some(10.0), 150.0),
    ..RPINGPONG
};

pub(crate) const RPINGPONG_TLS: Benchmark = Benchmark {
    name: "rpingpong-tls",
    summary: "rpingpong over an encrypted link",
    workload: |system, size, _| pingpong(&RemotePeer::encrypted(system.workers())?, system, size),
    baseline: Some(Baseline::Benchmark(&RPINGPONG)),
    target: Target::ratio(1.3),
    ..RPINGPONG
};

pub(crate) const RTHROUGHPUT_TLS: Benchmark = Benchmark {
    name: "rthroughput-tls",
    summary: "rthroughput over an encrypted link",
    workload: |system, size, _| throughput(&RemotePeer::encrypted(system.workers())?, system, size),
    baseline: Some(Baseline::Benchmark(&RTHROUGHPUT)),
    target: Target::ratio(1.5),
    ..RPINGPONG
};

pub(crate) const RCREATE: Benchmark = Benchmark {
    name: "rcreate",
    op: "actor",
    summary: "5,000 actors are started in another process, and each acknowledges its start",
    workload: |system, size, _| create_by(system, size, u64::MAX),
    baseline: None,
    target: Target::any_machine(None, 1_000.0),
    ..RPINGPONG
};

pub(crate) const RCREATE_WAITING: Benchmark = Benchmark {
    name: "rcreate-waiting",
    summary: "5,000 actors are started in another process, each after the acknowledgement of the one before",
    workload: |system, size, _| create_by(system, size, 1),
    target: None,
    ..RCREATE
};

// -- rpingpong -----------------------------------------------------------------------------------------------------------

struct Pinger {
    left: u64,
    finish: Finish<()>,
}

#[actor(remote = "playhouse_bench::workloads::remote::Pinger")]
impl Pinger {
    #[message(local)]
    fn serve(&mut self, ponger: ActorRef<Ponger>, ctx: &mut Context<Self>) {
        ponger.tell(Ping(self.left, ctx.this()));
    }

    #[message(remote = "playhouse_bench::workloads::remote::Pong")]
    fn pong(&mut self, left: u64, from: ActorRef<Ponger>, ctx: &mut Context<Self>) {
        self.left = left - 1;
        if self.left == 0 {
            self.finish.reached(());
        } else {
            from.tell(Ping(self.left, ctx.this()));
        }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(crate = "playhouse::serde")]
struct Ponger {
    seen: u64,
}

#[actor(remote = "playhouse_bench::workloads::remote::Ponger", spawn)]
impl Ponger {
    #[message(remote = "playhouse_bench::workloads::remote::Ping")]
    fn ping(&mut self, left: u64, from: ActorRef<Pinger>, ctx: &mut Context<Self>) {
        self.seen += 1;
        from.tell(Pong(left, ctx.this()));
    }

    #[message(remote = "playhouse_bench::workloads::remote::PingsSeen")]
    fn pings_seen(&self) -> u64 {
        self.seen
    }
}

fn pingpong(remote_peer: &RemotePeer, system: &System, size: Size) -> Result<Outcome, Failure> {
    let plan = Plan::of(size);
    let (here, peer) = remote_peer.meet(system.workers())?;
    let (finish, finished) = finish(size);
    let ponger = here.spawn_at(&peer, &Ponger { seen: 0 }).map_err(|error| Failure::new(error.to_string()))?;
    ponger.ask(PingsSeen).wait().map_err(|error| Failure::new(error.to_string()))?;
    let pinger = here.system().spawn(Pinger { left: plan.round_trips, finish });
    let (elapsed, ()) = finished.time(|| pinger.tell(Serve(ponger)))?;
    let seen = ponger.ask(PingsSeen).wait().map_err(|error| Failure::new(error.to_string()))?;
    check("the pings seen", plan.round_trips, seen)?;
    end(here)?;
    Ok(Outcome::new(2 * plan.round_trips, elapsed))
}

pub(crate) fn end(theater: Theater) -> Result<(), Failure> {
    theater.shutdown().map(drop).map_err(|error| Failure::new(error.to_string()))
}

// -- rthroughput ---------------------------------------------------------------------------------------------------------

struct Source {
    to: ActorRef<Sink>,
    sent: u64,
    plan: Plan,
    finish: Finish<u64>,
}

impl Source {
    fn send(&mut self, count: u64, ctx: &mut Context<Self>) {
        for _ in 0..count.min(self.plan.messages - self.sent) {
            self.sent += 1;
            self.to.tell(Item(self.sent));
        }
        let _ = ctx;
    }
}

#[actor(remote = "playhouse_bench::workloads::remote::Source")]
impl Source {
    #[message(local)]
    fn flow(&mut self, ctx: &mut Context<Self>) {
        self.send(self.plan.window, ctx);
    }

    #[message(remote = "playhouse_bench::workloads::remote::Took")]
    fn took(&mut self, sum: u64, count: u64, ctx: &mut Context<Self>) {
        if count == self.plan.messages {
            self.finish.reached(sum);
        } else {
            self.send(self.plan.acknowledged, ctx);
        }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(crate = "playhouse::serde")]
struct Sink {
    sum: u64,
    count: u64,
    acknowledge: u64,
    to: Option<ActorRef<Source>>,
}

#[actor(remote = "playhouse_bench::workloads::remote::Sink", spawn)]
impl Sink {
    #[message(remote = "playhouse_bench::workloads::remote::DrainTo")]
    fn drain_to(&mut self, to: ActorRef<Source>) -> bool {
        self.to.replace(to).is_none()
    }

    #[message(remote = "playhouse_bench::workloads::remote::Item")]
    fn item(&mut self, number: u64) {
        self.sum += number;
        self.count += 1;
        if self.count.is_multiple_of(self.acknowledge)
            && let Some(to) = self.to
        {
            to.tell(Took(self.sum, self.count));
        }
    }
}

fn throughput(remote_peer: &RemotePeer, system: &System, size: Size) -> Result<Outcome, Failure> {
    let plan = Plan::of(size);
    let (messages, expected) = (plan.messages, plan.messages * (plan.messages + 1) / 2);
    let (here, peer) = remote_peer.meet(system.workers())?;
    let (finish, finished) = finish(size);
    let sink = Sink { sum: 0, count: 0, acknowledge: plan.acknowledged, to: None };
    let to = here.spawn_at(&peer, &sink).map_err(|error| Failure::new(error.to_string()))?;
    let source = here.system().spawn(Source { to, sent: 0, plan, finish });
    to.ask(DrainTo(source)).wait().map_err(|error| Failure::new(error.to_string()))?;
    let (elapsed, sum) = finished.time(|| source.tell(Flow))?;
    check("the sum of the numbers", expected, sum)?;
    end(here)?;
    Ok(Outcome::new(messages, elapsed))
}

// -- rcreate -------------------------------------------------------------------------------------------------------------

pub(crate) struct Master {
    expected: u64,
    here: u64,
    /// The maker, which waits for each of them.
    maker: Option<ActorRef<Maker>>,
    finish: Finish<u64>,
}

impl Master {
    /// Creates a master that expects this number of actors.
    pub(crate) fn of(expected: u64, finish: Finish<u64>) -> Self {
        Self { expected, here: 0, maker: None, finish }
    }
}

#[actor(remote = "playhouse_bench::workloads::remote::Master")]
impl Master {
    #[message(local)]
    fn call(&mut self, maker: ActorRef<Maker>) {
        self.maker = Some(maker);
    }

    #[message(remote = "playhouse_bench::workloads::remote::Created")]
    pub(crate) fn created(&mut self) {
        self.here += 1;
        if self.here == self.expected {
            self.finish.reached(self.here);
        } else if let Some(maker) = self.maker {
            maker.tell(Make(1));
        }
    }

    #[message(remote = "playhouse_bench::workloads::remote::StayedBehind")]
    pub(crate) fn stayed_behind(&mut self, why: String) {
        self.finish.missed(format!("an actor does not migrate: {why}"));
    }
}

#[derive(Serialize, Deserialize)]
#[serde(crate = "playhouse::serde")]
struct Creature {
    master: ActorRef<Master>,
}

#[actor(remote = "playhouse_bench::workloads::remote::Creature", spawn)]
impl Creature {
    #[started]
    fn say_so(&mut self) {
        self.master.tell(Created);
    }

    #[message(remote = "playhouse_bench::workloads::remote::IsThere")]
    fn is_there(&self) -> bool {
        true
    }
}

/// Starts the actors.
struct Maker {
    theater: Theater,
    peer: Peer,
    master: ActorRef<Master>,
    made: Vec<ActorRef<Creature>>,
}

#[actor]
impl Maker {
    #[message]
    fn make(&mut self, actors: u64, ctx: &mut Context<Self>) {
        for _ in 0..actors {
            match self.theater.spawn_at(&self.peer, &Creature { master: self.master }) {
                Ok(creature) => self.made.push(creature),
                Err(error) => return ctx.fail(error),
            }
        }
    }

    #[message]
    fn last(&self) -> Option<ActorRef<Creature>> {
        self.made.last().copied()
    }
}

/// Creates the actors all at once, or one by one.
fn create_by(system: &System, size: Size, at_one_time: u64) -> Result<Outcome, Failure> {
    let plan = Plan::of(size);
    let remote_peer = RemotePeer::start(system.workers())?;
    let (here, peer) = remote_peer.meet(system.workers())?;
    let (finish, finished) = finish(size);
    let master = here.system().spawn(Master::of(plan.actors, finish));
    let made = Vec::with_capacity(plan.actors as usize);
    let maker = here.system().spawn(Maker { theater: here.clone(), peer, master, made });
    let first = plan.actors.min(at_one_time);
    if first < plan.actors {
        master.tell(Call(maker));
        here.system().run_until_idle();
    }
    let (elapsed, created) = finished.time(|| maker.tell(Make(first)))?;
    check("the actors created", plan.actors, created)?;
    let last = maker.ask(Last).wait().ok().flatten().ok_or_else(|| Failure::new("none was made"))?;
    check("that the last one answers", Ok(true), last.ask(IsThere).wait())?;
    end(here)?;
    Ok(Outcome::new(plan.actors, elapsed))
}
