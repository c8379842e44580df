//! One benchmark with more and more stages per worker: their number should not matter.

use serde::Serialize;

use super::benchmark::Benchmark;
use crate::report::{figure, rounded};

/// The numbers of stages per worker of a sweep.
pub const STAGES_PER_WORKER: [usize; 10] = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512];

/// A benchmark that is slower than at its best by more than this has collapsed.
pub const COLLAPSE: f64 = 2.0;

/// The measurements of one benchmark.
#[derive(Clone, Debug, Serialize)]
pub struct Sweep {
    /// The benchmark's name.
    pub bench: String,
    /// The unit of one operation.
    pub op: String,
    /// Workers of the system.
    pub workers: usize,
    /// The numbers of stages per worker.
    pub stages_per_worker: [usize; 10],
    /// Nanoseconds per operation with each number of stages, of its best run: the sweep compares numbers of stages, not
    /// disturbances of the machine. `null` where all runs failed.
    pub ns_per_op: [Option<f64>; 10],
    /// The slowest over the fastest; `null` where all failed.
    pub worst_over_best: Option<f64>,
    /// Whether the factor is a collapse.
    pub collapse: bool,
}

impl Sweep {
    /// Creates a sweep of the runs with each number of [`STAGES_PER_WORKER`], in nanoseconds per operation.
    pub fn new(benchmark: &Benchmark, workers: usize, runs: &[Vec<f64>; 10]) -> Self {
        let ns_per_op = runs.each_ref().map(|runs| runs.iter().copied().reduce(f64::min));
        let worst = ns_per_op.iter().flatten().copied().reduce(f64::max);
        let worst_over_best = worst.zip(best(&ns_per_op)).map(|(worst, best)| worst / best);
        Self {
            bench: benchmark.name.to_owned(),
            op: benchmark.op.to_owned(),
            workers,
            stages_per_worker: STAGES_PER_WORKER,
            ns_per_op: ns_per_op.map(|ns| ns.map(rounded)),
            worst_over_best: worst_over_best.map(rounded),
            collapse: worst_over_best.is_some_and(|factor| factor > COLLAPSE),
        }
    }

    /// Returns one line of JSON.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("numbers and strings have a JSON form")
    }
}

fn best(ns_per_op: &[Option<f64>]) -> Option<f64> {
    ns_per_op.iter().flatten().copied().reduce(f64::min)
}

/// The rows of a table that is printed while it is measured; no wider than 80 characters.
pub struct SweepTable {
    name_width: usize,
}

impl SweepTable {
    /// A table of these benchmarks.
    pub fn of<'a>(benchmarks: impl IntoIterator<Item = &'a Benchmark>) -> Self {
        let widths = benchmarks.into_iter().map(|benchmark| benchmark.name.len());
        Self { name_width: widths.chain(["benchmark".len()]).max().unwrap_or(0) }
    }

    /// The two lines at the head.
    pub fn head(&self) -> String {
        let above = format!("{:width$} {:>7}  stages per worker, time over best", "", "best", width = self.name_width);
        format!("{above}\n{}", self.line("benchmark", "ns/op", &STAGES_PER_WORKER.map(|n| n.to_string()), "worst"))
    }

    /// The row of one benchmark.
    pub fn row(&self, sweep: &Sweep) -> String {
        let best = best(&sweep.ns_per_op);
        let cells = sweep.ns_per_op.map(|ns| match ns.zip(best) {
            Some((ns, best)) if ns / best < 10.0 => format!("{:.1}", ns / best),
            Some((ns, best)) => format!("{:.0}", ns / best),
            None => "–".to_owned(),
        });
        let or_dash = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), figure);
        self.line(&sweep.bench, &or_dash(best), &cells, &or_dash(sweep.worst_over_best))
    }

    fn line(&self, name: &str, best: &str, cells: &[String; 10], worst: &str) -> String {
        let cells: String = cells.iter().map(|cell| format!(" {cell:>3}")).collect();
        format!("{name:<width$} {best:>7} {cells} {worst:>6}", width = self.name_width)
    }
}

