//! The timers of a context: messages of an actor to itself, and its receive timeout.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::actor::Actor;
use crate::actor::context::Context;
use crate::message::clock::{Copying, Pace};
use crate::message::{HandledBy, Repeated};
use crate::timer::HasTimers;
use crate::timer::receive_timeout::Idle;
use crate::timer::timers::Timer;

/// A key that names a timer of an actor.
///
/// A mobile actor takes its timers along, so it can keep the key in its state. Given to another actor, the key names no
/// timer, or one of that actor's own.
///
/// # Examples
///
/// ```
/// # use playhouse_actor::*;
/// # use std::time::Duration;
/// # #[derive(Clone)]
/// # struct Tick;
/// # impl Message for Tick { type Reply = (); }
/// # struct Stop;
/// # impl Message for Stop { type Reply = bool; }
/// struct Clock {
///     timer: Option<TimerKey>,
/// }
///
/// impl Actor for Clock {
///     fn started(&mut self, ctx: &mut Context<Self>) {
///         self.timer = Some(ctx.send_every(Duration::from_secs(1), Tick));
///     }
/// }
/// # impl Handler<Tick> for Clock { fn handle(&mut self, _: Tick, _: &mut Context<Self>) {} }
///
/// impl Handler<Stop> for Clock {
///     fn handle(&mut self, _: Stop, ctx: &mut Context<Self>) -> bool {
///         let Some(timer) = self.timer.take() else { return false };
///         ctx.cancel(timer);
///         true
///     }
/// }
/// # let system = System::start()?;
/// # assert!(system.spawn(Clock { timer: None }).ask(Stop).wait()?);
/// # system.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct TimerKey(u64);

impl<A: Actor> Context<A> {
    /// Sends `message` to this actor after `delay`.
    ///
    /// The resolution is 1 ms, and the message never comes early. [`Context::cancel`] cancels the timer.
    #[doc(alias("schedule_once", "notify_later", "run_later"))]
    pub fn send_after<M, Mode>(&mut self, delay: Duration, message: M) -> TimerKey
    where
        M: HandledBy<A, Mode>,
    {
        self.start_timer((delay, Pace::Once), message, None)
    }

    /// Sends a clone of `message` to this actor once in each `period`, at a fixed rate counted from now. Late messages
    /// do not shift the later ones.
    ///
    /// At most 1 message of the timer waits. A message is left out if it is due while the former one is unhandled.
    /// Periods in which nothing could be sent (the worker was busy, the computer asleep) are left out, too.
    ///
    /// # Panics
    /// If `period` is zero.
    #[doc(alias("schedule", "run_interval", "schedule_at_fixed_rate", "send_interval"))]
    pub fn send_every<M, Mode>(&mut self, period: Duration, message: M) -> TimerKey
    where
        M: HandledBy<A, Mode> + Repeated,
    {
        assert!(
            !period.is_zero(),
            "`send_every` needs a period above zero: a period of zero would let no other message run"
        );
        self.start_timer((period, Pace::Every(period)), message, Some(|message| Ok(message.clone())))
    }

    /// Sends a clone of `message` to this actor repeatedly: first after `pause`, then each time `pause` after the
    /// former was *handled*.
    ///
    /// The former message is handled when its handler has ended, also an async one. Other mail therefore always has at
    /// least `pause` between two of these messages.
    ///
    /// # Panics
    /// If `pause` is zero.
    #[doc(alias("schedule_with_fixed_delay", "send_spaced"))]
    pub fn send_with_fixed_delay<M, Mode>(&mut self, pause: Duration, message: M) -> TimerKey
    where
        M: HandledBy<A, Mode> + Repeated,
    {
        assert!(
            !pause.is_zero(),
            "`send_with_fixed_delay` needs a pause above zero: a pause of zero would let no other message run"
        );
        self.start_timer((pause, Pace::Spaced(pause)), message, Some(|message| Ok(message.clone())))
    }

    /// Keeps a timer of this actor over restarts, in its rhythm. Other timers end with the state that has started them.
    ///
    /// [`started`](Actor::started) is called after each restart: a timer that it starts must not be kept, because a
    /// second one would run after the restart.
    ///
    /// Returns `false` if the actor has no such timer, or no longer.
    pub fn keep_timer(&mut self, key: TimerKey) -> bool {
        let keep = |timer: &mut Timer| timer.kept = true;
        self.cx
            .with_extra_if_any(|extra| extra.timer_slot().timers.get_mut(&key.0).map(keep).is_some())
            .unwrap_or(false)
    }

    /// Calls [`receive_timeout`](Actor::receive_timeout) whenever this actor has handled no message for the time
    /// `after`. It replaces an earlier receive timeout.
    ///
    /// The resolution is 1 ms, and the call never comes early.
    ///
    /// Every handled item counts as a message, also timers, answers and death notices. Requests such as a watch do not
    /// count.
    ///
    /// The time begins now, and anew at the end of each handler. A migrating actor takes the timeout along, and the
    /// time begins anew in the target theater. The timeout ends with a restart: `started` may set it again.
    ///
    /// The system is never idle while a receive timeout is set, because it acts like a periodic timer.
    ///
    /// # Panics
    /// If `after` is zero.
    #[doc(alias("idle_timeout"))]
    pub fn set_receive_timeout(&mut self, after: Duration) {
        assert!(
            !after.is_zero(),
            "`set_receive_timeout` needs a time above zero: a timeout of zero would expire without end"
        );
        self.cancel_receive_timeout();
        let address = self.cx.address();
        self.cx.note_handled(true);
        self.cx.with_extra(|extra| {
            let slot = extra.timer_slot();
            slot.last += 1;
            slot.idle = Some(Idle::begin(address, slot.last, after));
        });
    }

    /// Cancels the receive timeout, if one is set.
    pub fn cancel_receive_timeout(&mut self) {
        if let Some(idle) = self.cx.with_extra_if_any(|extra| extra.timer_slot().idle.take()).flatten() {
            idle.cancel();
            self.cx.note_handled(false);
        }
    }

    fn start_timer<M, Mode>(&mut self, times: (Duration, Pace), message: M, copy: Option<Copying<M>>) -> TimerKey
    where
        M: HandledBy<A, Mode>,
    {
        let address = self.cx.address();
        self.cx.with_extra(|extra| {
            let slot = extra.timer_slot();
            slot.last += 1;
            let id = slot.last;
            slot.timers.insert(id, Timer::start::<A, M, Mode>(address, id, times, message, copy));
            TimerKey(id)
        })
    }

    /// Cancels a timer of this actor. Its message is not handled, even if it has been sent already. An unknown key has
    /// no effect.
    #[doc(alias("cancel_timer", "cancel_future"))]
    pub fn cancel(&mut self, key: TimerKey) {
        if let Some(timer) = self.cx.with_extra_if_any(|extra| extra.timer_slot().timers.remove(&key.0)).flatten() {
            timer.stop();
        }
    }
}
