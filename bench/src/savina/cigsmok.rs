//! Cigarette smokers: an arbiter has one smoker after the other begin to smoke.

use playhouse::prelude::*;

use super::{answer, dice, lead, program};
use crate::harness::benchmark::Benchmark;
use crate::harness::busy_work::Work;
use crate::harness::finish::Finish;
use crate::harness::outcome::{Failure, Outcome, Size, check};
use crate::harness::random::Dice;
use crate::harness::steps::Steps;

pub(crate) const CIGSMOK: Benchmark = program(
    "savina-cigsmok",
    "round",
    "an arbiter has one of 200 smokers begin in each of 1,000 rounds; they smoke at the same time, up to 1,000 steps",
    run,
);

const SMOKERS: usize = 200;
/// The most steps that one smokes.
const SMOKE: usize = 1_000;

/// The next smoker, and its number of steps.
fn next(dice: &mut Dice) -> (usize, u32) {
    (dice.pick(SMOKERS), dice.pick(SMOKE) as u32 + 10)
}

struct Arbiter {
    left: u32,
    work: Steps,
    dice: Dice,
    smokers: Vec<ActorRef<Smoker>>,
    finish: Finish<Vec<ActorRef<Smoker>>>,
}

#[actor]
impl Arbiter {
    #[started]
    fn invite(&mut self, ctx: &mut Context<Self>) {
        let arbiter = ctx.this();
        let smoker = || Smoker { arbiter, work: self.work, smoked: 0 };
        self.smokers = (0..SMOKERS).map(|_| ctx.spawn(smoker())).collect();
    }

    /// Continues after the smoker has begun.
    #[message]
    fn go_on(&mut self) {
        if self.left == 0 {
            return self.finish.reached(std::mem::take(&mut self.smokers));
        }
        self.left -= 1;
        let (smoker, steps) = next(&mut self.dice);
        self.smokers[smoker].tell(Light(steps));
    }
}

struct Smoker {
    arbiter: ActorRef<Arbiter>,
    work: Steps,
    smoked: u32,
}

#[actor]
impl Smoker {
    #[message]
    fn light(&mut self, steps: u32) {
        self.arbiter.tell(GoOn);
        self.work.work();
        Work::Compute(steps).perform(steps);
        self.smoked += steps;
    }

    #[message]
    fn smoked(&self) -> u32 {
        self.smoked
    }
}

fn run(system: &System, size: Size, work: Steps) -> Result<Outcome, Failure> {
    let rounds = size.smoke_or(100, 1_000);
    let arbiter = |finish| Arbiter { left: rounds, work, dice: dice(0), smokers: Vec::new(), finish };
    let (elapsed, smokers) = lead(system, size, arbiter, GoOn)?;
    let smoked = smokers.iter().map(|smoker| answer(smoker.ask(Smoked).wait())).collect::<Result<Vec<_>, _>>()?;
    check("what each has smoked", expected(rounds), smoked)?;
    Ok(Outcome::new(u64::from(rounds), elapsed))
}

fn expected(rounds: u32) -> Vec<u32> {
    let (mut dice, mut smoked) = (dice(0), vec![0; SMOKERS]);
    for _ in 0..rounds {
        let (smoker, steps) = next(&mut dice);
        smoked[smoker] += steps;
    }
    smoked
}
