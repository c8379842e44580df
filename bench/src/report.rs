//! The one report: figures of a benchmark, as a JSON object or as a row of a table.

use serde::{Deserialize, Serialize};

use crate::latency::Latency;
use crate::outcome::Outcome;
use crate::registry::{Benchmark, Target};

/// The figures of one benchmark.
///
/// Its JSON form has these keys, in this order; the last four are left out where there is nothing to say.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// The benchmark's name.
    pub bench: String,
    /// What one operation is.
    pub op: String,
    /// Operations per run.
    pub ops: u64,
    /// Nanoseconds per operation: the median of the runs.
    pub ns_per_op: f64,
    /// The fastest run, in nanoseconds per operation.
    pub min: f64,
    /// The slowest run, in nanoseconds per operation.
    pub max: f64,
    /// Nanoseconds per operation of the floor, or of what else it is measured against: the median of its runs, between
    /// those of the workload; `null` without one.
    pub limit_ns_per_op: Option<f64>,
    /// `ns_per_op` over `limit_ns_per_op`.
    pub ratio: Option<f64>,
    /// Peak memory in MiB; `null` where the operating system does not say.
    pub peak_rss_mb: Option<f64>,
    /// Workers of the system.
    pub workers: usize,
    /// Stages of the system, of all workers together.
    pub stages: usize,
    /// How long those who asked on the side waited for their answers, in the last run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency: Option<Latency>,
    /// Nanoseconds of the server's processor time per operation in the last run, if another process did the work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_ns_per_op: Option<f64>,
    /// What it should reach on this machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<Target>,
    /// Whether it does, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reached: Option<String>,
}

/// Median and extremes of some runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// The middle one, or the mean of the middle two.
    pub median: f64,
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
}

impl Spread {
    /// Of these runs.
    ///
    /// # Panics
    ///
    /// If there are none.
    pub fn of(runs: &[f64]) -> Self {
        assert!(!runs.is_empty(), "no run, no median");
        let mut runs = runs.to_vec();
        runs.sort_by(f64::total_cmp);
        let (low, high) = (runs[(runs.len() - 1) / 2], runs[runs.len() / 2]);
        Self { median: f64::midpoint(low, high), min: runs[0], max: runs[runs.len() - 1] }
    }
}

impl Report {
    /// Puts the figures together; `(workers, stages)` is the system's `shape`.
    pub(crate) fn new(
        benchmark: &Benchmark,
        outcome: &Outcome,
        workload_ns: Spread,
        limit_ns: Option<f64>,
        peak_rss_mb: Option<f64>,
        shape: (usize, usize),
    ) -> Self {
        Self {
            bench: benchmark.name.to_owned(),
            op: benchmark.op.to_owned(),
            ops: outcome.ops,
            ns_per_op: rounded(workload_ns.median),
            min: rounded(workload_ns.min),
            max: rounded(workload_ns.max),
            limit_ns_per_op: limit_ns.map(rounded),
            ratio: limit_ns.map(|limit_ns| rounded(workload_ns.median / limit_ns)),
            peak_rss_mb: peak_rss_mb.map(rounded),
            workers: shape.0,
            stages: shape.1,
            latency: outcome.latency,
            cpu_ns_per_op: outcome.cpu_ns_per_op().map(rounded),
            target: None,
            reached: None,
        }
    }

    /// Compares with the target on a machine that takes `scale` times as long as the one that it is for.
    pub fn judge(&mut self, target: Option<Target>, scale: f64) {
        self.target = target.map(|target| target.scaled(scale));
        self.reached = self.target.map(|target| target.verdict(self).to_owned());
    }

    /// Why the figure says little, if it does.
    pub fn unrest(&self) -> Option<String> {
        (self.max > 2.0 * self.min).then(|| format!("the runs of {} differ by more than 2 x", self.bench))
    }

    /// One line of JSON.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("numbers and strings have a JSON form")
    }
}

/// To the thousandth.
pub(crate) fn rounded(value: f64) -> f64 {
    (value * 1_000.0).round() / 1_000.0
}

