//! The one runner: takes turns between a workload and its baseline, and takes medians.

use std::process::{Command, Stdio};

use playhouse::prelude::*;
use serde::{Deserialize, Serialize};

use super::benchmark::{Baseline, Benchmark, Family};
use super::memory;
use super::outcome::{Failure, Outcome, Size};
use super::steps::Steps;
use crate::report::latency::Cdf;
use crate::report::{Report, Spread};

/// The settings of a run.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Worker threads.
    pub workers: usize,
    /// Stages per worker; the runtime's default without.
    pub stages_per_worker: Option<usize>,
    /// The number of runs of the workload and its baseline; at least one.
    pub runs: usize,
    /// The amount of work.
    pub size: Size,
    /// The additional work of the actors of Savina's programs with each message, except for actors that only deal or count.
    /// Baselines are left out with it, because they do not work.
    pub work: Steps,
}

impl Default for Options {
    /// Two workers (one on a machine with one core), the runtime's number of stages, five runs, default size, no additional
    /// work.
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Self { workers: cores.min(2), stages_per_worker: None, runs: 5, size: Size::Default, work: Steps::NONE }
    }
}

/// The measurements of one benchmark.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Measured {
    /// The figures.
    pub report: Report,
    /// The single runs, in their order.
    pub runs: Vec<Run>,
    /// The counters of the executor after the last run: name and value.
    pub statistics: Vec<(String, String)>,
}

/// One run of a workload, and the run of its baseline after it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Nanoseconds per operation of the workload.
    pub ns_per_op: f64,
    /// Nanoseconds per operation of the baseline, if there is one.
    #[serde(rename = "limit_ns_per_op")]
    pub baseline_ns_per_op: Option<f64>,
    /// Peak memory in MiB. It includes memory that earlier runs, and those of the baseline, have left behind.
    pub peak_rss_mb: Option<f64>,
    /// The distribution of the waiting times of the asks beside the workload, if there were any.
    pub cdf: Option<Cdf>,
}

/// Measures `benchmark` in this process: workload and baseline in turns, `options.runs` times each.
///
/// The peak memory is that of the process in the first run of the workload, before its system ends and before the baseline runs.
/// (The memory of peers is read after their answer.) It is the benchmark's own only in a process without other work: see
/// [`measure_in_child`].
///
/// # Errors
///
/// If a result is wrong, a run stalls, or the system cannot be started with these options.
pub fn measure(benchmark: &Benchmark, options: &Options) -> Result<Measured, Failure> {
    check_workers(benchmark, options)?;
    let mut runs = Vec::new();
    let mut last = None;
    for _ in 0..options.runs.max(1) {
        let played = play(benchmark, options)?;
        let (ns_per_op, cdf, peak_rss_mb) = (played.outcome.ns_per_op(), played.outcome.cdf, played.peak_rss_mb);
        last = Some(played);
        memory::release_freed();
        runs.push(Run { ns_per_op, baseline_ns_per_op: run_baseline(benchmark, options)?, peak_rss_mb, cdf });
    }
    let Some(Played { outcome, statistics, workers, stages, .. }) = last else {
        return Err(Failure::new("no run was asked for"));
    };
    let workload_ns: Vec<_> = runs.iter().map(|run| run.ns_per_op).collect();
    let baseline_ns: Vec<_> = runs.iter().filter_map(|run| run.baseline_ns_per_op).collect();
    let (spread, peak_rss_mb) = (Spread::of(&workload_ns), runs.first().and_then(|run| run.peak_rss_mb));
    let report = benchmark.report(&outcome, spread, median(&baseline_ns), peak_rss_mb, (workers, stages));
    Ok(Measured { report, runs, statistics })
}

/// Runs the workload once, without the baseline; returns nanoseconds per operation.
///
/// # Errors
///
/// Returns the errors of [`measure`].
pub fn measure_workload(benchmark: &Benchmark, options: &Options) -> Result<f64, Failure> {
    check_workers(benchmark, options)?;
    Ok(play(benchmark, options)?.outcome.ns_per_op())
}

/// Returns the median of `options.runs` runs of the baseline alone, in nanoseconds per operation; `None` if there is no baseline.
///
/// # Errors
///
/// If its result is wrong.
pub fn measure_baseline(benchmark: &Benchmark, options: &Options) -> Result<Option<f64>, Failure> {
    let mut runs = Vec::new();
    for _ in 0..options.runs.max(1) {
        runs.extend(run_baseline(benchmark, options)?);
    }
    Ok(median(&runs))
}

