//! Timers of actors: delayed and periodic messages to themselves.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use playhouse_executor::{Address, TimerKey, contained, with_current_system};

use crate::actor::{Actor, ActorState};
use crate::message::HandledBy;
use crate::message::clock::{AnyClock, Clock, Copying, Pace, Times};
use crate::message::mail::Fired;

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
        let clock = Arc::new(Clock::new(message, copy, Times::starting(now.saturating_add(delay), pace)));
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
            times.set_due(now.saturating_add(pause));
            self.set_at = times.fired();
            self.key = again(pause);
        }
    }

    /// Returns whether the timer fires by itself, or its message is under way.
    fn is_under_way(&self) -> bool {
        let times = self.clock.times();
        self.again.is_none() || times.waits() || times.fired() == self.set_at
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
