//! What `#[playhouse::main]` and `#[playhouse::test]` call.

use std::ops::RangeInclusive;

use playhouse_actor::{System, SystemBuilder};

/// The seeds of a test that names none.
pub const SEEDS: RangeInclusive<u64> = 0..=19;

/// What a test returns.
#[diagnostic::on_unimplemented(
    message = "a test returns nothing or a `Result<(), _>`, and not a `{Self}`",
    note = "remove what the function returns, or check it with `assert_eq!`"
)]
pub trait Outcome {
    /// Returns whether it is an error.
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

/// Starts a system, gives it to `body`, and shuts it down.
///
/// # Panics
/// The system does not start.
pub fn main<R>(builder: SystemBuilder, body: impl FnOnce(&System) -> R) -> R {
    let system = started(builder);
    let output = body(&system);
    if let Err(late) = system.shutdown() {
        // The process ends in any case.
        eprintln!("playhouse: {late}");
    }
    output
}

/// Gives `body` a system on threads.
///
/// # Panics
/// The system does not start, `body` fails, or the system is not shut down in time.
pub fn test_on_threads<R: Outcome>(builder: SystemBuilder, body: impl FnOnce(&System) -> R) -> R {
    let system = started(builder);
    let outcome = body(&system);
    end(system);
    outcome
}

/// Gives `body` one simulated system after another, one for each seed, until it fails with one.
///
/// # Panics
/// As [`test_on_threads`]. The seed is printed on stderr.
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

/// Names the seed of a test that panics.
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
/// In a simulated system, if nothing is left to do that could bring what `future` waits for.
pub fn block_on<F: Future>(system: &System, future: F) -> F::Output {
    crate::wait::block_on(system.core(), future)
        .expect("the function waits for something that cannot come: nothing is left to do in the simulated system")
}

fn started(builder: SystemBuilder) -> System {
    builder.start().unwrap_or_else(|error| panic!("the system does not start: {error}"))
}

fn end(system: System) {
    if let Err(late) = system.shutdown() {
        panic!("{late}");
    }
}