/// Returns the last lines of a sweep: the collapsed benchmarks, and the worst factor of the others.
pub fn verdict(sweeps: &[Sweep]) -> String {
    let mut lines = Vec::new();
    let factors = |collapse: bool| {
        let some = sweeps.iter().filter(move |sweep| sweep.collapse == collapse);
        some.filter_map(|sweep| sweep.worst_over_best.map(|worst_over_best| (worst_over_best, &*sweep.bench)))
    };
    for (times, bench) in factors(true) {
        lines.push(format!("collapse: {bench}, up to {} times as slow as at its best", figure(times)));
    }
    if let Some((times, bench)) = factors(false).reduce(|a, b| if b.0 > a.0 { b } else { a }) {
        let who = if lines.is_empty() { "no collapse" } else { "no other collapse" };
        lines.push(format!(
            "{who}: worst over best is at most {} ({bench}); above {COLLAPSE} it would be one",
            figure(times)
        ));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::benchmark::tests::named;

    fn sweep(name: &'static str, worst: Option<f64>) -> Sweep {
        let mut runs: [Vec<f64>; 10] = std::array::from_fn(|_| vec![5.0]);
        runs[9] = Vec::from_iter(worst);
        Sweep::new(&named(name), 2, &runs)
    }

    #[test]
    fn more_than_twice_the_best_is_a_collapse() {
        assert!(!sweep("count", Some(10.0)).collapse);
        assert!(sweep("count", Some(10.1)).collapse);
        let failed = sweep("count", None);
        assert_eq!((failed.worst_over_best, failed.collapse), (Some(1.0), false));
        let nothing = Sweep::new(&named("count"), 2, &[const { Vec::new() }; 10]);
        assert_eq!((nothing.worst_over_best, nothing.collapse), (None, false));
    }

    #[test]
    fn the_verdict_names_every_collapse_and_the_worst_of_the_others() {
        let mut sweeps = vec![sweep("count", Some(6.0)), sweep("fib", Some(7.5)), sweep("big", None)];
        assert_eq!(verdict(&sweeps), "no collapse: worst over best is at most 1.50 (fib); above 2 it would be one");
        sweeps.push(sweep("repeat", Some(62.0)));
        let words = verdict(&sweeps);
        assert!(words.starts_with("collapse: repeat, up to 12.40 times as slow"), "{words}");
        assert!(
            words.ends_with("no other collapse: worst over best is at most 1.50 (fib); above 2 it would be one"),
            "{words}"
        );
        assert_eq!(verdict(&[]), "");
    }

    #[test]
    fn rows_stand_below_their_heads_and_fit_a_terminal() {
        let table = SweepTable::of(&[named("savina-philosophers")]);
        let (head, row) = (table.head(), table.row(&sweep("count", None)));
        let head = head.lines().last().unwrap();
        assert_eq!(head.chars().count(), row.chars().count(), "\n{head}\n{row}");
        assert!(row.ends_with(" 1.0 1.0   –   1.00") && row.chars().count() <= 80, "{row}");
        let nothing = Sweep::new(&named("count"), 2, &[const { Vec::new() }; 10]);
        assert!(table.row(&nothing).ends_with("  –   –      –"), "{}", table.row(&nothing));
    }

    #[test]
    fn json_has_every_measurement() {
        let json: serde_json::Value = serde_json::from_str(&sweep("count", None).to_json()).unwrap();
        assert_eq!(json["stages_per_worker"].as_array().unwrap().len(), 10);
        assert_eq!((&json["ns_per_op"][0], json["ns_per_op"][9].is_null()), (&serde_json::json!(5.0), true));
        assert_eq!((&json["worst_over_best"], &json["collapse"]), (&serde_json::json!(1.0), &serde_json::json!(false)));
    }
}
