//! Registering actors.

use std::fmt;

use playhouse_actor::{Actor, ActorRef, Context, Handler, Message};

use super::Receptionist;

/// A request to register an actor under a key, until the actor ends or is [deregistered](Deregister). A second
/// registration changes nothing.
///
/// # Examples
///
/// ```
/// use playhouse::prelude::*;
/// use playhouse::receptionist::{Receptionist, Register};
///
/// struct Till;
/// #[actor]
/// impl Till {}
///
/// let system = System::start()?;
/// let receptionist = system.spawn(Receptionist::new());
/// receptionist.tell(Register::new("till", system.spawn(Till)));
/// # system.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(alias = "register")]
pub struct Register<A: Actor> {
    key: String,
    actor: ActorRef<A>,
}

impl<A: Actor> Register<A> {
    /// Creates a request to register `actor` under `key`, besides other actors.
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
            // The watch also reports an actor that has ended before.
            ctx.watch(actor);
        }
    }
}

/// A request to register an actor alone under a key, as an alias. The claim succeeds if no other `A` is registered
/// under the key. Otherwise the answer is the actor that has the key. The key is free again when its actor ends or is
/// [deregistered](Deregister).
///
/// The key is exclusive as long as every actor claims it, because [`Register`] adds actors to a claimed key too.
///
/// # Examples
///
/// ```
/// use playhouse::prelude::*;
/// use playhouse::receptionist::{Claim, Receptionist};
///
/// struct Leader;
/// #[actor]
/// impl Leader {}
///
/// let system = System::start()?;
/// let receptionist = system.spawn(Receptionist::new());
/// let (first, second) = (system.spawn(Leader), system.spawn(Leader));
/// assert_eq!(receptionist.ask(Claim::new("leader", first)).wait()?, Ok(()));
/// assert_eq!(receptionist.ask(Claim::new("leader", second)).wait()?, Err(first));
/// # system.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(alias = "register_name")]
pub struct Claim<A: Actor> {
    key: String,
    actor: ActorRef<A>,
}

impl<A: Actor> Claim<A> {
    /// Creates a request to register `actor` alone under `key`.
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
        // An actor that has ended no longer holds the key, even if its end was not reported yet.
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

/// A request to remove an actor from a key. The answer is whether the actor was registered.
///
/// # Examples
///
/// ```
/// use playhouse::prelude::*;
/// use playhouse::receptionist::{Deregister, Receptionist, Register};
///
/// struct Till;
/// #[actor]
/// impl Till {}
///
/// let system = System::start()?;
/// let receptionist = system.spawn(Receptionist::new());
/// let till = system.spawn(Till);
/// receptionist.ask(Register::new("till", till)).wait()?;
/// assert!(receptionist.ask(Deregister::new("till", till)).wait()?);
/// assert!(!receptionist.ask(Deregister::new("till", till)).wait()?);
/// # system.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(alias = "unregister")]
pub struct Deregister<A: Actor> {
    key: String,
    actor: ActorRef<A>,
}

impl<A: Actor> Deregister<A> {
    /// Creates a request to remove `actor` from `key`.
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
