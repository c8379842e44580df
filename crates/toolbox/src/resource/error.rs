//! What can go wrong.

use std::fmt;

/// Why work has no result.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum JobError {
    /// It has panicked; the panic's message.
    Panicked(String),
    /// The pool was stopped before it was begun.
    Stopped,
}

impl fmt::Display for JobError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            JobError::Panicked(message) => write!(f, "the work has panicked: {message}"),
            JobError::Stopped => f.write_str("the resource pool was stopped before the work was begun"),
        }
    }
}

impl std::error::Error for JobError {}

/// Work that was not taken, given back.
#[non_exhaustive]
pub enum TryRunError<F> {
    /// So much runs and waits as is allowed to.
    Full(F),
    /// The pool was stopped.
    Stopped(F),
}

impl<F> TryRunError<F> {
    /// The work.
    pub fn into_work(self) -> F {
        match self {
            TryRunError::Full(work) | TryRunError::Stopped(work) => work,
        }
    }
}

impl<F> fmt::Debug for TryRunError<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TryRunError::Full(_) => "Full(..)",
            TryRunError::Stopped(_) => "Stopped(..)",
        })
    }
}

impl<F> fmt::Display for TryRunError<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TryRunError::Full(_) => "the resource pool is full: all its threads are busy, and its queue has no room",
            TryRunError::Stopped(_) => "the resource pool was stopped",
        })
    }
}

impl<F> std::error::Error for TryRunError<F> {}

/// A pool was stopped, and some of its work has not returned in time. Its threads go on until it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StillRunning {
    /// How many jobs.
    pub jobs: usize,
}

impl fmt::Display for StillRunning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} job(s) of the resource pool have not returned in time: they should look at their cancel token",
            self.jobs
        )
    }
}

impl std::error::Error for StillRunning {}
