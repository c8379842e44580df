//! Timers of actors, futures that wait for time, and receive timeouts.

pub(crate) mod context;
pub(crate) mod receive_timeout;
pub(crate) mod sleep;
pub(crate) mod timers;

use playhouse_executor::contained;

use crate::timer::receive_timeout::Idle;
use crate::timer::timers::{Timers, cancel_all, renew_all};

/// The timers of an actor.
#[derive(Default)]
pub(crate) struct TimerSlot {
    pub(crate) timers: Timers,
    /// The number of the last timer.
    pub(crate) last: u64,
    /// The actor's receive timeout.
    pub(crate) idle: Option<Idle>,
}

/// The state of a cell with the actor's timers.
pub(crate) trait HasTimers {
    fn timer_slot(&mut self) -> &mut TimerSlot;
}

impl TimerSlot {
    /// Cancels all timers and the receive timeout.
    pub(crate) fn cancel(self) {
        cancel_all(self.timers);
        contained(|| self.idle.into_iter().for_each(Idle::cancel));
    }

    /// Renews the timers for a new state of the actor: only the kept ones continue.
    pub(crate) fn renew(&mut self) {
        renew_all(&mut self.timers);
        self.idle.take().into_iter().for_each(Idle::cancel);
    }

    /// Returns whether the actor still has the timer `id`, and takes the message of this firing.
    pub(crate) fn wants(&self, id: u64, number: u64) -> bool {
        let timer = self.timers.get(&id);
        timer.is_some_and(|timer| timer.left_at.is_none_or(|left_at| number <= left_at))
    }

    /// Continues the timer after its message was handled, or was dropped unhandled.
    pub(crate) fn go_on(&mut self, id: u64) {
        if let Some(timer) = self.timers.get_mut(&id) {
            timer.go_on();
        }
    }
}
