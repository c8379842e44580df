//! What a benchmark is: one entry of the registry.

use playhouse::prelude::*;

use super::outcome::{Failure, Outcome, Size};
use super::steps::Steps;
use crate::report::{Report, Spread, Target, rounded};

/// One benchmark: what it is, how to run it on Playhouse, how to run its baseline, and what it should reach.
#[derive(Clone, Copy)]
pub struct Benchmark {
    /// The name used on the command line and in reports; unique.
    pub name: &'static str,
    /// What one operation is.
    pub op: &'static str,
    /// Where the workload comes from: the paper and its section, or the suite.
    pub source: &'static str,
    /// What happens, in one line.
    pub summary: &'static str,
    /// How idle workers steal. `None`: the runtime's default.
    pub stealing: Option<Stealing>,
    /// The fewest workers that the workload makes sense on.
    pub workers_min: usize,
    /// With which others it is called together.
    pub family: Family,
    /// Runs the workload once on a freshly started system. Only Savina's programs work with each message.
    pub workload: fn(&System, Size, Steps) -> Result<Outcome, Failure>,
    /// What it is measured against, in turns, if there is something.
    pub baseline: Option<Baseline>,
    /// What it should reach, if that is settled.
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
    /// Those of one system, with this project's sizes.
    Local,
    /// Those of actors that other theaters reach.
    Remote,
    /// The 30 programs of the Savina suite, with its sizes.
    Savina,
}

impl Family {
    /// All families.
    pub const ALL: [Self; 3] = [Self::Local, Self::Remote, Self::Savina];

    /// What its benchmarks are called together.
    pub fn name(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::Remote => "remote",
            Self::Savina => "savina",
        }
    }
}

/// What a workload is measured against.
#[derive(Clone, Copy)]
pub enum Baseline {
    /// Its baseline: the same written by hand, without actors. Runs it once.
    Hand(fn(Size) -> Result<Outcome, Failure>),
    /// Another benchmark: the same with actors that can do less, where what is asked is what the rest costs.
    Benchmark(&'static Benchmark),
}

#[cfg(test)]
pub(crate) mod tests {
    use std::time::Duration;

    use super::*;

    /// A benchmark without a workload, for tests of what is written about benchmarks.
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
