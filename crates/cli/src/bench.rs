//! `playhouse bench`: the benchmarks, each beside its floor.

mod peers;

use std::io::IsTerminal;
use std::process::{Command, ExitCode};

use clap::builder::{PossibleValuesParser, TypedValueParser};
use playhouse_bench::fit::fits;
use playhouse_bench::partner;
use playhouse_bench::registry::{self, Benchmark, COUNT_LIMIT_NS, Family, Limit};
use playhouse_bench::report::{Report, Table, figure, statistics};
use playhouse_bench::runner::{self, Options, answer_parent, measure_in_child, measure_limit, measure_workload};
use playhouse_bench::sweep::{self, STAGES_PER_WORKER, Sweep, SweepTable};
use playhouse_bench::{Failure, Size, Steps};

use crate::interrupt;
use crate::output::{BAD_INPUT, CLEAR, FAILED, fail, print};

/// Arguments of `playhouse bench`.
#[derive(clap::Args)]
pub struct Args {
    /// The benchmarks to run (see --list), or `local`, `remote`, `savina` for all of a family; all without
    #[arg(value_name = "NAME", value_parser = names(), hide_possible_values = true)]
    names: Vec<String>,
    /// List the benchmarks instead of running them
    #[arg(long)]
    list: bool,
    /// Worker threads, from 1 to 1024; without, 2, or 1 on a machine with one core
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    workers: Option<u16>,
    /// Stages per worker, up to 65,536 over all workers; the runtime chooses without
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=65_536))]
    stages: Option<u32>,
    /// How often each benchmark and its floor run, in turns, from 1 to 1000
    #[arg(long, value_name = "K", default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=1000))]
    runs: u16,
    /// How much they do: smoke (a moment), default, or paper (what the papers have)
    #[arg(long, default_value = "default", value_parser = sizes(), hide_possible_values = true)]
    size: Size,
    /// Steps of busy work with each message, about a nanosecond each; for the programs of `savina`
    #[arg(long, value_name = "STEPS", default_value_t = 0)]
    work: u32,
    /// Print one JSON object per benchmark
    #[arg(long)]
    json: bool,
    /// Print the executor's counters of the last run below each row
    #[arg(long, conflicts_with = "json")]
    stats: bool,
    /// Run with 1, 2, 4, … 512 stages per worker, without the floors
    #[arg(long, conflicts_with_all = ["stats", "stages"])]
    sweep_stages: bool,
    #[command(flatten)]
    peers: peers::Args,
    /// Measure in this process and answer the parent
    #[arg(long, hide = true)]
    child: bool,
    /// Be the other process of a remote benchmark
    #[arg(long, hide = true)]
    partner: bool,
}

fn names() -> PossibleValuesParser {
    PossibleValuesParser::new(
        registry::all().iter().map(|benchmark| benchmark.name).chain(Family::ALL.map(Family::name)),
    )
}

fn sizes() -> impl TypedValueParser<Value = Size> {
    PossibleValuesParser::new(Size::ALL.map(Size::name)).try_map(|name| name.parse::<Size>())
}

/// Runs benchmarks and prints what was measured.
pub fn run(args: &Args) -> ExitCode {
    let options = Options {
        workers: args.workers.map_or(Options::default().workers, usize::from),
        stages_per_worker: args.stages.map(|stages| stages as usize),
        runs: usize::from(args.runs),
        size: args.size,
        work: Steps(args.work),
    };
    let with_peers = args.peers.asked();
    let chosen = if with_peers { peers::choose(&args.names, &options) } else { choose(&args.names, &options) };
    let chosen = match chosen {
        Ok(chosen) => chosen,
        Err(failure) => return fail(BAD_INPUT, &failure.to_string()),
    };
    if args.list {
        list(&chosen);
        return ExitCode::SUCCESS;
    }
    let most = if args.sweep_stages { STAGES_PER_WORKER.last().copied() } else { options.stages_per_worker };
    if let Err(failure) = check_stages(most, options.workers) {
        return fail(BAD_INPUT, &failure.to_string());
    }
    if args.partner {
        runner::end_with_parent();
        interrupt::ignore();
        return match partner::host(options.workers) {
            Ok(()) => ExitCode::SUCCESS,
            Err(failure) => fail(FAILED, &failure.to_string()),
        };
    }
    partner::set_program(|| {
        let mut command = Command::new(std::env::current_exe().unwrap_or_else(|_| "playhouse".into()));
        command.args(["bench", "--partner"]);
        command
    });
    if args.child {
        runner::end_with_parent();
        // A terminal interrupts the parent and this child: the parent says so, and its end is the end of this one.
        interrupt::ignore();
        for benchmark in &chosen {
            print(&answer_parent(benchmark, &options));
        }
        return ExitCode::SUCCESS;
    }
    interrupt::exit_on_interrupt();
    if with_peers {
        return match peers::compare(&chosen, &options, args) {
            Ok(failures) => end(&failures),
            Err(failure) => fail(BAD_INPUT, &failure.to_string()),
        };
    }
    let failures =
        if args.sweep_stages { sweep(&chosen, &options, args.json) } else { measure(&chosen, &options, args) };
    end(&failures)
}

