//! Who looks on: what each handler is, how long it took, and what has caused it.
//!
//! Whether somebody looks is asked once for each gulp: one that is looked on runs through its own copy of the loop
//! ([`Worker::gulp`]), so the other one knows nothing of this: counted with callgrind, `count` takes the same instructions to
//! send and to handle 50,000 messages as without this module, and 10 more in sum for its gulps. No handler runs on another one's stack meanwhile
//! ([`crate::worker::inline_call`]): each is a message with a time of its own.
//!
//! # Causes
//!
//! An observer may give each message that is sent a number, its *cause*, and finds it again where the message is handled.
//! It travels as one more word behind the record's payload; a bit of the record's tag says that it is there. The sending half
//! of the message path does not know of it either: while causes are wanted, the logs look full to it (`end` is null), as they
//! do for a worker that has lost its lease, and their [slow way](crate::message::send) adds the word. A log that was not yet
//! told gives a record without a cause: that is a link less, and nothing worse.

use std::any::Any;
use std::num::NonZeroU64;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use crate::memory::cell::status;
use crate::memory::record::{Op, Outcome, PASSED, Record, WAITS, described};
use crate::message::address::RawAddress;
use crate::message::delivery::without_waiting;
use crate::message::envelope::MailKind;
use crate::sync::locks::lock;
use crate::system::SystemCore;
use crate::worker::Worker;
use crate::worker::user_code::contained;

/// A message that is handled.
#[derive(Clone, Copy, Debug)]
pub struct Handling {
    /// The worker that does; two at the same time where one of them is stuck in a handler.
    pub worker: u16,
    /// Whose handler runs.
    pub to: RawAddress,
    /// What it is.
    pub kind: MailKind,
    /// The type of the actor, with its path.
    pub actor: &'static str,
    /// The type of the message, with its path.
    pub message: &'static str,
    /// What [`Observer::cause`] has said where it was sent.
    pub cause: Option<NonZeroU64>,
}

/// What came of a message whose handler was called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HandlerOutcome {
    /// It was handled, or its handler has panicked.
    Done,
    /// Its handler waits for something, and is woken ([`MailKind::WakeUp`]).
    Waits,
    /// It was not handled: its guard did not hold. It comes again.
    Deferred,
    /// It was not handled: just now it was dropped for another one ([`OnFull::DropOldest`](crate::OnFull)).
    Gone,
}

/// Is told what the workers run. Called by many threads, and must not block.
pub trait Observer: Any + Send + Sync {
    /// A handler is about to run, on this thread.
    fn begins(&self, handling: &Handling);
    /// It has returned, or panicked, on this thread.
    fn ends(&self, handling: &Handling, came: HandlerOutcome, took: Duration);
    /// It runs for so long, in another thread; asked every few milliseconds until it says that this is enough (true).
    fn still_runs(&self, handling: &Handling, so_long: Duration) -> bool;
    /// This thread sends a message to a system where causes are wanted: the number to be found again with it.
    fn cause(&self) -> Option<NonZeroU64>;
    /// A message with this cause became a dead letter.
    fn lost(&self, cause: NonZeroU64);
}

/// Who looks on, and whether.
#[derive(Default)]
pub(crate) struct Observers {
    looking: AtomicBool,
    causes: AtomicBool,
    observer: OnceLock<Arc<dyn Observer>>,
}

impl Observers {
    /// The observer, where it looks on.
    #[inline(always)]
    pub(crate) fn looks(&self) -> bool {
        // Relaxed: a gulp sooner or later. The observer itself comes by the OnceLock.
        self.looking.load(Ordering::Relaxed)
    }

    /// Takes the observer out, because the system goes.
    pub(crate) fn take_observer(&mut self) -> Option<Arc<dyn Observer>> {
        self.observer.take()
    }

    /// The observer, where it wants causes.
    pub(crate) fn wants_causes(&self) -> Option<&Arc<dyn Observer>> {
        // Relaxed: as above.
        if self.causes.load(Ordering::Relaxed) { self.observer.get() } else { None }
    }
}

impl SystemCore {
    /// Names who is to look on, once. False: there is one already.
    pub fn set_observer(&self, observer: Arc<dyn Observer>) -> bool {
        self.observers.observer.set(observer).is_ok()
    }

