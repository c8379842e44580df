//! Receive timeouts: an actor is notified that it has handled no message for some time.
//!
//! An actor without a receive timeout pays nothing for messages. For an actor with one, the executor records the time
//! when it has handled a message ([`Cx::note_handled`]). A timer checks that time when the timeout could be over, and
//! sets itself again for the remaining time. One timer therefore serves many messages, and it is set once per timeout,
//! and not once per message.

use std::time::Duration;

use playhouse_executor::{
    Address, AwayCx, Control, ControlCx, Cx, Envelope, MailKind, TimerKey, Undelivered, with_current_system,
};

use crate::actor::context::Context;
use crate::actor::{Actor, ActorState};
use crate::timer::HasTimers;

/// The receive timeout of an actor.
pub(crate) struct Idle {
    pub(crate) after: Duration,
    /// The number of this timeout. A check for an earlier timeout has no effect.
    number: u64,
    timer: TimerKey,
}

impl Idle {
    /// Begins a receive timeout now.
    pub(crate) fn begin<A: Actor>(address: Address<ActorState<A>>, number: u64, after: Duration) -> Idle {
        Idle { after, number, timer: check_in(address, number, after) }
    }

    #[inline(never)]
    pub(crate) fn cancel(self) {
        with_current_system(|system| {
            if let Some(system) = system {
                system.cancel_timer(self.timer);
            }
        });
    }
}

fn check_in<A: Actor>(address: Address<ActorState<A>>, number: u64, delay: Duration) -> TimerKey {
    let check = Box::new(move || {
        // Behind the mail that has come, because that is handled before the time is over.
        address.send_control_behind(CheckIdle { number });
        None
    });
    with_current_system(|system| system.expect("an actor runs on a worker").start_timer(delay, check))
}

/// A request to check whether the time is over.
struct CheckIdle {
    number: u64,
}

impl<A: Actor> Control<ActorState<A>> for CheckIdle {
    fn run(self, cx: &mut ControlCx<ActorState<A>>) {
        let Some(idle) = cx.extra().timer_slot().idle.as_ref().filter(|idle| idle.number == self.number) else {
            return;
        };
        let after = idle.after;
        let Some(handled_at) = cx.handled_at() else { return };
        let now = with_current_system(|system| system.expect("an actor runs on a worker").now());
        let idle_for = if cx.is_suspended() || cx.is_crashed() {
            // The actor is still handling a message.
            Duration::ZERO
        } else {
            now.saturating_sub(handled_at)
        };
        let left = match after.saturating_sub(idle_for) {
            Duration::ZERO => {
                cx.note_handled(true);
                cx.run(TimedOut);
                cx.look_at_guards();
                after
            }
            left => left,
        };
        let address = cx.address();
        // The hook may have set another timeout, or none.
        if let Some(idle) = cx.extra().timer_slot().idle.as_mut().filter(|idle| idle.number == self.number) {
            idle.timer = check_in(address, self.number, left);
        }
    }

    fn describe(&self) -> (MailKind, &'static str) {
        (MailKind::Timer, "receive timeout")
    }

    /// The actor has migrated, and its timeout with it.
    fn send_on(self, _: &mut AwayCx<ActorState<A>>) {}
}

struct TimedOut;

impl<A: Actor> Envelope<ActorState<A>> for TimedOut {
    fn run(self, state: &mut ActorState<A>, cx: &mut Cx<ActorState<A>>) {
        state.actor.receive_timeout(Context::of(cx));
    }

    fn describe() -> (MailKind, &'static str) {
        (MailKind::Timer, "receive timeout")
    }

    fn bounce(self, _: Undelivered) {}
}
