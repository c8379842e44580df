//! Dining philosophers: an arbitrator has the forks; a philosopher that does not get them asks again.

use playhouse::prelude::*;

use super::{lead, program};
use crate::harness::benchmark::Benchmark;
use crate::harness::finish::Finish;
use crate::harness::outcome::{Failure, Outcome, Size, check};
use crate::harness::steps::Steps;

pub(crate) const PHILOSOPHERS: Benchmark = program(
    "savina-philosophers",
    "meal",
    "20 philosophers eat 10,000 times each; an arbitrator has the forks, and a denied philosopher asks again",
    run,
);

const PHILOSOPHERS_AT_TABLE: usize = 20;

struct Arbitrator {
    meals: u32,
    work: Steps,
    /// Fork `n` is to the left of philosopher `n`.
    taken: [bool; PHILOSOPHERS_AT_TABLE],
    waiting: usize,
    eaten: u64,
    finish: Finish<u64>,
}

fn right_of(seat: usize) -> usize {
    (seat + 1) % PHILOSOPHERS_AT_TABLE
}

#[actor]
impl Arbitrator {
    #[message]
    fn start(&mut self, ctx: &mut Context<Self>) {
        let arbitrator = ctx.this();
        for seat in 0..PHILOSOPHERS_AT_TABLE {
            let philosopher = Philosopher { seat, arbitrator, work: self.work, left: self.meals, eaten: 0 };
            let philosopher = ctx.spawn(philosopher);
            self.hungry(seat, philosopher);
        }
    }

    #[message]
    fn hungry(&mut self, seat: usize, who: ActorRef<Philosopher>) {
        if self.taken[seat] || self.taken[right_of(seat)] {
            return who.tell(Denied);
        }
        self.taken[seat] = true;
        self.taken[right_of(seat)] = true;
        who.tell(Eat);
    }

    #[message]
    fn put_back(&mut self, seat: usize) {
        self.taken[seat] = false;
        self.taken[right_of(seat)] = false;
    }

    #[message]
    fn sated(&mut self, eaten: u64) {
        self.eaten += eaten;
        self.waiting -= 1;
        if self.waiting == 0 {
            self.finish.reached(self.eaten);
        }
    }
}

struct Philosopher {
    seat: usize,
    arbitrator: ActorRef<Arbitrator>,
    work: Steps,
    left: u32,
    eaten: u64,
}

#[actor]
impl Philosopher {
    #[message]
    fn denied(&mut self, ctx: &mut Context<Self>) {
        self.arbitrator.tell(Hungry(self.seat, ctx.this()));
    }

    #[message]
    fn eat(&mut self, ctx: &mut Context<Self>) {
        self.work.work();
        self.eaten += 1;
        self.left -= 1;
        self.arbitrator.tell(PutBack(self.seat));
        if self.left > 0 {
            self.arbitrator.tell(Hungry(self.seat, ctx.this()));
        } else {
            self.arbitrator.tell(Sated(self.eaten));
        }
    }
}

fn run(system: &System, size: Size, work: Steps) -> Result<Outcome, Failure> {
    let meals = size.smoke_or(50, 10_000);
    let taken = [false; PHILOSOPHERS_AT_TABLE];
    let arbitrator = |finish| Arbitrator { meals, work, taken, waiting: PHILOSOPHERS_AT_TABLE, eaten: 0, finish };
    let (elapsed, eaten) = lead(system, size, arbitrator, Start)?;
    let expected = u64::from(meals) * PHILOSOPHERS_AT_TABLE as u64;
    check("the meals eaten", expected, eaten)?;
    Ok(Outcome::new(expected, elapsed))
}
