//! The program `playhouse-bench`: the benchmarks, and chat worlds that are driven from outside. `playhouse bench` and `playhouse chatapp` run it.

#![deny(clippy::print_stdout, clippy::print_stderr)]

mod bench;
mod chatapp;

use std::io::IsTerminal;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use playhouse_console::output::{self, BAD_INPUT};
use playhouse_console::{progress, signals};

/// Playhouse's benchmarks, and chat worlds that are driven from outside
#[derive(Parser)]
#[command(name = "playhouse-bench", bin_name = "playhouse", override_usage = "playhouse-bench <COMMAND>", version)]
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
    let code = match Cli::try_parse() {
        Ok(Cli { command: Command::Bench(args) }) => bench::run(&args),
        Ok(Cli { command: Command::Chatapp(args) }) => {
            signals::start();
            chatapp::run(&args)
        }
        Err(error) if error.use_stderr() => {
            output::write_error(&rendered(&error, &std::io::stderr()));
            ExitCode::from(BAD_INPUT)
        }
        Err(error) => {
            output::write(&rendered(&error, &std::io::stdout()));
            ExitCode::SUCCESS
        }
    };
    output::ended(code)
}

fn rendered(error: &clap::Error, stream: &impl IsTerminal) -> String {
    let text = error.render();
    if output::is_coloured(stream) { text.ansi().to_string() } else { text.to_string() }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_arguments_are_well_formed() {
        Cli::command().debug_assert();
    }
}
