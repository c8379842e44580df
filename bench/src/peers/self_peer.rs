//! Playhouse as a peer of itself: a program with the benchmarks of the peers and nothing else, like theirs.
//!
//! The mapped pages of a program count as its memory, and `playhouse` is many programs in one.

use std::io;
use std::process::{ExitCode, exit};
use std::thread;

use playhouse::System;

use crate::harness::outcome::{Failure, Outcome};
use crate::harness::steps::Steps;
use crate::registry;

/// Runs such a program: it runs the workload of its arguments, or is the remote peer of another process.
pub fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let ended = match words[..] {
        [workload, "--size", size @ ("smoke" | "default"), "--workers", workers] => answer(workload, size, workers),
        #[cfg(feature = "remote")]
        ["--partner", workers] => count(workers).and_then(crate::harness::remote_peer::host),
        _ => Err(Failure::new("usage: alone WORKLOAD --size smoke|default --workers N")),
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("{failure}");
            ExitCode::FAILURE
        }
    }
}

/// Runs the workload, prints the answer, and waits for the end of its input, while the parent reads its memory.
fn answer(workload: &str, size: &str, workers: &str) -> Result<(), Failure> {
    let listener = thread::spawn(|| {
        // An error counts as the end of the input.
        let _ = io::copy(&mut io::stdin(), &mut io::sink());
        exit(0)
    });
    let Outcome { ops, elapsed, .. } = play(workload, size, workers)?;
    let (version, ns) = (crate::VERSION, elapsed.as_nanos());
    println!(r#"{{"peer":"alone","version":"{version}","workload":"{workload}","ops":{ops},"ns":{ns}}}"#);
    let _ = listener.join();
    Ok(())
}

fn play(workload: &str, size: &str, workers: &str) -> Result<Outcome, Failure> {
    #[cfg(feature = "remote")]
    crate::harness::remote_peer::set_program(|workers| {
        let mut command = std::process::Command::new(std::env::current_exe().unwrap_or_else(|_| "alone".into()));
        command.arg("--partner").arg(workers.to_string());
        command
    });
    let benchmark = registry::find(workload)?;
    let mut builder = System::builder().workers(count(workers)?);
    if let Some(stealing) = benchmark.stealing {
        builder = builder.stealing(stealing);
    }
    let system = builder.start().map_err(|error| Failure::new(error.to_string()))?;
    (benchmark.workload)(&system, size.parse()?, Steps::NONE)
}

fn count(workers: &str) -> Result<usize, Failure> {
    workers.parse().map_err(|_| Failure::new(format!("`{workers}` is not a number of workers")))
}
