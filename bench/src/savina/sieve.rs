//! Sieve of Eratosthenes: a pipeline that grows by an actor for each thousand primes.

use playhouse::prelude::*;

use super::{SLICE, lead, program};
use crate::harness::benchmark::Benchmark;
use crate::harness::finish::Finish;
use crate::harness::outcome::{Failure, Outcome, Size, check};
use crate::harness::steps::Steps;

pub(crate) const SIEVE: Benchmark = program(
    "savina-sieve",
    "candidate",
    "the primes up to 100,000; each actor of a pipeline keeps 1,000 of them, and the pipeline grows as needed",
    run,
);

struct Source {
    next: u32,
    until: u32,
    first: ActorRef<Filter>,
}

#[actor]
impl Source {
    #[message]
    fn emit(&mut self, ctx: &mut Context<Self>) {
        for _ in 0..SLICE {
            if self.next > self.until {
                return self.first.tell(End(0, 0));
            }
            self.first.tell(Candidate(self.next));
            self.next += 2;
        }
        ctx.this().tell(Emit);
    }
}

/// Keeps this number of primes, the first that reach it.
struct Filter {
    most: usize,
    work: Steps,
    primes: Vec<u32>,
    next: Option<ActorRef<Filter>>,
    finish: Option<Finish<(usize, u64)>>,
}

impl Filter {
    fn new(most: usize, work: Steps, finish: Option<Finish<(usize, u64)>>) -> Self {
        Self { most, work, primes: Vec::with_capacity(most), next: None, finish }
    }
}

#[actor]
impl Filter {
    #[message]
    fn candidate(&mut self, number: u32, ctx: &mut Context<Self>) {
        self.work.work();
        if self.primes.iter().any(|prime| number.is_multiple_of(*prime)) {
            return;
        }
        if self.primes.len() < self.most {
            return self.primes.push(number);
        }
        // The last of the pipeline is the one that can finish.
        let (most, work, finish) = (self.most, self.work, &mut self.finish);
        let next = *self.next.get_or_insert_with(|| ctx.spawn(Filter::new(most, work, finish.take())));
        next.tell(Candidate(number));
    }

    /// Ends the candidates; the actors before have kept this number of primes, with this sum.
    #[message]
    fn end(&mut self, count: usize, sum: u64) {
        let count = count + self.primes.len();
        let sum = sum + self.primes.iter().copied().map(u64::from).sum::<u64>();
        match (self.next, &self.finish) {
            (Some(next), _) => next.tell(End(count, sum)),
            (None, Some(finish)) => finish.reached((count, sum)),
            (None, None) => {}
        }
    }
}

fn run(system: &System, size: Size, work: Steps) -> Result<Outcome, Failure> {
    let (until, most) = size.smoke_or((2_000, 100), (100_000, 1_000));
    let source = |finish| {
        let first = system.spawn(Filter { primes: vec![2], ..Filter::new(most, work, Some(finish)) });
        Source { next: 3, until, first }
    };
    let (elapsed, found) = lead(system, size, source, Emit)?;
    check("the number of primes and their sum", primes(until), found)?;
    Ok(Outcome::new(u64::from(until / 2), elapsed))
}

fn primes(until: u32) -> (usize, u64) {
    let mut prime = vec![true; until as usize + 1];
    let mut found = Vec::new();
    for number in 2..=until as usize {
        if prime[number] {
            found.push(number as u64);
            (number * number..=until as usize).step_by(number).for_each(|multiple| prime[multiple] = false);
        }
    }
    (found.len(), found.iter().sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_primes_are_those_of_the_books() {
        assert_eq!(primes(100_000), (9_592, 454_396_537));
        assert_eq!(primes(10), (4, 17));
    }
}
