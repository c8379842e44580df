//! Bitonic sort: a tree of actors sorts the halves up and down, and another one merges them.

use playhouse::prelude::*;

use super::sorting::{Above, Half, Halves, Sorted, check_sorted, numbers};
use super::{lead, program};
use crate::harness::benchmark::Benchmark;
use crate::harness::outcome::{Failure, Outcome, Size};
use crate::harness::steps::Steps;

pub(crate) const BITONICSORT: Benchmark = program(
    "savina-bitonicsort",
    "number",
    "4,096 numbers below 2^60; an actor for each part to sort, and for each to merge, down to single numbers",
    run,
);

/// The task of an actor with its numbers. Single numbers are already in order.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Task {
    /// Sorts the halves, one up and one down, and merges them.
    Sort,
    /// Compares the halves of numbers that go up and then down, and merges either.
    Merge,
}

struct Part {
    task: Task,
    up: bool,
    work: Steps,
    above: Above,
    halves: Halves,
}

impl Part {
    fn new(task: Task, up: bool, work: Steps, above: Above) -> Self {
        Self { task, up, work, above, halves: Halves::default() }
    }

    /// Puts the smaller of each two numbers into the first half if they should go up, else into the second.
    fn compare(&self, first: &mut [u64], second: &mut [u64]) {
        for (a, b) in first.iter_mut().zip(second) {
            if (*a > *b) == self.up {
                std::mem::swap(a, b);
            }
        }
    }

    /// Lets two other actors sort or merge the halves, according to the task.
    fn begin(&mut self, mut numbers: Vec<u64>, ctx: &mut Context<Self>) {
        let mut second = numbers.split_off(numbers.len() / 2);
        let ways = match self.task {
            Task::Sort => [true, false],
            Task::Merge => {
                self.compare(&mut numbers, &mut second);
                [self.up, self.up]
            }
        };
        for (numbers, half, up) in [(numbers, Half::First, ways[0]), (second, Half::Second, ways[1])] {
            let above = Above::Parent(ctx.this().recipient(), half);
            ctx.spawn(Part::new(self.task, up, self.work, above)).tell(Begin(numbers));
        }
    }
}

impl Actor for Part {}

#[derive(Message)]
struct Begin(Vec<u64>);

impl Handler<Begin> for Part {
    fn handle(&mut self, Begin(numbers): Begin, ctx: &mut Context<Self>) {
        self.work.work();
        if numbers.len() > 1 {
            return self.begin(numbers, ctx);
        }
        self.above.give(numbers);
        ctx.stop();
    }
}

impl Handler<Sorted> for Part {
    fn handle(&mut self, sorted: Sorted, ctx: &mut Context<Self>) {
        self.work.work();
        let Some((mut numbers, mut second)) = self.halves.take(sorted) else { return };
        numbers.append(&mut second);
        if self.task == Task::Sort {
            // One half goes up and the other down: now they are merged.
            self.task = Task::Merge;
            return self.begin(numbers, ctx);
        }
        self.above.give(numbers);
        ctx.stop();
    }
}

fn run(system: &System, size: Size, work: Steps) -> Result<Outcome, Failure> {
    let count = size.smoke_or(64, 4_096);
    let numbers = numbers(count);
    let part = |finish| Part::new(Task::Sort, true, work, Above::Finish(finish));
    let (elapsed, sorted) = lead(system, size, part, Begin(numbers))?;
    check_sorted(&sorted)?;
    Ok(Outcome::new(count as u64, elapsed))
}
