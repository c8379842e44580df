//! `playhouse bench --sweep-stages` and `--sweep-workers`: the same with ever more of something.

use playhouse_bench::Benchmark;
use playhouse_bench::harness::runner::{Options, check_workers, measure_workload};
use playhouse_bench::harness::sweep::{self, STAGES_PER_WORKER, Sweep, SweepTable};
use playhouse_bench::harness::topology::Count;
use playhouse_bench::harness::worker_sweep::{WorkerSweep, WorkerSweepTable};

use super::Progress;
use crate::output::print;

/// One way to run a benchmark, and what it is called; `None` if it does not make sense so.
type Way = (String, Option<Options>);

/// Runs each benchmark with ever more stages per worker; returns what failed.
pub fn stages(benchmarks: &[&Benchmark], options: &Options, json: bool) -> Vec<String> {
    let table = SweepTable::of(benchmarks.iter().copied());
    if !json {
        print(&table.head());
    }
    let ways = STAGES_PER_WORKER.map(|stages| {
        (format!("{stages} stages per worker"), Some(Options { stages_per_worker: Some(stages), ..*options }))
    });
    let mut failures = Vec::new();
    let mut sweeps = Vec::new();
    for (number, benchmark) in benchmarks.iter().enumerate() {
        let runs = in_turns(benchmark, (number, benchmarks.len()), &ways, options.runs, &mut failures);
        let runs = runs.try_into().expect("INVARIANT: as many as there are ways");
        let sweep = Sweep::new(benchmark, options.workers, &runs);
        print(&if json { sweep.to_json() } else { table.row(&sweep) });
        sweeps.push(sweep);
    }
    if !json {
        let (runs, workers) = (options.runs, options.workers);
        print(&format!("\nbest of each; runs: {runs}, workers: {workers}\n{}", sweep::verdict(&sweeps)));
    }
    failures
}

/// Runs each benchmark with each of these numbers of workers; adds to what failed.
pub fn workers(
    benchmarks: &[&Benchmark],
    options: &Options,
    counts: &[Count],
    json: bool,
    failures: &mut Vec<String>,
) -> Vec<WorkerSweep> {
    let numbers: Vec<_> = counts.iter().map(|count| count.workers).collect();
    let table = WorkerSweepTable::of(benchmarks.iter().copied(), numbers.clone());
    if !json {
        print(&table.head());
    }
    let mut scalings = Vec::new();
    for (number, benchmark) in benchmarks.iter().enumerate() {
        let way = |&workers: &usize| {
            let with = Options { workers, ..*options };
            let name = format!("{workers} worker{}", if workers == 1 { "" } else { "s" });
            (name, check_workers(benchmark, &with).is_ok().then_some(with))
        };
        let ways: Vec<Way> = numbers.iter().map(way).collect();
        let mut runs = in_turns(benchmark, (number, benchmarks.len()), &ways, options.runs, failures);
        // Runs are compared turn by turn.
        runs.iter_mut().filter(|of| of.len() < options.runs).for_each(Vec::clear);
        let scaling = WorkerSweep::new(benchmark, numbers.clone(), runs);
        print(&if json { scaling.to_json() } else { table.row(&scaling) });
        scalings.push(scaling);
    }
    if !json {
        let special = counts.iter().filter(|count| !count.names.is_empty());
        let special = special.map(|Count { workers, names }| format!("{workers}: {}", names.join(", ")));
        let special = special.collect::<Vec<_>>().join("; ");
        print(&format!("\nmedians; runs: {}; {special}", options.runs));
    }
    scalings
}

/// Runs a benchmark in each way so many times: nanoseconds per operation of each run. Adds to what failed.
///
/// One run of each, then the next of each: a minute in which the machine is slow is everybody's. And there and back
/// again: what one thread does runs on one core after the other, and one of them may be slow.
fn in_turns(
    benchmark: &Benchmark,
    (number, of): (usize, usize),
    ways: &[Way],
    runs: usize,
    failures: &mut Vec<String>,
) -> Vec<Vec<f64>> {
    let mut measured = vec![Vec::new(); ways.len()];
    for round in 0..runs {
        for at in 0..ways.len() {
            let at = if round % 2 == 0 { at } else { ways.len() - 1 - at };
            let (name, Some(options)) = &ways[at] else { continue };
            let label = format!("{} with {name}", benchmark.name);
            let progress = Progress::say(number, of, &label);
            let run = measure_workload(benchmark, options);
            progress.clear();
            match run {
                Ok(ns_per_op) => measured[at].push(ns_per_op),
                Err(failure) => failures.push(format!("{label}: {failure}")),
            }
        }
    }
    measured
}
