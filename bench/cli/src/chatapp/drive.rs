//! `playhouse chatapp drive`: a recording, fed to a server.

use std::fmt::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use playhouse_bench::chatapp::driven::{Drive, DriveError, Recording, drive};
use playhouse_bench::chatapp::thousands;
use playhouse_bench::report::latency::{Latency, duration};
use playhouse_console::address::address;
use playhouse_console::files;

use crate::output::{BAD_INPUT, FAILED, coloured, fail, note, print};
use crate::progress::{Bar, Shared};
use crate::signals::{self, Stopped};

/// Arguments of `playhouse chatapp drive`.
#[derive(clap::Args)]
pub struct Args {
    /// The recording, as `playhouse chatapp record` writes it
    file: PathBuf,
    /// The address at which `playhouse chatapp serve` listens
    #[arg(value_name = "HOST:PORT", value_parser = address)]
    address: String,
    /// Print the result as a JSON object
    #[arg(long)]
    json: bool,
    /// Show no progress
    #[arg(long)]
    quiet: bool,
}

/// Drives a world to its end.
pub fn run(args: &Args) -> ExitCode {
    let file = match files::open(&args.file) {
        Ok(file) => file,
        Err(error) => return fail(BAD_INPUT, &format!("{error}; a recording is a file of `playhouse chatapp record`")),
    };
    let recording = match Recording::read(file, &args.file) {
        Ok(recording) => recording,
        Err(error) => return refuse(&error, &args.address),
    };
    let (turns, shared) = (recording.turns(), Arc::new(Shared::default()));
    let bar = Bar::new(turns, args.quiet, Arc::clone(&shared));
    bar.say("driving");
    let driven = signals::unless_stopped(|| bar.update(), {
        let (shared, address) = (Arc::clone(&shared), args.address.clone());
        move || drive(&recording, &address, |turn| shared.take_turn(turn))
    });
    bar.clear();
    match driven {
        Ok(Ok(driven)) => show(&driven, args.json),
        Ok(Err(error)) => refuse(&error, &args.address),
        Err(Stopped::Signalled(signal)) => {
            let turn = shared.reached().0;
            note(&format!("{} after {turn} of {turns} turns; the world waits for the next driver", signal.ending()));
            ExitCode::from(signal.code())
        }
        Err(Stopped::Unread) => ExitCode::SUCCESS,
        Err(Stopped::Panicked) => fail(FAILED, "the driver panicked"),
    }
}

fn refuse(error: &DriveError, address: &str) -> ExitCode {
    match error {
        DriveError::Recording { .. } | DriveError::OtherScenario { .. } => fail(BAD_INPUT, &error.to_string()),
        _ => fail(FAILED, &format!("{address}: {error}")),
    }
}

fn show(driven: &Drive, json: bool) -> ExitCode {
    let problems = driven.problems();
    if json {
        print(&serde_json::to_string_pretty(driven).expect("numbers and strings have a JSON form"));
    } else {
        print(table(driven).trim_end());
        let verdict = if problems.is_empty() { "passed, as the server says" } else { "FAILED" };
        print(&coloured(&format!("{:<16}{verdict}", "delivery check"), problems.is_empty()));
    }
    if problems.is_empty() { ExitCode::SUCCESS } else { fail(FAILED, &problems.join("\n")) }
}

fn table(driven: &Drive) -> String {
    let mut text = String::new();
    let mut line = |label: &str, number: String, remark: String| {
        // Writing to a string does not fail.
        let _ = writeln!(text, "{}", format!("{label:<16}{number:>16}   {remark}").trim_end());
    };
    let from = if driven.first_turn > 1 { format!("from turn {} on", driven.first_turn) } else { String::new() };
    line("scenario", driven.scenario.clone(), String::new());
    line("turns", thousands(driven.turns.into()), from);
    let per_second = |count: u64| if driven.seconds > 0.0 { (count as f64 / driven.seconds).round() as u64 } else { 0 };
    line("moves", thousands(driven.moves), format!("{} moves/s", thousands(per_second(driven.moves))));
    let rate = format!("{} messages/s in the turns", thousands(per_second(driven.messages)));
    line("messages", thousands(driven.messages), rate);
    line("time", duration(driven.seconds * 1e9), "of the turns".to_owned());
    let Latency { p50_ns, p90_ns, p99_ns, max_ns } = driven.latency;
    let inside = driven.latency_inside;
    line("turn latency", "from outside".to_owned(), "in the world".to_owned());
    let percentiles = [("  p50", p50_ns, inside.p50_ns), ("  p90", p90_ns, inside.p90_ns)];
    for (label, outside, inside) in
        percentiles.into_iter().chain([("  p99", p99_ns, inside.p99_ns), ("  max", max_ns, inside.max_ns)])
    {
        line(label, duration(outside as f64), duration(inside as f64));
    }
    line("checksum", driven.report["checksum"].as_str().unwrap_or("unknown").to_owned(), String::new());
    text
}
