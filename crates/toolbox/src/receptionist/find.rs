//! Looking actors up.

use std::any::type_name;
use std::fmt;
use std::marker::PhantomData;

use playhouse_actor::{Actor, ActorRef, Context, Handler, Message};

use super::Receptionist;

/// Asks for all actors of type `A` under a key, in the order of registration. It is no error if there is none.
pub struct Find<A> {
    key: String,
    actor: PhantomData<fn() -> A>,
}

impl<A: Actor> Find<A> {
    /// Who is registered under `key`?
    pub fn new(key: impl Into<String>) -> Find<A> {
        Find { key: key.into(), actor: PhantomData }
    }
}

impl<A> fmt::Debug for Find<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Find<{}>({:?})", type_name::<A>(), self.key)
    }
}

impl<A: Actor> Message for Find<A> {
    type Reply = Vec<ActorRef<A>>;
}

impl<A: Actor> Handler<Find<A>> for Receptionist {
    fn handle(&mut self, Find { key, .. }: Find<A>, _: &mut Context<Self>) -> Vec<ActorRef<A>> {
        self.entry::<A>(&key).map(|entry| entry.actors.clone()).unwrap_or_default()
    }
}

/// Who is registered under a key: sent to those that have [subscribed](Subscribe).
pub struct Listing<A: Actor> {
    /// The key.
    pub key: String,
    /// The actors, in the order in which they were registered. One that ended a moment ago may still be among them; then
    /// another listing follows.
    pub actors: Vec<ActorRef<A>>,
}

impl<A: Actor> Clone for Listing<A> {
    fn clone(&self) -> Self {
        Listing { key: self.key.clone(), actors: self.actors.clone() }
    }
}

impl<A: Actor> PartialEq for Listing<A> {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key && self.actors == other.actors
    }
}

impl<A: Actor> Eq for Listing<A> {}

impl<A: Actor> fmt::Debug for Listing<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listing").field("key", &self.key).field("actors", &self.actors).finish()
    }
}

impl<A: Actor> Message for Listing<A> {
    type Reply = ();
}
