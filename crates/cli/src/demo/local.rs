//! The ChatApp world on one system.

use std::process::ExitCode;
use std::sync::Arc;

use playhouse_bench::chatapp::{self, Options, RunError, Scenario};
use playhouse_console::output::{BAD_INPUT, FAILED, fail, note};
use playhouse_console::progress::{Bar, Shared};
use playhouse_console::signals::{self, Stopped};
use playhouse_console::world::show;

use super::Args;

/// Plays a world and prints its results.
pub fn run(args: &Args, scenario: Scenario) -> ExitCode {
    let options = Options {
        workers: args.workers.map(usize::from),
        stages: args.stages.map(|stages| stages as usize),
        ..Options::default()
    };

    let turns = scenario.turns;
    let shared = Arc::new(Shared::default());
    let bar = Bar::new(turns, args.quiet, Arc::clone(&shared));
    let world = signals::unless_stopped(|| bar.update(), {
        let shared = Arc::clone(&shared);
        move || chatapp::run(&scenario, &options, move |progress| shared.take(progress))
    });
    bar.clear();
    match world {
        Ok(Ok(report)) => show(&report, args.json, args.stats),
        Ok(Err(error @ (RunError::Scenario(_) | RunError::System(_)))) => fail(BAD_INPUT, &error.to_string()),
        Ok(Err(error)) => fail(FAILED, &error.to_string()),
        Err(Stopped::Signalled(signal)) => {
            let (turn, messages) = shared.reached();
            note(&format!("{} after {turn} of {turns} turns and {messages} messages", signal.ending()));
            // The workers end with the process.
            ExitCode::from(signal.code())
        }
        Err(Stopped::Unread) => ExitCode::SUCCESS,
        Err(Stopped::Panicked) => fail(FAILED, "the world panicked"),
    }
}
