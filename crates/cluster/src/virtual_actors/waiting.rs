//! Calls that have no receiver at present: their slot has no open owner, or the former activation of their key ends.

use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use playhouse_actor::AskError;

use super::actor::VirtualActor;
use super::call::AnyCall;
use crate::membership::Time;

/// The reason why a call waits.
pub(super) type Why = Cow<'static, str>;

/// A call that waits.
pub(super) struct WaitingCall<A: VirtualActor> {
    pub(super) call: Box<dyn AnyCall<A>>,
    /// The lowest version of a view that the call may be routed by.
    pub(super) version: u64,
    since: Time,
}

/// The calls of one key, in the order in which they came.
struct Queue<A: VirtualActor> {
    calls: VecDeque<WaitingCall<A>>,
    why: Why,
}

/// All waiting calls of a directory.
pub(super) struct Waiting<A: VirtualActor> {
    queues: BTreeMap<Arc<str>, Queue<A>>,
    calls: usize,
    calls_max: usize,
}

impl<A: VirtualActor> Waiting<A> {
    pub(super) fn new(calls_max: usize) -> Waiting<A> {
        Waiting { queues: BTreeMap::new(), calls: 0, calls_max }
    }

    pub(super) fn has(&self, key: &str) -> bool {
        self.queues.contains_key(key)
    }

    pub(super) fn keys(&self) -> Vec<Arc<str>> {
        self.queues.keys().cloned().collect()
    }

    /// Lets a call wait behind the others of its key. Fails it if too many calls wait.
    pub(super) fn push(&mut self, key: &Arc<str>, call: Box<dyn AnyCall<A>>, version: u64, now: Time, why: Why) {
        if self.calls >= self.calls_max {
            return call.fail(unreachable::<A>(key, &format!("{why}, and {} calls wait already", self.calls)));
        }
        self.calls += 1;
        let queue = self
            .queues
            .entry(Arc::clone(key))
            .or_insert_with(|| Queue { calls: VecDeque::new(), why: Cow::Borrowed("") });
        queue.why = why;
        queue.calls.push_back(WaitingCall { call, version, since: now });
    }

    /// Takes the first call of a key that is still wanted.
    pub(super) fn pop(&mut self, key: &str) -> Option<WaitingCall<A>> {
        let queue = self.queues.get_mut(key)?;
        loop {
            let call = queue.calls.pop_front();
            self.calls -= usize::from(call.is_some());
            if call.as_ref().is_some_and(|waiting| !waiting.call.is_wanted()) {
                continue;
            }
            if call.is_none() {
                self.queues.remove(key);
            }
            return call;
        }
    }

    /// Puts a call back that was taken, before all others of its key.
    pub(super) fn put_back(&mut self, key: &Arc<str>, call: WaitingCall<A>, why: Why) {
        let queue = self.queues.get_mut(key).expect("a call was taken from it, and it was not removed");
        queue.calls.push_front(call);
        queue.why = why;
        self.calls += 1;
    }

    /// Fails the calls that have waited since `before` or longer.
    pub(super) fn fail_older(&mut self, before: Time, now: Time) {
        for (key, queue) in &mut self.queues {
            let is_old = |first: &WaitingCall<A>| first.since <= before;
            while queue.calls.front().is_some_and(is_old)
                && let Some(first) = queue.calls.pop_front()
            {
                self.calls -= 1;
                let waited = now.saturating_sub(first.since);
                first.call.fail(unreachable::<A>(key, &format!("{} (it has waited for {waited:?})", queue.why)));
            }
        }
        self.queues.retain(|_, queue| !queue.calls.is_empty());
    }

    /// Fails all calls.
    pub(super) fn fail_all(&mut self, why: &str) {
        for (key, queue) in std::mem::take(&mut self.queues) {
            queue.calls.into_iter().for_each(|waiting| waiting.call.fail(unreachable::<A>(&key, why)));
        }
        self.calls = 0;
    }
}

/// Returns the error of a call that no activation takes.
pub(super) fn unreachable<A: VirtualActor>(key: &str, why: &str) -> AskError {
    AskError::Unreachable(format!("the virtual actor {}/{key:?} is not active: {why}", A::KIND))
}
