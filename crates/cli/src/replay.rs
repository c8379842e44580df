//! `playhouse replay`: a run that is repeated from its seed, and shown.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::builder::PossibleValuesParser;
use playhouse_console::build::REVISION;
use playhouse_console::files;
use playhouse_console::output::{FAILED, fail, print};
use playhouse_testkit::programs::{PROGRAMS, Program, named};
use playhouse_testkit::{Replay, replay};
use serde_json::{Value, json};

/// Arguments of `playhouse replay`.
#[derive(clap::Args)]
pub struct Args {
    /// The number that the order of the messages is drawn from
    seed: u64,
    /// The program to run
    #[arg(long, default_value = "philosophers", value_parser = PossibleValuesParser::new(PROGRAMS.map(|program| program.name)))]
    program: String,
    /// Run the program with the bug that is planted in it
    #[arg(long)]
    wrong: bool,
    /// Write the chart to this file, too, as a picture (SVG); a regular file is replaced
    #[arg(long, value_name = "FILE", value_parser = file)]
    svg: Option<PathBuf>,
    /// Print the deliveries and the failure as a JSON object
    #[arg(long)]
    json: bool,
}

/// Returns the path of a file. `-` would be one, but means standard output elsewhere.
fn file(text: &str) -> Result<PathBuf, String> {
    match text {
        "-" => Err("the picture goes to a file, because standard output has the chart as text".to_owned()),
        _ => Ok(PathBuf::from(text)),
    }
}

/// Runs the program and prints its message sequence chart. Fails where the run went wrong.
pub fn run(args: &Args) -> ExitCode {
    let program = named(&args.program).expect("INVARIANT: the allowed names are those of the programs");
    let replay = if args.wrong { replay(args.seed, program.wrong()) } else { replay(args.seed, program.right()) };
    if args.json {
        print(&to_json(program, &replay).to_string());
    } else {
        let (seed, deliveries, hash) = (replay.seed(), replay.deliveries().len(), replay.hash());
        print(&format!("{}: {}\n\n{}", program.name, program.about, replay.chart()));
        print(&format!("seed {seed}, commit {REVISION}, {deliveries} deliveries, hash {hash:016x}"));
        if let Some(failure) = replay.failure() {
            print(&failure.violation.to_string());
        }
    }
    if let Some(path) = &args.svg
        && let Err(error) = files::replace(path, replay.chart().svg().as_bytes())
    {
        return fail(FAILED, &format!("the chart could not be written: {error}"));
    }
    if replay.failure().is_some() { ExitCode::from(FAILED) } else { ExitCode::SUCCESS }
}

fn to_json<R>(program: Program, replay: &Replay<R>) -> Value {
    let deliveries = replay
        .deliveries()
        .iter()
        .map(|sent| json!({ "from": sent.from, "to": sent.to, "message": sent.message, "wrong": sent.wrong }));
    json!({
        "program": program.name,
        "about": program.about,
        "seed": replay.seed(),
        "commit": REVISION,
        "hash": format!("{:016x}", replay.hash()),
        "deliveries": deliveries.collect::<Vec<_>>(),
        "failure": replay.failure().map(|failure| failure.violation.to_string()),
    })
}
