//! The actor that watches the members of a table which is shared by handles.

use std::time::Duration;

use playhouse_actor::{Actor, ActorRef, Context, Handler, Message, Terminated};

/// A table of members whose ends are reported by a [`MemberWatcher`].
pub(crate) trait Membership: Send + 'static {
    /// Handles the end of a watched member.
    fn ended(&mut self, terminated: &Terminated, ctx: &mut Context<MemberWatcher<Self>>)
    where
        Self: Sized;

    /// Handles the reminder with this number.
    fn reminded(&mut self, _number: usize, _ctx: &mut Context<MemberWatcher<Self>>)
    where
        Self: Sized,
    {
    }
}

/// An actor that watches members of any type for one table.
pub(crate) struct MemberWatcher<T>(pub(crate) T);

impl<T: Membership> Actor for MemberWatcher<T> {
    fn terminated(&mut self, terminated: Terminated, ctx: &mut Context<Self>) {
        self.0.ended(&terminated, ctx);
    }
}

/// Starts or ends the watch of one member.
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

/// A reminder for the watcher itself.
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
    /// Calls [`Membership::reminded`] with `number` after `delay`.
    pub(crate) fn remind(ctx: &mut Context<Self>, delay: Duration, number: usize) {
        ctx.send_after(delay, Reminder(number));
    }
}
