//! `playhouse bench`: the benchmarks, each beside its floor.

use std::io::IsTerminal;
use std::process::{Command, ExitCode};

use playhouse_bench::registry::{self, Benchmark};
use playhouse_bench::report::{Report, Table, figure, statistics};
use playhouse_bench::runner::{self, Measured, Options, answer_parent, measure_in_child, measure_workload};
use playhouse_bench::{Failure, Size};

use crate::output::{BAD_INPUT, FAILED, fail, print};

/// Arguments of `playhouse bench`.
#[derive(clap::Args)]
pub struct Args {
    /// The benchmarks to run; all without
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// List the benchmarks instead of running them
    #[arg(long)]
    list: bool,
    /// Worker threads; 2 without, or 1 on a machine with one core
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    workers: Option<u16>,
    /// Stages per worker; the runtime chooses without
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    stages: Option<u16>,
    /// How often each benchmark and its floor run, in turns
    #[arg(long, value_name = "K", default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..))]
    runs: u16,
    /// How much they do: smoke, default or paper
    #[arg(long, default_value = "default")]
    size: Size,
    /// Print one JSON object per benchmark
    #[arg(long)]
    json: bool,
    /// Print the executor's counters of the last run below each row
    #[arg(long, conflicts_with = "json")]
    stats: bool,
    /// Run with 1, 2, 4, … 512 stages per worker, without the floors
    #[arg(long, conflicts_with_all = ["json", "stats", "stages"])]
    sweep_stages: bool,
    /// Measure in this process and answer the parent
    #[arg(long, hide = true)]
    child: bool,
}

/// The numbers of stages per worker of a sweep.
const SWEEP: [usize; 10] = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512];

/// Runs benchmarks and prints what was measured.
pub fn run(args: &Args) -> ExitCode {
    let options = Options {
        workers: args.workers.map_or(Options::default().workers, usize::from),
        stages_per_worker: args.stages.map(usize::from),
        runs: usize::from(args.runs),
        size: args.size,
    };
    let chosen = match choose(&args.names, &options) {
        Ok(chosen) => chosen,
        Err(failure) => return fail(BAD_INPUT, &failure.to_string()),
    };
    if args.list {
        list(&chosen);
        return ExitCode::SUCCESS;
    }
    let stages_per_worker = if args.sweep_stages { SWEEP.last().copied() } else { options.stages_per_worker };
    if let Err(failure) = runner::check_options(&Options { stages_per_worker, ..options }) {
        return fail(BAD_INPUT, &failure.to_string());
    }
    if args.child {
        runner::end_with_parent();
        for benchmark in &chosen {
            print(&answer_parent(benchmark, &options));
        }
        return ExitCode::SUCCESS;
    }
    let failures = if args.sweep_stages { sweep(&chosen, &options) } else { measure(&chosen, &options, args) };
    if failures.is_empty() { ExitCode::SUCCESS } else { fail(FAILED, &failures.join("\n")) }
}

/// The benchmarks called `names`; without names all, but those that need more workers.
fn choose(names: &[String], options: &Options) -> Result<Vec<&'static Benchmark>, Failure> {
    if names.is_empty() {
        return Ok(registry::all().iter().filter(|b| runner::check_workers(b, options).is_ok()).collect());
    }
    let chosen: Vec<_> = names.iter().map(|name| registry::find(name)).collect::<Result<_, _>>()?;
    for benchmark in &chosen {
        runner::check_workers(benchmark, options)?;
    }
    Ok(chosen)
}

fn list(benchmarks: &[&Benchmark]) {
    let width = |of: fn(&Benchmark) -> &str| benchmarks.iter().map(|b| of(b).chars().count()).max().unwrap_or(0);
    let (names, ops) = (width(|b| b.name), width(|b| b.op));
    let margin = names + 2;
    for benchmark in benchmarks {
        let Benchmark { name, op, summary, source, .. } = benchmark;
        print(&format!("{name:<names$}  {op:<ops$}  {summary}\n{:margin$}{:ops$}  [{source}]", "", ""));
    }
}

