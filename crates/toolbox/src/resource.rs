//! Blocking and long work on threads of its own, so that it never holds a worker (the resource actors of
//! actor4j §V).
//!
//! A [`ResourcePool`] has a fixed number of threads and a bounded queue. An actor whose handlers have their work done there is a
//! resource actor: [`run`](ResourcePool::run) in an `async` handler, [`try_run`](ResourcePool::try_run) with
//! [`then`](Job::then) in one that is not. For one actor that blocks all the time, there is also
//! [`Placement::Dedicated`](playhouse_actor::Placement::Dedicated), a thread of its own.

mod job;

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::task::Waker;
use std::time::{Duration, Instant};

use playhouse_actor::{ActorId, System};

use crate::block::{describe, lock};

pub use job::{Job, Run};
use job::{Slot, fill};

/// Threads for blocking and long work, and a bounded queue in front of them: see [the module](self). Clones are handles to the
/// same pool, which stops when the last one is dropped.
///
/// In a simulated system the work is done by the thread that runs the system, in an order drawn from the seed and in no
/// virtual time. There, it cannot wait for actors.
#[derive(Clone)]
pub struct ResourcePool {
    handle: Arc<Handle>,
}

/// Stops the pool when it is dropped.
struct Handle {
    shared: Arc<Shared>,
}

struct Shared {
    system: System,
    /// Of jobs that run or wait.
    most: usize,
    threads: usize,
    stopped: Arc<AtomicBool>,
    state: Mutex<State>,
    ready: Condvar,
    idle: Condvar,
}

#[derive(Default)]
struct State {
    queue: VecDeque<Entry>,
    running: usize,
    next: u64,
    /// Who waits for room, with its number. The first one is woken when there is room.
    waiting: VecDeque<(u64, Waker)>,
}

struct Entry {
    number: u64,
    token: CancelToken,
    work: Work,
}

/// Does the work, unless it is said why not; returns how to tell of it.
type Work = Box<dyn FnOnce(Result<CancelToken, JobError>) -> Tell + Send>;
type Tell = Box<dyn FnOnce()>;

/// Says to work under way that nobody waits for it any more.
#[derive(Clone, Debug)]
pub struct CancelToken {
    cancelled: Arc<AtomicBool>,
    pool_stopped: Arc<AtomicBool>,
    owner: Arc<OnceLock<ActorId>>,
}

impl CancelToken {
    /// Whether the work is for nothing: its [`Job`] was dropped, the actor that was to have it has ended, or the pool was
    /// stopped. Long work looks now and then, and returns.
    pub fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
            || self.pool_stopped.load(Ordering::Relaxed)
            || self.owner.get().is_some_and(|owner| owner.address().is_stale())
    }
}

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

impl ResourcePool {
    /// Starts `threads` threads. At most so many jobs run, and at most `queue` wait.
    ///
    /// # Errors
    /// `threads` is 0, or a thread could not be started.
    pub fn start(system: &System, threads: usize, queue: usize) -> io::Result<ResourcePool> {
        if threads == 0 {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "a resource pool needs at least one thread"));
        }
        let shared = Arc::new(Shared {
            system: system.clone(),
            most: threads.saturating_add(queue),
            threads,
            stopped: Arc::default(),
            state: Mutex::default(),
            ready: Condvar::new(),
            idle: Condvar::new(),
        });
        // Dropped on an error, it stops the threads that were started.
        let pool = ResourcePool { handle: Arc::new(Handle { shared: Arc::clone(&shared) }) };
        if !shared.is_simulated() {
            for number in 0..threads {
                let shared = Arc::clone(&shared);
                let builder = std::thread::Builder::new().name(format!("playhouse-resource-{number}"));
                builder.spawn(move || shared.serve())?;
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
        Run { shared: Arc::clone(&self.handle.shared), work: Some(work), waits_as: None, job: None }
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
        shared.put(&mut lock(&shared.state), work)
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

impl Shared {
    fn is_simulated(&self) -> bool {
        self.system.core().config().simulated.is_some()
    }

    fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    fn has_room(&self, state: &State) -> bool {
        state.queue.len() + state.running < self.most
    }

    /// Queues `work`, if there is room.
    fn put<R, F>(self: &Arc<Self>, state: &mut State, work: F) -> Result<Job<R>, TryRunError<F>>
    where
        R: Send + 'static,
        F: FnOnce(&CancelToken) -> R + Send + 'static,
    {
        if self.is_stopped() {
            return Err(TryRunError::Stopped(work));
        }
        if !self.has_room(state) {
            return Err(TryRunError::Full(work));
        }
        let token =
            CancelToken { cancelled: Arc::default(), pool_stopped: Arc::clone(&self.stopped), owner: Arc::default() };
        let slot = Arc::new(Mutex::new(Slot { result: None, waker: None }));
        let filled = Arc::clone(&slot);
        let work = move |go: Result<CancelToken, JobError>| {
            let result = go.and_then(|token| {
                catch_unwind(AssertUnwindSafe(|| work(&token))).map_err(|panic| JobError::Panicked(describe(&*panic)))
            });
            Box::new(move || fill(&filled, result)) as Tell
        };
        let number = state.next;
        state.next += 1;
        state.queue.push_back(Entry { number, token: token.clone(), work: Box::new(work) });
        if self.is_simulated() {
            let shared = Arc::clone(self);
            let task = move || {
                let next = lock(&shared.state).queue.pop_front();
                next.into_iter().for_each(|entry| shared.work_on(entry));
                None
            };
            self.system.core().start_timer(Duration::ZERO, Box::new(task));
        } else {
            self.ready.notify_one();
        }
        Ok(Job { shared: Arc::clone(self), number, token, slot })
    }

    /// What each thread does.
    fn serve(&self) {
        loop {
            let mut state = lock(&self.state);
            let entry = loop {
                if let Some(entry) = state.queue.pop_front() {
                    break entry;
                }
                if self.is_stopped() {
                    return;
                }
                state = self.ready.wait(state).unwrap_or_else(PoisonError::into_inner);
            };
            state.running += 1;
            drop(state);
            self.work_on_counted(entry);
        }
    }

    fn work_on(&self, entry: Entry) {
        lock(&self.state).running += 1;
        self.work_on_counted(entry);
    }

    fn work_on_counted(&self, Entry { token, work, .. }: Entry) {
        // Whoever would have the result is gone: nobody sees this error.
        let go = if token.is_cancelled() { Err(JobError::Stopped) } else { Ok(token) };
        let tell = work(go);
        {
            let mut state = lock(&self.state);
            state.running -= 1;
            if state.running == 0 {
                self.idle.notify_all();
            }
            self.call_first(&state);
        }
        // Behind the lock, and when there is room: who is told may come with more.
        tell();
    }

    /// Wakes who waits first, if there is room.
    fn call_first(&self, state: &State) {
        if let Some((_, waker)) = state.waiting.front()
            && (self.has_room(state) || self.is_stopped())
        {
            waker.wake_by_ref();
        }
    }

    fn stop(&self) {
        let (queue, waiting) = {
            let mut state = lock(&self.state);
            self.stopped.store(true, Ordering::Relaxed);
            (std::mem::take(&mut state.queue), std::mem::take(&mut state.waiting))
        };
        self.ready.notify_all();
        for entry in queue {
            (entry.work)(Err(JobError::Stopped))();
        }
        for (_, waker) in waiting {
            waker.wake();
        }
    }
}
