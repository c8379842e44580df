//! Bounded buffer: a manager between producers and consumers asks for an item only while it has room.

use std::collections::VecDeque;

use playhouse::prelude::*;

use super::{lead, program};
use crate::harness::benchmark::Benchmark;
use crate::harness::busy_work::Work;
use crate::harness::finish::Finish;
use crate::harness::outcome::{Failure, Outcome, Size, check};
use crate::harness::steps::Steps;

pub(crate) const BNDBUFFER: Benchmark = program(
    "savina-bndbuffer",
    "item",
    "40 producers of 1,000 items each, 40 consumers, a buffer of 50; an item costs either side 2,500 steps",
    run,
);

const BUFFER: usize = 50;
const PRODUCERS: u32 = 40;
const CONSUMERS: u32 = 40;
/// The cost of producing an item, and again of consuming it: 25 rounds of 100 steps, as in the original.
const COST: Work = Work::Compute(25 * 100);

struct Manager {
    items: u32,
    work: Steps,
    stored: VecDeque<u32>,
    /// Items that producers have been asked for and that have not come.
    asked: usize,
    producers: VecDeque<ActorRef<Producer>>,
    consumers: VecDeque<ActorRef<Consumer>>,
    consumed: u32,
    sum: u64,
    stored_max: usize,
    finish: Finish<(u64, usize)>,
}

impl Manager {
    /// Asks as many producers as the buffer has room for, and gives items to the waiting consumers.
    fn balance(&mut self) {
        while !self.stored.is_empty() && !self.consumers.is_empty() {
            if let (Some(item), Some(consumer)) = (self.stored.pop_front(), self.consumers.pop_front()) {
                consumer.tell(Consume(item));
            }
        }
        while self.stored.len() + self.asked < BUFFER {
            let Some(producer) = self.producers.pop_front() else { return };
            self.asked += 1;
            producer.tell(Produce);
        }
    }
}

#[actor]
impl Manager {
    #[message]
    fn start(&mut self, ctx: &mut Context<Self>) {
        let (manager, work) = (ctx.this(), self.work);
        let producer = |number| Producer { manager, work, next: number * self.items, left: self.items };
        self.producers = (0..PRODUCERS).map(|number| ctx.spawn(producer(number))).collect();
        self.consumers = (0..CONSUMERS).map(|_| ctx.spawn(Consumer { manager, work })).collect();
        self.balance();
    }

    /// Takes an item, and the producer if it has more.
    #[message]
    fn produced(&mut self, item: u32, more: Option<ActorRef<Producer>>) {
        self.asked -= 1;
        self.stored.push_back(item);
        self.stored_max = self.stored_max.max(self.stored.len());
        self.producers.extend(more);
        self.balance();
    }

    #[message]
    fn consumed(&mut self, result: u32, who: ActorRef<Consumer>) {
        self.sum += u64::from(result);
        self.consumed += 1;
        if self.consumed == PRODUCERS * self.items {
            return self.finish.reached((self.sum, self.stored_max));
        }
        self.consumers.push_back(who);
        self.balance();
    }
}

struct Producer {
    manager: ActorRef<Manager>,
    work: Steps,
    next: u32,
    left: u32,
}

#[actor]
impl Producer {
    #[message]
    fn produce(&mut self, ctx: &mut Context<Self>) {
        self.work.work();
        let item = COST.perform(self.next);
        self.next += 1;
        self.left -= 1;
        self.manager.tell(Produced(item, (self.left > 0).then_some(ctx.this())));
    }
}

struct Consumer {
    manager: ActorRef<Manager>,
    work: Steps,
}

#[actor]
impl Consumer {
    #[message]
    fn consume(&mut self, item: u32, ctx: &mut Context<Self>) {
        self.work.work();
        self.manager.tell(Consumed(COST.perform(item), ctx.this()));
    }
}

fn run(system: &System, size: Size, work: Steps) -> Result<Outcome, Failure> {
    let items = size.smoke_or(5, 1_000);
    let manager = |finish| Manager {
        items,
        work,
        stored: VecDeque::new(),
        asked: 0,
        producers: VecDeque::new(),
        consumers: VecDeque::new(),
        consumed: 0,
        sum: 0,
        stored_max: 0,
        finish,
    };
    let (elapsed, (sum, stored_max)) = lead(system, size, manager, Start)?;
    let total = PRODUCERS * items;
    let expected: u64 = (0..total).map(|item| u64::from(COST.perform(COST.perform(item)))).sum();
    check("the sum of what was consumed", expected, sum)?;
    check("that the buffer was never overfull", true, stored_max <= BUFFER)?;
    Ok(Outcome::new(u64::from(total), elapsed))
}
