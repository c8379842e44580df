//! The actors and subscribers under one type and key.

use std::any::Any;

use playhouse_actor::{Actor, ActorId, ActorRef, Recipient};

use super::Listing;

/// The actors of one type that are registered under one key, and the subscribers of that key.
pub(super) struct Entry<A: Actor> {
    pub(super) key: String,
    pub(super) actors: Vec<ActorRef<A>>,
    pub(super) subscribers: Vec<Recipient<Listing<A>>>,
}

pub(super) trait AnyEntry: Any + Send {
    /// Removes an actor that has ended. Returns whether the entry is empty.
    fn forget(&mut self, who: ActorId) -> bool;
}

impl<A: Actor> AnyEntry for Entry<A> {
    fn forget(&mut self, who: ActorId) -> bool {
        self.subscribers.retain(|subscriber| subscriber.id() != who);
        self.remove(who);
        self.is_empty()
    }
}

impl<A: Actor> Entry<A> {
    pub(super) fn is_empty(&self) -> bool {
        self.actors.is_empty() && self.subscribers.is_empty()
    }

    pub(super) fn listing(&self) -> Listing<A> {
        Listing { key: self.key.clone(), actors: self.actors.clone() }
    }

    pub(super) fn tell_all(&self) {
        for subscriber in &self.subscribers {
            subscriber.tell(self.listing());
        }
    }

    pub(super) fn remove(&mut self, who: ActorId) -> bool {
        let before = self.actors.len();
        self.actors.retain(|actor| actor.id() != who);
        let was_there = self.actors.len() < before;
        if was_there {
            self.tell_all();
        }
        was_there
    }
}
