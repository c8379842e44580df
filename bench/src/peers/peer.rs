//! Other actor runtimes beside Playhouse: the programs of `bench/peers`.
//!
//! A peer is a program `bin/NAME WORKLOAD --size SIZE --workers N` below that folder, where `install` puts it. It runs the
//! workload, checks the result, and prints one answer as a line of JSON. After a wrong result it exits with a code other than 0
//! and describes the error on standard error. It ends when its standard input ends, at any time. After its answer, this module
//! reads its peak memory from the operating system, and then closes its input. (The figure of `wait4` is never below the memory
//! of the parent process.)

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::run;
use crate::harness::benchmark::Benchmark;
use crate::harness::outcome::{Failure, Size};
use crate::harness::runner::{Options, measure_in_child};
use crate::registry;
use crate::report::{Spread, figure, rounded, server_line};
use crate::workloads::messaging::web::{self, Served};

pub use super::run::become_peer;
pub use crate::harness::peers_folder::{Folder, OURS};

/// The peers' names; `alone` is Playhouse itself, in a program that has only the benchmarks of [`LOCAL`], and in one that has only those
/// of [`REMOTE`].
pub const ALL: [&str; 9] = ["actix", "ractor", "kameo", "pekko", "protoactor", "erlang", "caf", "alone", LOCKS];

/// The server of [`WEB`] without actors, which shows the cost of a request without a runtime.
const LOCKS: &str = "locks";

/// The benchmarks of one process, which all of them play.
pub const LOCAL: [&str; registry::SHARED.len()] = {
    let mut names = [""; registry::SHARED.len()];
    let mut at = 0;
    while at < names.len() {
        names[at] = registry::SHARED[at].name;
        at += 1;
    }
    names
};

/// The benchmarks of two or four processes, which those of [`REMOTING`] play.
pub const REMOTE: [&str; 6] = ["rpingpong", "rthroughput", "rcreate", "rrings-1", "rrings-32", "rrings-320"];

/// The peers that play in several processes.
pub const REMOTING: [&str; 7] = ["ractor", "kameo", "pekko", "protoactor", "erlang", "caf", "alone"];

/// The benchmark of a web server. All its servers, also that of Playhouse, are one program of the folder, which is told which one it is.
pub const WEB: &str = web::WEB.name;

/// The peers that have a server.
pub const SERVING: [&str; 3] = ["actix", "kameo", LOCKS];

/// Returns all benchmarks with peers.
pub fn workloads() -> impl Iterator<Item = &'static str> {
    LOCAL.into_iter().chain(REMOTE).chain([WEB])
}

/// Returns whether the peer has the benchmark of this name.
pub fn plays(peer: &str, workload: &str) -> bool {
    (LOCAL.contains(&workload) && peer != LOCKS)
        || (REMOTE.contains(&workload) && REMOTING.contains(&peer))
        || (workload == WEB && SERVING.contains(&peer))
}

/// The program with which the peer plays the benchmark `workload`.
pub fn program_of<'a>(peer: &'a str, workload: &str) -> &'a str {
    if workload == WEB { WEB } else { peer }
}

/// Checks that the programs of `benchmark` are installed, as far as it needs some without peers.
///
/// # Errors
///
/// Names the installation command if they are not.
pub fn check_installed(benchmark: &Benchmark) -> Result<(), Failure> {
    if benchmark.name == WEB { Folder::find()?.program(WEB).map(drop) } else { Ok(()) }
}

/// Checks that some peers have `benchmark` at this size.
///
/// # Errors
///
/// Lists the benchmarks of the peers if none has it.
pub fn check_played(benchmark: &Benchmark, size: Size) -> Result<(), Failure> {
    if !workloads().any(|played| played == benchmark.name) {
        let played = workloads().collect::<Vec<_>>().join(", ");
        return Err(Failure::new(format!("the peers do not play `{}`; they play {played}", benchmark.name)));
    }
    if size == Size::Paper {
        return Err(Failure::new("the peers have no size `paper`; they have smoke and default"));
    }
    Ok(())
}

