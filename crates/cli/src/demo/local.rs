//! The ChatApp world on one system.

use std::process::ExitCode;
use std::sync::Arc;

use playhouse_bench::chatapp::{self, Options, RunError, Scenario};
use playhouse_console::world::show;

use super::Args;
use crate::interrupt::{self, Stopped};
use crate::output::{BAD_INPUT, FAILED, INTERRUPTED, fail};
use crate::progress::{Bar, Shared};

/// Plays a world and prints what has come of it.
pub fn run(args: &Args, scenario: Scenario) -> ExitCode {
    let options = Options {
        workers: args.workers.map(usize::from),
        stages: args.stages.map(|stages| stages as usize),
        ..Options::default()
    };

    let turns = scenario.turns;
    let shared = Arc::new(Shared::default());
    let bar = Bar::new(turns, args.quiet, Arc::clone(&shared));
    let world = interrupt::unless_interrupted(|| bar.update(), {
        let shared = Arc::clone(&shared);
        move || chatapp::run(&scenario, &options, move |progress| shared.take(progress))
    });
    bar.clear();
    match world {
        Ok(Ok(report)) => show(&report, args.json, args.stats),
        Ok(Err(error @ (RunError::Scenario(_) | RunError::System(_)))) => fail(BAD_INPUT, &error.to_string()),
        Ok(Err(error)) => fail(FAILED, &error.to_string()),
        Err(Stopped::Interrupted) => {
            let (turn, messages) = shared.reached();
            eprintln!("interrupted after {turn} of {turns} turns and {messages} messages");
            // The workers end with the process.
            ExitCode::from(INTERRUPTED)
        }
        Err(Stopped::Panicked) => fail(FAILED, "the world panicked"),
    }
}
