//! The runs of one pattern with one amount of work: all implementations on all numbers of workers, in turns.

use super::implementation::{Implementation, Run};
use super::load::Load;
use super::others::{CpuTimes, Others};
use super::pattern::Pattern;
use super::work::Work;
use crate::harness::outcome::Size;
use crate::report::bootstrap::Estimate;

/// The settings of a measurement.
#[derive(Clone, Debug)]
pub struct Options {
    /// The numbers of workers, from few to many.
    pub workers: Vec<usize>,
    /// The number of stages per worker. `None` for the runtime's default.
    pub stages_per_worker: Option<usize>,
    /// The number of runs of each implementation on each number of workers.
    pub runs: usize,
    /// The size of a run.
    pub size: Size,
}

impl Options {
    /// Returns 1, and `workers` if that is more.
    pub fn one_and(workers: usize) -> Vec<usize> {
        if workers > 1 { vec![1, workers] } else { vec![1] }
    }
}

/// An implementation on a number of workers, with its runs.
#[derive(Clone, Debug)]
pub struct Contender {
    /// The implementation.
    pub implementation: Implementation,
    /// The number of its workers or threads.
    pub workers: usize,
    /// Its runs in their order. Empty after a failure.
    pub runs: Vec<Run>,
}

impl Contender {
    /// Returns the nanoseconds per operation of each run.
    pub fn times(&self) -> Vec<f64> {
        self.runs.iter().map(Run::ns_per_op).collect()
    }
}

/// The runs of one pattern with one amount of work.
pub struct Measured {
    /// The pattern.
    pub pattern: &'static Pattern,
    /// The nanoseconds of work with each message.
    pub work_ns: u32,
    /// All implementations on all numbers of workers.
    pub contenders: Vec<Contender>,
    /// The CPU time of other programs.
    pub others: Others,
    /// The runs that failed.
    pub failures: Vec<String>,
}

impl Measured {
    /// Runs all contenders once per round. Every other round has the reverse order, because neighbours in time may disturb each other.
    /// Calls `on_run` with the name of each run before it.
    pub fn measure(pattern: &'static Pattern, work_ns: u32, options: &Options, mut on_run: impl FnMut(&str)) -> Self {
        let load = Load { work: Work::of_ns(work_ns), size: options.size };
        let contenders = options.workers.iter().flat_map(|&workers| {
            Implementation::ALL.map(|implementation| Contender { implementation, workers, runs: Vec::new() })
        });
        let mut contenders: Vec<_> = contenders.collect();
        let (mut failures, mut failed) = (Vec::new(), vec![false; contenders.len()]);
        let before = CpuTimes::now();
        for round in 0..options.runs.max(1) {
            for at in 0..contenders.len() {
                let at = if round % 2 == 0 { at } else { contenders.len() - 1 - at };
                if failed[at] {
                    continue;
                }
                let Contender { implementation, workers, runs } = &mut contenders[at];
                let name = run_name(pattern, *implementation, work_ns, *workers);
                on_run(&name);
                match implementation.run(pattern, &load, *workers, options.stages_per_worker) {
                    Ok(run) => runs.push(run),
                    Err(failure) => {
                        failed[at] = true;
                        runs.clear();
                        failures.push(format!("{name}: {failure}"));
                    }
                }
            }
        }
        let others = Others::between(before, CpuTimes::now());
        Self { pattern, work_ns, contenders, others, failures }
    }

    /// Returns the runs of an implementation on a number of workers. Returns no runs after a failure, or if `workers` was not measured.
    pub fn runs(&self, implementation: Implementation, workers: usize) -> &[Run] {
        let is_it = |of: &&Contender| of.implementation == implementation && of.workers == workers;
        self.contenders.iter().find(is_it).map_or(&[], |contender| &contender.runs)
    }

    /// Returns the numbers of workers, from few to many.
    pub fn workers(&self) -> Vec<usize> {
        let ours = self.contenders.iter().filter(|contender| contender.implementation == Implementation::Playhouse);
        ours.map(|contender| contender.workers).collect()
    }

    /// Returns the speed-up of an implementation on this number of workers against one worker.
    pub fn speedup(&self, implementation: Implementation, workers: usize) -> Option<Estimate> {
        ratio(self.runs(implementation, 1), self.runs(implementation, workers))
    }

    /// Returns the time of Playhouse divided by that of tokio, on this number of workers.
    pub fn tokio_ratio(&self, workers: usize) -> Option<Estimate> {
        ratio(self.runs(Implementation::Playhouse, workers), self.runs(Implementation::Tokio, workers))
    }
}

