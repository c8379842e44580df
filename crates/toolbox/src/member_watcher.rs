//! The actor that watches others for a table that is none.

use std::time::Duration;

use playhouse_actor::{Actor, ActorRef, Context, Handler, Message, Terminated};

/// What a keeper does for its table.
pub(crate) trait Membership: Send + 'static {
    /// An actor that the table has watched has ended.
    fn ended(&mut self, terminated: &Terminated, ctx: &mut Context<MemberWatcher<Self>>)
    where
        Self: Sized;

    /// What was to be done later.
    fn reminded(&mut self, _number: usize, _ctx: &mut Context<MemberWatcher<Self>>)
    where
        Self: Sized,
    {
    }
}

/// Watches actors of any type, for a table.
pub(crate) struct MemberWatcher<T>(pub(crate) T);

impl<T: Membership> Actor for MemberWatcher<T> {
    fn terminated(&mut self, terminated: Terminated, ctx: &mut Context<Self>) {
        self.0.ended(&terminated, ctx);
    }
}

/// Has a keeper watch an actor, or watch it no more.
pub(crate) struct WatchMember<A: Actor> {
    pub(crate) member: ActorRef<A>,
    pub(crate) watch: bool,
}

impl<A: Actor> Message for WatchMember<A> {
    type Reply = ();
}

impl<A: Actor, T: Membership> Handler<WatchMember<A>> for MemberWatcher<T> {
    fn handle(&mut self, WatchMember { member, watch }: WatchMember<A>, ctx: &mut Context<Self>) {
        if watch {
            ctx.watch(member);
        } else {
            ctx.unwatch(member);
        }
    }
}

/// Reminds a keeper of something with this number.
pub(crate) struct Reminder(usize);

impl Message for Reminder {
    type Reply = ();
}

impl<T: Membership> Handler<Reminder> for MemberWatcher<T> {
    fn handle(&mut self, Reminder(number): Reminder, ctx: &mut Context<Self>) {
        self.0.reminded(number, ctx);
    }
}

impl<T: Membership> MemberWatcher<T> {
    /// Has [`Membership::reminded`] called with `number`, later.
    pub(crate) fn remind(ctx: &mut Context<Self>, delay: Duration, number: usize) {
        ctx.send_after(delay, Reminder(number));
    }
}