fn end(failures: &[String]) -> ExitCode {
    if failures.is_empty() { ExitCode::SUCCESS } else { fail(FAILED, &failures.join("\n")) }
}

/// Whether a system may have so many stages.
fn check_stages(per_worker: Option<usize>, workers: usize) -> Result<(), Failure> {
    const STAGES_MAX: usize = 65_536;
    match per_worker {
        Some(stages) if stages * workers > STAGES_MAX => Err(Failure::new(format!(
            "{stages} stages per worker are too many for {workers} workers: at most {} are allowed, {STAGES_MAX} over all",
            STAGES_MAX / workers
        ))),
        _ => Ok(()),
    }
}

/// The benchmarks called `names`; without names all, but those that need more workers or cannot work. `count` comes first: its floor is
/// the scale of the others' targets.
fn choose(names: &[String], options: &Options) -> Result<Vec<&'static Benchmark>, Failure> {
    if names.is_empty() {
        let fits = |b: &&Benchmark| runner::check_workers(b, options).and(runner::check_work(b, options)).is_ok();
        return Ok(registry::all().iter().filter(fits).collect());
    }
    let mut chosen: Vec<&Benchmark> = Vec::new();
    for name in names {
        for benchmark in registry::find_all(name)? {
            // Once, even if it is called by two names.
            if !chosen.iter().any(|known| known.name == benchmark.name) {
                chosen.push(benchmark);
            }
        }
    }
    for benchmark in &chosen {
        runner::check_workers(benchmark, options)?;
        runner::check_work(benchmark, options)?;
    }
    chosen.sort_by_key(|benchmark| benchmark.name != "count");
    Ok(chosen)
}

fn list(benchmarks: &[&Benchmark]) {
    for family in Family::ALL {
        let mut head = Some(format!("{}:", family.name()));
        for Benchmark { name, op, summary, source, .. } in benchmarks.iter().filter(|b| b.family == family) {
            head.take().inspect(|head| print(head));
            print(&format!("{name} (operation: {op})\n    {summary}\n    [{source}]"));
        }
    }
}

/// Measures each benchmark in a child process of its own and prints it as soon as it is known; returns what failed.
fn measure(benchmarks: &[&Benchmark], options: &Options, args: &Args) -> Vec<String> {
    let table = Table::of(benchmarks.iter().copied());
    if !args.json {
        print(&table.head());
    }
    let mut failures = Vec::new();
    let mut reports = Vec::new();
    let mut count_limit_ns = None;
    for (number, benchmark) in benchmarks.iter().enumerate() {
        let progress = Progress::say(number, benchmarks.len(), benchmark.name);
        let judged = child(benchmark, options, args).and_then(measure_in_child).and_then(|mut measured| {
            let limit_ns = count_limit_ns.map_or_else(|| count_limit(&measured.report), Ok)?;
            count_limit_ns = Some(limit_ns);
            measured.report.judge(benchmark.target, limit_ns / COUNT_LIMIT_NS);
            Ok(measured)
        });
        progress.clear();
        match judged {
            Ok(measured) if args.json => print(&measured.report.to_json()),
            Ok(measured) => {
                print(&table.row(&measured.report));
                if args.stats {
                    print(&statistics(&measured.statistics));
                }
                remark(&measured.report);
                reports.push(measured.report);
            }
            Err(failure) => failures.push(format!("{}: {failure}", benchmark.name)),
        }
    }
    if !args.json {
        for fit in fits(&reports) {
            print(&format!("\n{fit}"));
        }
        print("\nlimit: the same written by hand, without actors. ratio: ns/op over limit.");
        if benchmarks.iter().any(|benchmark| matches!(benchmark.limit, Some(Limit::Benchmark(_)))) {
            print("Of -remote, -mobile, -tls: the same with local actors, remote ones, plain links (see --list).");
        }
        if let Some(limit_ns) = count_limit_ns.filter(|_| benchmarks.iter().any(|b| b.target.is_some())) {
            print(&format!(
                "Targets are for two workers. Those in ns are for a machine where the limit of\n\
                 count is {COUNT_LIMIT_NS} ns; here it is {} ns, so they are shown and compared times {}.",
                figure(limit_ns),
                figure(limit_ns / COUNT_LIMIT_NS)
            ));
        }
    }
    failures
}

