//! The size, the outcome and the failure of one run of a workload.

use std::fmt::{self, Debug, Display};
use std::str::FromStr;
use std::time::Duration;

use crate::report::latency::{Cdf, Latency};

/// The amount of work of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// Tiny: every code path, well under a second. For tests.
    Smoke,
    /// The size the figures of this project are quoted for; between a tenth of a second and a few seconds.
    Default,
    /// The size of the workload's paper, where it has one; otherwise the default size.
    Paper,
}

impl Size {
    /// Every size.
    pub const ALL: [Self; 3] = [Self::Smoke, Self::Default, Self::Paper];

    /// The name used on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Smoke => "smoke",
            Self::Default => "default",
            Self::Paper => "paper",
        }
    }

    /// Picks the parameter that belongs to this size.
    pub(crate) fn pick<T>(self, smoke: T, default: T, paper: T) -> T {
        match self {
            Self::Smoke => smoke,
            Self::Default => default,
            Self::Paper => paper,
        }
    }

    /// Picks the parameter of a workload whose default size is the paper's.
    pub(crate) fn smoke_or<T>(self, smoke: T, original: T) -> T {
        if self == Self::Smoke { smoke } else { original }
    }

    /// Returns the time after which a single run counts as stalled, far above the need of any run.
    pub(crate) fn deadline(self) -> Duration {
        Duration::from_secs(self.pick(60, 120, 3_600))
    }
}

impl FromStr for Size {
    type Err = Failure;

    fn from_str(name: &str) -> Result<Self, Failure> {
        let found = Self::ALL.into_iter().find(|size| size.name() == name);
        found.ok_or_else(|| Failure::new(format!("`{name}` is not a size; the sizes are smoke, default and paper")))
    }
}

/// The outcome of one successful run.
#[derive(Clone, Copy, Debug)]
pub struct Outcome {
    /// The number of operations.
    pub ops: u64,
    /// The time from the start event to the final state.
    pub elapsed: Duration,
    /// The waiting times of the asks beside the workload, if there were any.
    pub latency: Option<Latency>,
    /// The whole distribution of that.
    pub cdf: Option<Cdf>,
    /// The server's use of processor and memory, if another process did the work.
    pub server: Option<ServerUsage>,
}

/// A server's use of processor and memory.
#[derive(Clone, Copy, Debug)]
pub struct ServerUsage {
    /// The processor time of all its threads from the first request to the last answer; `None` where the operating system does not say.
    pub cpu: Option<Duration>,
    /// Its peak memory in MiB; `None` where the operating system does not say.
    pub peak_rss_mb: Option<f64>,
}

impl Outcome {
    /// Creates an outcome of this number of operations in this time.
    pub fn new(ops: u64, elapsed: Duration) -> Self {
        Self { ops, elapsed, latency: None, cdf: None, server: None }
    }

    /// Adds the waiting times of the asks beside the workload, in nanoseconds.
    pub(crate) fn with_waits(self, mut times_ns: Vec<u64>) -> Self {
        Self { latency: Some(Latency::of(&mut times_ns)), cdf: Cdf::of(&mut times_ns), ..self }
    }

    /// Nanoseconds per operation.
    pub fn ns_per_op(&self) -> f64 {
        self.elapsed.as_nanos() as f64 / self.ops.max(1) as f64
    }

    /// Returns nanoseconds of the server's processor time per operation, if there is a server.
    pub fn cpu_ns_per_op(&self) -> Option<f64> {
        Some(self.server?.cpu?.as_nanos() as f64 / self.ops.max(1) as f64)
    }
}

/// Why a benchmark has no outcome: a wrong result, a stall, a system that did not start, a child that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure(String);

impl Failure {
    /// A failure with this explanation.
    pub fn new(explanation: impl Into<String>) -> Self {
        Self(explanation.into())
    }
}

impl Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Failure {}

/// Compares a workload's result with the expected one.
///
/// # Errors
///
/// A [`Failure`] that names `what`, the expected and the found value, if they differ.
pub fn check<T: PartialEq + Debug>(what: &str, expected: T, found: T) -> Result<(), Failure> {
    if expected == found {
        Ok(())
    } else {
        Err(Failure::new(format!("wrong result: {what} should be {expected:?} and is {found:?}")))
    }
}
