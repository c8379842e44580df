//! `playhouse replay`: a run that is repeated from its seed, and shown.

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::builder::PossibleValuesParser;
use playhouse_testkit::programs::{PROGRAMS, named};
use playhouse_testkit::{commit, replay};

/// What `playhouse replay` is told.
#[derive(clap::Args)]
pub struct Args {
    /// The order of the messages is drawn from this number
    seed: u64,
    /// Which program to run
    #[arg(long, default_value = "philosophers", value_parser = PossibleValuesParser::new(PROGRAMS.map(|program| program.name)))]
    program: String,
    /// Run it with the bug that is planted in it
    #[arg(long)]
    wrong: bool,
    /// Write the chart to this file too, as a picture (SVG)
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
}

/// Runs the program and prints its message sequence chart. Fails where something went wrong in it.
pub fn run(args: &Args) -> ExitCode {
    let program = named(&args.program).expect("the names are those of the programs");
    let replay = if args.wrong { replay(args.seed, program.wrong()) } else { replay(args.seed, program.right()) };
    println!("{}: {}\n", program.name, program.about);
    print!("{}", replay.chart());
    println!(
        "\nseed {}, commit {}, {} deliveries, hash {:016x}",
        replay.seed(),
        commit(),
        replay.deliveries().len(),
        replay.hash()
    );
    if let Some(path) = &args.svg
        && let Err(error) = fs::write(path, replay.chart().svg())
    {
        eprintln!("the chart could not be written to {}: {error}", path.display());
        return ExitCode::FAILURE;
    }
    match replay.failure() {
        Some(failure) => {
            println!("{}", failure.violation);
            ExitCode::FAILURE
        }
        None => ExitCode::SUCCESS,
    }
}
