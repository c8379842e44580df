//! A web server with actors behind it. Servers are programs of `bench/peers`, because they need axum.

use std::io::{self, BufRead, BufReader};
use std::net::SocketAddr;
use std::os::unix::process::CommandExt;
use std::process::{ChildStdout, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use playhouse::prelude::*;
use serde::Deserialize;

use crate::harness::benchmark::{Benchmark, Family};
use crate::harness::memory;
use crate::harness::outcome::{Failure, Outcome, ServerUsage, Size, check};
use crate::harness::peers_folder::{Folder, OURS};
use crate::harness::process::{END, Leader, processor_time};
use crate::load::Load;

pub(crate) const WEB: Benchmark = Benchmark {
    name: "web",
    op: "request",
    source: "the suite's own",
    summary: "64 connections from one thread ask 10,000 rooms behind axum, another process; 4 of 5 are posts",
    stealing: None,
    workers_min: 1,
    family: Family::Local,
    workload: |system, size, _| run(system, size),
    baseline: None,
    target: None,
};

/// The line that a server prints when it listens.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Listening {
    peer: String,
    version: String,
    address: SocketAddr,
}

impl Listening {
    /// Reads the line of the server called `name`, which has to come within `limit`.
    fn read(out: ChildStdout, name: &str, limit: Duration) -> Result<Self, Failure> {
        let (tell, told) = mpsc::channel();
        // This thread ends with the line, or with the server.
        thread::spawn(move || {
            let mut line = String::new();
            let read = BufReader::new(out).read_line(&mut line);
            // The receiver is gone after the limit.
            let _ = tell.send(read.map(|_| line));
        });
        let silent = |_| Failure::new(format!("the server has not printed its address within {limit:?}"));
        let line = told.recv_timeout(limit).map_err(silent)?;
        let line = line.map_err(|error| Failure::new(format!("the output of the server cannot be read: {error}")))?;
        let said = serde_json::from_str(&line).ok().filter(|said: &Self| said.peer == name);
        said.ok_or_else(|| Failure::new(format!("the server should print its address, and printed `{}`", line.trim())))
    }
}

/// The run of a server.
pub(crate) struct Served {
    pub(crate) version: String,
    pub(crate) outcome: Outcome,
}

/// Runs the server on Playhouse, which has a system of its own with as many workers.
fn run(system: &System, size: Size) -> Result<Outcome, Failure> {
    let server = Command::new(Folder::find()?.program(WEB.name)?);
    Ok(serve(server, OURS, system.workers(), size, size.deadline())?.outcome)
}

/// Makes `command` the server called `name`, and puts the load on it.
pub(crate) fn serve(
    mut command: Command,
    name: &str,
    workers: usize,
    size: Size,
    limit: Duration,
) -> Result<Served, Failure> {
    let failed = |doing: &str, error: io::Error| Failure::new(format!("the server cannot be {doing}: {error}"));
    command.args([name, "--workers"]).arg(workers.to_string());
    let started = command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let mut child = started.map_err(|error| failed("started", error))?;
    let process = child.id().to_string();
    // The server ends when this end of its input is dropped.
    let (input, out) = (child.stdin.take(), child.stdout.take().expect("it is piped"));
    let leader = Leader::of(child);
    let load = Load { connections: 64, requests: size.pick(2_000, 200_000, 1_000_000), seed: 1, limit };
    let loaded = Listening::read(out, name, limit).and_then(|Listening { version, address, .. }| {
        let before = processor_time(&process);
        let answered = load.send_to(address)?;
        let cpu = processor_time(&process).zip(before).map(|(after, before)| after - before);
        let server = ServerUsage { cpu, peak_rss_mb: memory::peak_of(&process) };
        Ok((version, answered, server))
    });
    let (version, answered, server) = loaded.inspect_err(|_| leader.kill())?;
    drop(input);
    let ended = leader.end_within(END).ok_or_else(|| Failure::new("the server does not end with its input"))?;
    let status = ended.map_err(|error| failed("waited for", error))?;
    if !status.success() {
        return Err(Failure::new(format!("the server ended with {status}")));
    }
    check("the posts", load.requests - load.requests / 5, answered.posts)?;
    let outcome = Outcome::new(load.requests, answered.elapsed).with_waits(answered.times_ns);
    Ok(Served { version, outcome: Outcome { server: Some(server), ..outcome } })
}
