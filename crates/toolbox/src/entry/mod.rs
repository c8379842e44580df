//! Functions that the code of `#[playhouse::main]` and `#[playhouse::test]` calls.

use std::ops::RangeInclusive;

use playhouse_actor::{System, SystemBuilder};

/// The seeds of a test without the option `seeds`.
pub const SEEDS: RangeInclusive<u64> = 0..=19;

/// A return type of a test.
#[diagnostic::on_unimplemented(
    message = "a test returns nothing or a `Result<(), _>`, not a `{Self}`",
    note = "remove the return type, or check the value with `assert_eq!`"
)]
pub trait Outcome {
    /// Returns whether the test has failed.
    fn has_failed(&self) -> bool;
}

impl Outcome for () {
    fn has_failed(&self) -> bool {
        false
    }
}

impl<E> Outcome for Result<(), E> {
    fn has_failed(&self) -> bool {
        self.is_err()
    }
}

/// Starts a system, passes it to `body`, and shuts it down.
///
/// # Panics
/// The system does not start.
pub fn main<R>(builder: SystemBuilder, body: impl FnOnce(&System) -> R) -> R {
    let system = started(builder);
    let output = body(&system);
    if let Err(late) = system.shutdown() {
        // A late shutdown is printed only, because the process ends in any case.
        eprintln!("playhouse: {late}");
    }
    output
}

/// Runs `body` with a system on threads.
///
/// # Panics
/// The system does not start, `body` fails, or the system is not shut down in time.
pub fn test_on_threads<R: Outcome>(builder: SystemBuilder, body: impl FnOnce(&System) -> R) -> R {
    let system = started(builder);
    let outcome = body(&system);
    end(system);
    outcome
}

/// Runs `body` with one simulated system per seed, until one run fails.
///
/// # Panics
/// The same as of [`test_on_threads`]. The seed is printed on stderr.
pub fn test<R: Outcome>(
    builder: impl Fn() -> SystemBuilder,
    seeds: RangeInclusive<u64>,
    body: impl Fn(&System) -> R,
) -> R {
    let last = *seeds.end();
    for seed in seeds {
        let _named = PrintSeedOnPanic(seed);
        let system = started(builder().simulated(seed));
        let outcome = body(&system);
        end(system);
        if outcome.has_failed() {
            print_seed(seed);
        }
        if outcome.has_failed() || seed == last {
            return outcome;
        }
    }
    panic!("the test has no seeds")
}

/// A guard that prints the seed of a test that panics.
struct PrintSeedOnPanic(u64);

impl Drop for PrintSeedOnPanic {
    fn drop(&mut self) {
        if std::thread::panicking() {
            print_seed(self.0);
        }
    }
}

fn print_seed(seed: u64) {
    eprintln!("the test has failed with seed {seed}: `#[playhouse::test(seed = {seed})]` runs that alone");
}

/// Runs `future` to its end.
///
/// # Panics
/// A simulated system has nothing left to do that could make `future` ready.
#[track_caller]
pub fn block_on<F: Future>(system: &System, future: F) -> F::Output {
    let output = crate::wait::block_on(system.core(), future);
    output.expect("the function waits forever: the simulated system has nothing left to do")
}

fn started(builder: SystemBuilder) -> System {
    builder.start().unwrap_or_else(|error| panic!("the system does not start: {error}"))
}

fn end(system: System) {
    if let Err(late) = system.shutdown() {
        panic!("{late}");
    }
}