/// What the floor of `count` takes here, per message: as in `report`, or else measured for this.
fn count_limit(report: &Report) -> Result<f64, Failure> {
    let count = registry::find("count")?;
    let known = report.limit_ns_per_op.filter(|_| report.bench == count.name);
    let limit = match known {
        Some(limit) => Some(limit),
        None => measure_limit(count, &Options::default())?,
    };
    limit.ok_or_else(|| Failure::new("`count` has no floor to scale the targets by"))
}

/// Warns of a figure that says little.
fn remark(report: &Report) {
    if report.max > 2.0 * report.min {
        eprintln!("note: the runs of {} differ by more than 2 x: is the machine busy?", report.bench);
    }
}

/// This program, told to measure one benchmark.
fn child(benchmark: &Benchmark, options: &Options, args: &Args) -> Result<Command, Failure> {
    let program = std::env::current_exe()
        .map_err(|error| Failure::new(format!("the path of this program is not known: {error}")))?;
    let mut command = Command::new(program);
    command.args(["bench", "--child", "--workers"]).arg(options.workers.to_string());
    command.arg("--runs").arg(options.runs.to_string()).args(["--size", options.size.name()]);
    command.arg("--work").arg(args.work.to_string());
    if let Some(stages) = args.stages {
        command.arg("--stages").arg(stages.to_string());
    }
    command.arg(benchmark.name);
    Ok(command)
}

/// Runs each benchmark with ever more stages per worker; returns what failed.
fn sweep(benchmarks: &[&Benchmark], options: &Options, json: bool) -> Vec<String> {
    let table = SweepTable::of(benchmarks.iter().copied());
    if !json {
        print(&table.head());
    }
    let mut failures = Vec::new();
    let mut sweeps = Vec::new();
    for (number, benchmark) in benchmarks.iter().enumerate() {
        let mut runs = STAGES_PER_WORKER.map(|_| Vec::new());
        // One run of each, then the next of each: a minute in which the machine is slow is everybody's. And there and back
        // again: what one thread does runs on one core after the other, and one of them may be slow.
        for round in 0..options.runs {
            for at in 0..runs.len() {
                let at = if round % 2 == 0 { at } else { runs.len() - 1 - at };
                let (runs, stages) = (&mut runs[at], STAGES_PER_WORKER[at]);
                let label = format!("{} with {stages} stages per worker", benchmark.name);
                let progress = Progress::say(number, benchmarks.len(), &label);
                let measured = measure_workload(benchmark, &Options { stages_per_worker: Some(stages), ..*options });
                progress.clear();
                match measured {
                    Ok(ns_per_op) => runs.push(ns_per_op),
                    Err(failure) => failures.push(format!("{label}: {failure}")),
                }
            }
        }
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

/// One line on standard error about what runs, as long as it runs; only on a terminal.
struct Progress {
    terminal: bool,
}

impl Progress {
    fn say(number: usize, of: usize, what: &str) -> Self {
        let terminal = std::io::stderr().is_terminal();
        if terminal {
            eprint!("{CLEAR}[{}/{of}] {what}", number + 1);
        }
        Self { terminal }
    }

    fn clear(self) {
        if self.terminal {
            eprint!("{CLEAR}");
        }
    }
}
