//! The `playhouse` program: the ChatApp demonstration and the benchmarks.

mod bench;
mod demo;
mod interrupt;
mod output;
mod progress;
mod scenarios;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Runs the ChatApp world on the Playhouse actor runtime; with a command, something else.
#[derive(Parser)]
#[command(name = "playhouse", version, args_conflicts_with_subcommands = true)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    demo: demo::Args,
}

#[derive(Subcommand)]
enum Command {
    /// Run a ChatApp world from a scenario (what happens without a command, too)
    Demo(demo::Args),
    /// List the built-in scenarios, or print one, to copy and change
    Scenario(scenarios::Args),
    /// Run the benchmarks, each beside its hand-written floor
    Bench(bench::Args),
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    match cli.command {
        None => demo::run(&cli.demo),
        Some(Command::Demo(args)) => demo::run(&args),
        Some(Command::Scenario(args)) => scenarios::run(&args),
        Some(Command::Bench(args)) => bench::run(&args),
    }
}
