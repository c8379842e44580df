//! The program `playhouse`: the ChatApp demonstration, theaters to join and to look at, runs to repeat, and certificates. It runs the program
//! `playhouse-bench` for the benchmarks, so that the demonstration is built without them.

mod certificates;
mod demo;
mod external;
mod membership;
mod replay;
mod scenarios;
mod theater;
mod top;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use playhouse_console::{interrupt, output, progress};

/// Playhouse, an actor runtime: a demonstration, which runs without a command, and the benchmarks
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
    /// Run a chat world and check that every message arrived; the default
    Demo(demo::Args),
    /// Record the moves of a chat world, play it for a driver over TCP, drive it from outside (the program playhouse-bench)
    #[command(disable_help_flag = true)]
    Chatapp(external::Args),
    /// List the built-in scenarios, or print one, to copy and change
    Scenario(scenarios::Args),
    /// Run the benchmarks, each beside its hand-written baseline (the program playhouse-bench)
    #[command(disable_help_flag = true)]
    Bench(external::Args),
    /// Host a theater that others reach, until Ctrl-C
    Theater(theater::Args),
    /// Look at a theater that runs: its workers, actors, messages and links
    Top(top::Args),
    /// Repeat a run from its seed, and show who sends what to whom
    Replay(replay::Args),
    /// Make certificates for development, with which theaters encrypt their links
    Certificates(certificates::Args),
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let code = match cli.command {
        None => demo::run(&cli.demo),
        Some(Command::Demo(args)) => demo::run(&args),
        Some(Command::Chatapp(args)) => external::run("chatapp", &args),
        Some(Command::Scenario(args)) => scenarios::run(&args),
        Some(Command::Bench(args)) => external::run("bench", &args),
        Some(Command::Replay(args)) => replay::run(&args),
        Some(Command::Theater(args)) => theater::run(&args),
        Some(Command::Top(args)) => top::run(&args),
        Some(Command::Certificates(args)) => certificates::run(&args),
    };
    output::ended(code)
}
