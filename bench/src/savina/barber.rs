//! Sleeping barber: customers arrive faster or slower than the barber works; a customer that finds the waiting room full returns
//! later.

use std::collections::VecDeque;

use playhouse::prelude::*;

use super::{dice, lead, program};
use crate::harness::benchmark::Benchmark;
use crate::harness::busy_work::Work;
use crate::harness::finish::Finish;
use crate::harness::outcome::{Failure, Outcome, Size, check};
use crate::harness::random::Dice;
use crate::harness::steps::Steps;

pub(crate) const BARBER: Benchmark = program(
    "savina-barber",
    "haircut",
    "5,000 customers of one barber, a waiting room of 1,000; up to 1,000 steps between customers, and per haircut",
    run,
);

const ROOM: usize = 1_000;
/// The most steps between two customers, and per haircut.
const RATE: usize = 1_000;

/// Works a random number of steps, from 10 to [`RATE`] + 9.
fn busy(dice: &mut Dice) -> u32 {
    Work::Compute(dice.pick(RATE) as u32 + 10).perform(dice.state())
}

/// Sends customers to the waiting room, new ones and rejected ones.
struct Street {
    customers: u32,
    room: ActorRef<WaitingRoom>,
    work: Steps,
    sent: u32,
    dice: Dice,
    served: u32,
    sum: u64,
    finish: Finish<u64>,
}

#[actor]
impl Street {
    #[message]
    fn send_next(&mut self, ctx: &mut Context<Self>) {
        let customer = Customer { number: self.sent, street: ctx.this(), work: self.work };
        self.room.tell(Enter(ctx.spawn(customer)));
        busy(&mut self.dice);
        self.sent += 1;
        if self.sent < self.customers {
            ctx.this().tell(SendNext);
        }
    }

    #[message]
    fn turned_away(&mut self, who: ActorRef<Customer>) {
        self.room.tell(Enter(who));
    }

    #[message]
    fn leaves(&mut self, number: u32) {
        self.sum += u64::from(number);
        self.served += 1;
        if self.served == self.customers {
            self.finish.reached(self.sum);
        }
    }
}

struct Customer {
    number: u32,
    street: ActorRef<Street>,
    work: Steps,
}

#[actor]
impl Customer {
    #[message]
    fn full(&mut self, ctx: &mut Context<Self>) {
        self.street.tell(TurnedAway(ctx.this()));
    }

    #[message]
    fn cut(&mut self, ctx: &mut Context<Self>) {
        self.work.work();
        self.street.tell(Leaves(self.number));
        ctx.stop();
    }
}

struct WaitingRoom {
    barber: ActorRef<Barber>,
    work: Steps,
    waiting: VecDeque<ActorRef<Customer>>,
    barber_sleeps: bool,
}

#[actor]
impl WaitingRoom {
    #[message]
    fn enter(&mut self, who: ActorRef<Customer>, ctx: &mut Context<Self>) {
        self.work.work();
        if self.waiting.len() == ROOM {
            return who.tell(Full);
        }
        self.waiting.push_back(who);
        if self.barber_sleeps {
            self.next(ctx);
        }
    }

    /// Takes the next customer: the barber is free.
    #[message]
    fn next(&mut self, ctx: &mut Context<Self>) {
        let customer = self.waiting.pop_front();
        self.barber_sleeps = customer.is_none();
        if let Some(customer) = customer {
            self.barber.tell(Serve(customer, ctx.this()));
        }
    }
}

struct Barber {
    dice: Dice,
    work: Steps,
}

#[actor]
impl Barber {
    #[message]
    fn serve(&mut self, who: ActorRef<Customer>, room: ActorRef<WaitingRoom>) {
        self.work.work();
        busy(&mut self.dice);
        who.tell(Cut);
        room.tell(Next);
    }
}

fn run(system: &System, size: Size, work: Steps) -> Result<Outcome, Failure> {
    let customers = size.smoke_or(1_200, 5_000);
    let barber = system.spawn(Barber { dice: dice(1), work });
    let room = system.spawn(WaitingRoom { barber, work, waiting: VecDeque::new(), barber_sleeps: true });
    let street = |finish| Street { customers, room, work, sent: 0, dice: dice(0), served: 0, sum: 0, finish };
    let (elapsed, sum) = lead(system, size, street, SendNext)?;
    check("the sum of the customers served", (0..u64::from(customers)).sum(), sum)?;
    Ok(Outcome::new(u64::from(customers), elapsed))
}
