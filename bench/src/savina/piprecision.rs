//! Pi precision: workers compute terms of the Bailey–Borwein–Plouffe series; each idle worker takes the next term.

use num_bigint::BigUint;
use playhouse::prelude::*;

use super::{lead, program};
use crate::harness::benchmark::Benchmark;
use crate::harness::finish::Finish;
use crate::harness::outcome::{Failure, Outcome, Size, check};
use crate::harness::steps::Steps;

pub(crate) const PIPRECISION: Benchmark = program(
    "savina-piprecision",
    "digit",
    "20 workers compute 5,000 digits of pi, a term at a time, as fixed-point numbers",
    run,
);

const WORKERS: u32 = 20;
/// Digits behind the wanted ones, as each term is rounded down.
const GUARD_DIGITS: u32 = 10;

/// Returns one, as a fixed-point number with this number of decimal digits and the guard.
fn one(digits: u32) -> BigUint {
    BigUint::from(10u32).pow(digits + GUARD_DIGITS)
}

/// The term with this number: `16^-k (4/(8k+1) - 2/(8k+4) - 1/(8k+5) - 1/(8k+6))`.
fn term(one: &BigUint, number: u32) -> BigUint {
    let part = |dividend: u32, add: u32| one * dividend / (8 * number + add);
    (part(4, 1) - part(2, 4) - part(1, 5) - part(1, 6)) >> (4 * number)
}

struct Worker {
    one: BigUint,
    work: Steps,
    master: ActorRef<Master>,
}

#[actor]
impl Worker {
    #[message]
    fn compute(&self, number: u32, ctx: &mut Context<Self>) {
        self.work.work();
        self.master.tell(Term(term(&self.one, number), ctx.this()));
    }
}

struct Master {
    digits: u32,
    work: Steps,
    next: u32,
    waiting: u32,
    /// A term was nothing, and so are all that follow.
    enough: bool,
    pi: BigUint,
    finish: Finish<BigUint>,
}

#[actor]
impl Master {
    #[message]
    fn start(&mut self, ctx: &mut Context<Self>) {
        for _ in 0..WORKERS {
            let worker = Worker { one: one(self.digits), work: self.work, master: ctx.this() };
            let worker = ctx.spawn(worker);
            self.give(worker);
        }
    }

    #[message]
    fn term(&mut self, term: BigUint, worker: ActorRef<Worker>) {
        self.waiting -= 1;
        self.enough |= term == BigUint::ZERO;
        self.pi += term;
        if !self.enough {
            self.give(worker);
        } else if self.waiting == 0 {
            self.finish.reached(std::mem::take(&mut self.pi));
        }
    }

    fn give(&mut self, worker: ActorRef<Worker>) {
        worker.tell(Compute(self.next));
        self.next += 1;
        self.waiting += 1;
    }
}

fn run(system: &System, size: Size, work: Steps) -> Result<Outcome, Failure> {
    let digits = size.smoke_or(100, 5_000);
    let master = |finish| Master { digits, work, next: 0, waiting: 0, enough: false, pi: BigUint::ZERO, finish };
    let (elapsed, pi) = lead(system, size, master, Start)?;
    check("pi", without_guard(machin(digits)), without_guard(pi))?;
    Ok(Outcome::new(u64::from(digits), elapsed))
}

fn without_guard(number: BigUint) -> BigUint {
    number / BigUint::from(10u32).pow(GUARD_DIGITS)
}

/// Pi by another series: `16 arctan(1/5) - 4 arctan(1/239)`.
fn machin(digits: u32) -> BigUint {
    let arctan_of_one_over = |n: u32| {
        let (mut added, mut subtracted) = (BigUint::ZERO, BigUint::ZERO);
        let mut power = one(digits) / n;
        for odd in (1u32..).step_by(2) {
            if power == BigUint::ZERO {
                break;
            }
            let part = &power / odd;
            if odd % 4 == 1 {
                added += part
            } else {
                subtracted += part
            }
            power /= n * n;
        }
        added - subtracted
    };
    arctan_of_one_over(5) * 16u32 - arctan_of_one_over(239) * 4u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_series_give_the_digits_of_the_books() {
        let digits = "314159265358979323846264338327950288419716939937510";
        assert_eq!(without_guard(machin(50)).to_string(), digits);
        let sum = (0..60).map(|number| term(&one(50), number)).sum();
        assert_eq!(without_guard(sum).to_string(), digits);
    }
}
