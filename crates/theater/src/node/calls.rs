//! Background calls to theaters that may have no link with this one.
//!
//! A theater is called once at a time, for all waiters. Many actors that use a terminated theater therefore cost one call now and
//! then, and no thread each. The number of threads is bounded, and they end when there is nothing to do. Jobs for later wait for
//! the housekeeper, and occupy no thread.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use crate::error::TheaterError;
use crate::link::Link;
use crate::link::node::{Callee, TakeLink};
use crate::lock::lock;
use crate::node::core::TheaterCore;
use crate::node::handshake::ANSWER_TIME_MAX;

/// Maximum number of threads that call at one time; further jobs wait for one of them.
const THREADS_MAX: usize = 32;
/// The pause before an unreachable theater is called again.
const CALL_EVERY: Duration = Duration::from_millis(100);
/// A theater whose address refuses calls for this time has ended, because a later theater at that address is another one.
const REFUSED_MAX: Duration = Duration::from_secs(1);

type Job = Box<dyn FnOnce() + Send>;

/// The calls of a theater.
#[derive(Default)]
pub(crate) struct Calls(Mutex<State>);

#[derive(Default)]
struct State {
    /// The waiters for each theater. While there is an entry, a call is in progress or due.
    waiters: HashMap<Callee, Vec<Waiter>>,
    jobs: VecDeque<Job>,
    threads: usize,
    /// Jobs with the times at which they are due, in the system's time.
    later: Vec<(Duration, Job)>,
    /// The theater closes: nothing waits any more.
    closed: bool,
}

struct Waiter {
    take: TakeLink,
    /// The time for which it waits for an unreachable theater.
    retry_for: Duration,
}

impl Calls {
    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.0)
    }
}

impl TheaterCore {
    /// Does the same as [`TheaterCore::link_with`] in the background. An unreachable theater is called again for as long as
    /// `retry_for`. `take` must not block.
    pub(crate) fn reach_later(self: &Arc<Self>, callee: impl Into<Callee>, retry_for: Duration, take: TakeLink) {
        let callee = callee.into();
        let waiter = Waiter { take, retry_for };
        match self.calls.state().waiters.entry(callee) {
            Entry::Occupied(mut waiters) => return waiters.get_mut().push(waiter),
            Entry::Vacant(waiters) => drop(waiters.insert(vec![waiter])),
        }
        let theater_core = Arc::clone(self);
        self.soon(Box::new(move || theater_core.attempt(callee)));
    }

    /// Returns the limit of one step of a call whose failure is only a delay: several calls fit into `lost_after`.
    pub(crate) fn call_limit(&self) -> Duration {
        /// A loaded machine needs some time to answer.
        const LIMIT_MIN: Duration = Duration::from_millis(250);
        (self.settings.lost_after / 6).clamp(LIMIT_MIN, ANSWER_TIME_MAX)
    }

    fn attempt(self: &Arc<Self>, callee: Callee) {
        let since = self.now();
        if self.is_closing() {
            return self.attempted(callee, since, Err(TheaterError::System("this theater is closing".to_owned())));
        }
        if self.outside.is_some() {
            let theater_core = Arc::clone(self);
            return self.reach(callee, Box::new(move |link| theater_core.attempted(callee, since, link)));
        }
        let is_retried = |waiters: &Vec<Waiter>| waiters.iter().all(|waiter| !waiter.retry_for.is_zero());
        let is_retried = self.calls.state().waiters.get(&callee).is_some_and(is_retried);
        let limit = if is_retried { self.call_limit() } else { ANSWER_TIME_MAX };
        self.attempted(callee, since, self.link_within(callee, limit));
    }

