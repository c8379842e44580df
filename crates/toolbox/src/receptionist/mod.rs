//! The receptionist: actors find each other by type and key.
//!
//! A [`Receptionist`] is an actor. Actors are registered with it by [`Register`], under a key and their type; several may have
//! the same key, but for one that was [claimed](Claim). [`Find`] asks for those that are there now, [`Subscribe`] for a [`Listing`] now and at each change. Who ends is
//! taken out. Actors of other theaters may be registered too; to be asked from other theaters, there is the `NameServer`.

mod entry;
mod find;
mod register;
mod subscribe;

use std::any::{Any, TypeId};
use std::collections::{HashMap, HashSet};
use std::fmt;

use playhouse_actor::{Actor, ActorId, Context, Terminated};

use self::entry::{AnyEntry, Entry};
pub use self::find::{Find, Listing};
pub use self::register::{Claim, Deregister, Register};
pub use self::subscribe::{Subscribe, Unsubscribe};

/// Knows actors by type and key: see [the module](self).
#[derive(Default)]
pub struct Receptionist {
    entries: HashMap<(TypeId, String), Box<dyn AnyEntry>>,
    /// In which entries an actor is, registered or subscribed.
    entries_of: HashMap<ActorId, HashSet<(TypeId, String)>>,
}

impl fmt::Debug for Receptionist {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receptionist").field("entries", &self.entries.len()).finish()
    }
}

impl Receptionist {
    /// One that knows nobody.
    pub fn new() -> Receptionist {
        Receptionist::default()
    }

    fn entry<A: Actor>(&mut self, key: &str) -> Option<&mut Entry<A>> {
        let entry: &mut dyn Any = self.entries.get_mut(&(TypeId::of::<A>(), key.to_owned()))?.as_mut();
        entry.downcast_mut()
    }

    fn entry_or_insert<A: Actor>(&mut self, key: String, by: ActorId) -> &mut Entry<A> {
        let at = (TypeId::of::<A>(), key.clone());
        self.entries_of.entry(by).or_default().insert(at.clone());
        let new = || Box::new(Entry::<A> { key, actors: Vec::new(), subscribers: Vec::new() }) as Box<dyn AnyEntry>;
        let entry: &mut dyn Any = self.entries.entry(at).or_insert_with(new).as_mut();
        entry.downcast_mut().expect("the type is part of its key")
    }

    /// `who` is neither registered nor subscribed in this entry any more, it may be.
    fn remove_unused<A: Actor>(&mut self, key: String, who: ActorId) {
        let Some(entry) = self.entry::<A>(&key) else { return };
        let empty = entry.is_empty();
        let gone = !entry.actors.iter().any(|actor| actor.id() == who)
            && !entry.subscribers.iter().any(|subscriber| subscriber.id() == who);
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
    fn terminated(&mut self, terminated: Terminated, _: &mut Context<Self>) {
        for at in self.entries_of.remove(&terminated.who).unwrap_or_default() {
            if self.entries.get_mut(&at).is_some_and(|entry| entry.forget(terminated.who)) {
                self.entries.remove(&at);
            }
        }
    }
}