/// The answer of a peer.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Answer {
    peer: String,
    version: String,
    workload: String,
    /// Operations played.
    ops: u64,
    /// From the start event to the final state: neither the start of the process nor its end.
    ns: u64,
}

/// A run of a contender.
#[derive(Clone, Debug, PartialEq)]
struct Run {
    version: String,
    ops: u64,
    ns_per_op: f64,
    peak_rss_mb: Option<f64>,
    /// The 99th percentile of a server's answers.
    p99_ns: Option<f64>,
    /// The processor time of a server.
    cpu_ns_per_op: Option<f64>,
}

/// The reason for a missing run.
#[derive(Debug, PartialEq)]
pub(super) enum Missed {
    /// The run exceeded the time limit.
    Over,
    /// Something was wrong.
    Failed(String),
}

/// A runtime that runs a benchmark beside others, and its results.
pub struct Contender {
    name: &'static str,
    /// The program of a peer; `None` for Playhouse.
    program: Option<PathBuf>,
    runs: Vec<Run>,
    missed: Option<Missed>,
}

impl Contender {
    /// Creates the contender Playhouse.
    pub fn ours() -> Self {
        Self { name: OURS, program: None, runs: Vec::new(), missed: None }
    }

    /// Creates a peer, with its program.
    pub fn peer(name: &'static str, program: PathBuf) -> Self {
        Self { name, program: Some(program), runs: Vec::new(), missed: None }
    }

    /// Returns the name.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Returns whether the contender still takes part: one that has failed or exceeded the limit would do it again.
    pub fn plays(&self) -> bool {
        self.missed.is_none()
    }

    /// The program of a peer.
    pub fn program(&self) -> Option<&Path> {
        self.program.as_deref()
    }

    /// Runs `benchmark` once. For a peer, and for each server of [`WEB`], `command` runs its program, and appends the
    /// arguments of the run. For Playhouse `command` prints the line of
    /// [`answer_parent`](crate::harness::runner::answer_parent).
    pub fn play(&mut self, benchmark: &Benchmark, options: &Options, limit: Duration, command: Command) {
        let run = match &self.program {
            _ if benchmark.name == WEB => play_web(command, self.name, options, limit),
            Some(_) => play(command, self.name, benchmark, options, limit),
            None => play_ours(command),
        };
        match run {
            Ok(run) => self.runs.push(run),
            Err(missed) => self.missed = Some(missed),
        }
    }

    /// Returns the error, if there was one.
    pub fn failure(&self) -> Option<&str> {
        match &self.missed {
            Some(Missed::Failed(text)) => Some(text),
            _ => None,
        }
    }
}

fn play_ours(child: Command) -> Result<Run, Missed> {
    let report = measure_in_child(child).map_err(|failure| Missed::Failed(failure.to_string()))?.report;
    let version = crate::VERSION.to_owned();
    let (ops, ns_per_op, peak_rss_mb) = (report.ops, report.ns_per_op, report.peak_rss_mb);
    Ok(Run { version, ops, ns_per_op, peak_rss_mb, p99_ns: None, cpu_ns_per_op: None })
}

fn play_web(command: Command, name: &str, options: &Options, limit: Duration) -> Result<Run, Missed> {
    let served = web::serve(command, name, options.workers, options.size, limit);
    let Served { version, outcome } = served.map_err(|failure| Missed::Failed(failure.to_string()))?;
    Ok(Run {
        version,
        ops: outcome.ops,
        ns_per_op: outcome.ns_per_op(),
        peak_rss_mb: outcome.server.and_then(|server| server.peak_rss_mb),
        p99_ns: outcome.latency.map(|latency| latency.p99_ns as f64),
        cpu_ns_per_op: outcome.cpu_ns_per_op(),
    })
}

