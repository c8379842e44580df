//! Blocking and long work on threads of its own, so that it never holds a worker (the resource actors of
//! actor4j §V).
//!
//! A [`ResourcePool`] has a fixed number of threads and a bounded queue. An actor whose handlers have their work done there is a
//! resource actor: [`run`](ResourcePool::run) in an `async` handler, [`try_run`](ResourcePool::try_run) with
//! [`then`](Job::then) in one that is not. For one actor that blocks all the time, there is also
//! [`Placement::Dedicated`](playhouse_actor::Placement::Dedicated), a thread of its own.

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

/// Threads for blocking and long work, and a bounded queue in front of them: see [the module](self). Clones are handles to the
/// same pool, which stops when the last one is dropped.
///
/// In a simulated system the work is done by the thread that runs the system, in an order drawn from the seed. There, it cannot
/// wait for actors, and takes as much virtual time as [`simulate_times`](ResourcePool::simulate_times) and
/// [`simulate_stalls`](ResourcePool::simulate_stalls) say: none, where nothing else is asked for.
#[derive(Clone)]
pub struct ResourcePool {
    handle: Arc<Handle>,
}

/// Stops the pool when it is dropped.
struct Handle {
    shared: Arc<Shared>,
}

impl ResourcePool {
    /// Starts `threads` threads. At most so many jobs run, and at most `queue` wait.
    ///
    /// # Errors
    /// `threads` is 0, or a thread could not be started.
    pub fn start(system: &System, threads: usize, queue: usize) -> io::Result<ResourcePool> {
        if threads == 0 {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "a resource pool needs at least one thread"));
        }
        // Other numbers than those that the run of the system itself is drawn from.
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
        // Dropped on an error, it stops the threads that were started.
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

    /// Has `work` done by one of the threads, and waits while there is no room for it: in an `async` handler, or in any async
    /// code, by `.await`; in a thread outside by `.wait()`. An actor that waits is slowed down by it.
    ///
    /// An actor that is killed while it waits cancels the work. One that is stopped goes on to the end of its handler, as ever.
    pub fn run<R, F>(&self, work: F) -> Run<R, F>
    where
        R: Send + 'static,
        F: FnOnce(&CancelToken) -> R + Send + 'static,
    {
        Run { shared: Arc::clone(&self.handle.shared), work: Some(work), waiter: None, job: None }
    }

    /// Has `work` done by one of the threads, if there is room for it; never waits.
    ///
    /// # Errors
    /// There is no room, or the pool was stopped: the work is given back.
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

    /// In a simulated system, has each job that is begun from now on take from `least` to `most` of virtual time, drawn from the
    /// seed; its effect and its result come at the end of that, rounded up to the next millisecond. No more jobs run at one time than the pool has threads. On threads
    /// it does nothing: work takes the time that it takes.
    ///
    /// # Panics
    /// If `least` is more than `most`.
    pub fn simulate_times(&self, least: Duration, most: Duration) {
        assert!(least <= most, "work cannot take {least:?} at least and {most:?} at most");
        let mut state = lock(&self.handle.shared.state);
        (state.times.least, state.times.most) = (least, most);
    }

    /// In a simulated system, has about one in `one_in` of the jobs that are begun from now on take `stall` longer, drawn from the
    /// seed, as a disk does that is worn out; none, if `one_in` is 0. On threads it does nothing.
    pub fn simulate_stalls(&self, one_in: u64, stall: Duration) {
        lock(&self.handle.shared.state).times.stalls = (one_in, stall);
    }

    /// Stops the pool: what waits is not done any more and fails with [`JobError::Stopped`], what runs can see that it is
    /// cancelled. Waits until all of it has returned, for up to `limit`. Stopping again waits again.
    ///
    /// It blocks: in a handler, use a limit of zero.
    ///
    /// # Errors
    /// Something has not returned in time.
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
