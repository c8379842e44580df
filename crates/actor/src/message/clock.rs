//! The clock of a timer: its message, and the times at which the timer sends it.

use std::any::{TypeId, type_name};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::codec::{Codec, WireError, Written};
use crate::lock::lock;
use crate::message::Message;
use crate::message::forward;

/// Returns a copy of a message.
pub(crate) type Copying<M> = fn(&M) -> Result<M, WireError>;

/// The repetition of a timer.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Pace {
    /// The timer fires once.
    Once,
    /// The timer fires once in each period, counted from its start.
    Every(Duration),
    /// The timer fires again this time after its message was handled.
    Spaced(Duration),
}

/// The data that a timer's task and its actor share.
pub(crate) struct Clock<M> {
    /// The message. A timer that fires once has it until it is handled; a repeating timer keeps it.
    message: Mutex<Option<M>>,
    copy: Option<Copying<M>>,
    pub(crate) times: Times,
}

/// The times at which a timer fires.
#[derive(Debug)]
pub(crate) struct Times {
    /// The number of firings.
    fired: AtomicU64,
    /// The time of the next firing, in the system's time.
    due_ns: AtomicU64,
    pub(crate) pace: Pace,
    /// `true` if a message of the timer is still unhandled. Relaxed: a thread that reads an old value leaves out a
    /// message that would have come right behind the one that was just handled.
    waits: AtomicBool,
}

impl Times {
    /// Returns the times of a timer that fires first at `due`.
    pub(crate) fn starting(due: Duration, pace: Pace) -> Times {
        Times { fired: AtomicU64::new(0), due_ns: AtomicU64::new(ns(due)), pace, waits: AtomicBool::new(false) }
    }

    /// Sets the time of the next firing.
    pub(crate) fn set_due(&self, due: Duration) {
        self.due_ns.store(ns(due), Ordering::Release);
    }

    /// Returns whether a message of the timer is still unhandled.
    pub(crate) fn waits(&self) -> bool {
        self.waits.load(Ordering::Relaxed)
    }

    pub(crate) fn fired(&self) -> u64 {
        self.fired.load(Ordering::Acquire)
    }

    /// Returns the time until the next firing.
    pub(crate) fn left(&self, now: Duration) -> Duration {
        Duration::from_nanos(self.due_ns.load(Ordering::Acquire)).saturating_sub(now)
    }

    /// Fires. Returns the number of the message to send, if there is one, and the time until the timer fires again by
    /// itself.
    pub(crate) fn fire(&self, now: Duration) -> (Option<u64>, Option<Duration>) {
        let now_ns = ns(now);
        let next_ns = match self.pace {
            Pace::Once => None,
            Pace::Spaced(pause) => {
                // If its actor migrates in the meantime, the timer continues in the target after this time.
                self.due_ns.store(now_ns.saturating_add(ns(pause)), Ordering::Release);
                None
            }
            Pace::Every(period) => {
                let (due, period) = (self.due_ns.load(Ordering::Acquire), ns(period).max(1));
                // Periods that have passed unseen are left out: the timer keeps its rhythm.
                let missed = now_ns.saturating_sub(due) / period;
                let next = due.saturating_add(period.saturating_mul(missed + 1));
                self.due_ns.store(next, Ordering::Release);
                Some(next)
            }
        };
        let sends = !self.waits.swap(true, Ordering::Relaxed);
        let number = sends.then(|| self.fired.fetch_add(1, Ordering::AcqRel) + 1);
        (number, next_ns.map(|next| Duration::from_nanos(next - now_ns)))
    }
}

fn ns(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

impl<M> Clock<M> {
    /// Notes that the sent message has come, or is lost: the timer may send again.
    pub(crate) fn has_come(&self) {
        self.times.waits.store(false, Ordering::Relaxed);
    }
}

impl<M: Message> Clock<M> {
    pub(crate) fn new(message: M, copy: Option<Copying<M>>, times: Times) -> Clock<M> {
        Clock { message: Mutex::new(Some(message)), copy, times }
    }

    fn message(&self) -> MutexGuard<'_, Option<M>> {
        lock(&self.message)
    }

    /// Returns the message for the actor that handles it. The call runs in that actor, because a panic in a `clone` is
    /// the actor's.
    pub(crate) fn take(&self) -> Option<M> {
        let mut message = self.message();
        match self.copy {
            None => message.take(),
            Some(copy) => copy(message.as_ref()?).ok(),
        }
    }

    /// Returns the result of `look` for the message, if there still is one.
    pub(crate) fn look<R>(&self, look: impl FnOnce(&M) -> R) -> Option<R> {
        self.message().as_ref().map(look)
    }

    pub(crate) fn is_once(&self) -> bool {
        self.copy.is_none()
    }
}

/// A clock for a message of any type.
pub(crate) trait AnyClock: Send + Sync {
    fn times(&self) -> &Times;
    /// Returns the type of the message, and its name in reports.
    fn message_type(&self) -> (TypeId, &'static str);
    /// Writes the message.
    fn write(&self, codec: Codec, out: &mut Vec<u8>) -> Written;
}

impl<M: Message> AnyClock for Clock<M> {
    fn times(&self) -> &Times {
        &self.times
    }

    fn message_type(&self) -> (TypeId, &'static str) {
        (TypeId::of::<M>(), type_name::<M>())
    }

    fn write(&self, codec: Codec, out: &mut Vec<u8>) -> Written {
        match &*self.message() {
            Some(message) => forward::writer(message)(codec, out),
            None => Err(WireError::new("the timer has fired")),
        }
    }
}

/// The timers of an actor, as the mail of a timer needs them.
pub(crate) trait TimersOfActor {
    /// Returns whether the actor still has the timer `id`, and takes the message of this firing.
    fn wants(&self, id: u64, number: u64) -> bool;
    /// Removes a timer that fires no more.
    fn forget(&mut self, id: u64);
    /// Continues the timer after its message was handled, or was dropped unhandled.
    fn go_on(&mut self, id: u64);
}