    /// The observer, if it is a `T`.
    pub fn observer<T: Observer>(&self) -> Option<&T> {
        let observer: &dyn Any = &**self.observers.observer.get()?;
        observer.downcast_ref()
    }

    /// Has the observer look on, or not, from the next gulp of each worker on; and has it asked for causes, or not.
    pub fn look_on(&self, looking: bool, causes: bool) {
        self.observers.causes.store(causes, Ordering::Relaxed);
        self.observers.looking.store(looking && self.observers.observer.get().is_some(), Ordering::Relaxed);
    }
}

/// What a thread runs while it is looked on.
#[derive(Default)]
pub(crate) struct ObservedHandler(Mutex<Option<(Handling, u64, bool)>>);

impl ObservedHandler {
    /// Tells the observer of a handler that runs for long. Called by the monitor.
    pub(crate) fn look(&self, system: &Arc<SystemCore>) {
        if !system.observers.looks() {
            return;
        }
        let (Some(observer), Some((handling, since, false))) = (system.observers.observer.get(), *lock(&self.0)) else {
            return;
        };
        let so_long = Duration::from_nanos(system.now_ns().saturating_sub(since));
        // The receiver of what the observer sends may be the worker that only this thread can take over.
        let told = || contained(|| observer.still_runs(&handling, so_long)).unwrap_or(true);
        if without_waiting(|| system.while_refusing(told))
            && let Some((_, at, told)) = &mut *lock(&self.0)
            && *at == since
        {
            *told = true;
        }
    }
}

/// Says that the handler has ended, however it does.
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
    /// Before a gulp that is looked on. In RUNTIME.
    pub(crate) fn begin_to_show(&self) {
        if self.system.observers.wants_causes().is_some() {
            for log in &self.logs {
                // Relaxed: written by the owner, and by the monitor with the same value.
                log.stop();
            }
        }
    }

    /// As the loop runs a record, with the observer looking on.
    ///
    /// # Safety
    /// As for running the record.
    #[inline(never)]
    pub(crate) unsafe fn run_observed(&self, record: NonNull<Record>) -> Outcome {
        // SAFETY: by the contract; cells are never freed.
        let (cell, head) = unsafe { (record.as_ref().cell.as_ref(), record.as_ref()) };
        if cell.tag() == head.resident_tag() {
            // SAFETY: by the contract.
            return unsafe { self.show(record, || (head.thunk)(record, Op::Run)) };
        }
        let same_life = cell.tag() >> 16 == head.tag >> 16 && !cell.has_status(status::VACANT);
        let is_here = same_life && !cell.has_status(status::FROZEN) && !cell.has_status(status::AWAY);
        if is_here && (head.is_control() || cell.is_ready()) {
            // SAFETY: by the contract.
            return unsafe { self.show(record, || self.deliver_irregular(record)) };
        }
        if let (Some(observer), false, Some(cause)) = (self.system.observers.observer.get(), same_life, head.cause()) {
            contained(|| observer.lost(cause)).unwrap_or(());
        }
        // SAFETY: by the contract.
        unsafe { self.deliver_irregular(record) }
    }

    /// Calls `run`, which runs `record`, with the observer looking on, if it does.
    ///
    /// # Safety
    /// As for running the record.
    pub(crate) unsafe fn show(&self, record: NonNull<Record>, run: impl FnOnce() -> Outcome) -> Outcome {
        // SAFETY: by the contract; cells are never freed.
        let (cell, head) = unsafe { (record.as_ref().cell.as_ref(), record.as_ref()) };
        let observer = self.system.observers.observer.get();
        let Some(observer) = observer.filter(|_| self.system.observers.looks() && !head.is_buried()) else {
            return run();
        };
        // SAFETY: by the contract; it is not buried.
        let about = unsafe { described(record) };
        if about.is_gone {
            // It was a dead letter before it came here.
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
        if outcome == WAITS {
            ends.came = HandlerOutcome::Deferred;
        } else if outcome == PASSED {
            ends.came = HandlerOutcome::Gone;
        } else if cell.has_status(status::SUSPENDED) {
            ends.came = HandlerOutcome::Waits;
        }
        outcome
    }
}