fn play(
    mut command: Command,
    peer: &str,
    benchmark: &Benchmark,
    options: &Options,
    limit: Duration,
) -> Result<Run, Missed> {
    command.args([benchmark.name, "--size", options.size.name(), "--workers"]).arg(options.workers.to_string());
    let ended = run::run(command, limit)?;
    if !ended.succeeded {
        return Err(Missed::Failed(format!("{}: {}", ended.status, last_lines(&ended.errors))));
    }
    let answer = ended.out.lines().last().and_then(|line| serde_json::from_str::<Answer>(line).ok());
    match answer {
        Some(Answer { peer: by, version, workload, ops, ns })
            if by == peer && workload == benchmark.name && ops > 0 && ns > 0 =>
        {
            let (ns_per_op, peak_rss_mb) = (ns as f64 / ops as f64, ended.peak_rss_mb);
            Ok(Run { version, ops, ns_per_op, peak_rss_mb, p99_ns: None, cpu_ns_per_op: None })
        }
        _ => Err(Missed::Failed(format!(
            "its answer should name the benchmark and its figures, and is `{}`",
            last_lines(&ended.out)
        ))),
    }
}

/// The end of a text, in one line.
fn last_lines(text: &str) -> String {
    let lines: Vec<_> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    lines[lines.len().saturating_sub(3)..].join(" / ")
}

/// The figures of one contender in one benchmark.
///
/// Its JSON form has these keys; those of times are `null` where it has none.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// The benchmark's name.
    pub bench: String,
    /// The unit of one operation.
    pub op: String,
    /// The name of the contender.
    pub who: String,
    /// The version of the contender.
    pub version: Option<String>,
    /// Workers.
    pub workers: usize,
    /// Operations per run.
    pub ops: Option<u64>,
    /// Nanoseconds per operation: the median of the runs.
    pub ns_per_op: Option<f64>,
    /// The fastest run, in nanoseconds per operation.
    pub min: Option<f64>,
    /// The slowest run, in nanoseconds per operation.
    pub max: Option<f64>,
    /// `ns_per_op` over that of Playhouse; `null` for Playhouse.
    pub ratio: Option<f64>,
    /// The largest peak memory of the runs, in MiB; `null` where the operating system does not say.
    pub peak_rss_mb: Option<f64>,
    /// Nanoseconds per operation and peak memory in MiB of each run, in their order.
    pub runs: Vec<(f64, Option<f64>)>,
    /// The time in nanoseconds within which 99 of 100 requests were answered, of a server: the median of the runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p99_ns: Option<f64>,
    /// Nanoseconds of processor time per operation, of a server: the median of the runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_ns_per_op: Option<f64>,
    /// The reason for missing figures: `over 300 s`, or an error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remark: Option<String>,
}

/// Returns the rows of one benchmark. A peer fails here if its number of operations differs from that of Playhouse.
pub fn rows(benchmark: &Benchmark, options: &Options, limit: Duration, contenders: &mut [Contender]) -> Vec<Row> {
    let ours = contenders.iter().find(|contender| contender.program.is_none());
    let ops = ours.and_then(|ours| ours.runs.first()).map(|run| run.ops);
    for contender in contenders.iter_mut() {
        let other = contender.runs.iter().map(|run| run.ops).find(|&other| ops.is_some_and(|ops| ops != other));
        if let (Some(other), Some(ops)) = (other, ops) {
            let wrong = format!("it has played {other} operations ({}s) instead of {ops}", benchmark.op);
            contender.missed = Some(Missed::Failed(wrong));
        }
    }
    let ours_ns = contenders.iter().find(|contender| contender.program.is_none()).and_then(median);
    contenders.iter().map(|contender| row(contender, benchmark, options, limit, ours_ns)).collect()
}

fn median(contender: &Contender) -> Option<f64> {
    spread(contender).map(|spread| spread.median)
}

/// Returns the spread of a contender that still takes part.
fn spread(contender: &Contender) -> Option<Spread> {
    let ns: Vec<_> = contender.runs.iter().map(|run| run.ns_per_op).collect();
    (contender.plays() && !ns.is_empty()).then(|| Spread::of(&ns))
}

