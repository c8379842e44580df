//! Looking up actors.

use std::any::type_name;
use std::fmt;
use std::marker::PhantomData;

use playhouse_actor::{Actor, ActorRef, Context, Handler, Message};

use super::Receptionist;

/// A request for all actors of type `A` under a key, in the order of registration. The answer may be empty.
///
/// # Examples
///
/// ```
/// use playhouse::prelude::*;
/// use playhouse::receptionist::{Find, Receptionist, Register};
///
/// struct Till;
/// #[actor]
/// impl Till {}
///
/// let system = System::start()?;
/// let receptionist = system.spawn(Receptionist::new());
/// let till = system.spawn(Till);
/// receptionist.ask(Register::new("front", till)).wait()?;
/// assert_eq!(receptionist.ask(Find::<Till>::new("front")).wait()?, [till]);
/// assert!(receptionist.ask(Find::<Till>::new("back")).wait()?.is_empty());
/// # system.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(alias = "whereis")]
#[doc(alias = "lookup")]
#[doc(alias = "get_members")]
pub struct Find<A> {
    key: String,
    actor: PhantomData<fn() -> A>,
}

impl<A: Actor> Find<A> {
    /// Creates a request for the actors under `key`.
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

/// The actors under a key, sent to those that have [subscribed](super::Subscribe).
///
/// # Examples
///
/// ```
/// use playhouse::prelude::*;
/// use playhouse::receptionist::Listing;
///
/// struct Till;
/// #[actor]
/// impl Till {}
///
/// struct Balancer {
///     tills: Vec<ActorRef<Till>>,
/// }
///
/// impl Actor for Balancer {}
/// impl Handler<Listing<Till>> for Balancer {
///     fn handle(&mut self, listing: Listing<Till>, _: &mut Context<Self>) {
///         self.tills = listing.actors;
///     }
/// }
/// ```
pub struct Listing<A: Actor> {
    /// The key.
    pub key: String,
    /// The actors, in the order of registration. An actor that has just ended may still be listed, and then another
    /// listing follows.
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
