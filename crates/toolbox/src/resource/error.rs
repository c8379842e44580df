//! The errors of a pool and of its work.

use std::fmt;

/// An error of work that has no result.
///
/// # Examples
///
/// ```
/// use playhouse::prelude::*;
/// use playhouse::resource::{JobError, ResourcePool};
///
/// let system = System::start()?;
/// let pool = ResourcePool::start(&system, 1, 10)?;
/// let failed = pool.run(|_| -> u32 { panic!("no disk") }).wait();
/// assert_eq!(failed, Err(JobError::Panicked("no disk".to_owned())));
/// # system.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum JobError {
    /// The work has panicked with this message.
    Panicked(String),
    /// The pool was stopped before the work began.
    Stopped,
}

impl fmt::Display for JobError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            JobError::Panicked(message) => write!(f, "the work has panicked: {message}"),
            JobError::Stopped => f.write_str("the resource pool was stopped before the work began"),
        }
    }
}

impl std::error::Error for JobError {}

/// An error of [`ResourcePool::try_run`](super::ResourcePool::try_run) that gives the work back.
///
/// # Examples
///
/// ```
/// use playhouse::prelude::*;
/// use playhouse::resource::{ResourcePool, TryRunError};
/// use std::time::Duration;
///
/// let system = System::start()?;
/// let pool = ResourcePool::start(&system, 1, 10)?;
/// pool.stop_within(Duration::ZERO)?;
/// match pool.try_run(|_| 7) {
///     Err(TryRunError::Stopped(_work)) => {}
///     other => panic!("{other:?}"),
/// }
/// # system.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[non_exhaustive]
pub enum TryRunError<F> {
    /// All threads are busy, and the queue is full.
    Full(F),
    /// The pool was stopped.
    Stopped(F),
}

impl<F> TryRunError<F> {
    /// Returns the work that was not taken.
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
            TryRunError::Full(_) => "the resource pool is full: all threads are busy and the queue has no room; try again later, or use `run`, which waits",
            TryRunError::Stopped(_) => "the resource pool was stopped",
        })
    }
}

impl<F> std::error::Error for TryRunError<F> {}

/// An error: a pool was stopped, and some of its work has not returned in time. The threads of that work end when it
/// returns.
///
/// # Examples
///
/// ```
/// use playhouse::prelude::*;
/// use playhouse::resource::ResourcePool;
/// use std::time::Duration;
///
/// let system = System::start()?;
/// let pool = ResourcePool::start(&system, 2, 10)?;
/// if let Err(late) = pool.stop_within(Duration::from_secs(1)) {
///     eprintln!("{} jobs are still running", late.jobs);
/// }
/// # system.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StillRunning {
    /// The number of running jobs.
    pub jobs: usize,
}

impl fmt::Display for StillRunning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} job(s) of the resource pool have not returned in time: let them check their cancel token",
            self.jobs
        )
    }
}

impl std::error::Error for StillRunning {}