/// Measures a benchmark in a child process, which makes the peak memory that of this benchmark alone.
///
/// The process of `child` should print the line of [`answer_parent`].
///
/// # Errors
///
/// Returns the errors of [`measure`], and an error if the child cannot be run or ends without an answer.
pub fn measure_in_child(mut child: Command) -> Result<Measured, Failure> {
    let output = child
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| Failure::new(format!("the child process could not be run: {error}")))?;
    let answer = String::from_utf8_lossy(&output.stdout);
    let answer: Option<Result<Measured, String>> =
        answer.lines().last().and_then(|line| serde_json::from_str(line).ok());
    match answer {
        Some(measured) => measured.map_err(Failure::new),
        None => Err(Failure::new(format!("the child process ended without an answer ({})", output.status))),
    }
}

/// Ends this process when its parent process ends, because no process would read the result.
pub fn end_with_parent() {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{Signal, set_parent_process_death_signal};

        use super::process::is_orphan;

        // If it cannot be had the child ends when its benchmark does.
        let _ = set_parent_process_death_signal(Some(Signal::TERM));
        if is_orphan() {
            std::process::exit(1);
        }
    }
}

/// The child's side of [`measure_in_child`]: measures, and returns the line to print.
pub fn answer_parent(benchmark: &Benchmark, options: &Options) -> String {
    let answer = measure(benchmark, options).map_err(|failure| failure.to_string());
    serde_json::to_string(&answer).unwrap_or_else(|error| format!("{{\"Err\":\"no answer: {error}\"}}"))
}

/// The outcome of one run of a workload.
struct Played {
    outcome: Outcome,
    peak_rss_mb: Option<f64>,
    statistics: Vec<(String, String)>,
    workers: usize,
    stages: usize,
}

fn play(benchmark: &Benchmark, options: &Options) -> Result<Played, Failure> {
    memory::release_freed();
    memory::reset_peak();
    let system = start(benchmark.stealing, options)?;
    let (workers, stages) = (system.workers(), system.stages());
    // After a failure the system is left to the end of the process, because a stalled system may never shut down.
    let outcome = (benchmark.workload)(&system, options.size, options.work)?;
    system.run_until_idle();
    let peak_rss_mb = outcome.server.map_or_else(memory::peak_rss_mb, |server| server.peak_rss_mb);
    let statistics = statistics(&system);
    stop(system)?;
    Ok(Played { outcome, peak_rss_mb, statistics, workers, stages })
}

fn start(stealing: Option<Stealing>, options: &Options) -> Result<System, Failure> {
    let mut builder = System::builder().workers(options.workers);
    if let Some(stages) = options.stages_per_worker {
        builder = builder.stages(stages * options.workers);
    }
    if let Some(stealing) = stealing {
        builder = builder.stealing(stealing);
    }
    builder.start().map_err(|error| Failure::new(error.to_string()))
}

fn statistics(system: &System) -> Vec<(String, String)> {
    let total = system.stats().total;
    let counters = total.pairs().into_iter().map(|(name, value)| (name.replace('_', " "), value.to_string()));
    let averages = [("average gulp", total.average_gulp()), ("average steal", total.average_steal())];
    let averages = averages.map(|(name, value)| (name.to_owned(), format!("{value:.1}")));
    counters.chain(averages).collect()
}

fn stop(system: System) -> Result<(), Failure> {
    let stopped = system.shutdown().map(drop);
    stopped.map_err(|error| Failure::new(format!("the system does not shut down: {error}")))
}

/// Checks that `options` have enough workers for `benchmark`.
///
/// # Errors
///
/// If it needs more.
pub fn check_workers(benchmark: &Benchmark, options: &Options) -> Result<(), Failure> {
    if options.workers < benchmark.workers_min {
        let Benchmark { name, workers_min, .. } = benchmark;
        return Err(Failure::new(format!("`{name}` needs {workers_min} workers and has {}", options.workers)));
    }
    Ok(())
}

/// Checks that `benchmark` supports the additional work.
///
/// # Errors
///
/// If it does not work.
pub fn check_work(benchmark: &Benchmark, options: &Options) -> Result<(), Failure> {
    if options.work == Steps::NONE || benchmark.family == Family::Savina {
        return Ok(());
    }
    Err(Failure::new(format!("`{}` has no work per message; those of `savina` do", benchmark.name)))
}

/// Runs the baseline once; returns nanoseconds per operation, if there is a baseline.
fn run_baseline(benchmark: &Benchmark, options: &Options) -> Result<Option<f64>, Failure> {
    let baseline = benchmark.baseline.filter(|_| options.work == Steps::NONE);
    let ns_per_op = baseline.map(|baseline| match baseline {
        Baseline::Hand(run) => run(options.size).map(|outcome| outcome.ns_per_op()),
        Baseline::Benchmark(other) => measure_workload(other, options),
    });
    ns_per_op.transpose().map_err(|failure| Failure::new(format!("in the baseline: {failure}")))
}

/// The median of some runs; none of none.
fn median(runs: &[f64]) -> Option<f64> {
    (!runs.is_empty()).then(|| Spread::of(runs).median)
}
