//! Dead-letter hooks: the moments of their calls, and the rules that keep them from calling each other for ever.
//!
//! A hook may send messages. One of them may become a dead letter, and the hook would be called again. Two rules bound
//! that:
//!
//! 1. While a thread runs a hook, the dead letters that arise on it are counted only ([`DeadLetterHooks::call`]).
//! 2. A record that is sent within a hook is *marked*
//!    ([`Record::is_from_hook`](crate::memory::record::Record::is_from_hook)). If it becomes a dead letter later, that
//!    is counted only, too ([`quietly`]).
//!
//! A hook is therefore called at most once for each dead letter that no hook has caused. Messages that an actor sends
//! because it has handled a hook's message are not marked. No actor handles messages once the system has ended, and a
//! shutdown therefore ends.
//!
//! *Marks cost the message path nothing.* [`HookRuns`] stops the logs of the thread's worker. Each append within the
//! hook then takes the slow path, which marks the record and leaves the log stopped. Records that go into an inbox are
//! marked by the function that puts them there.

use std::cell::Cell;
use std::ptr::NonNull;
use std::sync::OnceLock;

use crate::memory::record::{Op, Outcome, Record, Undelivered};
use crate::user_code::contained;

/// A hook for dead letters: it gets the names of the actor's and the message's type, and the reason.
pub type DeadLetterHook = Box<dyn Fn(&'static str, &'static str, Undelivered) + Send + Sync>;

/// A list that only grows, because hooks are called under no lock.
#[derive(Default)]
pub(crate) struct DeadLetterHooks(OnceLock<Box<(DeadLetterHook, DeadLetterHooks)>>);

impl DeadLetterHooks {
    pub(crate) fn add(&self, hook: DeadLetterHook) {
        let mut last = self;
        let mut new = Box::new((hook, DeadLetterHooks::default()));
        while let Err(back) = last.0.set(new) {
            new = back;
            last = &last.0.get().expect("it was set before").1;
        }
    }

    /// Calls all hooks, unless this thread runs one already or discards a hook's message. The panic hook reports a
    /// panic in one; the others are called all the same. `stop_logs` stops the logs of the thread's worker, if it has
    /// one.
    pub(crate) fn call(&self, actor: &'static str, message: &'static str, why: Undelivered, stop_logs: fn()) {
        let Some(first) = self.0.get() else { return };
        let Some(_runs) = HookRuns::begin(stop_logs) else { return };
        let mut next = Some(first);
        while let Some((hook, rest)) = next.map(|hooks| &**hooks) {
            contained(|| hook(actor, message, why));
            next = rest.0.get();
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// Dead letters are passed to hooks.
    Loud,
    /// The thread discards a message that a hook has sent.
    Quiet,
    /// The thread runs a hook.
    InHook,
}

thread_local! {
    static STATE: Cell<State> = const { Cell::new(State::Loud) };
}

/// Returns whether this thread runs a dead-letter hook.
pub(crate) fn in_hook() -> bool {
    STATE.get() == State::InHook
}

/// Restores the thread's former state when it is dropped.
struct Restore(State);

impl Drop for Restore {
    fn drop(&mut self) {
        STATE.set(self.0);
    }
}

/// A guard: while it exists, the thread runs hooks.
struct HookRuns(#[expect(dead_code, reason = "it is dropped")] Restore);

impl HookRuns {
    /// Returns `None` if dead letters are only counted now.
    fn begin(stop_logs: fn()) -> Option<HookRuns> {
        if STATE.get() != State::Loud {
            return None;
        }
        let restore = Restore(STATE.replace(State::InHook));
        stop_logs();
        Some(HookRuns(restore))
    }
}

/// Runs `f`, which discards a message that a hook has sent, if `is_from_hook`: dead letters are then only counted.
#[inline]
pub(crate) fn quietly<R>(is_from_hook: bool, f: impl FnOnce() -> R) -> R {
    let _restore = (is_from_hook && STATE.get() == State::Loud).then(|| Restore(STATE.replace(State::Quiet)));
    f()
}

/// Consumes a record that cannot be delivered.
///
/// # Safety
/// The record is whole, and its payload was not consumed.
pub(crate) unsafe fn bounce(record: NonNull<Record>, why: Undelivered) {
    // SAFETY: the record is whole, and its payload was not consumed.
    unsafe { bounce_or_forward(record, Op::Bounce(why)) };
}

/// Consumes a record that cannot be delivered by this cell, by `Op::Bounce` or `Op::Away`. If a dead-letter hook has
/// sent it, no hook is called for it.
///
/// # Safety
/// The conditions of the record's thunk.
pub(crate) unsafe fn bounce_or_forward(record: NonNull<Record>, op: Op) -> Outcome {
    // SAFETY: the caller fulfils the conditions of the record's thunk.
    unsafe { quietly(record.as_ref().is_from_hook(), || (record.as_ref().thunk)(record, op)) }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn a_hook_that_panics_keeps_no_other_one_from_being_called() {
        let hooks = DeadLetterHooks::default();
        let called = Arc::new(AtomicUsize::new(0));
        for panics in [false, true, false] {
            let called = Arc::clone(&called);
            hooks.add(Box::new(move |_, _, _| {
                called.fetch_add(1, Ordering::Relaxed);
                assert!(!panics, "meant");
            }));
        }
        hooks.call("actor", "message", Undelivered::Stopped, || ());
        assert_eq!(called.load(Ordering::Relaxed), 3);
        quietly(false, || hooks.call("actor", "message", Undelivered::Stopped, || ()));
        quietly(true, || hooks.call("actor", "message", Undelivered::Stopped, || ()));
        assert_eq!(called.load(Ordering::Relaxed), 6);
    }
}
