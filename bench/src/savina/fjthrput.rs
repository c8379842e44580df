//! Fork–join throughput: a master deals messages to actors in turn, every second round in the urgent lane.

use playhouse::prelude::*;

use super::{SLICE, lead, program};
use crate::harness::benchmark::Benchmark;
use crate::harness::finish::Finish;
use crate::harness::outcome::{Failure, Outcome, Size, check};
use crate::harness::steps::Steps;
use crate::plans::fjcreate::work as value_of;

pub(crate) const FJTHRPUT: Benchmark = program(
    "savina-fjthrput",
    "message",
    "a master sends 10,000 messages to each of 60 actors, every second one in the urgent lane",
    run,
);

const ACTORS: u32 = 60;

struct Master {
    messages: u32,
    work: Steps,
    workers: Vec<ActorRef<Worker>>,
    sent: u32,
    waiting: u32,
    sum: u64,
    finish: Finish<u64>,
}

#[actor]
impl Master {
    #[started]
    fn employ(&mut self, ctx: &mut Context<Self>) {
        let master = ctx.this();
        let worker = || Worker { master, work: self.work, left: self.messages, sum: 0 };
        self.workers = (0..ACTORS).map(|_| ctx.spawn(worker())).collect();
    }

    #[message]
    fn deal(&mut self, ctx: &mut Context<Self>) {
        let until = (self.sent + SLICE).min(ACTORS * self.messages);
        for number in self.sent..until {
            let (round, worker) = (number / ACTORS, self.workers[(number % ACTORS) as usize]);
            let message = Do(u64::from(number));
            if round % 2 == 1 { worker.tell_urgent(message) } else { worker.tell(message) }
        }
        self.sent = until;
        if until < ACTORS * self.messages {
            ctx.this().tell(Deal);
        }
    }

    #[message]
    fn done(&mut self, sum: u64) {
        self.sum = self.sum.wrapping_add(sum);
        self.waiting -= 1;
        if self.waiting == 0 {
            self.finish.reached(self.sum);
        }
    }
}

struct Worker {
    master: ActorRef<Master>,
    work: Steps,
    left: u32,
    sum: u64,
}

#[actor]
impl Worker {
    #[message(name = "Do")]
    fn perform(&mut self, number: u64) {
        self.work.work();
        self.sum = self.sum.wrapping_add(value_of(number));
        self.left -= 1;
        if self.left == 0 {
            self.master.tell(Done(self.sum));
        }
    }
}

fn run(system: &System, size: Size, work: Steps) -> Result<Outcome, Failure> {
    let messages = size.smoke_or(50, 10_000);
    let total = u64::from(ACTORS * messages);
    let expected = (0..total).map(value_of).fold(0, u64::wrapping_add);
    let master = |finish| Master { messages, work, workers: Vec::new(), sent: 0, waiting: ACTORS, sum: 0, finish };
    let (elapsed, sum) = lead(system, size, master, Deal)?;
    check("the sum of the work", expected, sum)?;
    Ok(Outcome::new(total, elapsed))
}
