//! The program `playhouse`: the ChatApp demonstration, theaters to join and to look at, runs to repeat, and certificates. It runs the program
//! `playhouse-bench` for the benchmarks, so that the demonstration is built without them.

#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

mod certificates;
mod config;
mod demo;
mod external;
mod logs;
mod manual;
mod membership;
mod peers;
mod rejections;
mod replay;
mod scenarios;
mod theater;
mod top;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::parser::ValueSource;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use playhouse_console::build::{OPT_LEVEL, PROFILE, REVISION, RUSTC, TARGET};
use playhouse_console::output::{BAD_INPUT, fail};
use playhouse_console::{output, signals};

/// Playhouse, an actor runtime: a demonstration, the benchmarks, and tools for theaters
///
/// Without a command, `demo` runs with the options that are given.
#[derive(Parser)]
#[command(
    name = "playhouse",
    version,
    long_version = long_version(),
    override_usage = "playhouse [OPTIONS]\n       playhouse <COMMAND> [OPTIONS]",
    after_help = "Options are read from flags, then from variables, then from the file of --config: see --help.",
    after_long_help = OPTIONS_AND_CODES
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
    /// TOML file with options, in a table for each command; --log and --log-format may stand above the tables
    #[arg(long, value_name = "FILE", global = true)]
    config: Option<PathBuf>,
    #[command(flatten)]
    log: logs::Args,
}

/// The end of the program's help.
const OPTIONS_AND_CODES: &str = "\
Options: a flag counts before a variable, a variable before the file of --config, and the file before the default. The flag --drain-seconds of `theater` \
is the variable PLAYHOUSE_DRAIN_SECONDS, and in the file the key drain_seconds in the table [theater]. Variables of flags that may be given several times \
hold a list with commas, which may be empty. A variable of a flag without a value is true or false. Any other empty variable counts as unset. Unknown keys of the file are errors.

Exit codes:
  0    the command did what was asked; also after SIGTERM or SIGHUP, where it has drained
  1    the command tried and failed: a check did not pass, an address or a program could not be used or reached, or the output or a file could not be written
  2    the options, or a file that they name to be read, are wrong, and nothing was tried
  130  Ctrl-C ended the command, also after a drain
  129, 143  SIGHUP or SIGTERM ended the command without a drain
A second signal ends each command at once. A reader of standard output that goes away is no error.";

#[derive(Subcommand)]
enum Command {
    /// Run a chat world and check that every message arrived; the default
    #[command(after_help = demo::SIGNALS)]
    Demo(demo::Args),
    /// Record the moves of a chat world, play it for a driver over TCP, drive it from outside (the program playhouse-bench)
    #[command(disable_help_flag = true)]
    Chatapp(external::Args),
    /// List the built-in scenarios, or print one, to copy and change
    Scenario(scenarios::Args),
    /// Run the benchmarks, each beside its hand-written baseline (the program playhouse-bench)
    #[command(disable_help_flag = true)]
    Bench(external::Args),
    /// Host a theater that others reach, until a signal ends it
    #[command(after_help = theater::SIGNALS)]
    Theater(theater::Args),
    /// Look at a theater that runs: its workers, actors, messages and links
    #[command(after_help = top::SIGNALS)]
    Top(top::Args),
    /// Repeat a run from its seed, and show the messages between its actors
    Replay(replay::Args),
    /// Write certificates for development, with which theaters encrypt their links
    #[command(visible_alias = "certs")]
    Certificates(certificates::Args),
    /// Print a script that completes the arguments of the program, for a shell
    Completions(manual::Completions),
    /// Print a page of the manual, for `man -l -`
    Man(manual::Page),
}

/// Describes how the program was built.
fn long_version() -> String {
    let features: &[&str] = &[
        "theaters",
        #[cfg(debug_assertions)]
        "debug-assertions",
    ];
    format!(
        "{}\nrevision {REVISION}\nprofile {PROFILE}, opt-level {OPT_LEVEL}\nfeatures {}\ntarget {TARGET}\n{RUSTC}",
        env!("CARGO_PKG_VERSION"),
        features.join(", ")
    )
}

fn main() -> ExitCode {
    signals::start();
    let program = Cli::command();
    let matches = match config::read(&program, std::env::args_os().collect()) {
        Ok(matches) => matches,
        Err(code) => return output::ended(code),
    };
    let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    let is_external = matches!(cli.command, Command::Bench(_) | Command::Chatapp(_));
    let is_given = |id: &&str| matches.value_source(id) == Some(ValueSource::CommandLine);
    if let Some(option) = ["config", "log", "log_format"].into_iter().find(is_given).filter(|_| is_external) {
        let option = option.replace('_', "-");
        return fail(
            BAD_INPUT,
            &format!("--{option} is for the other commands: this one is the program playhouse-bench"),
        );
    }
    logs::start(&cli.log);
    let code = match cli.command {
        Command::Demo(args) => demo::run(&args, &cli.log),
        Command::Chatapp(args) => external::run("chatapp", &args),
        Command::Scenario(args) => scenarios::run(&args),
        Command::Bench(args) => external::run("bench", &args),
        Command::Replay(args) => replay::run(&args),
        Command::Theater(args) => theater::run(&args),
        Command::Top(args) => top::run(&args),
        Command::Certificates(args) => certificates::run(&args),
        Command::Completions(args) => manual::completions(&args, program),
        Command::Man(args) => manual::page(&args, config::documented(&program)),
    };
    output::ended(code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_arguments_are_well_formed() {
        Cli::command().debug_assert();
    }
}
