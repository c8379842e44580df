//! `playhouse demo`: the ChatApp world.

mod account;
mod director;
pub mod local;
mod process;
mod spread;

use std::process::ExitCode;

use playhouse_console::output::{BAD_INPUT, fail};

use crate::{logs, scenarios};

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
    /// Play turn after turn, and drain a theater every 30 seconds, until a signal comes
    #[arg(long, conflicts_with = "local")]
    serve: bool,
    /// Worker threads of each theater, from 1 to 1024; without, a quarter of the cores for each, or with --local all
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    workers: Option<u16>,
    /// Stages over all workers, from one per worker to 65,536; the runtime chooses without
    #[arg(long, value_name = "N", requires = "local", value_parser = clap::value_parser!(u32).range(1..=65536))]
    stages: Option<u32>,
    /// Seed of the clients' random choices, instead of the scenario's
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
    /// Host one of the other theaters, for the process at standard input
    #[arg(long, hide = true)]
    host: bool,
}

/// The end of the help of `playhouse demo`.
pub const SIGNALS: &str = "\
Signals: SIGTERM, SIGHUP and Ctrl-C end the world after this turn, check it, and end all theaters. The exit code is then 0, or 130 for Ctrl-C. With \
--local, they end the program at once, with 143, 129 and 130. A second signal always does.";

/// Plays a ChatApp world and prints its results.
pub fn run(args: &Args, log: &logs::Args) -> ExitCode {
    if args.host {
        return process::host(args.workers);
    }
    let default = if args.local { "default" } else { "four-theaters" };
    let mut scenario = match scenarios::resolve(args.scenario.as_deref().unwrap_or(default)) {
        Ok(scenario) => scenario,
        Err(error) => return fail(BAD_INPUT, &error),
    };
    scenario.seed = args.seed.unwrap_or(scenario.seed);
    if args.local { local::run(args, scenario) } else { spread::run(args, log, scenario) }
}
