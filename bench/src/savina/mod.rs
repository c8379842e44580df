//! The 30 programs of the Savina suite, with its parameters, one file each. Those that are also workloads of this project, with
//! other parameters, are in `micro`; common parts of some are in `requests` and `sorting`.
//!
//! They keep the rules of *Run, Actor, Run!* §3.5: actors share only constants (R0); a program ends when its final state is
//! reached, and cleaning up is not measured (R1); no actor receives selectively, and waiting requests stand in a queue of the
//! actor's own (R2); input comes from one 32-bit congruential sequence, [`Dice`] (R3). `bench/SAVINA.md` lists the differences
//! from the originals.
//!
//! Every program compares its result with that of a plain computation, which is not timed.

pub(crate) mod apsp;
pub(crate) mod astar;
pub(crate) mod banking;
pub(crate) mod barber;
pub(crate) mod bitonicsort;
pub(crate) mod bndbuffer;
pub(crate) mod cigsmok;
pub(crate) mod concdict;
pub(crate) mod concsll;
pub(crate) mod facloc;
pub(crate) mod filterbank;
pub(crate) mod fjthrput;
pub(crate) mod logmap;
pub(crate) mod micro;
pub(crate) mod nqueens;
pub(crate) mod philosophers;
pub(crate) mod piprecision;
pub(crate) mod quicksort;
pub(crate) mod radixsort;
pub(crate) mod recmatmul;
pub(crate) mod sieve;
pub(crate) mod sor;
pub(crate) mod trapezoid;
pub(crate) mod uct;

mod requests;
mod sorting;

use std::time::Duration;

use playhouse::prelude::*;

use crate::harness::benchmark::{Benchmark, Family};
use crate::harness::finish::{Finish, finish};
use crate::harness::outcome::{Failure, Outcome, Size};
use crate::harness::random::Dice;
use crate::harness::steps::Steps;

/// The entry of one program.
const fn program(
    name: &'static str,
    op: &'static str,
    summary: &'static str,
    workload: fn(&System, Size, Steps) -> Result<Outcome, Failure>,
) -> Benchmark {
    Benchmark {
        name,
        op,
        source: "Savina (Run, Actor, Run! §4.1)",
        summary,
        stealing: None,
        workers_min: 1,
        family: Family::Savina,
        workload,
        baseline: None,
        target: None,
    }
}

/// Messages that an actor sends before it lets others run and goes on by a message to itself.
const SLICE: u32 = 1_000;

/// Returns the dice of the actor with this number.
fn dice(number: u32) -> Dice {
    Dice::of_client(0x5A71_7A00, number)
}

/// Creates the actor that leads a program, and gives it `start`; the time until it has reached the final state, and its
/// result.
fn lead<A, M, Mode, T>(
    system: &System,
    size: Size,
    leader: impl FnOnce(Finish<T>) -> A,
    start: M,
) -> Result<(Duration, T), Failure>
where
    A: Actor,
    M: playhouse::HandledBy<A, Mode>,
{
    let (finish, finished) = finish(size);
    let leader = system.spawn(leader(finish));
    finished.time(|| leader.tell(start))
}

/// The answer to an ask from outside, after the final state.
fn answer<T>(answer: Result<T, AskError>) -> Result<T, Failure> {
    answer.map_err(|error| Failure::new(format!("no answer after the end: {error}")))
}
