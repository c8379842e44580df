//! The receptionist: actors find each other by type and key.
//!
//! A [`Receptionist`] is an actor. Actors are registered with it by [`Register`], under a key and their type; several may have
//! the same key, but for one that was [claimed](Claim). [`Find`] asks for those that are there now, [`Subscribe`] for a [`Listing`] now and at each change. Who ends is
//! taken out. Actors of other theaters may be registered too; to be asked from other theaters, there is the `NameServer`.

use std::any::{Any, TypeId, type_name};
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::marker::PhantomData;

use playhouse_actor::{
    Actor, ActorId, ActorRef, Context, HandledBy, Handler, Message, Recipient, Terminated, ToRecipient,
};

/// Knows actors by type and key: see [the module](self).
#[derive(Default)]
pub struct Receptionist {
    entries: HashMap<(TypeId, String), Box<dyn Entry>>,
    /// In which entries an actor is, registered or subscribed.
    entries_of: HashMap<ActorId, HashSet<(TypeId, String)>>,
}

impl fmt::Debug for Receptionist {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receptionist").field("entries", &self.entries.len()).finish()
    }
}

/// Who is registered under one type and key, and who wants to know.
struct Room<A: Actor> {
    key: String,
    actors: Vec<ActorRef<A>>,
    subscribers: Vec<Recipient<Listing<A>>>,
}

trait Entry: Any + Send {
    /// That actor has ended. Returns whether nobody is left.
    fn forget(&mut self, who: ActorId) -> bool;
}

impl<A: Actor> Entry for Room<A> {
    fn forget(&mut self, who: ActorId) -> bool {
        self.subscribers.retain(|subscriber| subscriber.id() != who);
        self.take_out(who);
        self.is_empty()
    }
}

impl<A: Actor> Room<A> {
    fn is_empty(&self) -> bool {
        self.actors.is_empty() && self.subscribers.is_empty()
    }

    fn listing(&self) -> Listing<A> {
        Listing { key: self.key.clone(), actors: self.actors.clone() }
    }

    fn tell_all(&self) {
        for subscriber in &self.subscribers {
            subscriber.tell(self.listing());
        }
    }

    fn take_out(&mut self, who: ActorId) -> bool {
        let before = self.actors.len();
        self.actors.retain(|actor| actor.id() != who);
        let was_there = self.actors.len() < before;
        if was_there {
            self.tell_all();
        }
        was_there
    }
}

impl Receptionist {
    /// One that knows nobody.
    pub fn new() -> Receptionist {
        Receptionist::default()
    }

    fn room<A: Actor>(&mut self, key: &str) -> Option<&mut Room<A>> {
        let entry: &mut dyn Any = self.entries.get_mut(&(TypeId::of::<A>(), key.to_owned()))?.as_mut();
        entry.downcast_mut()
    }

    fn room_to_use<A: Actor>(&mut self, key: String, by: ActorId) -> &mut Room<A> {
        let at = (TypeId::of::<A>(), key.clone());
        self.entries_of.entry(by).or_default().insert(at.clone());
        let new = || Box::new(Room::<A> { key, actors: Vec::new(), subscribers: Vec::new() }) as Box<dyn Entry>;
        let entry: &mut dyn Any = self.entries.entry(at).or_insert_with(new).as_mut();
        entry.downcast_mut().expect("the type is part of its key")
    }

    /// `who` is neither registered nor subscribed in this entry any more, it may be.
    fn tidy_up<A: Actor>(&mut self, key: String, who: ActorId) {
        let Some(room) = self.room::<A>(&key) else { return };
        let empty = room.is_empty();
        let gone = !room.actors.iter().any(|actor| actor.id() == who)
            && !room.subscribers.iter().any(|subscriber| subscriber.id() == who);
        let at = (TypeId::of::<A>(), key);
        if empty {
            self.entries.remove(&at);
        }
        if gone && let Some(entries) = self.entries_of.get_mut(&who) {
            entries.remove(&at);
            if entries.is_empty() {
                self.entries_of.remove(&who);
            }
        }
    }
}

impl Actor for Receptionist {
    fn terminated(&mut self, down: Terminated, _: &mut Context<Self>) {
        for at in self.entries_of.remove(&down.who).unwrap_or_default() {
            if self.entries.get_mut(&at).is_some_and(|entry| entry.forget(down.who)) {
                self.entries.remove(&at);
            }
        }
    }
}

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
        let room = self.room_to_use::<A>(key, actor.id());
        if !room.actors.contains(&actor) {
            room.actors.push(actor);
            room.tell_all();
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
        let others = self.room::<A>(&key).map(|room| room.actors.as_slice()).unwrap_or_default();
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
        let was_there = self.room::<A>(&key).is_some_and(|room| room.take_out(actor.id()));
        self.tidy_up::<A>(key, actor.id());
        was_there
    }
}

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
        self.room::<A>(&key).map(|room| room.actors.clone()).unwrap_or_default()
    }
}

/// Has the receptionist watch an actor, whose type is known to who subscribes it.
type Watch = Box<dyn FnOnce(&mut Context<Receptionist>) + Send>;

/// Has an actor get a [`Listing`] now, and again whenever it has changed. It ends with the subscriber, or by [`Unsubscribe`].
pub struct Subscribe<A: Actor> {
    key: String,
    to: Recipient<Listing<A>>,
    watch: Watch,
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
        let room = self.room_to_use::<A>(key, to.id());
        if !room.subscribers.contains(&to) {
            room.subscribers.push(to);
            watch(ctx);
        }
        to.tell(room.listing());
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
        if let Some(room) = self.room::<A>(&key) {
            room.subscribers.retain(|subscriber| subscriber.id() != who);
        }
        self.tidy_up::<A>(key, who);
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
