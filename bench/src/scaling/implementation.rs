//! The three implementations of each pattern.

use std::time::{Duration, Instant};

use playhouse::prelude::*;

use super::activity::Activity;
use super::load::Load;
use super::pattern::Pattern;
use super::stopwatch::Stopwatch;
use crate::harness::memory;
use crate::harness::outcome::Failure;

/// One of the compared programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Implementation {
    /// Actors of this runtime.
    Playhouse,
    /// Tokio tasks with channels.
    Tokio,
    /// Hand-written threads with queues of their own.
    Threads,
}

/// The figures of one run.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    /// The number of operations.
    pub ops: u64,
    /// The time of the measured sections.
    pub elapsed: Duration,
    /// The activity of the workers. `None` for tokio and for threads.
    pub activity: Option<Activity>,
}

impl Run {
    /// Returns the nanoseconds per operation.
    pub fn ns_per_op(&self) -> f64 {
        self.elapsed.as_nanos() as f64 / self.ops.max(1) as f64
    }
}

impl Implementation {
    /// All implementations.
    pub const ALL: [Self; 3] = [Self::Playhouse, Self::Tokio, Self::Threads];

    /// Returns the name used in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Playhouse => "playhouse",
            Self::Tokio => "tokio",
            Self::Threads => "threads",
        }
    }

    /// Runs a pattern once on `workers` threads. Only Playhouse has stages.
    ///
    /// # Errors
    ///
    /// Fails if the result is wrong, if the run stalls, or if the threads cannot be started.
    pub fn run(self, pattern: &Pattern, load: &Load, workers: usize, stages: Option<usize>) -> Result<Run, Failure> {
        memory::release_freed();
        match self {
            Self::Playhouse => playhouse(pattern, load, workers, stages),
            Self::Tokio => tokio(pattern, load, workers),
            Self::Threads => {
                let mut watch = Stopwatch::new(load.size, None);
                let ops = (pattern.threads)(workers, &mut watch, load)?;
                Ok(Run { ops, elapsed: watch.times()?.elapsed, activity: None })
            }
        }
    }
}

fn playhouse(pattern: &Pattern, load: &Load, workers: usize, stages: Option<usize>) -> Result<Run, Failure> {
    let mut builder = System::builder().workers(workers);
    if let Some(stages) = stages {
        builder = builder.stages(stages * workers);
    }
    let system = builder.start().map_err(|error| Failure::new(error.to_string()))?;
    let mut watch = Stopwatch::new(load.size, Some(&system));
    // A failure leaves the system running until the process ends, because a stalled system may never shut down.
    let ops = (pattern.playhouse)(&system, &mut watch, load)?;
    let times = watch.times()?;
    let ended = Instant::now();
    let report = system.shutdown().map_err(|error| Failure::new(format!("the system does not shut down: {error}")))?;
    let activity = Activity::of(&times, &report.stats, ended, workers);
    Ok(Run { ops, elapsed: times.elapsed, activity: Some(activity) })
}

fn tokio(pattern: &Pattern, load: &Load, workers: usize) -> Result<Run, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(workers).build();
    let runtime = runtime.map_err(|error| Failure::new(format!("tokio's threads could not be started: {error}")))?;
    let mut watch = Stopwatch::new(load.size, None);
    let ops = (pattern.tokio)(&runtime, &mut watch, load);
    // This does not wait for stalled tasks.
    runtime.shutdown_background();
    Ok(Run { ops: ops?, elapsed: watch.times()?.elapsed, activity: None })
}
