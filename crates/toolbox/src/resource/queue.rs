//! The queue of a pool, and its threads.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::task::Waker;
use std::time::Duration;

use playhouse_actor::Uncounted;

use super::job::{ResultSlot, complete};
use super::simulated::SimulatedTimes;
use super::{CancelToken, Job, JobError, StillRunning, TryRunError};
use crate::panics::{describe, lock};

pub(super) struct Shared {
    pub(super) system: Uncounted,
    /// The largest number of jobs that run or wait.
    pub(super) capacity: usize,
    pub(super) threads: usize,
    pub(super) stopped: Arc<AtomicBool>,
    pub(super) state: Mutex<State>,
    pub(super) ready: Condvar,
    pub(super) idle: Condvar,
}

#[derive(Default)]
pub(super) struct State {
    pub(super) queue: VecDeque<Entry>,
    pub(super) running: usize,
    pub(super) next: u64,
    /// Tasks that wait for room, by number. The first one is woken when there is room.
    pub(super) waiting: VecDeque<(u64, Waker)>,
    /// The virtual time of jobs in a simulated system.
    pub(super) times: SimulatedTimes,
}

pub(super) struct Entry {
    pub(super) number: u64,
    pub(super) token: CancelToken,
    pub(super) work: Work,
}

/// A job: runs the work, or takes the error instead. The result is a function that notifies the waiting task.
pub(super) type Work = Box<dyn FnOnce(Result<CancelToken, JobError>) -> Notify + Send>;

pub(super) type Notify = Box<dyn FnOnce()>;

impl Shared {
    pub(super) fn is_simulated(&self) -> bool {
        self.system.core().config().simulated.is_some()
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    pub(super) fn has_room(&self, state: &State) -> bool {
        state.queue.len() + state.running < self.capacity
    }

    /// Queues `work`, if there is room.
    pub(super) fn enqueue<R, F>(self: &Arc<Self>, state: &mut State, work: F) -> Result<Job<R>, TryRunError<F>>
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
        let slot = Arc::new(Mutex::new(ResultSlot { result: None, waker: None }));
        let filled = Arc::clone(&slot);
        let work = move |go: Result<CancelToken, JobError>| {
            let result = go.and_then(|token| {
                catch_unwind(AssertUnwindSafe(|| work(&token))).map_err(|panic| JobError::Panicked(describe(&*panic)))
            });
            Box::new(move || complete(&filled, result)) as Notify
        };
        let number = state.next;
        state.next += 1;
        state.queue.push_back(Entry { number, token: token.clone(), work: Box::new(work) });
        if self.is_simulated() {
            self.start_simulated(state);
        } else {
            self.ready.notify_one();
        }
        Ok(Job { shared: Arc::clone(self), number, token, slot })
    }

    /// Starts jobs of a simulated system. A timer per job stands for a thread, and runs for as long as the job takes.
    pub(super) fn start_simulated(self: &Arc<Self>, state: &mut State) {
        while state.running < self.threads
            && let Some(entry) = state.queue.pop_front()
        {
            state.running += 1;
            let (shared, mut entry) = (Arc::clone(self), Some(entry));
            let task = move || {
                entry.take().into_iter().for_each(|entry| shared.run_entry(entry));
                shared.start_simulated(&mut lock(&shared.state));
                None
            };
            self.system.core().start_timer(state.times.draw(), Box::new(task));
        }
    }

    /// Waits until no job of a simulated system runs, for up to `limit` of virtual time.
    pub(super) fn wait_idle_within(&self, limit: Duration) -> Result<(), StillRunning> {
        let core = self.system.core();
        let running = || lock(&self.state).running;
        if !limit.is_zero() && running() > 0 {
            let deadline = core.now() + limit;
            // The alarm stops virtual time at the deadline.
            let alarm = core.start_timer(limit, Box::new(|| None));
            core.block_until(None, &mut || running() == 0 || core.now() >= deadline);
            core.cancel_timer(alarm);
        }
        match running() {
            0 => Ok(()),
            jobs => Err(StillRunning { jobs }),
        }
    }

    /// Runs jobs until the pool is stopped: the main function of each thread.
    pub(super) fn run_worker(&self) {
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
            self.run_entry(entry);
        }
    }

    /// Runs a job that was counted as running.
    pub(super) fn run_entry(&self, Entry { token, work, .. }: Entry) {
        // A cancelled job has no task that waits for it, so the error is never seen.
        let go = if token.is_cancelled() { Err(JobError::Stopped) } else { Ok(token) };
        let notify = work(go);
        {
            let mut state = lock(&self.state);
            state.running -= 1;
            if state.running == 0 {
                self.idle.notify_all();
            }
            self.wake_first_waiter(&state);
        }
        // The lock is released, and there is room, before the notified task can come with more work.
        notify();
    }

    /// Wakes the first task that waits for room, if there is room.
    pub(super) fn wake_first_waiter(&self, state: &State) {
        if let Some((_, waker)) = state.waiting.front()
            && (self.has_room(state) || self.is_stopped())
        {
            waker.wake_by_ref();
        }
    }

    pub(super) fn stop(&self) {
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
