//! One entry of the registry: a benchmark.

use playhouse::prelude::*;

use super::outcome::{Failure, Outcome, Size};
use super::steps::Steps;
use crate::report::{Report, Spread, Target, rounded};

/// A benchmark: its description, its workload on Playhouse, its baseline, and its target.
#[derive(Clone, Copy)]
pub struct Benchmark {
    /// The name used on the command line and in reports; unique.
    pub name: &'static str,
    /// The unit of one operation.
    pub op: &'static str,
    /// The paper and section of the workload, or its suite.
    pub source: &'static str,
    /// A description of the workload, in one line.
    pub summary: &'static str,
    /// The stealing of idle workers. `None`: the runtime's default.
    pub stealing: Option<Stealing>,
    /// The fewest workers that the workload makes sense on.
    pub workers_min: usize,
    /// The group of the benchmark.
    pub family: Family,
    /// Runs the workload once on a freshly started system. Only Savina's programs work with each message.
    pub workload: fn(&System, Size, Steps) -> Result<Outcome, Failure>,
    /// The comparison, which runs in turns with the workload, if there is one.
    pub baseline: Option<Baseline>,
    /// The bounds that the benchmark should keep, if they are settled.
    pub target: Option<Target>,
}

impl Benchmark {
    /// Puts the figures together; `(workers, stages)` is the system's `shape`.
    pub(crate) fn report(
        &self,
        outcome: &Outcome,
        workload_ns: Spread,
        baseline_ns: Option<f64>,
        peak_rss_mb: Option<f64>,
        shape: (usize, usize),
    ) -> Report {
        Report {
            bench: self.name.to_owned(),
            op: self.op.to_owned(),
            ops: outcome.ops,
            ns_per_op: rounded(workload_ns.median),
            min: rounded(workload_ns.min),
            max: rounded(workload_ns.max),
            baseline_ns_per_op: baseline_ns.map(rounded),
            ratio: baseline_ns.map(|baseline_ns| rounded(workload_ns.median / baseline_ns)),
            peak_rss_mb: peak_rss_mb.map(rounded),
            workers: shape.0,
            stages: shape.1,
            latency: outcome.latency,
            cpu_ns_per_op: outcome.cpu_ns_per_op().map(rounded),
            target: None,
            reached: None,
        }
    }
}

/// Benchmarks that belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// Benchmarks of one system, with this project's sizes.
    Local,
    /// Benchmarks with actors that other theaters reach.
    Remote,
    /// The 30 programs of the Savina suite, with its sizes.
    Savina,
}

impl Family {
    /// Every family.
    pub const ALL: [Self; 3] = [Self::Local, Self::Remote, Self::Savina];

    /// Returns the common name of the family's benchmarks.
    pub fn name(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::Remote => "remote",
            Self::Savina => "savina",
        }
    }
}

/// The comparison for a workload.
#[derive(Clone, Copy)]
pub enum Baseline {
    /// Its baseline: the same written by hand, without actors. Runs it once.
    Hand(fn(Size) -> Result<Outcome, Failure>),
    /// Another benchmark, whose actors can do less: the ratio is the price of the difference.
    Benchmark(&'static Benchmark),
}

#[cfg(test)]
pub(crate) mod tests {
    use std::time::Duration;

    use super::*;

    /// A benchmark without a workload, for tests of tables.
    pub(crate) fn named(name: &'static str) -> Benchmark {
        Benchmark {
            name,
            op: "message",
            source: "a test",
            summary: "nothing",
            stealing: None,
            workers_min: 1,
            family: Family::Local,
            workload: |_, _, _| Ok(Outcome::new(1, Duration::ZERO)),
            baseline: None,
            target: None,
        }
    }
}
