//! One benchmark on more and more workers: its speed-up.

use serde::Serialize;

use super::benchmark::Benchmark;
use crate::report::bootstrap::Estimate;
use crate::report::{figure, rounded};

/// The measurements of one benchmark, with each number of workers.
///
/// The workload is the same with all of them.
#[derive(Clone, Debug, Serialize)]
pub struct WorkerSweep {
    /// The benchmark's name.
    pub bench: String,
    /// The unit of one operation.
    pub op: String,
    /// The numbers of workers, from few to many.
    pub workers: Vec<usize>,
    /// Nanoseconds per operation of each run with each of them, in turns; none where a run failed, or where the benchmark
    /// does not make sense with so few workers.
    pub runs: Vec<Vec<f64>>,
    /// The medians of the runs; `null` where there is none.
    pub ns_per_op: Vec<Option<f64>>,
    /// The speed-ups over the fewest workers.
    pub speedup: Vec<Option<f64>>,
}

impl WorkerSweep {
    /// Creates a sweep of the runs with each number of workers, in nanoseconds per operation.
    pub fn new(benchmark: &Benchmark, workers: Vec<usize>, runs: Vec<Vec<f64>>) -> Self {
        let ns_per_op = runs.iter().map(|runs| Some(rounded(Estimate::of(runs)?.median))).collect();
        let mut scaling = Self {
            bench: benchmark.name.to_owned(),
            op: benchmark.op.to_owned(),
            workers,
            runs,
            ns_per_op,
            speedup: Vec::new(),
        };
        let speedups = scaling.speedups();
        scaling.speedup = speedups.into_iter().map(|speedup| speedup.map(|speedup| rounded(speedup.median))).collect();
        scaling
    }

    /// Returns the fewest workers with figures.
    pub fn base(&self) -> Option<usize> {
        self.first().map(|first| self.workers[first])
    }

    fn first(&self) -> Option<usize> {
        self.runs.iter().position(|runs| !runs.is_empty())
    }

    /// Returns the speed-up over the fewest workers, with each number of workers.
    pub fn speedups(&self) -> Vec<Option<Estimate>> {
        let Some(first) = self.first() else { return vec![None; self.runs.len()] };
        let base = &self.runs[first];
        let speedup = |runs: &Vec<f64>| (!runs.is_empty()).then(|| Estimate::of_ratio(base, runs)).flatten();
        self.runs.iter().map(speedup).collect()
    }

    /// Returns one line of JSON.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("numbers and strings have a JSON form")
    }
}

/// The rows of a table that is printed while it is measured.
pub struct WorkerSweepTable {
    name_width: usize,
    workers: Vec<usize>,
}

impl WorkerSweepTable {
    /// A table of these benchmarks with these numbers of workers.
    pub fn of<'a>(benchmarks: impl IntoIterator<Item = &'a Benchmark>, workers: Vec<usize>) -> Self {
        let widths = benchmarks.into_iter().map(|benchmark| benchmark.name.len());
        Self { name_width: widths.chain(["benchmark".len()]).max().unwrap_or(0), workers }
    }

    /// The two lines at the head.
    pub fn head(&self) -> String {
        let above = format!("{:width$} {:>8}  workers, times as fast", "", "fewest", width = self.name_width);
        let workers: Vec<_> = self.workers.iter().map(usize::to_string).collect();
        format!("{above}\n{}", self.line("benchmark", "ns/op", &workers))
    }

    /// The row of one benchmark.
    pub fn row(&self, scaling: &WorkerSweep) -> String {
        let or_dash = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), figure);
        let cells: Vec<_> = scaling.speedup.iter().copied().map(or_dash).collect();
        let base = scaling.ns_per_op.iter().flatten().next().copied();
        self.line(&scaling.bench, &or_dash(base), &cells)
    }

    fn line(&self, name: &str, base: &str, cells: &[String]) -> String {
        let cells: String = cells.iter().map(|cell| format!(" {cell:>6}")).collect();
        format!("{name:<width$} {base:>8} {cells}", width = self.name_width)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::benchmark::tests::named;

    fn scaling(runs: [&[f64]; 3]) -> WorkerSweep {
        WorkerSweep::new(&named("fib"), vec![1, 2, 3], runs.map(<[f64]>::to_vec).to_vec())
    }

    #[test]
    fn speed_is_that_over_the_fewest_workers() {
        let twice = scaling([&[40.0, 60.0, 50.0], &[20.0, 30.0, 25.0], &[50.0, 40.0, 60.0]]);
        assert_eq!(twice.ns_per_op, [Some(50.0), Some(25.0), Some(50.0)]);
        assert_eq!(twice.speedup, [Some(1.0), Some(2.0), Some(1.0)]);
        let [Some(one), Some(two), Some(three)] = twice.speedups()[..] else { panic!("{twice:?}") };
        // The turns are the same: a speed-up of 2 in each of them is certain.
        assert_eq!((one.interval, two.interval), (Some((1.0, 1.0)), Some((2.0, 2.0))));
        assert!(three.interval.is_some_and(|(low, high)| low < 0.9 && 1.1 < high), "{three:?}");
    }

    #[test]
    fn failed_runs_have_no_figures_and_the_others_have() {
        let scaling = scaling([&[], &[8.0], &[4.0]]);
        assert_eq!((&scaling.ns_per_op[..], scaling.base()), (&[None, Some(8.0), Some(4.0)][..], Some(2)));
        assert_eq!(scaling.speedup, [None, Some(1.0), Some(2.0)]);
        let nothing = self::scaling([&[], &[], &[]]);
        assert_eq!((&nothing.speedup[..], nothing.base()), (&[None, None, None][..], None));
    }

    #[test]
    fn rows_stand_below_their_heads() {
        let table = WorkerSweepTable::of(&[named("savina-philosophers")], vec![1, 2, 128]);
        let (head, row) = (table.head(), table.row(&scaling([&[2_500.0], &[1_250.0], &[]])));
        let head = head.lines().last().unwrap();
        assert_eq!(head.chars().count(), row.chars().count(), "\n{head}\n{row}");
        assert!(row.starts_with("fib ") && row.ends_with(" 2500    1.00   2.00      –"), "{row}");
        assert!(head.ends_with("ns/op       1      2    128"), "{head}");
    }
}
