//! References to actors: 16 bytes, copyable, keeping nothing alive.

use std::any::type_name;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::marker::PhantomData;
use std::ops::Deref;

use playhouse_executor::{Address, MaySend, Port, RawAddress, Requests, Sends, SystemCore, Undelivered, record_bytes};

use crate::actor::names::{Label, ShortType, name_of};
use crate::actor::{Actor, ActorId, ActorState, Request, dead_letter};
use crate::ask::reply_to::ReplyTo;
use crate::ask::{Ask, AskError, RequestTo};
use crate::message::mail::Mark;
use crate::message::{HandledBy, Message};

/// A reference to an actor of type `A`.
///
/// It is an address, like a process identifier: copying it costs nothing, and it keeps nothing alive. Messages to an
/// actor that has ended become dead letters; the address is never reused for another actor.
///
/// It is shown as `Account "alice"` where the actor lives and [has a name](crate::SpawnOptions::name), otherwise as
/// `Account#1.7f20.0`.
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

/// A message that was not sent, given back.
#[derive(Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum TrySendError<M> {
    /// The receiver's [mailbox](crate::Mailbox) is full, or its worker is overloaded: its backlog is above the high-water mark.
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
            TrySendError::Full(_) => "the receiver's mailbox is full, or its worker overloaded",
            TrySendError::Stopped(_) => "the receiver has stopped",
        })
    }
}

impl<M> std::error::Error for TrySendError<M> {}

/// Gives the message back as an error if `to` should not be sent anything now.
fn admit<M>(to: RawAddress, message: M) -> Result<M, TrySendError<M>> {
    match SystemCore::by_id(to.system()) {
        Some(system) if !to.is_stale() => {
            let bytes = record_bytes::<M>() as u64;
            if system.admits(to.stage(), bytes) { Ok(message) } else { Err(TrySendError::Full(message)) }
        }
        _ => Err(TrySendError::Stopped(message)),
    }
}

impl<A: Actor> ActorRef<A> {
    pub(crate) fn new(address: Address<ActorState<A>>) -> Self {
        ActorRef { address }
    }

    /// Sends `message` and goes on: fire and forget. From any thread.
    ///
    /// The messages of one actor (or thread) to another are handled in the order in which they were sent. In a handler
    /// this never blocks: an actor that sends faster than the receiver can handle is not run for a while once its
    /// handler returns.
    ///
    /// # Blocking
    /// A thread that runs no actor is *blocked* while the receiver's worker is overloaded, and so is the thread of an
    /// async runtime with all that it would run meanwhile. Async code outside of actors uses
    /// [`ask(..).await`](ActorRef::ask), which never blocks and goes on when the message was handled, or
    /// [`try_tell`](ActorRef::try_tell), which gives the message back.
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
    /// Gives the message back if the receiver is known to have stopped, if its worker is overloaded and has not handled twice as
    /// much mail as it has admitted from such senders, or if its mailbox is bounded and full (with
    /// [`OnFull::DropOldest`](crate::OnFull::DropOldest): if nothing in it can be dropped).
    pub fn try_tell<M, Mode>(self, message: M) -> Result<(), TrySendError<M>>
    where
        M: HandledBy<A, Mode>,
    {
        let message = admit(self.address.raw(), message)?;
        message.try_post(self.address).map_err(TrySendError::Full)
    }

