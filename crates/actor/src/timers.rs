//! Timers of actors: messages to themselves, later.

use std::any::{TypeId, type_name};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use playhouse_executor::{Address, with_current_system};

use crate::actor::{Actor, Life};
use crate::away;
use crate::mail::Fired;
use crate::message::{HandledBy, Message};
use crate::wire::{Codec, WireError, Written};

/// Makes another message like this one.
pub(crate) type Copying<M> = fn(&M) -> Result<M, WireError>;

/// What a timer's task and its actor share.
pub(crate) struct Clock<M> {
    /// The message of one that fires once, until it is handled; that of one that fires again and again.
    message: Mutex<Option<M>>,
    copy: Option<Copying<M>>,
    times: Times,
}

/// When a timer fires.
#[derive(Debug)]
pub(crate) struct Times {
    /// How often it has.
    fired: AtomicU64,
    /// When it will next, in the system's time.
    due_ns: AtomicU64,
    /// 0: it fires once.
    pub(crate) period_ns: u64,
}

impl Times {
    pub(crate) fn fired(&self) -> u64 {
        self.fired.load(Ordering::Acquire)
    }

    /// How long it is until it fires next.
    pub(crate) fn left(&self, now: Duration) -> Duration {
        Duration::from_nanos(self.due_ns.load(Ordering::Acquire)).saturating_sub(now)
    }
}

impl<M: Message> Clock<M> {
    fn message(&self) -> MutexGuard<'_, Option<M>> {
        self.message.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The message, for the actor that handles it. In that actor: a panic in a `clone` is its own.
    pub(crate) fn take(&self) -> Option<M> {
        let mut message = self.message();
        match self.copy {
            None => message.take(),
            Some(copy) => copy(message.as_ref()?).ok(),
        }
    }

    /// What `look` says of the message, if it is still there.
    pub(crate) fn look<R>(&self, look: impl FnOnce(&M) -> R) -> Option<R> {
        self.message().as_ref().map(look)
    }

    pub(crate) fn is_once(&self) -> bool {
        self.copy.is_none()
    }
}

/// A clock, whatever its message is.
pub(crate) trait AnyClock: Send + Sync {
    fn times(&self) -> &Times;
    /// The type of the message, and what that is called in reports.
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
            Some(message) => away::writer(message)(codec, out),
            None => Err(WireError::new("the timer has fired")),
        }
    }
}

/// A timer of an actor.
pub(crate) struct Timer {
    key: playhouse_executor::TimerKey,
    pub(crate) clock: Arc<dyn AnyClock>,
    /// It goes on elsewhere, since it had fired so often: later firings here do not count.
    pub(crate) left_at: Option<u64>,
}

/// In an order, in which they are written where their actor moves.
pub(crate) type Timers = BTreeMap<u64, Timer>;

pub(crate) fn cancel_all(timers: Timers) {
    with_current_system(|system| {
        if let Some(system) = system {
            for timer in timers.into_values() {
                system.cancel_timer(timer.key);
            }
        }
    });
}

impl Timer {
    /// Starts a timer that first fires after `delay`, and then (unless it is zero) after each `period`.
    pub(crate) fn start<A: Actor, M: HandledBy<A, Mode>, Mode>(
        address: Address<Life<A>>,
        id: u64,
        (delay, period): (Duration, Duration),
        message: M,
        copy: Option<Copying<M>>,
    ) -> Timer {
        let ns = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        with_current_system(|system| {
            let system = system.expect("a handler runs on a worker");
            let due_ns = AtomicU64::new(ns(system.now().saturating_add(delay)));
            let times = Times { fired: AtomicU64::new(0), due_ns, period_ns: ns(period) };
            let clock = Arc::new(Clock { message: Mutex::new(Some(message)), copy, times });
            let ticking = Arc::clone(&clock);
            let task = move || {
                let times = &ticking.times;
                let number = times.fired.fetch_add(1, Ordering::AcqRel) + 1;
                times.due_ns.fetch_add(times.period_ns, Ordering::AcqRel);
                M::post_fired(address, Fired { id, number, clock: Arc::clone(&ticking) });
                (!ticking.is_once()).then_some(period)
            };
            Timer { key: system.start_timer(delay, Box::new(task)), clock, left_at: None }
        })
    }

    /// It fires no more; what it has sent stays.
    pub(crate) fn stop(&self) {
        with_current_system(|system| system.expect("a handler runs on a worker").cancel_timer(self.key));
    }
}
