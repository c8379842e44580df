//! The figures of benchmarks as rows of a table.
//!
//! No library replaces it: tabled and comfy-table lay out a finished table, but each row is printed when it is measured.

use super::figures::Report;

/// The rows of a table that is printed while it is measured; no wider than 100 characters.
pub struct Table {
    name_width: usize,
}

impl Table {
    /// A table of the benchmarks with these names.
    pub fn of<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        let widths = names.into_iter().map(str::len);
        Self { name_width: widths.chain(["benchmark".len()]).max().unwrap_or(0) }
    }

    /// The two lines at the head.
    pub fn head(&self) -> String {
        let first = ["ns/op", "ns/op", "ns/op", "million", "baseline", "", "peak", "target", "target"];
        let second = ["median", "min", "max", "ops/s", "ns/op", "ratio", "MiB", "ratio", "ns/op"];
        format!("{}\n{}", self.line("", first, ""), self.line("benchmark", second, "reached"))
    }

    /// Returns the row of one benchmark, with the lines of its other measurements below.
    pub fn row(&self, report: &Report) -> String {
        let or_dash = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), figure);
        let cells = [
            figure(report.ns_per_op),
            figure(report.min),
            figure(report.max),
            figure(1_000.0 / report.ns_per_op),
            or_dash(report.baseline_ns_per_op),
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
        const WIDTHS: [usize; 9] = [7, 7, 7, 7, 8, 5, 4, 6, 6];
        let cells: String = WIDTHS.iter().zip(cells).map(|(width, cell)| format!(" {cell:>width$}")).collect();
        format!("{name:<width$}{cells}  {reached}", width = self.name_width).trim_end().to_owned()
    }
}

/// Returns the figures of a server in the units of web servers; `None` if there are none.
pub(crate) fn server_line(
    op: &str,
    ns_per_op: Option<f64>,
    p99_ns: Option<f64>,
    cpu_ns_per_op: Option<f64>,
) -> Option<String> {
    let (per_second, p99, cpu) = (1e9 / ns_per_op?, p99_ns? / 1e3, cpu_ns_per_op? / 1e3);
    Some(format!("{per_second:.0} {op}s/s, p99 {p99:.0} µs, processor time of the server {cpu:.1} µs/{op}"))
}

/// Formats a number with two decimals below 100, one below 1,000, and none above.
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
    use super::super::figures::tests::report;
    use super::super::latency::Latency;
    use super::super::target::Target;
    use super::*;

    #[test]
    fn rows_stand_below_their_heads_and_fit_a_terminal() {
        let table = Table::of(["savina-philosophers"]);
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
