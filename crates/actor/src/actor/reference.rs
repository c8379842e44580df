//! References to actors: 16 bytes, copyable, keeping no actor alive.

use std::fmt;
use std::hash::{Hash, Hasher};

use playhouse_executor::{Address, RawAddress, SystemCore, record_bytes};

use crate::actor::names::Label;
use crate::actor::{Actor, ActorId, ActorState};

/// A reference to an actor of type `A`.
///
/// A reference is an address, like a process identifier: a copy costs nothing, and no actor is kept alive by it.
/// Messages to an actor that has ended become dead letters. The address is never reused for another actor.
///
/// It is shown as `Account "alice"` in the theater of the actor if the actor [has a name](crate::SpawnOptions::name),
/// otherwise as `Account#1.7f20.0`.
///
/// # Examples
///
/// ```
/// # use playhouse_actor::*;
/// # #[derive(Default)]
/// # struct Counter(u64);
/// # impl Actor for Counter {}
/// # #[derive(Clone)]
/// # struct Add(u64);
/// # impl Message for Add { type Reply = (); }
/// # impl Handler<Add> for Counter {
/// #     fn handle(&mut self, Add(by): Add, _: &mut Context<Self>) { self.0 += by; }
/// # }
/// # struct Get;
/// # impl Message for Get { type Reply = u64; }
/// # impl Handler<Get> for Counter {
/// #     fn handle(&mut self, _: Get, _: &mut Context<Self>) -> u64 { self.0 }
/// # }
/// # let system = System::start()?;
/// let counter = system.spawn(Counter::default());
/// counter.tell(Add(2));
/// let same = counter; // a copy of the address
/// same.tell(Add(3));
/// assert_eq!(counter.ask(Get).wait()?, 5);
/// # system.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(alias("Addr", "Pid"))]
pub struct ActorRef<A: Actor> {
    pub(crate) address: Address<ActorState<A>>,
}

impl<A: Actor> Clone for ActorRef<A> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<A: Actor> Copy for ActorRef<A> {}

impl<A: Actor> PartialEq for ActorRef<A> {
    fn eq(&self, other: &Self) -> bool {
        self.id() == other.id()
    }
}
impl<A: Actor> Eq for ActorRef<A> {}
impl<A: Actor> PartialOrd for ActorRef<A> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl<A: Actor> Ord for ActorRef<A> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.id().cmp(&other.id())
    }
}
impl<A: Actor> Hash for ActorRef<A> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.id().hash(state);
    }
}

impl<A: Actor> fmt::Debug for ActorRef<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&Label::of::<A>(self.id()), f)
    }
}

impl<A: Actor> fmt::Display for ActorRef<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// The error of a message that was not sent. It gives the message back.
///
/// # Examples
///
/// ```
/// # use playhouse_actor::*;
/// # #[derive(Default)]
/// # struct Counter(u64);
/// # impl Actor for Counter {}
/// # #[derive(Clone)]
/// # struct Add(u64);
/// # impl Message for Add { type Reply = (); }
/// # impl Handler<Add> for Counter {
/// #     fn handle(&mut self, Add(by): Add, _: &mut Context<Self>) { self.0 += by; }
/// # }
/// # struct Get;
/// # impl Message for Get { type Reply = u64; }
/// # impl Handler<Get> for Counter {
/// #     fn handle(&mut self, _: Get, _: &mut Context<Self>) -> u64 { self.0 }
/// # }
/// # let system = System::start()?;
/// let counter = system.spawn(Counter::default());
/// counter.stop();
/// # system.run_until_idle();
/// match counter.try_tell(Add(1)) {
///     Err(TrySendError::Stopped(Add(by))) => assert_eq!(by, 1), // the message comes back
///     other => panic!("{other:?}"),
/// }
/// # system.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum TrySendError<M> {
    /// The receiver's [mailbox](crate::Mailbox) is full, or its worker is overloaded: its backlog is above the high-water mark.
    Full(M),
    /// The receiver has ended.
    Stopped(M),
}

impl<M> TrySendError<M> {
    /// Returns the message.
    pub fn into_message(self) -> M {
        match self {
            TrySendError::Full(message) | TrySendError::Stopped(message) => message,
        }
    }
}

impl<M> fmt::Debug for TrySendError<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TrySendError::Full(_) => "Full(..)",
            TrySendError::Stopped(_) => "Stopped(..)",
        })
    }
}

impl<M> fmt::Display for TrySendError<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TrySendError::Full(_) => "the receiver's mailbox is full, or its worker overloaded",
            TrySendError::Stopped(_) => "the receiver has stopped",
        })
    }
}

impl<M> std::error::Error for TrySendError<M> {}

/// Gives the message back as an error if `to` should receive no more mail now.
pub(crate) fn admit<M>(to: RawAddress, message: M) -> Result<M, TrySendError<M>> {
    match SystemCore::by_id(to.system()) {
        Some(system) if !to.is_stale() => {
            let bytes = record_bytes::<M>() as u64;
            if system.admits(to.stage(), bytes) { Ok(message) } else { Err(TrySendError::Full(message)) }
        }
        _ => Err(TrySendError::Stopped(message)),
    }
}

impl<A: Actor> ActorRef<A> {
    /// Returns a reference to an actor that has ended.
    pub(crate) fn nowhere() -> Self {
        ActorRef::new(RawAddress::nowhere())
    }

    pub(crate) fn new(address: Address<ActorState<A>>) -> Self {
        ActorRef { address }
    }

    /// Returns the reference to the actor with this identity, if its type is `A` and it is alive.
    #[doc(hidden)]
    pub fn of_id(id: ActorId) -> Option<Self> {
        id.0.of_type().map(ActorRef::new)
    }

    /// Returns the reference to the actor with this identity, if its type is `A` or it has ended.
    pub(crate) fn of_id_or_ended(id: ActorId) -> Option<Self> {
        id.0.of_type_or_ended().map(ActorRef::new)
    }

    /// Returns the identity of the actor, without its type.
    pub fn id(self) -> ActorId {
        ActorId(self.address.raw())
    }

    /// Returns whether the actor is known to have ended. A `false` may be out of date at once.
    #[doc(alias("is_alive", "is_terminated", "connected"))]
    pub fn is_stopped(self) -> bool {
        self.address.raw().is_stale()
    }
}
