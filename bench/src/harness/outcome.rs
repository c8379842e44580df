//! What one run of a workload gives: its size, its outcome, or what was wrong with it.

use std::fmt::{self, Debug, Display};
use std::str::FromStr;
use std::time::Duration;

use crate::report::latency::{Cdf, Latency};

/// How much of a workload to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// Tiny: every code path, well under a second. For tests.
    Smoke,
    /// The size the figures of this project are quoted for; between a tenth of a second and a few seconds.
    Default,
    /// The size of the paper the workload is from, where it has one; the default size elsewhere.
    Paper,
}

impl Size {
    /// All sizes.
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

    /// The parameter of a workload whose default size is the paper's.
    pub(crate) fn smoke_or<T>(self, smoke: T, original: T) -> T {
        if self == Self::Smoke { smoke } else { original }
    }

    /// How long a single run may take before it counts as stalled. Far above what any run needs.
    pub(crate) fn deadline(self) -> Duration {
        Duration::from_secs(self.pick(60, 120, 3_600))
    }
}

impl FromStr for Size {
    type Err = Failure;

    fn from_str(name: &str) -> Result<Self, Failure> {
        let found = Self::ALL.into_iter().find(|size| size.name() == name);
        found.ok_or_else(|| Failure::new(format!("`{name}` is no size; the sizes are smoke, default and paper")))
    }
}

/// One successful run.
#[derive(Clone, Copy, Debug)]
pub struct Outcome {
    /// How many operations were done.
    pub ops: u64,
    /// From the start event to the final state.
    pub elapsed: Duration,
    /// How long those who asked on the side waited for their answers, if anybody did.
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
    /// So many operations in this time.
    pub fn new(ops: u64, elapsed: Duration) -> Self {
        Self { ops, elapsed, latency: None, cdf: None, server: None }
    }

    /// The same, and how long those who asked on the side waited each time, in nanoseconds.
    pub(crate) fn with_waits(self, mut times_ns: Vec<u64>) -> Self {
        Self { latency: Some(Latency::of(&mut times_ns)), cdf: Cdf::of(&mut times_ns), ..self }
    }

    /// Nanoseconds per operation.
    pub fn ns_per_op(&self) -> f64 {
        self.elapsed.as_nanos() as f64 / self.ops.max(1) as f64
    }

    /// Nanoseconds of the server's processor time per operation, if there is a server.
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

/// Compares a workload's result with what it must be.
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
