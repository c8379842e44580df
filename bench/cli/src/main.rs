//! The program `playhouse-bench`: the benchmarks, and chat worlds that are driven from outside. `playhouse bench` and `playhouse chatapp` run it.

mod bench;
mod chatapp;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use playhouse_console::{interrupt, output, progress};

/// Playhouse's benchmarks, and chat worlds that are driven from outside
#[derive(Parser)]
#[command(name = "playhouse-bench", bin_name = "playhouse", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run the benchmarks, each beside its hand-written baseline
    Bench(bench::Args),
    /// Record the moves of a chat world, play it for a driver over TCP, drive it from outside
    Chatapp(chatapp::Args),
}

fn main() -> ExitCode {
    let code = match Cli::parse().command {
        Command::Bench(args) => bench::run(&args),
        Command::Chatapp(args) => chatapp::run(&args),
    };
    output::ended(code)
}