impl Target {
    /// Whether a report reaches the target, in words.
    fn verdict(&self, report: &Report) -> &'static str {
        let time = self.ns_per_op.map(|most| report.ns_per_op <= most);
        let ratio = self.ratio.map(|most| report.ratio.is_some_and(|ratio| ratio <= most));
        match (ratio, time) {
            (None | Some(true), None | Some(true)) => "yes",
            (Some(true), Some(false)) => "ratio only",
            (Some(false), Some(true)) => "ns only",
            _ => "no",
        }
    }
}

/// The rows of a table that is printed while it is measured; no wider than 100 characters.
pub struct Table {
    name_width: usize,
}

impl Table {
    /// A table of these benchmarks.
    pub fn of<'a>(benchmarks: impl IntoIterator<Item = &'a Benchmark>) -> Self {
        let widths = benchmarks.into_iter().map(|benchmark| benchmark.name.len());
        Self { name_width: widths.chain(["benchmark".len()]).max().unwrap_or(0) }
    }

    /// The two lines at the head.
    pub fn head(&self) -> String {
        let first = ["ns/op", "ns/op", "ns/op", "million", "limit", "", "peak", "target", "target"];
        let second = ["median", "min", "max", "ops/s", "ns/op", "ratio", "MiB", "ratio", "ns/op"];
        format!("{}\n{}", self.line("", first, ""), self.line("benchmark", second, "reached"))
    }

    /// The row of one benchmark; below it what else it has measured.
    pub fn row(&self, report: &Report) -> String {
        let or_dash = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), figure);
        let cells = [
            figure(report.ns_per_op),
            figure(report.min),
            figure(report.max),
            figure(1_000.0 / report.ns_per_op),
            or_dash(report.limit_ns_per_op),
            or_dash(report.ratio),
            report.peak_rss_mb.map_or_else(|| "–".to_owned(), |mb| format!("{mb:.0}")),
            or_dash(report.target.and_then(|target| target.ratio)),
            or_dash(report.target.and_then(|target| target.ns_per_op)),
        ];
        let reached = report.reached.as_deref().unwrap_or("–");
        let row = self.line(&report.bench, cells.each_ref().map(String::as_str), reached);
        let latency = report.latency.map(|latency| format!("\n  asks: {latency}")).unwrap_or_default();
        let p99_ns = report.latency.map(|latency| latency.p99_ns as f64);
        let server = server_line(&report.op, Some(report.ns_per_op), p99_ns, report.cpu_ns_per_op);
        let server = server.map(|line| format!("\n  {line}")).unwrap_or_default();
        format!("{row}{latency}{server}")
    }

    fn line(&self, name: &str, cells: [&str; 9], reached: &str) -> String {
        const WIDTHS: [usize; 9] = [7, 7, 7, 7, 6, 5, 4, 6, 6];
        let cells: String = WIDTHS.iter().zip(cells).map(|(width, cell)| format!(" {cell:>width$}")).collect();
        format!("{name:<width$}{cells}  {reached}", width = self.name_width).trim_end().to_owned()
    }
}

/// The figures of a server in the units that web servers are compared in; `None` if there are none.
pub(crate) fn server_line(
    op: &str,
    ns_per_op: Option<f64>,
    p99_ns: Option<f64>,
    cpu_ns_per_op: Option<f64>,
) -> Option<String> {
    let (per_second, p99, cpu) = (1e9 / ns_per_op?, p99_ns? / 1e3, cpu_ns_per_op? / 1e3);
    Some(format!("{per_second:.0} {op}s/s, p99 {p99:.0} µs, processor time of the server {cpu:.1} µs/{op}"))
}

