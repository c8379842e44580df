//! The members of a pool that ended, and their successors.

use std::sync::Weak;
use std::time::Duration;

use playhouse_actor::{Actor, Context, Down, StopReason};

use super::members::{Inner, Slot};
use crate::member_watcher::{Keeper, Table};

/// Before a member of a [`Pool`] is replaced that has ended within [`CALM`] of another one: doubled for each in a row.
const REPLACE_AFTER: Duration = Duration::from_millis(10);

const REPLACE_AFTER_MAX: Duration = Duration::from_secs(1);

const CALM: Duration = Duration::from_secs(2);

/// What the keeper of a router does.
pub(super) struct Roll<A: Actor> {
    pub(super) router: Weak<Inner<A>>,
    /// How many have ended one soon after the other.
    pub(super) ends: u32,
    pub(super) last_end: Duration,
}

impl<A: Actor> Roll<A> {
    pub(super) fn replace_later(&mut self, slot: usize, ctx: &mut Context<Keeper<Self>>) {
        let now = ctx.now();
        self.ends = if now.saturating_sub(self.last_end) < CALM { self.ends.saturating_add(1) } else { 0 };
        self.last_end = now;
        let delay = match self.ends {
            0 => Duration::ZERO,
            ends => REPLACE_AFTER.saturating_mul(1 << (ends - 1).min(10)).min(REPLACE_AFTER_MAX),
        };
        Keeper::remind(ctx, delay, slot);
    }
}

impl<A: Actor> Table for Roll<A> {
    fn ended(&mut self, down: &Down, ctx: &mut Context<Keeper<Self>>) {
        let Some(router) = self.router.upgrade() else { return };
        if let Some(Slot::Own(slot)) = router.take_out(down.who)
            && down.reason != StopReason::Shutdown
        {
            self.replace_later(slot, ctx);
        }
    }

    fn due(&mut self, slot: usize, ctx: &mut Context<Keeper<Self>>) {
        let Some(router) = self.router.upgrade() else { return };
        if !router.fill(slot) {
            self.replace_later(slot, ctx);
        }
    }
}
