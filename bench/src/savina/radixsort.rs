//! Radix sort: a pipeline with an actor per bit, through which the numbers go one by one.

use playhouse::prelude::*;

use super::sorting::{check_sorted, numbers};
use super::{SLICE, lead, program};
use crate::harness::benchmark::Benchmark;
use crate::harness::finish::Finish;
use crate::harness::outcome::{Failure, Outcome, Size};
use crate::harness::steps::Steps;

pub(crate) const RADIXSORT: Benchmark = program(
    "savina-radixsort",
    "message",
    "100,000 numbers below 2^60 go one by one through 60 actors, each of which sorts by one bit",
    run,
);

const BITS: u32 = 60;

/// Numbers come in one after the other; those without the bit go on at once, the others after all of them.
struct Stage {
    bit: u32,
    next: Recipient<Number>,
    work: Steps,
    left: usize,
    later: Vec<u64>,
}

#[derive(Message)]
struct Number(u64);

impl Actor for Stage {}

impl Handler<Number> for Stage {
    fn handle(&mut self, Number(number): Number, _: &mut Context<Self>) {
        self.work.work();
        if number >> self.bit & 1 == 0 {
            self.next.tell(Number(number));
        } else {
            self.later.push(number);
        }
        self.left -= 1;
        if self.left == 0 {
            self.later.drain(..).for_each(|number| self.next.tell(Number(number)));
        }
    }
}

struct Sorted {
    count: usize,
    numbers: Vec<u64>,
    finish: Finish<Vec<u64>>,
}

impl Actor for Sorted {}

impl Handler<Number> for Sorted {
    fn handle(&mut self, Number(number): Number, _: &mut Context<Self>) {
        self.numbers.push(number);
        if self.numbers.len() == self.count {
            self.finish.reached(std::mem::take(&mut self.numbers));
        }
    }
}

struct Source {
    numbers: std::vec::IntoIter<u64>,
    first: Recipient<Number>,
}

#[actor]
impl Source {
    #[message]
    fn emit(&mut self, ctx: &mut Context<Self>) {
        self.numbers.by_ref().take(SLICE as usize).for_each(|number| self.first.tell(Number(number)));
        if self.numbers.len() > 0 {
            ctx.this().tell(Emit);
        }
    }
}

fn run(system: &System, size: Size, work: Steps) -> Result<Outcome, Failure> {
    let count = size.smoke_or(300, 100_000);
    let numbers = numbers(count);
    let (elapsed, sorted) = lead(system, size, |finish| pipeline(system, numbers, work, finish), Emit)?;
    check_sorted(&sorted)?;
    Ok(Outcome::new(count as u64 * u64::from(BITS + 1), elapsed))
}

/// Builds a pipeline from its end; returns the source.
fn pipeline(system: &System, numbers: Vec<u64>, work: Steps, finish: Finish<Vec<u64>>) -> Source {
    let count = numbers.len();
    let last = system.spawn(Sorted { count, numbers: Vec::with_capacity(count), finish }).recipient();
    let first = (0..BITS)
        .rev()
        .fold(last, |next, bit| system.spawn(Stage { bit, next, work, left: count, later: Vec::new() }).recipient());
    Source { numbers: numbers.into_iter(), first }
}