/// A number with as many digits as it deserves.
pub fn figure(value: f64) -> String {
    match value.abs() {
        size if size < 100.0 => format!("{value:.2}"),
        size if size < 1_000.0 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

/// The counters of the executor, two to a line, indented to stand below a row.
pub fn statistics(pairs: &[(String, String)]) -> String {
    let cell = |(name, value): &(String, String)| format!("{name:>20} {value:>15}");
    let lines = pairs.chunks(2).map(|pairs| format!("  {}", pairs.iter().map(cell).collect::<String>()));
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn report(ns_per_op: f64, limit: Option<f64>) -> Report {
        let outcome = Outcome::new(10, Duration::from_nanos(10));
        Report::new(&crate::registry::all()[0], &outcome, Spread::of(&[ns_per_op]), limit, None, (2, 8))
    }

    fn reached(target: Target, scale: f64, ns_per_op: f64, limit: Option<f64>) -> String {
        let mut report = report(ns_per_op, limit);
        report.judge(Some(target), scale);
        report.reached.unwrap()
    }

    #[test]
    fn the_median_is_the_middle() {
        assert_eq!(Spread::of(&[3.0, 1.0, 2.0]), Spread { median: 2.0, min: 1.0, max: 3.0 });
        assert_eq!(Spread::of(&[4.0, 1.0, 2.0, 3.0]).median, 2.5);
        assert_eq!(Spread::of(&[7.0]), Spread { median: 7.0, min: 7.0, max: 7.0 });
    }

    #[test]
    fn a_verdict_says_which_bound_holds() {
        let target = Target { ratio: Some(2.0), ns_per_op: Some(9.0), scales: true };
        assert_eq!(reached(target, 1.0, 8.0, Some(4.0)), "yes");
        assert_eq!(reached(target, 1.0, 8.0, Some(3.0)), "ns only");
        assert_eq!(reached(target, 1.0, 10.0, Some(5.0)), "ratio only");
        assert_eq!(reached(target, 1.0, 10.0, Some(4.0)), "no");
        assert_eq!(reached(target, 1.0, 8.0, None), "ns only");
        let target = Target { ratio: None, ns_per_op: Some(9.0), scales: true };
        assert_eq!(reached(target, 1.0, 9.0, Some(1.0)), "yes");
        assert_eq!(reached(target, 1.0, 9.1, None), "no");
        let target = Target { ratio: Some(2.0), ns_per_op: None, scales: false };
        assert_eq!(reached(target, 1.5, 8.0, Some(4.0)), "yes");
        assert_eq!(reached(target, 1.5, 8.0, Some(3.0)), "no");
    }

    #[test]
    fn targets_in_ns_are_those_of_this_machine() {
        let target = Target { ratio: Some(2.0), ns_per_op: Some(9.0), scales: true };
        assert_eq!(reached(target, 1.5, 13.5, Some(6.0)), "ns only");
        assert_eq!(reached(target, 0.5, 4.6, Some(2.4)), "ratio only");
        let mut report = report(13.5, Some(7.0));
        report.judge(Some(target), 1.5);
        assert_eq!(report.target, Some(Target { ratio: Some(2.0), ns_per_op: Some(13.5), scales: true }));
        report.judge(None, 1.5);
        assert_eq!((report.target, report.reached), (None, None));
    }

    #[test]
    fn json_reads_back() {
        let mut report = report(8.0, None);
        assert_eq!(serde_json::from_str::<Report>(&report.to_json()).unwrap(), report);
        report.judge(Target::new(2.0, 9.0), 1.5);
        report.latency = Some(Latency { p50_ns: 1, p90_ns: 2, p99_ns: 3, max_ns: 4 });
        assert_eq!(serde_json::from_str::<Report>(&report.to_json()).unwrap(), report);
    }

    #[test]
    fn rows_stand_below_their_heads_and_fit_a_terminal() {
        let table = Table::of(crate::registry::all());
        let mut report = report(123_456.0, Some(7.89));
        report.judge(Target::new(2.0, 700.0), 1.0);
        report.reached = Some("ratio only".to_owned());
        let (head, row) = (table.head(), table.row(&report));
        let column = |line: &str, cell| line.split(cell).next().map(|before| before.chars().count());
        let head = head.lines().last().unwrap();
        assert_eq!(column(head, "reached"), column(&row, "ratio only"), "\n{head}\n{row}");
        assert!(row.chars().count() <= 100, "{} characters\n{row}", row.chars().count());
        report.latency = Some(Latency::default());
        assert_eq!(table.row(&report).lines().nth(1).unwrap(), "  asks: median 0 ns, p90 0 ns, p99 0 ns, max 0 ns");
        report.latency = Some(Latency { p99_ns: 7_890_000, ..Latency::default() });
        report.cpu_ns_per_op = Some(65_432.1);
        report.op = "request".to_owned();
        let line = "  8100 requests/s, p99 7890 µs, processor time of the server 65.4 µs/request";
        assert_eq!(table.row(&report).lines().nth(2).unwrap(), line);
    }
}