    /// Handles the result of a call: notifies the waiters, or calls again after a pause.
    fn attempted(self: &Arc<Self>, callee: Callee, since: Duration, link: Result<Arc<Link>, TheaterError>) {
        // If more time has passed, this process was paused.
        let took = (self.now() - since).min(ANSWER_TIME_MAX) + CALL_EVERY;
        let (told, again) = {
            let mut state = self.calls.state();
            let may_wait = !state.closed && matches!(link, Err(TheaterError::Io { .. }));
            let is_refused = callee.theater.is_some() && link.as_ref().is_err_and(TheaterError::is_refusal);
            let most = if is_refused { REFUSED_MAX } else { Duration::MAX };
            let waiters = state.waiters.remove(&callee).unwrap_or_default();
            let waits = |waiter: &Waiter| may_wait && waiter.retry_for.min(most) > took;
            let (mut waiting, told): (Vec<_>, Vec<_>) = waiters.into_iter().partition(waits);
            waiting.iter_mut().for_each(|waiter| waiter.retry_for = waiter.retry_for.min(most) - took);
            let again = !waiting.is_empty();
            if again {
                state.waiters.insert(callee, waiting);
            }
            (told, again)
        };
        if again {
            let theater_core = Arc::clone(self);
            self.later(CALL_EVERY, Box::new(move || theater_core.attempt(callee)));
        }
        for Waiter { take, .. } in told {
            let link = link.as_ref().map(Arc::clone).map_err(TheaterError::copy);
            // Parts of it are the user's code, and other waiters come after it.
            let _ = catch_unwind(AssertUnwindSafe(|| take(link)));
        }
    }

    /// Lets one of the threads run `job`, which may block it.
    pub(crate) fn soon(self: &Arc<Self>, job: Job) {
        if let Some(outside) = &self.outside {
            return outside.later(Duration::ZERO, job);
        }
        self.calls.state().jobs.push_back(job);
        self.have_a_thread();
    }

    /// Lets a thread run `job` after some time.
    fn later(self: &Arc<Self>, time: Duration, job: Job) {
        if let Some(outside) = &self.outside {
            return outside.later(time, job);
        }
        {
            let due = self.now() + time;
            let mut state = self.calls.state();
            if !state.closed {
                return state.later.push((due, job));
            }
        }
        self.soon(job);
    }

    fn have_a_thread(self: &Arc<Self>) {
        {
            let mut state = self.calls.state();
            if state.threads >= THREADS_MAX {
                return;
            }
            state.threads += 1;
        }
        let theater_core = Arc::clone(self);
        let work = move || {
            loop {
                let job = {
                    let mut state = theater_core.calls.state();
                    let job = state.jobs.pop_front();
                    state.threads -= usize::from(job.is_none());
                    job
                };
                let Some(job) = job else { return };
                let _ = catch_unwind(AssertUnwindSafe(job));
            }
        };
        if std::thread::Builder::new().name("playhouse-call".to_owned()).spawn(work).is_err() {
            // Another thread runs it, or the housekeeper starts a thread for it.
            self.calls.state().threads -= 1;
        }
    }

    /// Starts the jobs that are due, and the jobs for which no thread could be started. The housekeeper calls this.
    pub(crate) fn do_what_is_due(self: &Arc<Self>) {
        let now = self.now();
        let waits = {
            let mut state = self.calls.state();
            let (due, later): (Vec<_>, Vec<_>) =
                std::mem::take(&mut state.later).into_iter().partition(|(due, _)| *due <= now);
            state.later = later;
            state.jobs.extend(due.into_iter().map(|(_, job)| job));
            !state.jobs.is_empty()
        };
        if waits {
            self.have_a_thread();
        }
    }

    /// Stops all calls and notifies the waiters. In simulation it also drops the jobs, because nothing runs any more.
    pub(crate) fn close_calls(self: &Arc<Self>) {
        let (waiters, left) = {
            let mut state = self.calls.state();
            state.closed = true;
            let later = std::mem::take(&mut state.later);
            state.jobs.extend(later.into_iter().map(|(_, job)| job));
            let waiters = if self.outside.is_some() { std::mem::take(&mut state.waiters) } else { HashMap::new() };
            (waiters, !state.jobs.is_empty())
        };
        drop(waiters);
        if left {
            self.have_a_thread();
        }
    }
}
