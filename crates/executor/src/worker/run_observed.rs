//! Observers: they learn the kind, the duration and the cause of each handler.
//!
//! A worker checks once per gulp whether an observer is active. An observed gulp runs its own copy of the loop
//! ([`Worker::gulp`]), and the other copy knows nothing of this module. Counted with callgrind, `count` takes the same
//! instructions to send and to handle 50,000 messages as without this module, and 10 more in sum for its gulps. No
//! handler of an observed worker runs on another one's stack ([`crate::dispatch::inline_call`]): each is a message with
//! a time of its own.
//!
//! # Causes
//!
//! An observer may give each message that is sent a number, its *cause*, and gets the number again when the message is
//! handled. The number is one more word behind the record's payload; a bit of the record's tag says that it is present.
//! The sending half of the message path does not know of it either. While causes are wanted, the logs look full to it
//! (`end` is null), like those of a thread that has lost its worker, and their [slow path](crate::dispatch::send) adds
//! the word. A log that was not yet stopped gives a record without a cause: one link of the chain is then missing.

use std::any::Any;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::memory::cell::status;
use crate::memory::raw_address::RawAddress;
use crate::memory::record::{Op, Outcome, Record, described};
use crate::observe::observer::{HandlerOutcome, Handling, ObservedHandler, Observer};
use crate::sync::locks::lock;
use crate::user_code::contained;
use crate::worker::Worker;
use crate::worker::outside_delivery::without_waiting;
use crate::worker::system_core::SystemCore;

impl SystemCore {
    /// Sets the observer. Can be called once; returns false if there is one already.
    pub fn set_observer(&self, observer: Arc<dyn Observer>) -> bool {
        self.observation.observers.observer.set(observer).is_ok()
    }

    /// Returns the observer, if it is a `T`.
    pub fn observer<T: Observer>(&self) -> Option<&T> {
        let observer: &dyn Any = &**self.observation.observers.observer.get()?;
        observer.downcast_ref()
    }

    /// Activates or deactivates the observer, from the next gulp of each worker on; and whether it is asked for causes.
    pub fn look_on(&self, looking: bool, causes: bool) {
        self.observation.observers.causes.store(causes, Ordering::Relaxed);
        self.observation
            .observers
            .looking
            .store(looking && self.observation.observers.observer.get().is_some(), Ordering::Relaxed);
    }
}

impl ObservedHandler {
    /// Tells the observer of a handler that runs for long. Called by the monitor.
    pub(crate) fn look(&self, system: &Arc<SystemCore>) {
        if !system.observation.observers.looks() {
            return;
        }
        let (Some(observer), Some((handling, since, false))) =
            (system.observation.observers.observer.get(), *lock(&self.0))
        else {
            return;
        };
        let so_long = Duration::from_nanos(system.now_ns().saturating_sub(since));
        // The receiver of the observer's messages may be the worker that only this thread can take over.
        let told = || contained(|| observer.still_runs(&handling, so_long)).unwrap_or(true);
        if without_waiting(|| system.while_refusing(told))
            && let Some((_, at, told)) = &mut *lock(&self.0)
            && *at == since
        {
            *told = true;
        }
    }
}

/// A guard that tells the observer of the handler's end, in every case.
struct Ends<'a> {
    worker: &'a Worker,
    observer: &'a Arc<dyn Observer>,
    handling: Handling,
    since: u64,
    came: HandlerOutcome,
}

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        *lock(&self.worker.running.0) = None;
        let took = Duration::from_nanos(self.worker.system.now_ns().saturating_sub(self.since));
        contained(|| self.observer.ends(&self.handling, self.came, took)).unwrap_or(());
    }
}

impl Worker {
    /// Prepares an observed gulp. In RUNTIME.
    pub(crate) fn begin_to_show(&self) {
        if self.system.observation.observers.wants_causes().is_some() {
            for log in &self.logs {
                // Relaxed: written by the owner, and by the monitor with the same value.
                log.stop();
            }
        }
    }

    /// Runs a record like the loop does, and calls the observer.
    ///
    /// # Safety
    /// The same as for running the record.
    #[inline(never)]
    pub(crate) unsafe fn run_observed(&self, record: NonNull<Record>) -> Outcome {
        // SAFETY: the caller may run the record, which is whole; cells are never freed.
        let (cell, head) = unsafe { (record.as_ref().cell.as_ref(), record.as_ref()) };
        if cell.tag() == head.resident_tag() {
            // SAFETY: the caller may run the record.
            return unsafe { self.show(record, || (head.thunk)(record, Op::Run)) };
        }
        let same_incarnation = cell.tag() >> 16 == head.tag >> 16 && !cell.has_status(status::VACANT);
        let is_here = same_incarnation && !cell.has_status(status::FROZEN) && !cell.has_status(status::AWAY);
        if is_here && (head.is_control() || cell.is_ready()) {
            // SAFETY: the caller may run the record.
            return unsafe { self.show(record, || self.deliver_irregular(record)) };
        }
        if let (Some(observer), false, Some(cause)) =
            (self.system.observation.observers.observer.get(), same_incarnation, head.cause())
        {
            contained(|| observer.lost(cause)).unwrap_or(());
        }
        // SAFETY: the caller may run the record.
        unsafe { self.deliver_irregular(record) }
    }

    /// Calls `run`, which runs `record`, and calls the observer if it is active.
    ///
    /// # Safety
    /// The same as for running the record.
    pub(crate) unsafe fn show(&self, record: NonNull<Record>, run: impl FnOnce() -> Outcome) -> Outcome {
        // SAFETY: the caller may run the record, which is whole; cells are never freed.
        let (cell, head) = unsafe { (record.as_ref().cell.as_ref(), record.as_ref()) };
        let observer = self.system.observation.observers.observer.get();
        let Some(observer) = observer.filter(|_| self.system.observation.observers.looks() && !head.is_buried()) else {
            return run();
        };
        // SAFETY: the record is whole, and not buried.
        let about = unsafe { described(record) };
        if about.is_gone {
            // The message was a dead letter already.
            if let Some(cause) = head.cause() {
                contained(|| observer.lost(cause)).unwrap_or(());
            }
            return run();
        }
        let handling = Handling {
            worker: self.id,
            to: RawAddress::of(head.cell),
            kind: about.kind,
            actor: about.actor,
            message: about.name,
            cause: head.cause(),
        };
        contained(|| observer.begins(&handling)).unwrap_or(());
        let since = self.system.now_ns();
        *lock(&self.running.0) = Some((handling, since, false));
        let mut ends = Ends { worker: self, observer, handling, since, came: HandlerOutcome::Done };
        let outcome = run();
        if outcome == Outcome::Waits {
            ends.came = HandlerOutcome::Deferred;
        } else if outcome == Outcome::Passed {
            ends.came = HandlerOutcome::Gone;
        } else if cell.has_status(status::SUSPENDED) {
            ends.came = HandlerOutcome::Waits;
        }
        outcome
    }
}
