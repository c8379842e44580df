//! A receptionist: actors find each other by type and key.
//!
//! A [`Receptionist`] is an actor. [`Register`] registers an actor under its type and a key. Several actors may have
//! the same key, unless it was [claimed](Claim). [`Find`] returns the present actors of a key. [`Subscribe`] sends a
//! [`Listing`] now and at each change. An actor that ends is removed. Actors of other theaters can be registered too;
//! theaters look each other's actors up in the `NameServer`.
//!
//! # Examples
//!
//! ```
//! use playhouse::prelude::*;
//! use playhouse::receptionist::{Find, Receptionist, Register};
//!
//! struct Printer;
//!
//! #[actor]
//! impl Printer {
//!     #[message]
//!     fn pages(&self) -> u32 { 3 }
//! }
//!
//! let system = System::start()?;
//! let receptionist = system.spawn(Receptionist::new());
//! receptionist.ask(Register::new("floor 2", system.spawn(Printer))).wait()?;
//!
//! let printers = receptionist.ask(Find::<Printer>::new("floor 2")).wait()?;
//! assert_eq!(printers[0].ask(Pages).wait()?, 3);
//! # system.shutdown()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

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

/// An actor that knows actors by type and key: see [the module](self).
///
/// # Examples
///
/// ```
/// use playhouse::prelude::*;
/// use playhouse::receptionist::Receptionist;
///
/// let system = System::start()?;
/// let receptionist = system.spawn(Receptionist::new());
/// assert!(!receptionist.is_stopped());
/// # system.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(alias = "registry")]
#[doc(alias = "Registry")]
#[doc(alias = "whereis")]
#[doc(alias = "pg")]
#[derive(Default)]
pub struct Receptionist {
    entries: HashMap<(TypeId, String), Box<dyn AnyEntry>>,
    /// The entries in which an actor is registered or subscribed.
    entries_of: HashMap<ActorId, HashSet<(TypeId, String)>>,
}

impl fmt::Debug for Receptionist {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receptionist").field("entries", &self.entries.len()).finish()
    }
}

impl Receptionist {
    /// Creates a receptionist that knows no actors.
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

    /// Removes the entry if it is empty, and forgets it for `who` if `who` is neither registered nor subscribed in
    /// it.
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
