//! `playhouse bench --sweep-stages` and `--sweep-workers`: the same benchmarks with more and more stages or workers.

use playhouse_bench::Benchmark;
use playhouse_bench::harness::runner::{Options, check_workers, measure_workload};
use playhouse_bench::harness::sweep::{self, STAGES_PER_WORKER, Sweep, SweepTable};
use playhouse_bench::harness::topology::Count;
use playhouse_bench::harness::worker_sweep::{WorkerSweep, WorkerSweepTable};

use super::Progress;
use crate::output::print;

/// A setting of a benchmark and its name. The options are `None` if the benchmark cannot run with it.
type Setting = (String, Option<Options>);

/// Runs each benchmark with more and more stages per worker. Returns the failed runs.
pub fn stages(benchmarks: &[&Benchmark], options: &Options, json: bool) -> Vec<String> {
    let table = SweepTable::of(benchmarks.iter().copied());
    if !json {
        print(&table.head());
    }
    let settings = STAGES_PER_WORKER.map(|stages| {
        (format!("{stages} stages per worker"), Some(Options { stages_per_worker: Some(stages), ..*options }))
    });
    let mut failures = Vec::new();
    let mut sweeps = Vec::new();
    for (number, benchmark) in benchmarks.iter().enumerate() {
        let runs = in_turns(benchmark, (number, benchmarks.len()), &settings, options.runs, &mut failures);
        let runs = runs.try_into().expect("INVARIANT: as many as there are settings");
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

/// Runs each benchmark with each of these numbers of workers. Adds failed runs to `failures`.
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
        let setting = |&workers: &usize| {
            let with = Options { workers, ..*options };
            let name = format!("{workers} worker{}", if workers == 1 { "" } else { "s" });
            (name, check_workers(benchmark, &with).is_ok().then_some(with))
        };
        let settings: Vec<Setting> = numbers.iter().map(setting).collect();
        let mut runs = in_turns(benchmark, (number, benchmarks.len()), &settings, options.runs, failures);
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

/// Runs a benchmark `runs` times in each setting. Returns the nanoseconds per operation of each run, and adds failed
/// runs to `failures`.
///
/// One run of each setting comes first, then the next run of each. All settings therefore share a minute in which the
/// machine is slow. The order of the settings is reversed in every other round. The reason: the kernel moves a single
/// thread from one core to the next, and one of the cores may be slow.
fn in_turns(
    benchmark: &Benchmark,
    (number, of): (usize, usize),
    settings: &[Setting],
    runs: usize,
    failures: &mut Vec<String>,
) -> Vec<Vec<f64>> {
    let mut measured = vec![Vec::new(); settings.len()];
    for round in 0..runs {
        for at in 0..settings.len() {
            let at = if round % 2 == 0 { at } else { settings.len() - 1 - at };
            let (name, Some(options)) = &settings[at] else { continue };
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
