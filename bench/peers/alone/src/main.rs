//! Playhouse as a peer of itself: a program that has the benchmarks which all of them play and nothing else, as theirs do.
//!
//! The pages of a program that are mapped count as its memory, and `playhouse` is many programs in one.

use std::process::{ExitCode, exit};
use std::{io, thread};

use playhouse::System;
use playhouse_bench::{Failure, Outcome, Steps, VERSION, registry};

fn main() -> ExitCode {
    let listener = thread::spawn(|| {
        // An error is as good as its end.
        let _ = io::copy(&mut io::stdin(), &mut io::sink());
        exit(0)
    });
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let [workload, "--size", size @ ("smoke" | "default"), "--workers", workers] = words[..] else {
        eprintln!("usage: alone WORKLOAD --size smoke|default --workers N");
        return ExitCode::FAILURE;
    };
    match play(workload, size, workers) {
        Ok(Outcome { ops, elapsed, .. }) => {
            let (version, ns) = (VERSION, elapsed.as_nanos());
            println!(r#"{{"peer":"alone","version":"{version}","workload":"{workload}","ops":{ops},"ns":{ns}}}"#);
            // Its memory is looked at until its input ends.
            let _ = listener.join();
            ExitCode::SUCCESS
        }
        Err(failure) => {
            eprintln!("{failure}");
            ExitCode::FAILURE
        }
    }
}

fn play(workload: &str, size: &str, workers: &str) -> Result<Outcome, Failure> {
    let benchmark = registry::find(workload)?;
    let workers = workers.parse().map_err(|_| Failure::new(format!("`{workers}` is no number of workers")))?;
    let mut builder = System::builder().workers(workers);
    if let Some(stealing) = benchmark.stealing {
        builder = builder.stealing(stealing);
    }
    let system = builder.start().map_err(|error| Failure::new(error.to_string()))?;
    (benchmark.workload)(&system, size.parse()?, Steps::NONE)
}
