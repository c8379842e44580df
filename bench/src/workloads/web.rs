//! A web server with actors behind it. Servers are programs of `bench/peers`, because they need axum.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::Duration;

use playhouse::prelude::*;
use serde::Deserialize;

use crate::load::Load;
use crate::memory;
use crate::outcome::{Failure, Outcome, ServerUsage, Size, check};
use crate::peer::{Folder, OURS};
use crate::process::{END, Leader, processor_time};
use crate::registry::{Benchmark, Family};

pub(crate) const WEB: Benchmark = Benchmark {
    name: "web",
    op: "request",
    source: "the suite's own",
    summary: "64 connections from one thread ask 10,000 rooms behind axum, another process; 4 of 5 are posts",
    stealing: None,
    workers_min: 1,
    family: Family::Local,
    workload: |system, size, _| run(system, size),
    limit: None,
    target: None,
};

/// What a server says when it listens.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Listening {
    peer: String,
    version: String,
    address: SocketAddr,
}

/// The run of a server.
pub(crate) struct Served {
    pub(crate) version: String,
    pub(crate) outcome: Outcome,
}

/// The server has a system of its own, with as many workers.
fn run(system: &System, size: Size) -> Result<Outcome, Failure> {
    let server = Command::new(Folder::find()?.program(WEB.name)?);
    Ok(serve(server, OURS, system.workers(), size, size.deadline())?.outcome)
}

/// Has `command` become the server called `name`, and puts the load on it.
pub(crate) fn serve(
    mut command: Command,
    name: &str,
    workers: usize,
    size: Size,
    limit: Duration,
) -> Result<Served, Failure> {
    let failure = |error: &dyn std::fmt::Display| Failure::new(format!("the server `{name}`: {error}"));
    command.args([name, "--workers"]).arg(workers.to_string());
    let started = command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let mut child = started.map_err(|error| failure(&error))?;
    let process = child.id().to_string();
    // The server ends when this end of its input is dropped.
    let (input, out) = (child.stdin.take(), child.stdout.take().expect("it is piped"));
    let leader = Leader::of(child);
    let mut line = String::new();
    BufReader::new(out).read_line(&mut line).map_err(|error| failure(&error))?;
    let listening: Option<Listening> = serde_json::from_str(&line).ok().filter(|said: &Listening| said.peer == name);
    let Some(Listening { version, address, .. }) = listening else {
        leader.kill();
        return Err(failure(&format!("it should say where it listens, and says `{}`", line.trim())));
    };

    let load = Load { connections: 64, requests: size.pick(2_000, 200_000, 1_000_000), seed: 1, limit };
    let before = processor_time(&process);
    let answered = load.send_to(address).inspect_err(|_| leader.kill()).map_err(|error| failure(&error))?;
    let cpu = processor_time(&process).zip(before).map(|(after, before)| after - before);
    let server = ServerUsage { cpu, peak_rss_mb: memory::peak_of(&process) };
    drop(input);
    let ended = leader.end_within(END).ok_or_else(|| failure(&"it does not end with its input"))?;
    let status = ended.map_err(|error| failure(&error))?;
    if !status.success() {
        return Err(failure(&status));
    }
    check("the posts", load.requests - load.requests / 5, answered.posts)?;
    let outcome = Outcome::new(load.requests, answered.elapsed).with_waits(answered.times_ns);
    Ok(Served { version, outcome: Outcome { server: Some(server), ..outcome } })
}
