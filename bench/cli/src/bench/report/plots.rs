//! The plots of a report.

use playhouse_bench::harness::runner::{Measured, Run};
use playhouse_bench::peers::peer::{OURS, Row};
use playhouse_bench::report::bootstrap::Estimate;
use playhouse_bench::report::latency::Cdf;

use super::plot::cdf::{self, plain};
use super::plot::dots::{self, About, Line};
use super::plot::drawing::Drawing;
use super::plot::speed;
use super::{Report, patterns};

/// The name of the plot of latencies.
pub const LATENCY: &str = "latency";

/// A plot with its caption.
pub struct Plot {
    /// The name of its files, without their endings.
    pub name: &'static str,
    pub drawing: Drawing,
    pub caption: &'static str,
}

/// Returns the plots for which the report has figures.
pub fn of(report: &Report) -> Vec<Plot> {
    let mut plots = match (report.rows.is_empty(), report.measured.is_empty()) {
        (false, _) => beside_peers(report),
        (true, false) => beside_baselines(report),
        (true, true) => Vec::new(),
    };
    if !report.sweeps.is_empty() {
        plots.insert(plots.len().saturating_sub(1), Plot {
            name: "scaling",
            drawing: speed::draw(&report.sweeps, &report.machine.topology.counts()),
            caption: "The same workload on more and more workers, without baselines. What happens one thing after the other, such as \
                one message that two actors send back and forth, cannot become faster.",
        });
    }
    let latencies: Vec<(String, Vec<Cdf>)> = report.measured.iter().filter_map(latencies).collect();
    if !latencies.is_empty() {
        let latency = Plot {
            name: LATENCY,
            drawing: cdf::draw(&latencies),
            caption: "Somebody asks while the benchmark runs. A curve for each run: so many of its asks waited no longer than so long. The \
                upper end is stretched, to show the longest.",
        };
        plots.insert(plots.len() - 1, latency);
    }
    plots.extend(patterns::plot(&report.patterns));
    plots
}

fn latencies(measured: &Measured) -> Option<(String, Vec<Cdf>)> {
    let cdfs: Vec<_> = measured.runs.iter().filter_map(|run| run.cdf).collect();
    (!cdfs.is_empty()).then(|| (measured.report.bench.clone(), cdfs))
}

/// Returns the times of the runs and of the baseline. The second list is empty without a baseline.
pub fn times(runs: &[Run]) -> (Vec<f64>, Vec<f64>) {
    (runs.iter().map(|run| run.ns_per_op).collect(), runs.iter().filter_map(|run| run.baseline_ns_per_op).collect())
}

/// Returns the ratio of the runs' time to the baseline's, or `None` without a baseline.
pub fn ratio(runs: &[Run]) -> Option<Estimate> {
    let (ours, baseline) = times(runs);
    if ours.len() == baseline.len() { Estimate::of_ratio(&ours, &baseline) } else { None }
}

fn beside_baselines(report: &Report) -> Vec<Plot> {
    let line = |measured: &Measured| {
        let (ours, baseline) = times(&measured.runs);
        let dots = [(true, Estimate::of(&ours)), (false, Estimate::of(&baseline))];
        let dots = dots.into_iter().filter_map(|(ours, estimate)| Some((ours, estimate?))).collect();
        Line { group: measured.report.bench.clone(), who: None, dots, ratio: ratio(&measured.runs) }
    };
    let bars = Plot {
        name: "bars",
        drawing: dots::draw(
            &About {
                title: "Time per operation, and beside the baseline",
                measure: "time per operation (logarithmic; left is faster)",
                unit: plain_figure,
                others: Some("the baseline: the same by hand, without actors"),
                ratio: "times the baseline (bars from 1; left is faster)",
            },
            &report.measured.iter().map(line).collect::<Vec<_>>(),
        ),
        caption: "Medians of the runs. The baseline is the same workload written by hand, without actors; of -remote, -mobile and -tls it is the \
            same with local actors, remote ones, plain links. Runs of both alternate.",
    };
    let peak = |measured: &Measured| {
        let dots = measured.report.peak_rss_mb.map(|median| (true, Estimate { median, interval: None }));
        dots.map(|dot| Line { group: measured.report.bench.clone(), who: None, dots: vec![dot], ratio: None })
    };
    let lines: Vec<_> = report.measured.iter().filter_map(peak).collect();
    vec![
        bars,
        memory(
            &lines,
            "Of the first run, before the baseline has run in the same process. An empty program takes some MiB, most of them pages of its file.",
        ),
    ]
}

fn beside_peers(report: &Report) -> Vec<Plot> {
    let played: Vec<_> = report.rows.iter().filter(|row| !row.runs.is_empty()).collect();
    let line = |row: &&Row| {
        let times = |row: &Row| row.runs.iter().map(|run| run.0).collect::<Vec<_>>();
        let ours = played.iter().find(|other| other.bench == row.bench && other.who == OURS && row.who != OURS);
        let ours = ours.map(|ours| times(ours)).filter(|ours| ours.len() == row.runs.len());
        Line {
            group: row.bench.clone(),
            who: Some(row.who.clone()),
            dots: Estimate::of(&times(row)).map(|estimate| (row.who == OURS, estimate)).into_iter().collect(),
            ratio: ours.and_then(|ours| Estimate::of_ratio(&times(row), &ours)),
        }
    };
    let bars = Plot {
        name: "bars",
        drawing: dots::draw(
            &About {
                title: "Time per operation, beside other actor runtimes",
                measure: "time per operation (logarithmic; left is faster)",
                unit: plain_figure,
                others: Some("others"),
                ratio: "times Playhouse (bars from 1)",
            },
            &played.iter().map(line).collect::<Vec<_>>(),
        ),
        caption: "Medians of the runs, each in a process of its own, everybody in turns.",
    };
    let peak = |row: &&Row| {
        let dot = row.peak_rss_mb.map(|median| (row.who == OURS, Estimate { median, interval: None }));
        dot.map(|dot| Line { group: row.bench.clone(), who: Some(row.who.clone()), dots: vec![dot], ratio: None })
    };
    let lines: Vec<_> = played.iter().filter_map(peak).collect();
    vec![bars, memory(&lines, "The largest of the runs.")]
}

fn memory(lines: &[Line], caption: &'static str) -> Plot {
    let others = lines.iter().any(|line| line.dots.iter().any(|dot| !dot.0)).then_some("others");
    let about = About {
        title: "Peak memory",
        measure: "largest resident set (logarithmic; left is less)",
        unit: mebibytes,
        others,
        ratio: "",
    };
    Plot { name: "memory", drawing: dots::draw(&about, lines), caption }
}

/// Formats a time per operation with two or three digits.
pub fn plain_figure(ns: f64) -> String {
    match ns {
        ns if ns < 10.0 => plain_digits(ns, 2, "ns"),
        ns if ns < 100.0 => plain_digits(ns, 1, "ns"),
        _ => plain(ns),
    }
}

fn plain_digits(value: f64, digits: usize, unit: &str) -> String {
    let text = format!("{value:.digits$}");
    format!("{} {unit}", text.trim_end_matches('0').trim_end_matches('.'))
}

/// Formats an amount of memory, given in MiB.
pub fn mebibytes(mib: f64) -> String {
    match mib {
        mib if mib < 10.0 => plain_digits(mib, 1, "MiB"),
        mib if mib < 1_024.0 => format!("{mib:.0} MiB"),
        mib => plain_digits(mib / 1_024.0, 1, "GiB"),
    }
}