    /// Sends `message` and hands back its answer: `.await` it in an async handler or any async code, `.wait()` for it in
    /// a thread that runs no actor. In a sync handler use [`Context::ask`](crate::Context::ask).
    ///
    /// Nothing is sent before it is awaited or waited for.
    pub fn ask<M, Mode>(self, message: M) -> Ask<M>
    where
        M: HandledBy<A, Mode>,
    {
        Ask::new(self, message)
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

    /// Drops `mark` when the actor has handled what was sent to it before, or will not. Of one in another theater: when
    /// that is on its way.
    #[doc(hidden)]
    pub fn mark(self, mark: impl Send + 'static) {
        self.address.send_request(Mark(mark));
    }

    /// The reference to the actor with this identity, if it is an `A` and lives.
    #[doc(hidden)]
    pub fn of_id(id: ActorId) -> Option<Self> {
        id.0.of_type().map(ActorRef::new)
    }

    /// Returns the reference to the actor with this identity, if that is an `A` or has ended.
    pub(crate) fn of_id_or_ended(id: ActorId) -> Option<Self> {
        id.0.of_type_or_ended().map(ActorRef::new)
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

/// A reference to any actor that takes `M`, of [`actor.recipient::<M>()`](ToRecipient::recipient). It is told and asked like an [`ActorRef`].
pub struct Recipient<M: Message> {
    tells: Port<Posted<M>, Result<(), M>>,
    asks: RequestTo<M>,
}

/// References that become a [`Recipient`].
///
/// The trait has the parameter `Mode`, which is always inferred, so that `actor.recipient::<Print>()` names the message alone. `Mode` is also why
/// `Recipient<M>` is not `From<ActorRef<A>>`: the mode in which the actor handles the message does not follow from these two types.
pub trait ToRecipient<A: Actor, Mode>: Sized {
    /// Returns the same reference without the actor's type: it takes only `M`.
    ///
    /// ```
    /// use playhouse_actor::*;
    ///
    /// struct Printer;
    /// impl Actor for Printer {}
    ///
    /// struct Print(&'static str);
    /// impl Message for Print {
    ///     type Reply = usize;
    /// }
    /// impl Handler<Print> for Printer {
    ///     fn handle(&mut self, print: Print, _: &mut Context<Self>) -> usize {
    ///         print.0.len()
    ///     }
    /// }
    ///
    /// let system = System::start()?;
    /// let printer = system.spawn(Printer).recipient::<Print>();
    /// printer.tell(Print("a"));
    /// assert_eq!(printer.ask(Print("abc")).wait()?, 3);
    /// # system.shutdown()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    fn recipient<M>(self) -> Recipient<M>
    where
        M: HandledBy<A, Mode>;
}

impl<A: Actor, Mode> ToRecipient<A, Mode> for ActorRef<A> {
    fn recipient<M>(self) -> Recipient<M>
    where
        M: HandledBy<A, Mode>,
    {
        struct ByTell<Mode>(PhantomData<Mode>);
        impl<A: Actor, M: HandledBy<A, Mode>, Mode> Sends<ActorState<A>, Posted<M>, Result<(), M>> for ByTell<Mode> {
            fn send(to: Address<ActorState<A>>, posted: Posted<M>) -> Result<(), M> {
                match posted {
                    Posted::Anyway(message) => {
                        message.post_tell(to);
                        Ok(())
                    }
                    Posted::IfTaken(message) => message.try_post(to),
                }
            }
        }
        Recipient { tells: self.address.port::<Posted<M>, ByTell<Mode>, _>(), asks: self.requests() }
    }
}

/// A receiver of requests of type `M`: an [`ActorRef`] whose actor handles them, or a [`Recipient`].
///
/// `Mode` is always inferred.
#[diagnostic::on_unimplemented(
    message = "a `{M}` cannot be sent to a `{Self}`",
    label = "expected an `ActorRef` or a `Recipient<{M}>`"
)]
pub trait AskTarget<M: Message, Mode>: Copy {
    #[doc(hidden)]
    fn requests(self) -> RequestTo<M>;
    #[doc(hidden)]
    fn tell_it(self, message: M);
    /// The type of the receiver.
    #[doc(hidden)]
    fn type_for_reports(self) -> &'static str;
}

impl<A: Actor, M: HandledBy<A, Mode>, Mode> AskTarget<M, Mode> for ActorRef<A> {
    fn requests(self) -> RequestTo<M> {
        struct ByAsk<Mode>(PhantomData<Mode>);
        impl<A: Actor, M: HandledBy<A, Mode>, Mode> Requests<ActorState<A>, M, ReplyTo<M::Reply>> for ByAsk<Mode> {
            fn request(
                to: Address<ActorState<A>>,
                message: &mut Option<M>,
                reply: ReplyTo<M::Reply>,
                may_send: Option<MaySend<'_>>,
            ) {
                if let Some(message) = message.take() {
                    message.post_ask(to, reply, may_send);
                }
            }
        }
        self.address.request_port::<M, _, ByAsk<Mode>>()
    }

    fn tell_it(self, message: M) {
        self.tell(message);
    }

    fn type_for_reports(self) -> &'static str {
        type_name::<A>()
    }
}

