//! `playhouse chatapp record`: the random moves of a scenario, in a file.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use playhouse_bench::chatapp::driven::{Recorded, record};
use playhouse_bench::chatapp::{Scenario, plural, thousands};
use playhouse_console::files::Replacement;
use playhouse_console::world::resolve;

use crate::output::{BAD_INPUT, FAILED, fail, note, print};
use crate::progress::{Bar, Shared};
use crate::signals::{self, Stopped};

/// Arguments of `playhouse chatapp record`.
#[derive(clap::Args)]
pub struct Args {
    /// A scenario file, or the name of a built-in scenario (see `playhouse scenario`)
    scenario: String,
    /// The file of the recording; a regular file is replaced when all of the recording is written
    file: PathBuf,
    /// The seed of the clients' random choices, instead of the scenario's
    #[arg(long, value_name = "N")]
    seed: Option<u32>,
    /// Show no progress
    #[arg(long)]
    quiet: bool,
}

/// Records a scenario.
pub fn run(args: &Args) -> ExitCode {
    let mut scenario = match resolve(&args.scenario) {
        Ok(scenario) => scenario,
        Err(error) => return fail(BAD_INPUT, &error),
    };
    scenario.seed = args.seed.unwrap_or(scenario.seed);
    let file = match Replacement::begin(&args.file) {
        Ok(file) => file,
        Err(error) => return fail(FAILED, &format!("the recording cannot be written: {error}")),
    };

    let (turns, shared) = (scenario.turns, Arc::new(Shared::default()));
    let bar = Bar::new(turns, args.quiet, Arc::clone(&shared));
    bar.say("recording");
    let recorded = signals::unless_signalled(|| bar.update(), {
        let (path, shared) = (args.file.clone(), Arc::clone(&shared));
        move || write(&scenario, &path, file, &shared)
    });
    bar.clear();
    match recorded {
        Ok(Ok((Recorded { turns, moves, friendships }, bytes))) => {
            let (turns, moves) = (plural(turns.into(), "turn"), plural(moves, "move"));
            let friendships = plural(friendships, "friendship");
            let file = args.file.display();
            print(&format!("{file}: {turns}, {moves}, {friendships}, {} bytes", thousands(bytes)));
            ExitCode::SUCCESS
        }
        Ok(Err(error)) => fail(FAILED, &format!("the recording cannot be written: {error}")),
        Err(stopped) => {
            // The recorder may be writing still; it finds no file to put into place.
            signals::clean_up();
            match stopped {
                Stopped::Signalled(signal) => {
                    let turn = shared.reached().0;
                    // The recorder may have put the complete file into place before.
                    let written =
                        if turn < turns { "nothing was written" } else { "the file is complete, or as it was" };
                    note(&format!("{} after {turn} of {turns} turns; {written}", signal.ending()));
                    ExitCode::from(signal.code())
                }
                // The recording goes on without a reader of standard output.
                Stopped::Unread | Stopped::Panicked => fail(FAILED, "the recorder panicked"),
            }
        }
    }
}

/// Writes the recording and puts it into place. Returns its size in bytes, too.
fn write(scenario: &Scenario, path: &Path, mut file: Replacement, shared: &Shared) -> Result<(Recorded, u64), String> {
    let recorded = record(scenario, &mut file, |turn| shared.take_turn(turn))
        .map_err(|error| format!("{}: {error}", path.display()))?;
    Ok((recorded, file.commit()?))
}
