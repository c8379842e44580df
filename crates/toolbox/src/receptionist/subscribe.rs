//! Subscribing to changes.

use std::any::type_name;
use std::fmt;
use std::marker::PhantomData;

use playhouse_actor::{Actor, ActorId, ActorRef, Context, HandledBy, Handler, Message, Recipient, ToRecipient};

use super::{Listing, Receptionist};

/// Has the receptionist watch an actor, whose type is known to who subscribes it.
pub(super) type WatchFn = Box<dyn FnOnce(&mut Context<Receptionist>) + Send>;

/// Has an actor get a [`Listing`] now, and again whenever it has changed. It ends with the subscriber, or by [`Unsubscribe`].
pub struct Subscribe<A: Actor> {
    key: String,
    to: Recipient<Listing<A>>,
    watch: WatchFn,
}

impl<A: Actor> Subscribe<A> {
    /// `to` wants to know who is registered under `key`. Again, it gets another listing.
    pub fn new<B: Actor, Mode>(key: impl Into<String>, to: ActorRef<B>) -> Subscribe<A>
    where
        Listing<A>: HandledBy<B, Mode>,
    {
        Subscribe { key: key.into(), to: to.recipient(), watch: Box::new(move |ctx| ctx.watch(to)) }
    }
}

impl<A: Actor> fmt::Debug for Subscribe<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Subscribe<{}>({:?}, {:?})", type_name::<A>(), self.key, self.to)
    }
}

impl<A: Actor> Message for Subscribe<A> {
    type Reply = ();
}

impl<A: Actor> Handler<Subscribe<A>> for Receptionist {
    fn handle(&mut self, Subscribe { key, to, watch }: Subscribe<A>, ctx: &mut Context<Self>) {
        let entry = self.entry_or_insert::<A>(key, to.id());
        if !entry.subscribers.contains(&to) {
            entry.subscribers.push(to);
            watch(ctx);
        }
        to.tell(entry.listing());
    }
}

/// Ends a subscription. A listing that is under way may still arrive.
pub struct Unsubscribe<A: Actor> {
    key: String,
    who: ActorId,
    actor: PhantomData<fn() -> A>,
}

impl<A: Actor> Unsubscribe<A> {
    /// `subscriber` is not to be told of `key` any more.
    pub fn new<B: Actor>(key: impl Into<String>, subscriber: ActorRef<B>) -> Unsubscribe<A> {
        Unsubscribe { key: key.into(), who: subscriber.id(), actor: PhantomData }
    }
}

impl<A: Actor> fmt::Debug for Unsubscribe<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Unsubscribe<{}>({:?}, {})", type_name::<A>(), self.key, self.who)
    }
}

impl<A: Actor> Message for Unsubscribe<A> {
    type Reply = ();
}

impl<A: Actor> Handler<Unsubscribe<A>> for Receptionist {
    fn handle(&mut self, Unsubscribe { key, who, .. }: Unsubscribe<A>, _: &mut Context<Self>) {
        if let Some(entry) = self.entry::<A>(&key) {
            entry.subscribers.retain(|subscriber| subscriber.id() != who);
        }
        self.remove_unused::<A>(key, who);
    }
}
