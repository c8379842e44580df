//! Timers of actors: delayed and periodic messages to themselves.

use std::any::{TypeId, type_name};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use playhouse_executor::{Address, TimerKey, contained, with_current_system};
use serde::{Deserialize, Serialize};

use crate::actor::{Actor, ActorState};
use crate::message::mail::Fired;
use crate::message::{HandledBy, Message};
use crate::remote::stub;
use crate::remote::wire::{Codec, WireError, Written};

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
    times: Times,
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
    pub(crate) fn fired(&self) -> u64 {
        self.fired.load(Ordering::Acquire)
    }

    /// Returns the time until the next firing.
    pub(crate) fn left(&self, now: Duration) -> Duration {
        Duration::from_nanos(self.due_ns.load(Ordering::Acquire)).saturating_sub(now)
    }

    /// Fires. Returns the number of the message to send, if there is one, and the time until the timer fires again by
    /// itself.
    fn fire(&self, now: Duration) -> (Option<u64>, Option<Duration>) {
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
    fn message(&self) -> MutexGuard<'_, Option<M>> {
        self.message.lock().unwrap_or_else(PoisonError::into_inner)
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
            Some(message) => stub::writer(message)(codec, out),
            None => Err(WireError::new("the timer has fired")),
        }
    }
}

/// A timer of an actor.
pub(crate) struct Timer {
    key: TimerKey,
    pub(crate) clock: Arc<dyn AnyClock>,
    /// The number of firings at which the timer migrated with its actor: later firings in this theater do not count.
    pub(crate) left_at: Option<u64>,
    /// `true` if the timer continues after a restart.
    pub(crate) kept: bool,
    /// The number of firings when it was set last.
    set_at: u64,
    /// Sets the timer again, if it does not do so by itself.
    again: Option<Box<dyn Fn(Duration) -> TimerKey + Send>>,
}

/// Timers in a fixed order, in which they are written when their actor migrates.
pub(crate) type Timers = BTreeMap<u64, Timer>;

#[inline(never)]
pub(crate) fn cancel_all(timers: Timers) {
    with_current_system(|system| {
        if let Some(system) = system {
            for timer in timers.into_values() {
                // The drop of the timer's message may panic, and the other timers are cancelled all the same.
                contained(move || {
                    system.cancel_timer(timer.key);
                    drop(timer);
                });
            }
        }
    });
}

impl Timer {
    /// Starts a timer that first fires after `delay`, and then at its pace.
    pub(crate) fn start<A: Actor, M: HandledBy<A, Mode>, Mode>(
        address: Address<ActorState<A>>,
        id: u64,
        (delay, pace): (Duration, Pace),
        message: M,
        copy: Option<Copying<M>>,
    ) -> Timer {
        let now = with_current_system(|system| system.expect("a handler runs on a worker").now());
        let due_ns = AtomicU64::new(ns(now.saturating_add(delay)));
        let times = Times { fired: AtomicU64::new(0), due_ns, pace, waits: AtomicBool::new(false) };
        let clock = Arc::new(Clock { message: Mutex::new(Some(message)), copy, times });
        let set = {
            let clock = Arc::clone(&clock);
            move |delay| {
                let clock = Arc::clone(&clock);
                let task = move || {
                    let now = with_current_system(|system| system.expect("timers fire on workers").now());
                    let (number, again) = clock.times.fire(now);
                    if let Some(number) = number {
                        M::post_fired(address, Fired { id, number, clock: Arc::clone(&clock) });
                    }
                    again
                };
                with_current_system(|system| {
                    system.expect("a handler runs on a worker").start_timer(delay, Box::new(task))
                })
            }
        };
        let key = set(delay);
        let again = matches!(pace, Pace::Spaced(_)).then(|| Box::new(set) as Box<dyn Fn(Duration) -> TimerKey + Send>);
        Timer { key, clock, left_at: None, kept: false, set_at: 0, again }
    }

    /// Continues the timer: its message was handled, or was lost with a crash.
    pub(crate) fn go_on(&mut self) {
        let times = self.clock.times();
        if let (Some(again), Pace::Spaced(pause), None) = (&self.again, times.pace, self.left_at) {
            let now = with_current_system(|system| system.map_or(Duration::ZERO, |system| system.now()));
            times.due_ns.store(ns(now.saturating_add(pause)), Ordering::Release);
            self.set_at = times.fired();
            self.key = again(pause);
        }
    }

    /// Returns whether the timer fires by itself, or its message is under way.
    fn is_under_way(&self) -> bool {
        let times = self.clock.times();
        self.again.is_none() || times.waits.load(Ordering::Relaxed) || times.fired() == self.set_at
    }

    /// Stops the firings. A message that was sent already stays.
    pub(crate) fn stop(&self) {
        with_current_system(|system| system.expect("a handler runs on a worker").cancel_timer(self.key));
    }
}

/// Renews the timers for a new state: the kept ones continue, and the others are cancelled.
#[inline(never)]
pub(crate) fn renew_all(timers: &mut Timers) {
    let (kept, gone) = std::mem::take(timers).into_iter().partition(|(_, timer)| timer.kept);
    *timers = kept;
    cancel_all(gone);
    go_on_all(timers);
}

/// Continues the timers whose message was lost with a crash.
#[inline(never)]
pub(crate) fn go_on_all(timers: &mut Timers) {
    timers.values_mut().filter(|timer| !timer.is_under_way()).for_each(Timer::go_on);
}
