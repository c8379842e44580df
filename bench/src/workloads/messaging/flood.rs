//! A producer that is much faster than its consumer: memory stays bounded, no message is lost, and a bystander beside the
//! consumer still answers.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use playhouse::prelude::*;

use crate::harness::benchmark::{Benchmark, Family};
use crate::harness::finish::{Finish, finish};
use crate::harness::memory::{check_peak, peak_rss_mb};
use crate::harness::outcome::{Failure, Outcome, Size, check};
use crate::harness::placement::{placed, stage_of};

pub(crate) const FLOOD: Benchmark = Benchmark {
    name: "flood",
    op: "message",
    source: "the suite's own",
    summary: "for 3 s a producer floods a consumer 100 times slower on another worker; within 256 MiB",
    stealing: Some(Stealing::None),
    workers_min: 1,
    family: Family::Local,
    workload: |system, size, _| run(system, size),
    baseline: None,
    target: None,
};

/// The amounts of `flood`.
struct Plan {
    /// The time of sending.
    time: Duration,
}

impl Plan {
    /// The work of the consumer for each message; the producer takes about 20 ns.
    const WORK: Duration = Duration::from_micros(2);
    /// Messages sent before the producer lets others run and goes on by a message to itself.
    const SLICE: u64 = 100;
    /// The pause of the asker after each answer of the bystander.
    const INTERVAL: Duration = Duration::from_millis(1);
    /// The upper bound of memory. (In a sweep, the process keeps some of earlier runs.)
    const PEAK_MB_MAX: f64 = 256.0;

    fn of(size: Size) -> Self {
        Self { time: size.pick(Duration::from_millis(50), Duration::from_secs(3), Duration::from_secs(60)) }
    }
}

#[derive(Message)]
struct Item;

#[derive(Message)]
#[message(reply = u64)]
struct Get;

#[derive(Default)]
struct Consumer {
    handled: u64,
}

impl Actor for Consumer {}

impl Handler<Item> for Consumer {
    fn handle(&mut self, _: Item, _: &mut Context<Self>) {
        let begun = Instant::now();
        while begun.elapsed() < Plan::WORK {
            std::hint::spin_loop();
        }
        self.handled += 1;
    }
}

impl Handler<Get> for Consumer {
    fn handle(&mut self, _: Get, _: &mut Context<Self>) -> u64 {
        self.handled
    }
}

#[derive(Message)]
struct Produce;

/// The numbers of messages sent and handled.
type Counts = (u64, u64);

struct Producer {
    consumer: ActorRef<Consumer>,
    until: Instant,
    sent: u64,
    finish: Finish<Counts>,
}

impl Actor for Producer {}

impl Handler<Produce> for Producer {
    fn handle(&mut self, _: Produce, ctx: &mut Context<Self>) {
        for _ in 0..Plan::SLICE {
            self.consumer.tell(Item);
        }
        self.sent += Plan::SLICE;
        if Instant::now() < self.until {
            ctx.this().tell(Produce);
            return;
        }
        ctx.ask(self.consumer, Get).then(|this, answer, _| match answer {
            Ok(handled) => this.finish.reached((this.sent, handled)),
            Err(error) => this.finish.missed(format!("the consumer did not answer: {error}")),
        });
    }
}

#[derive(Message)]
struct Greet;

struct Bystander;

impl Actor for Bystander {}

impl Handler<Greet> for Bystander {
    fn handle(&mut self, _: Greet, _: &mut Context<Self>) {}
}

fn run(system: &System, size: Size) -> Result<Outcome, Failure> {
    let plan = Plan::of(size);
    let before_mb = peak_rss_mb().unwrap_or_default();
    let (finish, finished) = finish(size);
    let consumer = system.spawn_with(placed(stage_of(system, 1, 0)), Consumer::default());
    let bystander = system.spawn_with(placed(stage_of(system, 1, 1)), Bystander);
    let until = Instant::now() + plan.time;
    let producer = Producer { consumer, until, sent: 0, finish };
    let producer = system.spawn_with(placed(stage_of(system, 0, 0)), producer);

    let (over, is_over) = channel::<()>();
    let (timed, times_ns) = std::thread::scope(|scope| {
        let asker = scope.spawn(move || -> Result<Vec<u64>, Failure> {
            let mut times_ns = Vec::new();
            loop {
                let asked = Instant::now();
                let answer = bystander.ask(Greet).within(size.deadline()).wait();
                answer.map_err(|error| Failure::new(format!("the bystander did not answer: {error}")))?;
                times_ns.push(asked.elapsed().as_nanos() as u64);
                if let Err(RecvTimeoutError::Disconnected) = is_over.recv_timeout(Plan::INTERVAL) {
                    return Ok(times_ns);
                }
            }
        });
        let timed = finished.time(|| producer.tell(Produce));
        drop(over);
        (timed, asker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    });
    let (elapsed, (sent, handled)) = timed?;
    check("the messages handled", sent, handled)?;
    check_peak(before_mb + Plan::PEAK_MB_MAX)?;
    Ok(Outcome::new(handled, elapsed).with_waits(times_ns?))
}
