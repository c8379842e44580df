//! `playhouse bench`: benchmarks, each beside its baseline.

use std::process::Command;

use playhouse_bench::Failure;
use playhouse_bench::harness::benchmark::{Baseline, Benchmark};
use playhouse_bench::harness::process::PARENT;
use playhouse_bench::harness::runner::{Measured, Options, measure_baseline, measure_in_child};
use playhouse_bench::registry;
use playhouse_bench::report::COUNT_BASELINE_NS;
use playhouse_bench::report::fit::fits;
use playhouse_bench::report::{Report, Table, figure, statistics};

use super::{Args, Progress};
use crate::output::{note, print};

/// Measures each benchmark in a child process of its own and prints the result at once. Adds failed benchmarks to
/// `failures`.
pub fn measure(benchmarks: &[&Benchmark], options: &Options, args: &Args, failures: &mut Vec<String>) -> Vec<Measured> {
    let table = Table::of(benchmarks.iter().map(|benchmark| benchmark.name));
    if !args.json {
        print(&table.head());
    }
    let mut all = Vec::new();
    let mut count_baseline_ns = None;
    for (number, benchmark) in benchmarks.iter().enumerate() {
        let progress = Progress::say(number, benchmarks.len(), benchmark.name);
        let judged = child(benchmark, options, args).and_then(measure_in_child).and_then(|mut measured| {
            let baseline_ns = count_baseline_ns.map_or_else(|| count_baseline(&measured.report), Ok)?;
            count_baseline_ns = Some(baseline_ns);
            measured.report.judge(benchmark.target, baseline_ns / COUNT_BASELINE_NS);
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
                if let Some(unrest) = measured.report.unrest() {
                    note(&format!("note: {unrest}: is the machine busy?"));
                }
                all.push(measured);
            }
            Err(failure) => failures.push(format!("{}: {failure}", benchmark.name)),
        }
    }
    if !args.json {
        for fit in fits(&all.iter().map(|measured| measured.report.clone()).collect::<Vec<_>>()) {
            print(&format!("\n{fit}"));
        }
        print("\nbaseline: the same written by hand, without actors. ratio: ns/op over baseline.");
        if benchmarks.iter().any(|benchmark| matches!(benchmark.baseline, Some(Baseline::Benchmark(_)))) {
            print("Of -remote, -mobile, -tls: the same with local actors, remote ones, plain links (see --list).");
        }
        if let Some(baseline_ns) = count_baseline_ns.filter(|_| benchmarks.iter().any(|b| b.target.is_some())) {
            print(&format!(
                "Targets are for two workers. Those in ns are for a machine where the baseline of\n\
                 count is {COUNT_BASELINE_NS} ns; here it is {} ns, so they are shown and compared times {}.",
                figure(baseline_ns),
                figure(baseline_ns / COUNT_BASELINE_NS)
            ));
        }
    }
    all
}

/// Returns the time per message of the baseline of `count` on this machine: from `report`, or else measured for this.
fn count_baseline(report: &Report) -> Result<f64, Failure> {
    let count = registry::find("count")?;
    let known = report.baseline_ns_per_op.filter(|_| report.bench == count.name);
    let baseline = match known {
        Some(baseline) => Some(baseline),
        None => measure_baseline(count, &Options::default())?,
    };
    baseline.ok_or_else(|| Failure::new("`count` has no baseline to scale the targets by"))
}

/// Returns a command that starts this program again.
pub fn this_program() -> Result<Command, Failure> {
    let start = |program| {
        let mut command = Command::new(program);
        command.env(PARENT, std::process::id().to_string());
        command
    };
    std::env::current_exe()
        .map(start)
        .map_err(|error| Failure::new(format!("the path of this program is not known: {error}")))
}

/// Returns a command that starts this program to measure one benchmark.
pub fn child(benchmark: &Benchmark, options: &Options, args: &Args) -> Result<Command, Failure> {
    let mut command = this_program()?;
    command.args(["bench", "--child", "--workers"]).arg(options.workers.to_string());
    command.arg("--runs").arg(options.runs.to_string()).args(["--size", options.size.name()]);
    command.arg("--work").arg(args.work.to_string());
    if let Some(stages) = args.stages {
        command.arg("--stages").arg(stages.to_string());
    }
    if let Some(folder) = &args.peers.peers_dir {
        command.arg("--peers-dir").arg(folder);
    }
    command.arg(benchmark.name);
    Ok(command)
}
