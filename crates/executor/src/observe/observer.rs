//! Observers: they learn the kind, the duration and the cause of each handler.
//!
//! `worker/run_observed.rs` calls them.

use std::any::Any;
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use crate::memory::raw_address::RawAddress;
use crate::user_code::mail_kind::MailKind;

/// A message that is handled.
#[derive(Clone, Copy, Debug)]
pub struct Handling {
    /// The worker that handles it; there may be two handlers at the same time if one of them is stuck.
    pub worker: u16,
    /// The actor whose handler runs.
    pub to: RawAddress,
    /// The kind of the message.
    pub kind: MailKind,
    /// The type of the actor, with its path.
    pub actor: &'static str,
    /// The type of the message, with its path.
    pub message: &'static str,
    /// The result of [`Observer::cause`] at the send.
    pub cause: Option<NonZeroU64>,
}

/// The outcome of a message whose handler was called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HandlerOutcome {
    /// The message was handled, or its handler has panicked.
    Done,
    /// The handler waits, and is woken later ([`MailKind::WakeUp`]).
    Waits,
    /// The message was not handled, because its guard did not hold. It comes again.
    Deferred,
    /// The message was not handled, because it was just dropped for another one
    /// ([`OnFull::DropOldest`](crate::OnFull)).
    Gone,
}

/// An observer of all messages that the workers run. Called by many threads, and must not block.
pub trait Observer: Any + Send + Sync {
    /// Called before a handler runs, on its thread.
    fn begins(&self, handling: &Handling);
    /// Called when the handler has returned, or panicked, on its thread.
    fn ends(&self, handling: &Handling, came: HandlerOutcome, took: Duration);
    /// Called while the handler runs, by another thread, with its time up to now. Repeated every few milliseconds until
    /// it returns true (enough).
    fn still_runs(&self, handling: &Handling, so_long: Duration) -> bool;
    /// Called when this thread sends a message to a system that wants causes. Returns the number that is stored with
    /// the message.
    fn cause(&self) -> Option<NonZeroU64>;
    /// Called when a message with this cause becomes a dead letter.
    fn lost(&self, cause: NonZeroU64);
}

/// The observer of a system, and its two switches.
#[derive(Default)]
pub(crate) struct Observers {
    pub(crate) looking: AtomicBool,
    pub(crate) causes: AtomicBool,
    pub(crate) observer: OnceLock<Arc<dyn Observer>>,
}

impl Observers {
    /// Returns whether the observer is active.
    #[inline(always)]
    pub(crate) fn looks(&self) -> bool {
        // Relaxed: one gulp sooner or later. The observer itself comes by the OnceLock.
        self.looking.load(Ordering::Relaxed)
    }

    /// Takes the observer out, because the system goes.
    pub(crate) fn take_observer(&mut self) -> Option<Arc<dyn Observer>> {
        self.observer.take()
    }

    /// Returns the observer, if it wants causes.
    pub(crate) fn wants_causes(&self) -> Option<&Arc<dyn Observer>> {
        // Relaxed: one message sooner or later. The observer itself comes by the OnceLock.
        if self.causes.load(Ordering::Relaxed) { self.observer.get() } else { None }
    }
}

/// The handler that an observed thread runs.
#[derive(Default)]
pub(crate) struct ObservedHandler(pub(crate) Mutex<Option<(Handling, u64, bool)>>);
