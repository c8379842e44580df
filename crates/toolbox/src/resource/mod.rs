//! Blocking and long work on threads of its own, which keeps it away from workers (the resource actors of actor4j
//! §V).
//!
//! A [`ResourcePool`] has a fixed number of threads and a bounded queue. An `async` handler uses
//! [`run`](ResourcePool::run). Any other handler uses [`try_run`](ResourcePool::try_run) with [`then`](Job::then). An
//! actor that blocks all the time is better started with
//! [`Placement::Dedicated`](playhouse_actor::Placement::Dedicated), which gives it a thread.
//!
//! # Examples
//!
//! ```
//! use playhouse::prelude::*;
//! use playhouse::resource::ResourcePool;
//!
//! struct Archive {
//!     disk: ResourcePool,
//! }
//!
//! #[actor]
//! impl Archive {
//!     #[message]
//!     async fn size(&mut self, path: String) -> Result<u64, String> {
//!         let read = move |_: &_| std::fs::metadata(path).map(|file| file.len());
//!         let size = self.disk.run(read).await.map_err(|error| error.to_string())?;
//!         size.map_err(|error| error.to_string())
//!     }
//! }
//!
//! let system = System::start()?;
//! let disk = ResourcePool::start(&system, 4, 100)?;
//! let archive = system.spawn(Archive { disk });
//! assert!(archive.ask(Size("/nowhere".to_owned())).wait()?.is_err());
//! # system.shutdown()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod cancel;
mod error;
mod job;
mod queue;
mod run;
mod simulated;

use std::fmt;
use std::io;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use playhouse_actor::{System, Uncounted};
use playhouse_executor::{Choices, SystemCore};

pub use self::cancel::CancelToken;
pub use self::error::{JobError, StillRunning, TryRunError};
pub use self::job::Job;
use self::queue::{Shared, State};
pub use self::run::Run;
use self::simulated::SimulatedTimes;
use crate::panics::lock;

/// A pool of threads for blocking and long work, with a bounded queue: see [the module](self). Clones are handles to
/// the same pool, which stops when the last one is dropped.
///
/// In a simulated system, the thread that runs the system does the work, in an order drawn from the seed. The work
/// cannot wait for actors. It takes the virtual time that [`simulate_times`](ResourcePool::simulate_times) and
/// [`simulate_stalls`](ResourcePool::simulate_stalls) set, by default none.
///
/// # Examples
///
/// ```
/// use playhouse::prelude::*;
/// use playhouse::resource::ResourcePool;
///
/// let system = System::start()?;
/// let pool = ResourcePool::start(&system, 2, 100)?;
/// assert_eq!(pool.run(|_| 6 * 7).wait()?, 42);
/// # system.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(alias = "spawn_blocking")]
#[doc(alias = "SyncArbiter")]
#[doc(alias = "dispatcher")]
#[doc(alias = "thread_pool")]
#[derive(Clone)]
pub struct ResourcePool {
    handle: Arc<Handle>,
}

/// The shared handle that stops the pool when it is dropped.
struct Handle {
    shared: Arc<Shared>,
}

