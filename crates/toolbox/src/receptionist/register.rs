//! Registering actors.

use std::fmt;

use playhouse_actor::{Actor, ActorRef, Context, Handler, Message};

use super::Receptionist;

/// Registers an actor under a key, until it ends or is [deregistered](Deregister). Again, it changes nothing.
pub struct Register<A: Actor> {
    key: String,
    actor: ActorRef<A>,
}

impl<A: Actor> Register<A> {
    /// `actor` is to be found under `key`, besides others.
    pub fn new(key: impl Into<String>, actor: ActorRef<A>) -> Register<A> {
        Register { key: key.into(), actor }
    }
}

impl<A: Actor> fmt::Debug for Register<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Register({:?}, {})", self.key, self.actor)
    }
}

impl<A: Actor> Message for Register<A> {
    type Reply = ();
}

impl<A: Actor> Handler<Register<A>> for Receptionist {
    fn handle(&mut self, Register { key, actor }: Register<A>, ctx: &mut Context<Self>) {
        let entry = self.entry_or_insert::<A>(key, actor.id());
        if !entry.actors.contains(&actor) {
            entry.actors.push(actor);
            entry.tell_all();
            // Of one that has ended before, too, the end is told.
            ctx.watch(actor);
        }
    }
}

/// Gives an actor a key that it has for itself: an alias. As [`Register`], but only where no other `A` is registered under the
/// key; the answer is who is, otherwise. The key is free again when the actor ends or is [deregistered](Deregister).
///
/// It is its own as long as all claim this key: who is registered by [`Register`] comes besides.
pub struct Claim<A: Actor> {
    key: String,
    actor: ActorRef<A>,
}

impl<A: Actor> Claim<A> {
    /// `actor` alone is to be found under `key`.
    pub fn new(key: impl Into<String>, actor: ActorRef<A>) -> Claim<A> {
        Claim { key: key.into(), actor }
    }
}

impl<A: Actor> fmt::Debug for Claim<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Claim({:?}, {})", self.key, self.actor)
    }
}

impl<A: Actor> Message for Claim<A> {
    type Reply = Result<(), ActorRef<A>>;
}

impl<A: Actor> Handler<Claim<A>> for Receptionist {
    fn handle(&mut self, Claim { key, actor }: Claim<A>, ctx: &mut Context<Self>) -> Result<(), ActorRef<A>> {
        // One that has ended, and of which that was not told yet, has the key no more.
        let others = self.entry::<A>(&key).map(|entry| entry.actors.as_slice()).unwrap_or_default();
        match others.iter().find(|other| **other != actor && !other.is_stopped()) {
            Some(other) => Err(*other),
            None => {
                self.handle(Register { key, actor }, ctx);
                Ok(())
            }
        }
    }
}

/// Takes an actor out. The answer is whether it was there.
pub struct Deregister<A: Actor> {
    key: String,
    actor: ActorRef<A>,
}

impl<A: Actor> Deregister<A> {
    /// `actor` is not to be found under `key` any more.
    pub fn new(key: impl Into<String>, actor: ActorRef<A>) -> Deregister<A> {
        Deregister { key: key.into(), actor }
    }
}

impl<A: Actor> fmt::Debug for Deregister<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Deregister({:?}, {})", self.key, self.actor)
    }
}

impl<A: Actor> Message for Deregister<A> {
    type Reply = bool;
}

impl<A: Actor> Handler<Deregister<A>> for Receptionist {
    fn handle(&mut self, Deregister { key, actor }: Deregister<A>, _: &mut Context<Self>) -> bool {
        let was_there = self.entry::<A>(&key).is_some_and(|entry| entry.remove(actor.id()));
        self.remove_unused::<A>(key, actor.id());
        was_there
    }
}