impl<M: Message> AskTarget<M, ()> for Recipient<M> {
    fn requests(self) -> RequestTo<M> {
        self.asks
    }

    fn tell_it(self, message: M) {
        self.tell(message);
    }

    fn type_for_reports(self) -> &'static str {
        // The type of an actor that has ended is not known any more.
        self.asks.raw().resident_name().unwrap_or(type_name::<Self>())
    }
}

/// A message on its way through a [`Recipient`].
enum Posted<M> {
    /// A thread outside waits while the receiver's worker is overloaded.
    Anyway(M),
    /// It is given back where the receiver's mailbox is full.
    IfTaken(M),
}

impl<M: Message> Clone for Recipient<M> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<M: Message> Copy for Recipient<M> {}

impl<M: Message> PartialEq for Recipient<M> {
    fn eq(&self, other: &Self) -> bool {
        self.id() == other.id()
    }
}
impl<M: Message> Eq for Recipient<M> {}

impl<M: Message> Hash for Recipient<M> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.id().hash(state);
    }
}

impl<M: Message> fmt::Debug for Recipient<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let message = ShortType(type_name::<M>());
        match name_of(self.id()) {
            Some(name) => write!(f, "Recipient<{message}> {name:?}"),
            None => write!(f, "Recipient<{message}>{}", self.id()),
        }
    }
}

impl<M: Message> Recipient<M> {
    /// Sends `message`: as [`ActorRef::tell`].
    #[inline]
    pub fn tell(self, message: M) {
        let _sent = self.tells.send(Posted::Anyway(message));
    }

    /// Sends `message` if its receiver keeps up: as [`ActorRef::try_tell`].
    ///
    /// # Errors
    /// As [`ActorRef::try_tell`].
    pub fn try_tell(self, message: M) -> Result<(), TrySendError<M>> {
        let message = admit(self.tells.raw(), message)?;
        self.tells.send(Posted::IfTaken(message)).map_err(TrySendError::Full)
    }

    /// Sends `message` and hands back its answer: as [`ActorRef::ask`].
    pub fn ask(self, message: M) -> Ask<M> {
        Ask::new(self, message)
    }

    /// A recipient that has ended.
    pub(crate) fn nowhere() -> Self {
        struct Nobody;
        impl Actor for Nobody {}
        struct Nothing;
        impl<M: Message> Sends<ActorState<Nobody>, Posted<M>, Result<(), M>> for Nothing {
            fn send(_: Address<ActorState<Nobody>>, _: Posted<M>) -> Result<(), M> {
                dead_letter::<Nobody, M>(Undelivered::Stopped);
                Ok(())
            }
        }
        impl<M: Message> Requests<ActorState<Nobody>, M, ReplyTo<M::Reply>> for Nothing {
            fn request(
                _: Address<ActorState<Nobody>>,
                _: &mut Option<M>,
                reply: ReplyTo<M::Reply>,
                _: Option<MaySend<'_>>,
            ) {
                dead_letter::<Nobody, M>(Undelivered::Stopped);
                reply.send(Err(AskError::Stopped));
            }
        }
        let nobody = RawAddress::nowhere::<ActorState<Nobody>>();
        Recipient { tells: nobody.port::<Posted<M>, Nothing, _>(), asks: nobody.request_port::<M, _, Nothing>() }
    }

    /// Whether the actor behind it is known to have ended: as [`ActorRef::is_stopped`].
    pub fn is_stopped(self) -> bool {
        self.tells.raw().is_stale()
    }

    /// The identity of the actor behind it.
    pub fn id(self) -> ActorId {
        ActorId(self.tells.raw())
    }
}

/// An actor that is stopped when this is dropped: see [`System::spawn_owned`](crate::System::spawn_owned).
#[must_use = "the actor is stopped when this is dropped"]
pub struct OwnedActor<A: Actor>(pub(crate) ActorRef<A>);

impl<A: Actor> Deref for OwnedActor<A> {
    type Target = ActorRef<A>;

    fn deref(&self) -> &ActorRef<A> {
        &self.0
    }
}

impl<A: Actor> fmt::Debug for OwnedActor<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Owned({:?})", self.0)
    }
}

impl<A: Actor> Drop for OwnedActor<A> {
    fn drop(&mut self) {
        self.0.stop();
    }
}