/// Measures each benchmark in a child process of its own and prints it as soon as it is known; returns what failed.
fn measure(benchmarks: &[&Benchmark], options: &Options, args: &Args) -> Vec<String> {
    let table = Table::of(benchmarks.iter().copied());
    if !args.json {
        print(&table.head());
    }
    let mut failures = Vec::new();
    let mut count_limit = String::new();
    for (number, benchmark) in benchmarks.iter().enumerate() {
        let progress = Progress::say(number, benchmarks.len(), benchmark.name);
        let measured = child(benchmark, options, args).and_then(measure_in_child);
        progress.clear();
        match measured {
            Ok(Measured { report, .. }) if args.json => print(&report.to_json()),
            Ok(Measured { report, statistics: counters }) => {
                print(&table.row(benchmark, &report));
                if args.stats {
                    print(&statistics(&counters));
                }
                remark(benchmark, &report);
                if benchmark.name == "count" {
                    count_limit = format!("; here it is {} ns", figure(report.limit_ns_per_op));
                }
            }
            Err(failure) => failures.push(format!("{}: {failure}", benchmark.name)),
        }
    }
    if !args.json && benchmarks.iter().any(|benchmark| benchmark.target.is_some()) {
        let machine = format!("a machine where the limit of count is 4.7 ns{count_limit}");
        print(&format!("\nTargets are for two workers; those in ns for {machine}."));
    }
    failures
}

/// Warns of a figure that says little.
fn remark(benchmark: &Benchmark, report: &Report) {
    if report.max > 2.0 * report.min {
        eprintln!("note: the runs of {} differ by more than 2 x: is the machine busy?", benchmark.name);
    }
}

/// This program, told to measure one benchmark.
fn child(benchmark: &Benchmark, options: &Options, args: &Args) -> Result<Command, Failure> {
    let program = std::env::current_exe()
        .map_err(|error| Failure::new(format!("the path of this program is not known: {error}")))?;
    let mut command = Command::new(program);
    command.args(["bench", "--child", "--workers"]).arg(options.workers.to_string());
    command.arg("--runs").arg(options.runs.to_string()).args(["--size", options.size.name()]);
    if let Some(stages) = args.stages {
        command.arg("--stages").arg(stages.to_string());
    }
    command.arg(benchmark.name);
    Ok(command)
}

/// Runs each benchmark with ever more stages per worker; returns what failed.
fn sweep(benchmarks: &[&Benchmark], options: &Options) -> Vec<String> {
    let width = benchmarks.iter().map(|b| b.name.len()).chain(["stages per worker".len()]).max().unwrap_or(0);
    let line = |name: &str, cells: &[String], worst: &str| {
        let cells: String = cells.iter().map(|cell| format!(" {cell:>8}")).collect();
        print(&format!("{name:<width$}{cells}  {worst:>10}"));
    };
    line("stages per worker", &SWEEP.map(|stages| stages.to_string()), "worst/best");
    let mut failures = Vec::new();
    for (number, benchmark) in benchmarks.iter().enumerate() {
        let mut found = Vec::new();
        for stages in SWEEP {
            let label = format!("{}, {stages} stages per worker", benchmark.name);
            let progress = Progress::say(number, benchmarks.len(), &label);
            let options = Options { stages_per_worker: Some(stages), ..*options };
            let measured = measure_workload(benchmark, &options);
            progress.clear();
            match measured {
                Ok(ns_per_op) => found.push(Some(ns_per_op)),
                Err(failure) => {
                    found.push(None);
                    failures.push(format!("{label}: {failure}"));
                }
            }
        }
        let cells: Vec<_> = found.iter().map(|ns| ns.map_or_else(|| "failed".to_owned(), figure)).collect();
        let known = || found.iter().flatten().copied();
        let factor = known().fold(0.0, f64::max) / known().fold(f64::INFINITY, f64::min);
        line(benchmark.name, &cells, &if factor.is_finite() { figure(factor) } else { "–".to_owned() });
    }
    print(&format!("\nns per operation, median of {} runs on {} workers", options.runs, options.workers));
    failures
}

/// One line on standard error about what runs; it goes away on a terminal.
struct Progress {
    terminal: bool,
}

impl Progress {
    fn say(number: usize, of: usize, what: &str) -> Self {
        let terminal = std::io::stderr().is_terminal();
        let text = format!("[{}/{of}] {what}", number + 1);
        if terminal {
            eprint!("\r\x1b[K{text}")
        } else {
            eprintln!("{text}")
        }
        Self { terminal }
    }

    fn clear(self) {
        if self.terminal {
            eprint!("\r\x1b[K");
        }
    }
}
