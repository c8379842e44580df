//! Timers of actors: messages to themselves, later.

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

/// Makes another message like this one.
pub(crate) type Copying<M> = fn(&M) -> Result<M, WireError>;

/// How often a timer fires.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Pace {
    /// Once.
    Once,
    /// Once in each period, counted from its start.
    Every(Duration),
    /// Again so long after its message was handled.
    Spaced(Duration),
}

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
    pub(crate) pace: Pace,
    /// What it has sent was not handled yet. Relaxed: who finds that out too late leaves out a message that would have come right
    /// behind the one that was just handled.
    waits: AtomicBool,
}

impl Times {
    pub(crate) fn fired(&self) -> u64 {
        self.fired.load(Ordering::Acquire)
    }

    /// How long it is until it fires next.
    pub(crate) fn left(&self, now: Duration) -> Duration {
        Duration::from_nanos(self.due_ns.load(Ordering::Acquire)).saturating_sub(now)
    }

    /// It fires now. The number of the message that is to be sent, if one is; and how long it is until it fires again by itself.
    fn fire(&self, now: Duration) -> (Option<u64>, Option<Duration>) {
        let now_ns = ns(now);
        let next_ns = match self.pace {
            Pace::Once => None,
            Pace::Spaced(pause) => {
                // Where its actor moves meanwhile, it goes on there so much later.
                self.due_ns.store(now_ns.saturating_add(ns(pause)), Ordering::Release);
                None
            }
            Pace::Every(period) => {
                let (due, period) = (self.due_ns.load(Ordering::Acquire), ns(period).max(1));
                // Periods that have passed unseen are left out: it keeps its beat.
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
    /// What it has sent has come, or is lost: it may send again.
    pub(crate) fn has_come(&self) {
        self.times.waits.store(false, Ordering::Relaxed);
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
            Some(message) => stub::writer(message)(codec, out),
            None => Err(WireError::new("the timer has fired")),
        }
    }
}

/// A timer of an actor.
pub(crate) struct Timer {
    key: TimerKey,
    pub(crate) clock: Arc<dyn AnyClock>,
    /// It goes on elsewhere, since it had fired so often: later firings here do not count.
    pub(crate) left_at: Option<u64>,
    /// It goes on after a restart.
    pub(crate) kept: bool,
    /// How often it had fired when it was set last.
    set_at: u64,
    /// Sets it again, where it does not do so by itself.
    again: Option<Box<dyn Fn(Duration) -> TimerKey + Send>>,
}

/// In an order, in which they are written where their actor moves.
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

    /// Its message was handled, or was lost with a crash.
    pub(crate) fn go_on(&mut self) {
        let times = self.clock.times();
        if let (Some(again), Pace::Spaced(pause), None) = (&self.again, times.pace, self.left_at) {
            let now = with_current_system(|system| system.map_or(Duration::ZERO, |system| system.now()));
            times.due_ns.store(ns(now.saturating_add(pause)), Ordering::Release);
            self.set_at = times.fired();
            self.key = again(pause);
        }
    }

    /// Whether it fires by itself, or what it has sent is under way.
    fn is_under_way(&self) -> bool {
        let times = self.clock.times();
        self.again.is_none() || times.waits.load(Ordering::Relaxed) || times.fired() == self.set_at
    }

    /// It fires no more; what it has sent stays.
    pub(crate) fn stop(&self) {
        with_current_system(|system| system.expect("a handler runs on a worker").cancel_timer(self.key));
    }
}

/// Of a new state: those of the old one are kept that are to be, and go on.
#[inline(never)]
pub(crate) fn renew_all(timers: &mut Timers) {
    let (kept, gone) = std::mem::take(timers).into_iter().partition(|(_, timer)| timer.kept);
    *timers = kept;
    cancel_all(gone);
    go_on_all(timers);
}

/// After a crash: those whose message was lost with it go on.
#[inline(never)]
pub(crate) fn go_on_all(timers: &mut Timers) {
    timers.values_mut().filter(|timer| !timer.is_under_way()).for_each(Timer::go_on);
}
