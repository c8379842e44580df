//! The actor that watches others for a table that is none.

use std::time::Duration;

use playhouse_actor::{Actor, ActorRef, Context, Down, Handler, Message};

/// What a keeper does for its table.
pub(crate) trait Table: Send + 'static {
    /// An actor that the table has watched has ended.
    fn ended(&mut self, down: &Down, ctx: &mut Context<Keeper<Self>>)
    where
        Self: Sized;

    /// What was to be done later.
    fn due(&mut self, _number: usize, _ctx: &mut Context<Keeper<Self>>)
    where
        Self: Sized,
    {
    }
}

/// Watches actors of any type, for a table.
pub(crate) struct Keeper<T>(pub(crate) T);

impl<T: Table> Actor for Keeper<T> {
    fn terminated(&mut self, down: Down, ctx: &mut Context<Self>) {
        self.0.ended(&down, ctx);
    }
}

/// Has a keeper watch an actor, or watch it no more.
pub(crate) struct Observe<A: Actor> {
    pub(crate) who: ActorRef<A>,
    pub(crate) watch: bool,
}

impl<A: Actor> Message for Observe<A> {
    type Reply = ();
}

impl<A: Actor, T: Table> Handler<Observe<A>> for Keeper<T> {
    fn handle(&mut self, Observe { who, watch }: Observe<A>, ctx: &mut Context<Self>) {
        if watch {
            ctx.watch(who);
        } else {
            ctx.unwatch(who);
        }
    }
}

/// Reminds a keeper of something with this number.
pub(crate) struct Due(usize);

impl Message for Due {
    type Reply = ();
}

impl<T: Table> Handler<Due> for Keeper<T> {
    fn handle(&mut self, Due(number): Due, ctx: &mut Context<Self>) {
        self.0.due(number, ctx);
    }
}

impl<T: Table> Keeper<T> {
    /// Has [`Table::due`] called with `number`, later.
    pub(crate) fn remind(ctx: &mut Context<Self>, delay: Duration, number: usize) {
        ctx.send_after(delay, Due(number));
    }
}
