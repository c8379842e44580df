//! `playhouse chatapp record`: what a scenario's dice choose, in a file.

use std::fs::{self, File};
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use playhouse_bench::chatapp::driven::{Recorded, record};
use playhouse_bench::chatapp::{Scenario, plural, thousands};
use playhouse_console::world::resolve;

use crate::interrupt::{self, Stopped};
use crate::output::{BAD_INPUT, FAILED, INTERRUPTED, fail, print};
use crate::progress::{Bar, Shared};

/// Arguments of `playhouse chatapp record`.
#[derive(clap::Args)]
pub struct Args {
    /// A scenario file, or the name of a built-in scenario (see `playhouse scenario`)
    scenario: String,
    /// Where to write the recording; what is there is replaced when all of it was written
    file: PathBuf,
    /// Where the clients' dice start, instead of the scenario's seed
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
    let mut part = args.file.clone().into_os_string();
    part.push(".part");
    let part = PathBuf::from(part);

    let (turns, shared) = (scenario.turns, Arc::new(Shared::default()));
    let bar = Bar::new(turns, args.quiet, Arc::clone(&shared));
    bar.say("recording");
    let recorded = interrupt::unless_interrupted(|| bar.update(), {
        let (part, file, shared) = (part.clone(), args.file.clone(), Arc::clone(&shared));
        move || write(&scenario, &part, &file, &shared)
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
        Ok(Err(error)) => {
            let _ = fs::remove_file(&part);
            fail(FAILED, &format!("{}: cannot be written: {error}", args.file.display()))
        }
        Err(stopped) => {
            let _ = fs::remove_file(&part);
            match stopped {
                Stopped::Interrupted => {
                    eprintln!("interrupted after {} of {turns} turns; nothing was written", shared.reached().0);
                    ExitCode::from(INTERRUPTED)
                }
                Stopped::Panicked => fail(FAILED, "the recorder panicked"),
            }
        }
    }
}

/// Writes `part`, and makes it `file` when it is whole. Says how many bytes that are.
fn write(scenario: &Scenario, part: &Path, file: &Path, shared: &Shared) -> io::Result<(Recorded, u64)> {
    if file.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    let mut out = BufWriter::with_capacity(1 << 16, File::create(part)?);
    let recorded = record(scenario, &mut out, |turn| shared.take_turn(turn))?;
    let out = out.into_inner().map_err(io::IntoInnerError::into_error)?;
    let bytes = out.metadata()?.len();
    fs::rename(part, file)?;
    Ok((recorded, bytes))
}
