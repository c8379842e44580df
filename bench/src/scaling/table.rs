//! The table of the group `scaling`. The program prints each row as soon as it is measured.

use super::measured::work_text;
use super::pattern::GROUP;
use super::row::Row;
use crate::report::figure;

/// The widths of the columns of numbers.
const WIDTHS: [usize; 13] = [6, 3, 7, 5, 6, 6, 6, 6, 7, 5, 5, 7, 5];

/// A table that is no wider than 110 characters.
pub struct ScalingTable {
    name_width: usize,
}

impl ScalingTable {
    /// Creates a table of patterns with these names.
    pub fn of<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        let widths = names.into_iter().map(|name| short(name).chars().count());
        Self { name_width: widths.chain([GROUP.len()]).max().unwrap_or(0) }
    }

    /// Returns the two lines of the head.
    pub fn head(&self) -> String {
        let above = ["", "", "", "speed", "%", "", "wake", "", "tokio", "speed", "× of", "threads", "speed", ""];
        let below = [
            "work", "on", "ns/op", "-up", "parked", "mutes", "-ups", "steals", "ns/op", "-up", "tokio", "ns/op", "-up",
            "reached",
        ];
        format!("{}\n{}", self.line("", above.map(str::to_owned)), self.line(GROUP, below.map(str::to_owned)))
    }

    /// Formats one row.
    pub fn row(&self, row: &Row) -> String {
        let or_dash = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), figure);
        let count = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), |value| format!("{value:.0}"));
        let cells = [
            work_text(row.work_ns),
            row.workers.to_string(),
            or_dash(row.ns_per_op),
            or_dash(row.speedup),
            count(row.parked.map(|parked| 100.0 * parked)),
            count(row.mutes),
            count(row.wake_ups),
            count(row.steals),
            or_dash(row.tokio_ns_per_op),
            or_dash(row.tokio_speedup),
            or_dash(row.tokio_ratio),
            or_dash(row.threads_ns_per_op),
            or_dash(row.threads_speedup),
            row.reached.to_owned(),
        ];
        self.line(short(&row.bench), cells)
    }

    /// Returns an explanation of the columns.
    pub fn legend() -> &'static str {
        "work: the work with each operation. on: the number of workers. parked: the share of their time in a park.\n\
         speed-up: against one worker. tokio: the same program as tasks with channels. threads: by hand.\n\
         Targets, on two workers: a speed-up of 1.8 from 1 µs of work on, 1.3 from 0.1 µs on, 0.95 below;\n\
         on any number of workers: less time than tokio. reached: all targets (yes), the named one, or none (no)."
    }

    fn line(&self, name: &str, cells: [String; 14]) -> String {
        let [cells @ .., reached] = cells;
        let cells: String = WIDTHS.iter().zip(&cells).map(|(width, cell)| format!(" {cell:>width$}")).collect();
        format!("{name:<width$}{cells}  {reached}", width = self.name_width).trim_end().to_owned()
    }
}

/// Returns a pattern's name without the name of the group.
fn short(name: &str) -> &str {
    name.strip_prefix(GROUP).map_or(name, |rest| rest.trim_start_matches('-'))
}

#[cfg(test)]
mod tests {
    use super::super::pattern::Pattern;
    use super::super::target::Target;
    use super::*;

    fn row(full: bool) -> Row {
        let of = |value| full.then_some(value);
        Row {
            bench: "scaling-gossip-10000".to_owned(),
            op: "message".to_owned(),
            work_ns: 100_000,
            workers: 128,
            ops: full.then_some(5),
            ns_per_op: of(123_456.0),
            min: of(1.0),
            max: of(2.0),
            speedup: of(100.5),
            parked: of(1.0),
            mutes: of(123_456.0),
            wake_ups: of(123_456.0),
            steals: of(123_456.0),
            tokio_ns_per_op: of(123_456.0),
            tokio_speedup: of(100.5),
            tokio_ratio: of(99.99),
            threads_ns_per_op: of(123_456.0),
            threads_speedup: of(100.5),
            others_cpu: None,
            target: Target::of(100_000, 128),
            reached: "speed-up",
        }
    }

    #[test]
    fn rows_stand_below_their_heads_and_fit() {
        let table = ScalingTable::of(Pattern::all().iter().map(|pattern| pattern.name));
        let head = table.head();
        let column = |line: &str, cell| line.split(cell).next().map(|before| before.chars().count());
        for row in [row(true), row(false)] {
            let row = table.row(&row);
            assert_eq!(column(head.lines().last().unwrap(), "reached"), column(&row, "speed-up"), "\n{head}\n{row}");
            assert!(row.starts_with("gossip-10000 100 µs 128 "), "{row}");
        }
        let row = table.row(&row(true));
        for line in head.lines().chain([&*row]).chain(ScalingTable::legend().lines()) {
            assert!(line.chars().count() <= 110, "{} characters: {line}", line.chars().count());
        }
    }
}
