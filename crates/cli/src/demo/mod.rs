//! `playhouse demo`: the ChatApp world.

mod account;
mod director;
pub mod local;
mod process;
mod spread;

use std::process::ExitCode;

use crate::output::{BAD_INPUT, fail};
use crate::scenarios;

/// Arguments of `playhouse demo`.
#[derive(clap::Args)]
pub struct Args {
    /// A scenario file, or the name of a built-in scenario (see `playhouse scenario`); without, four-theaters, or default
    /// with --local
    #[arg(long, value_name = "FILE|NAME")]
    scenario: Option<String>,
    /// Play in one process instead of four theaters
    #[arg(long)]
    local: bool,
    /// Go on turn after turn, and drain a theater every half a minute, until Ctrl-C
    #[arg(long, conflicts_with = "local")]
    serve: bool,
    /// Worker threads of each theater, from 1 to 1024; without, a quarter of the cores for each, or with --local all
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    workers: Option<u16>,
    /// Stages over all workers, from one per worker to 65,536; the runtime chooses without
    #[arg(long, value_name = "N", requires = "local", value_parser = clap::value_parser!(u32).range(1..=65536))]
    stages: Option<u32>,
    /// Where the clients' dice start, instead of the scenario's seed
    #[arg(long, value_name = "N")]
    seed: Option<u32>,
    /// Print the result as a JSON object
    #[arg(long)]
    json: bool,
    /// Print the executor's counters, too
    #[arg(long, requires = "local", conflicts_with = "json")]
    stats: bool,
    /// Show no progress
    #[arg(long)]
    quiet: bool,
    /// Be one of the other theaters, for the process at standard input
    #[arg(long, hide = true)]
    host: bool,
}

/// Plays a ChatApp world and prints what has come of it.
pub fn run(args: &Args) -> ExitCode {
    if args.host {
        return process::host(args.workers);
    }
    let otherwise = if args.local { "default" } else { "four-theaters" };
    let mut scenario = match scenarios::resolve(args.scenario.as_deref().unwrap_or(otherwise)) {
        Ok(scenario) => scenario,
        Err(error) => return fail(BAD_INPUT, &error),
    };
    scenario.seed = args.seed.unwrap_or(scenario.seed);
    if args.local { local::run(args, scenario) } else { spread::run(args, scenario) }
}