fn row(contender: &Contender, benchmark: &Benchmark, options: &Options, limit: Duration, ours_ns: Option<f64>) -> Row {
    let spread = spread(contender);
    let runs = if contender.plays() { &contender.runs[..] } else { &[] };
    let ratio = spread.zip(ours_ns).map(|(spread, ours_ns)| rounded(spread.median / ours_ns));
    Row {
        bench: benchmark.name.to_owned(),
        op: benchmark.op.to_owned(),
        who: contender.name.to_owned(),
        version: contender.runs.first().map(|run| run.version.clone()),
        workers: options.workers,
        ops: runs.first().map(|run| run.ops),
        ns_per_op: spread.map(|spread| rounded(spread.median)),
        min: spread.map(|spread| rounded(spread.min)),
        max: spread.map(|spread| rounded(spread.max)),
        ratio: ratio.filter(|_| contender.program.is_some()),
        peak_rss_mb: runs.iter().filter_map(|run| run.peak_rss_mb).reduce(f64::max).map(rounded),
        runs: runs.iter().map(|run| (rounded(run.ns_per_op), run.peak_rss_mb.map(rounded))).collect(),
        p99_ns: median_of(runs, |run| run.p99_ns),
        cpu_ns_per_op: median_of(runs, |run| run.cpu_ns_per_op),
        remark: contender.missed.as_ref().map(|missed| match missed {
            Missed::Over => format!("over {} s", limit.as_secs()),
            Missed::Failed(text) => text.clone(),
        }),
    }
}

/// The median of a figure that some runs have.
fn median_of(runs: &[Run], figure: impl Fn(&Run) -> Option<f64>) -> Option<f64> {
    let figures: Vec<_> = runs.iter().filter_map(figure).collect();
    (!figures.is_empty()).then(|| rounded(Spread::of(&figures).median))
}

impl Row {
    /// Returns one line of JSON.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("numbers and strings have a JSON form")
    }

    /// The head of [`Row::to_csv`].
    pub const CSV: &str = "bench,op,who,version,workers,ops,run,ns_per_op,peak_rss_mb,remark";

    /// Returns a line per run; one line without figures where there is none.
    pub fn to_csv(&self) -> String {
        let or_nothing = |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
        let version = self.version.as_deref().unwrap_or_default();
        let before = format!("{},{},{},{version},{}", self.bench, self.op, self.who, self.workers);
        if let Some(remark) = &self.remark {
            return format!("{before},,,,,\"{}\"", remark.replace('"', "\"\""));
        }
        let ops = self.ops.unwrap_or_default();
        let lines = self.runs.iter().zip(1..);
        let lines = lines.map(|((ns, peak), number)| format!("{before},{ops},{number},{ns},{},", or_nothing(*peak)));
        lines.collect::<Vec<_>>().join("\n")
    }
}

/// The two lines at the head of a table of [`table_row`]s.
pub fn table_head() -> String {
    let first = line("", "", ["ns/op", "ns/op", "ns/op", "peer /", "peak"]);
    format!("{first}\n{}", line("benchmark", "who", ["median", "min", "max", "ours", "MiB"]))
}

/// Returns the row of one contender, and below it the figures of a server. It is no wider than 80 characters, except with an
/// error.
pub fn table_row(row: &Row) -> String {
    let bench = if row.who == OURS { &*row.bench } else { "" };
    if let Some(remark) = &row.remark {
        return format!("{}  {remark}", line(bench, &row.who, [""; 5]));
    }
    let or_dash = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), figure);
    let peak = row.peak_rss_mb.map_or_else(|| "–".to_owned(), |mb| format!("{mb:.0}"));
    let cells = [or_dash(row.ns_per_op), or_dash(row.min), or_dash(row.max), or_dash(row.ratio), peak];
    let server = server_line(&row.op, row.ns_per_op, row.p99_ns, row.cpu_ns_per_op);
    let server = server.map(|line| format!("\n  {line}")).unwrap_or_default();
    line(bench, &row.who, cells.each_ref().map(String::as_str)) + &server
}

fn line(bench: &str, who: &str, cells: [&str; 5]) -> String {
    let cells: String = cells.iter().map(|cell| format!(" {cell:>8}")).collect();
    format!("{bench:<10} {who:<10}{cells}").trim_end().to_owned()
}