impl ResourcePool {
    /// Starts a pool of `threads` threads. At most `threads` jobs run, and at most `queue` jobs wait.
    ///
    /// # Errors
    /// `threads` is 0, or a thread cannot be started.
    pub fn start(system: &System, threads: usize, queue: usize) -> io::Result<ResourcePool> {
        if threads == 0 {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "a resource pool needs at least one thread"));
        }
        // The seed is inverted, because the run of the system draws from the seed itself.
        let choices = system.core().config().simulated.map(|seed| Choices::new(!seed));
        let shared = Arc::new(Shared {
            system: Uncounted::of(system),
            capacity: threads.saturating_add(queue),
            threads,
            stopped: Arc::default(),
            state: Mutex::new(State {
                times: SimulatedTimes { choices, ..SimulatedTimes::default() },
                ..State::default()
            }),
            ready: Condvar::new(),
            idle: Condvar::new(),
        });
        // On an error, the drop of this pool stops the threads that were started.
        let pool = ResourcePool { handle: Arc::new(Handle { shared: Arc::clone(&shared) }) };
        if !shared.is_simulated() {
            for number in 0..threads {
                let shared = Arc::clone(&shared);
                let builder = std::thread::Builder::new().name(format!("playhouse-resource-{number}"));
                builder.spawn(move || shared.run_worker())?;
            }
        }
        Ok(pool)
    }

    /// Runs `work` on one of the threads, and waits while the pool is full. Use `.await` in an `async` handler, and
    /// `.wait()` in a thread outside. The wait slows the actor down.
    ///
    /// An actor that is killed during the wait cancels the work. An actor that is stopped finishes its handler first.
    pub fn run<R, F>(&self, work: F) -> Run<R, F>
    where
        R: Send + 'static,
        F: FnOnce(&CancelToken) -> R + Send + 'static,
    {
        Run { shared: Arc::clone(&self.handle.shared), work: Some(work), waiter: None, job: None }
    }

    /// Runs `work` on one of the threads, without a wait for room.
    ///
    /// # Errors
    /// The pool is full, or was stopped: the error gives the work back.
    pub fn try_run<R, F>(&self, work: F) -> Result<Job<R>, TryRunError<F>>
    where
        R: Send + 'static,
        F: FnOnce(&CancelToken) -> R + Send + 'static,
    {
        let shared = &self.handle.shared;
        shared.enqueue(&mut lock(&shared.state), work)
    }

    pub(crate) fn core(&self) -> &Arc<SystemCore> {
        self.handle.shared.system.core()
    }

    /// Sets the virtual time of jobs in a simulated system: from `least` to `most`, drawn from the seed. The setting
    /// holds for jobs that begin after the call. The effect and the result of a job come at the end of its time,
    /// rounded up to the next millisecond. No more jobs run at one time than the pool has threads. On threads the
    /// setting does nothing.
    ///
    /// # Panics
    /// `least` is greater than `most`.
    pub fn simulate_times(&self, least: Duration, most: Duration) {
        assert!(least <= most, "work cannot take {least:?} at least and {most:?} at most");
        let mut state = lock(&self.handle.shared.state);
        (state.times.least, state.times.most) = (least, most);
    }

    /// Adds `stall` to the virtual time of about one in `one_in` jobs of a simulated system, drawn from the seed. The
    /// setting models a worn disk, and holds for jobs that begin after the call. A `one_in` of 0 means no stalls. On
    /// threads the setting does nothing.
    pub fn simulate_stalls(&self, one_in: u64, stall: Duration) {
        lock(&self.handle.shared.state).times.stalls = (one_in, stall);
    }

    /// Stops the pool: queued jobs fail with [`JobError::Stopped`], and running jobs see that they are cancelled. The
    /// call blocks until all jobs have returned, for up to `limit`. A second call waits again.
    ///
    /// In a handler, use a limit of zero, because the call blocks.
    ///
    /// # Errors
    /// A job has not returned in time.
    pub fn stop_within(&self, limit: Duration) -> Result<(), StillRunning> {
        let shared = &self.handle.shared;
        shared.stop();
        if shared.is_simulated() {
            return shared.wait_idle_within(limit);
        }
        let deadline = Instant::now() + limit;
        let mut state = lock(&shared.state);
        while state.running > 0 {
            let Some(left) = deadline.checked_duration_since(Instant::now()).filter(|left| !left.is_zero()) else {
                return Err(StillRunning { jobs: state.running });
            };
            state = shared.idle.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        Ok(())
    }
}

impl fmt::Debug for ResourcePool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shared = &self.handle.shared;
        let state = lock(&shared.state);
        f.debug_struct("ResourcePool")
            .field("threads", &shared.threads)
            .field("running", &state.running)
            .field("queued", &state.queue.len())
            .finish()
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.shared.stop();
    }
}
