//! `playhouse chatapp`: chat worlds that are driven from outside, by recordings over TCP.

mod drive;
mod record;
mod serve;

use std::process::ExitCode;

/// Arguments of `playhouse chatapp`.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(clap::Subcommand)]
enum What {
    /// Write the random moves of a scenario, turn by turn, to a file
    Record(record::Args),
    /// Play a chat world whose turns come over TCP, then the next one, until a signal
    Serve(serve::Args),
    /// Drive the world of a server by a recording, and measure it from outside
    Drive(drive::Args),
}

/// Records, serves or drives.
pub fn run(args: &Args) -> ExitCode {
    match &args.what {
        What::Record(args) => record::run(args),
        What::Serve(args) => serve::run(args),
        What::Drive(args) => drive::run(args),
    }
}
