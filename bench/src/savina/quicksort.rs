//! Quicksort: an actor partitions its numbers, gives each part to a new actor, and joins the results.

use playhouse::prelude::*;

use super::sorting::{Above, Half, Halves, Sorted, check_sorted, numbers};
use super::{lead, program};
use crate::harness::benchmark::Benchmark;
use crate::harness::outcome::{Failure, Outcome, Size};
use crate::harness::steps::Steps;

pub(crate) const QUICKSORT: Benchmark = program(
    "savina-quicksort",
    "number",
    "1,000,000 numbers below 2^60; actors part them, and sort what are fewer than 2,048 at once",
    run,
);

struct Sorter {
    threshold: usize,
    work: Steps,
    above: Above,
    /// The numbers below the pivot, those above it, and those equal to it.
    halves: Halves,
    pivots: Vec<u64>,
}

impl Sorter {
    fn new(threshold: usize, work: Steps, above: Above) -> Self {
        Self { threshold, work, above, halves: Halves::default(), pivots: Vec::new() }
    }
}

/// Parts `numbers` in place: those below the pivot stay, those equal and those above are split off.
fn part(numbers: &mut Vec<u64>) -> (Vec<u64>, Vec<u64>) {
    let pivot = numbers[numbers.len() / 2];
    let (mut below, mut at, mut above) = (0, 0, numbers.len());
    while at < above {
        match numbers[at].cmp(&pivot) {
            std::cmp::Ordering::Less => {
                numbers.swap(below, at);
                below += 1;
                at += 1;
            }
            std::cmp::Ordering::Equal => at += 1,
            std::cmp::Ordering::Greater => {
                above -= 1;
                numbers.swap(at, above);
            }
        }
    }
    let high = numbers.split_off(above);
    (numbers.split_off(below), high)
}

impl Actor for Sorter {}

#[derive(Message)]
struct Sort(Vec<u64>);

impl Handler<Sort> for Sorter {
    fn handle(&mut self, Sort(mut numbers): Sort, ctx: &mut Context<Self>) {
        self.work.work();
        if numbers.len() < self.threshold {
            numbers.sort_unstable();
            self.above.give(numbers);
            return ctx.stop();
        }
        let (pivots, high) = part(&mut numbers);
        self.pivots = pivots;
        for (numbers, half) in [(numbers, Half::First), (high, Half::Second)] {
            let above = Above::Parent(ctx.this().recipient(), half);
            ctx.spawn(Sorter::new(self.threshold, self.work, above)).tell(Sort(numbers));
        }
    }
}

impl Handler<Sorted> for Sorter {
    fn handle(&mut self, sorted: Sorted, ctx: &mut Context<Self>) {
        self.work.work();
        if let Some((mut numbers, mut high)) = self.halves.take(sorted) {
            numbers.append(&mut self.pivots);
            numbers.append(&mut high);
            self.above.give(numbers);
            ctx.stop();
        }
    }
}

fn run(system: &System, size: Size, work: Steps) -> Result<Outcome, Failure> {
    let (count, threshold) = size.smoke_or((5_000, 64), (1_000_000, 2_048));
    let numbers = numbers(count);
    let (elapsed, sorted) =
        lead(system, size, |finish| Sorter::new(threshold, work, Above::Finish(finish)), Sort(numbers))?;
    check_sorted(&sorted)?;
    Ok(Outcome::new(count as u64, elapsed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_part_holds_its_numbers() {
        let mut low = vec![5, 1, 4, 4, 9, 4, 0];
        let (pivots, mut high) = part(&mut low);
        low.sort_unstable();
        high.sort_unstable();
        assert_eq!((low, pivots, high), (vec![0, 1], vec![4, 4, 4], vec![5, 9]));
    }
}
