//! The one report: figures of a benchmark, as a JSON object or as a row of a table.

use serde::{Deserialize, Serialize};

use crate::registry::{Benchmark, Target};

/// The figures of one benchmark.
///
/// Its JSON form has exactly these keys, in this order.
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
    /// Nanoseconds per operation of the floor: the median of its runs, between those of the workload.
    pub limit_ns_per_op: f64,
    /// `ns_per_op` over `limit_ns_per_op`.
    pub ratio: f64,
    /// Peak memory in MiB; `null` where the operating system does not say.
    pub peak_rss_mb: Option<f64>,
    /// Workers of the system.
    pub workers: usize,
    /// Stages of the system, of all workers together.
    pub stages: usize,
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
        ops: u64,
        workload_ns: Spread,
        limit_ns: f64,
        peak_rss_mb: Option<f64>,
        shape: (usize, usize),
    ) -> Self {
        Self {
            bench: benchmark.name.to_owned(),
            op: benchmark.op.to_owned(),
            ops,
            ns_per_op: rounded(workload_ns.median),
            min: rounded(workload_ns.min),
            max: rounded(workload_ns.max),
            limit_ns_per_op: rounded(limit_ns),
            ratio: rounded(workload_ns.median / limit_ns),
            peak_rss_mb: peak_rss_mb.map(rounded),
            workers: shape.0,
            stages: shape.1,
        }
    }

    /// One line of JSON.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("numbers and strings have a JSON form")
    }

    /// Operations per second, of the median run.
    pub fn ops_per_second(&self) -> f64 {
        1e9 / self.ns_per_op
    }
}

/// To the thousandth.
fn rounded(value: f64) -> f64 {
    (value * 1_000.0).round() / 1_000.0
}

impl Target {
    /// Whether a report reaches the target, in words.
    pub fn verdict(&self, report: &Report) -> &'static str {
        let time = report.ns_per_op <= self.ns_per_op;
        match self.ratio.map(|ratio| report.ratio <= ratio) {
            None | Some(true) if time => "yes",
            Some(true) => "ratio only",
            Some(false) if time => "ns only",
            _ => "no",
        }
    }
}

/// The rows of a table that is printed while it is measured.
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
        format!("{}\n{}", self.line("", first, "", ""), self.line("benchmark", second, "reached", "operation"))
    }

    /// The row of one benchmark.
    pub fn row(&self, benchmark: &Benchmark, report: &Report) -> String {
        let target = |of: fn(&Target) -> Option<f64>| {
            benchmark.target.as_ref().and_then(of).map_or_else(|| "–".to_owned(), figure)
        };
        let cells = [
            figure(report.ns_per_op),
            figure(report.min),
            figure(report.max),
            figure(report.ops_per_second() / 1e6),
            figure(report.limit_ns_per_op),
            figure(report.ratio),
            report.peak_rss_mb.map_or_else(|| "–".to_owned(), |mb| format!("{mb:.0}")),
            target(|target| target.ratio),
            target(|target| Some(target.ns_per_op)),
        ];
        let verdict = benchmark.target.map_or("–", |target| target.verdict(report));
        self.line(&report.bench, cells.each_ref().map(String::as_str), verdict, &report.op)
    }

    fn line(&self, name: &str, cells: [&str; 9], verdict: &str, op: &str) -> String {
        let cells: String = cells.iter().map(|cell| format!(" {cell:>9}")).collect();
        let line = format!("{name:<width$}{cells}  {verdict:<10}  {op}", width = self.name_width);
        line.trim_end().to_owned()
    }
}

/// A number with as many digits as it deserves.
pub fn figure(value: f64) -> String {
    match value.abs() {
        size if size < 100.0 => format!("{value:.2}"),
        size if size < 1_000.0 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

/// The counters of the executor, four to a line, indented to stand below a row.
pub fn statistics(pairs: &[(String, String)]) -> String {
    let cell = |(name, value): &(String, String)| format!("{name:>20} {value:>12}");
    let lines = pairs.chunks(4).map(|pairs| format!("  {}", pairs.iter().map(cell).collect::<String>()));
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(ns_per_op: f64, limit: f64) -> Report {
        let spread = Spread::of(&[ns_per_op]);
        Report::new(&crate::registry::all()[0], 10, spread, limit, None, (2, 8))
    }

    #[test]
    fn the_median_is_the_middle() {
        assert_eq!(Spread::of(&[3.0, 1.0, 2.0]), Spread { median: 2.0, min: 1.0, max: 3.0 });
        assert_eq!(Spread::of(&[4.0, 1.0, 2.0, 3.0]).median, 2.5);
        assert_eq!(Spread::of(&[7.0]), Spread { median: 7.0, min: 7.0, max: 7.0 });
    }

    #[test]
    fn a_verdict_says_which_bound_holds() {
        let target = Target { ratio: Some(2.0), ns_per_op: 9.0 };
        assert_eq!(target.verdict(&report(8.0, 4.0)), "yes");
        assert_eq!(target.verdict(&report(8.0, 3.0)), "ns only");
        assert_eq!(target.verdict(&report(10.0, 5.0)), "ratio only");
        assert_eq!(target.verdict(&report(10.0, 4.0)), "no");
        let target = Target { ratio: None, ns_per_op: 9.0 };
        assert_eq!(target.verdict(&report(9.0, 1.0)), "yes");
        assert_eq!(target.verdict(&report(9.1, 1.0)), "no");
    }

    #[test]
    fn json_reads_back() {
        let report = report(8.0, 3.0);
        assert_eq!(serde_json::from_str::<Report>(&report.to_json()).unwrap(), report);
    }

    #[test]
    fn rows_stand_below_their_heads() {
        let benchmark = &crate::registry::all()[0];
        let table = Table::of([benchmark]);
        let (head, row) = (table.head(), table.row(benchmark, &report(8.0, 3.0)));
        let column = |line: &str, cell| line.split(cell).next().map(|before| before.chars().count());
        let head = head.lines().last().unwrap();
        assert_eq!(column(head, "reached"), column(&row, "ns only"), "\n{head}\n{row}");
        assert_eq!(column(head, "operation"), column(&row, "message"), "\n{head}\n{row}");
    }
}
