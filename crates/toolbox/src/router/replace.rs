//! The watcher of a router's members, and the successors of a pool's members.

use std::sync::Weak;
use std::time::Duration;

use playhouse_actor::{Actor, Context, StopReason, Terminated};

use super::members::{RouterState, Slot};
use crate::member_watcher::{MemberWatcher, Membership};

/// The pause before the replacement of a pool's member that has ended within [`QUIET_PERIOD`] of another one. It is
/// doubled for each further end.
const REPLACE_DELAY: Duration = Duration::from_millis(10);

const REPLACE_DELAY_MAX: Duration = Duration::from_secs(1);

const QUIET_PERIOD: Duration = Duration::from_secs(2);

/// The reaction of a router to the end of its members.
pub(super) struct RouterMembership<A: Actor> {
    pub(super) router: Weak<RouterState<A>>,
    /// The number of recent ends, each within [`QUIET_PERIOD`] of the one before.
    pub(super) recent_ends: u32,
    pub(super) last_end: Duration,
}

impl<A: Actor> RouterMembership<A> {
    pub(super) fn replace_later(&mut self, slot: usize, ctx: &mut Context<MemberWatcher<Self>>) {
        let now = ctx.now();
        self.recent_ends =
            if now.saturating_sub(self.last_end) < QUIET_PERIOD { self.recent_ends.saturating_add(1) } else { 0 };
        self.last_end = now;
        let delay = match self.recent_ends {
            0 => Duration::ZERO,
            recent_ends => REPLACE_DELAY.saturating_mul(1 << (recent_ends - 1).min(10)).min(REPLACE_DELAY_MAX),
        };
        MemberWatcher::remind(ctx, delay, slot);
    }
}

impl<A: Actor> Membership for RouterMembership<A> {
    fn ended(&mut self, terminated: &Terminated, ctx: &mut Context<MemberWatcher<Self>>) {
        let Some(router) = self.router.upgrade() else { return };
        if let Some(Slot::Pooled(slot)) = router.remove(terminated.who)
            && terminated.reason != StopReason::Shutdown
        {
            self.replace_later(slot, ctx);
        }
    }

    fn reminded(&mut self, slot: usize, ctx: &mut Context<MemberWatcher<Self>>) {
        let Some(router) = self.router.upgrade() else { return };
        if !router.start_member(slot) {
            self.replace_later(slot, ctx);
        }
    }
}
