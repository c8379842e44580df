//! The figures of a report, a line for each run, as comma-separated values.

use playhouse_bench::harness::runner::{Measured, Options};
use playhouse_bench::harness::worker_sweep::WorkerSweep;
use playhouse_bench::peers::peer::{OURS, Row};
use playhouse_bench::report::latency::PER_MILLE;
use playhouse_bench::scaling::activity::Activity;
use playhouse_bench::scaling::measured;

/// Returns the runs of benchmarks beside their baselines.
pub fn runs(measured: &[Measured], options: &Options) -> String {
    let head = "bench,op,size,who,workers,stages,run,ops,ns_per_op,limit_ns_per_op,peak_rss_mb";
    let lines = measured.iter().flat_map(|Measured { report, runs, .. }| {
        let (size, workers, stages) = (options.size.name(), report.workers, report.stages);
        let before = format!("{},{},{size},{OURS},{workers},{stages}", report.bench, report.op);
        runs.iter().zip(1..).map(move |(run, number)| {
            let (limit, peak) = (or_nothing(run.baseline_ns_per_op), or_nothing(run.peak_rss_mb));
            format!("{before},{number},{},{:.3},{limit},{peak}", report.ops, run.ns_per_op)
        })
    });
    table(head, lines)
}

/// Returns the runs of benchmarks beside peers.
pub fn peers(rows: &[Row]) -> String {
    table(Row::CSV, rows.iter().map(Row::to_csv))
}

/// Returns the runs of benchmarks on more and more workers.
pub fn sweeps(sweeps: &[WorkerSweep], options: &Options) -> String {
    let lines = sweeps.iter().flat_map(|sweep| {
        sweep.workers.iter().zip(&sweep.runs).flat_map(move |(workers, runs)| {
            let before = format!("{},{},{},{workers}", sweep.bench, sweep.op, options.size.name());
            runs.iter().zip(1..).map(move |(ns_per_op, run)| format!("{before},{run},{ns_per_op:.3}"))
        })
    });
    table("bench,op,size,workers,run,ns_per_op", lines)
}

/// Returns the runs of the patterns of `scaling`. Only the runs of Playhouse have values in the last 4 columns.
pub fn patterns(measured: &[measured::Measured], options: &Options) -> String {
    let lines = measured.iter().flat_map(|measured| {
        let (pattern, work_ns, size) = (measured.pattern, measured.work_ns, options.size.name());
        measured.contenders.iter().flat_map(move |contender| {
            let (workers, who) = (contender.workers, contender.implementation.name());
            let before = format!("{},{},{size},{work_ns},{workers},{who}", pattern.name, pattern.op);
            contender.runs.iter().zip(1..).map(move |(run, number)| {
                let activity = run.activity.map_or_else(
                    || ",,,".to_owned(),
                    |Activity { parked, mutes, wake_ups, steals }| format!("{parked:.4},{mutes},{wake_ups},{steals}"),
                );
                format!("{before},{number},{},{:.3},{activity}", run.ops, run.ns_per_op())
            })
        })
    });
    table("bench,op,size,work_ns,workers,who,run,ops,ns_per_op,parked,mutes,wake_ups,steals", lines)
}

/// Returns the waiting times of asks.
pub fn latency(measured: &[Measured]) -> String {
    let lines = measured.iter().flat_map(|Measured { report, runs, .. }| {
        runs.iter().zip(1..).filter_map(|(run, number)| Some((run.cdf?, number))).flat_map(move |(cdf, number)| {
            let bench = &report.bench;
            let line = move |(per_mille, ns)| format!("{bench},{number},{},{ns}", f64::from(per_mille) / 10.0);
            PER_MILLE.into_iter().zip(cdf.0).map(line)
        })
    });
    table("bench,run,percent,ns_at_most", lines)
}

fn table(head: &str, lines: impl Iterator<Item = String>) -> String {
    [head.to_owned()].into_iter().chain(lines).map(|line| line + "\n").collect()
}

fn or_nothing(value: Option<f64>) -> String {
    value.map_or_else(String::new, |value| format!("{value:.3}"))
}