/// Returns a warning for each pattern during which other programs took too much of the CPU time.
pub fn unrest(measured: &[Measured]) -> Vec<String> {
    let patterns = measured.chunk_by(|one, next| one.pattern.name == next.pattern.name);
    let unrest = patterns.filter_map(|of| {
        let mut others = Others::default();
        of.iter().for_each(|measured| others += measured.others);
        others.unrest(of[0].pattern.name)
    });
    unrest.collect()
}

/// Returns the name of a run: `scaling-tree: tokio, 1 µs, 2 workers`.
fn run_name(pattern: &Pattern, implementation: Implementation, work_ns: u32, workers: usize) -> String {
    let plural = if workers == 1 { "" } else { "s" };
    format!("{}: {}, {}, {workers} worker{plural}", pattern.name, implementation.name(), work_text(work_ns))
}

/// Formats an amount of work: `0`, `0.1 µs`.
pub fn work_text(work_ns: u32) -> String {
    if work_ns == 0 { "0".to_owned() } else { format!("{} µs", f64::from(work_ns) / 1_000.0) }
}

/// Returns the ratio of the median times of runs in the same turns. Returns `None` without runs, or if one has fewer runs than the other.
fn ratio(runs: &[Run], others: &[Run]) -> Option<Estimate> {
    let times = |runs: &[Run]| runs.iter().map(Run::ns_per_op).collect::<Vec<_>>();
    (runs.len() == others.len()).then(|| Estimate::of_ratio(&times(runs), &times(others))).flatten()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn runs_have_readable_names() {
        assert_eq!([0, 100, 1_000, 1_500].map(work_text), ["0", "0.1 µs", "1 µs", "1.5 µs"]);
        let pattern = Pattern::find("scaling-tree")[0];
        assert_eq!(run_name(pattern, Implementation::Tokio, 1_000, 2), "scaling-tree: tokio, 1 µs, 2 workers");
        assert_eq!([1, 2, 8].map(Options::one_and), [vec![1], vec![1, 2], vec![1, 8]]);
    }

    #[test]
    fn ratios_compare_runs_of_the_same_turns() {
        let run = |ns| Run { ops: 1, elapsed: Duration::from_nanos(ns), activity: None };
        let (slow, fast) = ([run(20), run(40), run(30)], [run(10), run(20), run(15)]);
        assert_eq!(ratio(&slow, &fast), Some(Estimate { median: 2.0, interval: Some((2.0, 2.0)) }));
        assert_eq!((ratio(&slow, &fast[..2]), ratio(&[], &[])), (None, None));
    }

    #[test]
    fn contenders_take_turns_and_the_next_round_has_the_reverse_order() {
        let pattern = Pattern::find("scaling-independent")[0];
        let options = Options { workers: vec![1, 2], stages_per_worker: Some(2), runs: 2, size: Size::Smoke };
        let mut names = Vec::new();
        let measured = Measured::measure(pattern, 0, &options, |name| names.push(name.to_owned()));
        assert!(measured.failures.is_empty(), "{:?}", measured.failures);
        assert_eq!(names.len(), 12);
        assert_eq!(names[0], "scaling-independent: playhouse, 0, 1 worker");
        assert!(names[..6].iter().rev().eq(&names[6..]), "{names:?}");
        assert!(measured.contenders.iter().all(|contender| contender.times().len() == 2));
        assert_eq!(measured.workers(), [1, 2]);
        assert_eq!(measured.speedup(Implementation::Tokio, 1).unwrap().median, 1.0);
        assert!(measured.tokio_ratio(2).is_some() && measured.tokio_ratio(3).is_none());
    }

    #[test]
    fn a_failure_ends_the_runs_of_its_contender_only() {
        fn wrong(_: usize, _: &mut super::super::stopwatch::Stopwatch, _: &Load) -> Result<u64, crate::Failure> {
            Err(crate::Failure::new("as intended"))
        }

        static BROKEN: std::sync::LazyLock<Pattern> =
            std::sync::LazyLock::new(|| Pattern { threads: wrong, ..*Pattern::find("scaling-independent")[0] });
        let options = Options { workers: vec![1], stages_per_worker: None, runs: 3, size: Size::Smoke };
        let measured = Measured::measure(&BROKEN, 0, &options, |_| ());
        assert_eq!(measured.failures, ["scaling-independent: threads, 0, 1 worker: as intended"]);
        assert_eq!(measured.contenders.iter().map(|of| of.runs.len()).collect::<Vec<_>>(), [3, 3, 0]);
    }
}
