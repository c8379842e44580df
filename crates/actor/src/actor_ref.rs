//! References to actors: 16 bytes, copyable, keeping nothing alive.

use std::any::type_name;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::marker::PhantomData;
use std::ops::Deref;

use playhouse_executor::{Address, Port, Sends, SystemCore};

use crate::actor::{Actor, ActorId, Life, Request};
use crate::ask::Ask;
use crate::message::HandledBy;

/// A reference to an actor of type `A`.
///
/// It is an address, like a process identifier: copying it costs nothing, and it keeps nothing alive. Messages to an
/// actor that has ended become dead letters; the address is never reused for another actor.
pub struct ActorRef<A: Actor> {
    pub(crate) address: Address<Life<A>>,
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
        write!(f, "{}{}", short_name::<A>(), self.id())
    }
}

impl<A: Actor> fmt::Display for ActorRef<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// The name of a type without the modules it is in.
pub(crate) fn short_name<A>() -> &'static str {
    let full = type_name::<A>();
    let end = full.find('<').unwrap_or(full.len());
    full[..end].rfind("::").map_or(full, |at| &full[at + 2..])
}

/// A message that was not sent, given back.
#[derive(Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum TrySendError<M> {
    /// The receiver's worker is overloaded: its backlog is above the high-water mark.
    Full(M),
    /// The receiver has ended.
    Stopped(M),
}

impl<M> TrySendError<M> {
    /// The message.
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
            TrySendError::Full(_) => "the receiver's worker is overloaded",
            TrySendError::Stopped(_) => "the receiver has stopped",
        })
    }
}

impl<M> std::error::Error for TrySendError<M> {}

impl<A: Actor> ActorRef<A> {
    pub(crate) fn new(address: Address<Life<A>>) -> Self {
        ActorRef { address }
    }

    /// Sends `message` and goes on: fire and forget. From any thread.
    ///
    /// The messages of one actor (or thread) to another are handled in the order in which they were sent. In a handler
    /// this never blocks: an actor that sends faster than the receiver can handle is not run for a while once its
    /// handler returns. A thread that runs no actor waits while the receiver's worker is overloaded.
    #[inline(always)]
    pub fn tell<M, Mode>(self, message: M)
    where
        M: HandledBy<A, Mode>,
    {
        message.post_tell(self.address);
    }

    /// Sends `message` in the urgent lane: it overtakes what was sent by `tell`, and is never made to wait.
    pub fn tell_urgent<M, Mode>(self, message: M)
    where
        M: HandledBy<A, Mode>,
    {
        message.post_urgent(self.address);
    }

    /// Sends `message` if its receiver keeps up; never blocks.
    ///
    /// # Errors
    /// Gives the message back if the receiver is known to have stopped, or if its worker is overloaded.
    pub fn try_tell<M, Mode>(self, message: M) -> Result<(), TrySendError<M>>
    where
        M: HandledBy<A, Mode>,
    {
        let raw = self.address.raw();
        if raw.is_stale() {
            return Err(TrySendError::Stopped(message));
        }
        match SystemCore::by_id(raw.system()) {
            None => Err(TrySendError::Stopped(message)),
            Some(system) if system.is_overloaded(raw) => Err(TrySendError::Full(message)),
            Some(_) => {
                self.tell(message);
                Ok(())
            }
        }
    }

    /// Sends `message` and hands back its answer: `.await` it in an async handler or any async code, `.wait()` for it in
    /// a thread that runs no actor. In a sync handler use [`Context::ask`](crate::Context::ask).
    ///
    /// Nothing is sent before it is awaited or waited for.
    pub fn ask<M, Mode>(self, message: M) -> Ask<A, M>
    where
        M: HandledBy<A, Mode>,
    {
        Ask::new(self, message, M::post_ask)
    }

    /// The same reference without the actor's type: it takes only `M`.
    pub fn recipient<M, Mode>(self) -> Recipient<M>
    where
        M: HandledBy<A, Mode>,
    {
        struct ByTell<Mode>(PhantomData<Mode>);
        impl<A: Actor, M: HandledBy<A, Mode>, Mode> Sends<Life<A>, M> for ByTell<Mode> {
            fn send(to: Address<Life<A>>, message: M) {
                message.post_tell(to);
            }
        }
        Recipient { port: self.address.port::<M, ByTell<Mode>>() }
    }

    /// Stops the actor after the message it is handling; what is queued for it becomes dead letters.
    pub fn stop(self) {
        self.address.send_control(Request::Stop);
    }

    /// Stops the actor after it has handled what was sent to it before.
    pub fn drain(self) {
        self.address.send_control_in_order(Request::Stop);
    }

    /// Ends the actor without its `stopped` hook; an async handler that waits is dropped. A handler that runs is not
    /// interrupted.
    pub fn kill(self) {
        self.address.send_control(Request::Kill);
    }

    /// The identity, without the type.
    pub fn id(self) -> ActorId {
        ActorId(self.address.raw())
    }

    /// Whether the actor is known to have ended. `false` may be out of date at once.
    pub fn is_stopped(self) -> bool {
        self.address.raw().is_stale()
    }
}

/// A reference to any actor that takes `M`.
pub struct Recipient<M> {
    port: Port<M>,
}

impl<M> Clone for Recipient<M> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<M> Copy for Recipient<M> {}

impl<M> PartialEq for Recipient<M> {
    fn eq(&self, other: &Self) -> bool {
        self.id() == other.id()
    }
}
impl<M> Eq for Recipient<M> {}

impl<M> fmt::Debug for Recipient<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Recipient<{}>{}", short_name::<M>(), self.id())
    }
}

impl<M> Recipient<M> {
    /// Sends `message`: as [`ActorRef::tell`].
    #[inline]
    pub fn tell(self, message: M) {
        self.port.send(message);
    }

    /// The identity of the actor behind it.
    pub fn id(self) -> ActorId {
        ActorId(self.port.raw())
    }
}

/// An actor that is stopped when this is dropped: see [`System::spawn_owned`](crate::System::spawn_owned).
#[must_use = "the actor is stopped when this is dropped"]
pub struct Owned<A: Actor>(pub(crate) ActorRef<A>);

impl<A: Actor> Deref for Owned<A> {
    type Target = ActorRef<A>;

    fn deref(&self) -> &ActorRef<A> {
        &self.0
    }
}

impl<A: Actor> fmt::Debug for Owned<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Owned({:?})", self.0)
    }
}

impl<A: Actor> Drop for Owned<A> {
    fn drop(&mut self) {
        self.0.stop();
    }
}
