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

use playhouse_actor::{ActorId, System, Uncounted};
use playhouse_executor::{Choices, SystemCore};

use crate::block::{describe, lock};

pub use job::{Job, Run};
use job::{Slot, fill};

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

struct Shared {
    system: Uncounted,
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
    /// In simulation: how long work takes.
    times: Times,
}

/// How long work takes in simulation.
#[derive(Default)]
struct Times {
    least: Duration,
    most: Duration,
    /// About one job in so many (none, where it is 0) takes so much longer.
    stalls: (u64, Duration),
    /// In simulation only.
    choices: Option<Choices>,
}

impl Times {
    fn draw(&mut self) -> Duration {
        let Some(choices) = &mut self.choices else { return Duration::ZERO };
        let ns = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let most = ns(self.most - self.least).saturating_add(1);
        let (one_in, stall) = self.stalls;
        let stall = if one_in > 0 && choices.one_in(one_in) { stall } else { Duration::ZERO };
        self.least.saturating_add(Duration::from_nanos(choices.next() % most)).saturating_add(stall)
    }
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
        // Other numbers than those that the run of the system itself is drawn from.
        let choices = system.core().config().simulated.map(|seed| Choices::new(!seed));
        let shared = Arc::new(Shared {
            system: Uncounted::of(system),
            most: threads.saturating_add(queue),
            threads,
            stopped: Arc::default(),
            state: Mutex::new(State { times: Times { choices, ..Times::default() }, ..State::default() }),
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
            return shared.settle_within(limit);
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
            self.begin_simulated(state);
        } else {
            self.ready.notify_one();
        }
        Ok(Job { shared: Arc::clone(self), number, token, slot })
    }

    /// In simulation, a thread is a timer that runs for as long as its work takes.
    fn begin_simulated(self: &Arc<Self>, state: &mut State) {
        while state.running < self.threads
            && let Some(entry) = state.queue.pop_front()
        {
            state.running += 1;
            let (shared, mut entry) = (Arc::clone(self), Some(entry));
            let task = move || {
                entry.take().into_iter().for_each(|entry| shared.work_on(entry));
                shared.begin_simulated(&mut lock(&shared.state));
                None
            };
            self.system.core().start_timer(state.times.draw(), Box::new(task));
        }
    }

    /// In simulation: waits until nothing runs, for up to `limit` of virtual time.
    fn settle_within(&self, limit: Duration) -> Result<(), StillRunning> {
        let core = self.system.core();
        let running = || lock(&self.state).running;
        if !limit.is_zero() && running() > 0 {
            let deadline = core.now() + limit;
            // So that time does not pass over it.
            let alarm = core.start_timer(limit, Box::new(|| None));
            core.block_until(None, &mut || running() == 0 || core.now() >= deadline);
            core.cancel_timer(alarm);
        }
        match running() {
            0 => Ok(()),
            jobs => Err(StillRunning { jobs }),
        }
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
            self.work_on(entry);
        }
    }

    /// Does work that was counted as running.
    fn work_on(&self, Entry { token, work, .. }: Entry) {
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
