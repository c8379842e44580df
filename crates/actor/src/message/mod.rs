//! Messages and their handlers.

#[doc(hidden)]
pub mod clones;
pub(crate) mod mail;
pub(crate) mod stream;

use crate::actor::context::Context;
use crate::actor::{Actor, ActorState};
use crate::ask::reply_to::ReplyTo;
use crate::message::mail::{AskMail, AsyncAskMail, AsyncFired, AsyncTell, CARRIED_BYTES_MAX, Carries, Fired, Tell};
use crate::remote::wire::WireForm;
use playhouse_executor::{Address, Admission, MaySend, Undelivered};

/// A value that can be sent to an actor. It is moved to the receiver, never copied.
///
/// Usually derived: `#[derive(Message)]`, with `#[message(reply = u64)]` where the message has an answer.
///
/// Messages of up to 256 bytes lie in the receiver's queue; larger ones are boxed once, at the send. Before that, a message is on the stack of
/// its sender, and in a build without optimisation several times: box messages of more than 1 MiB.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a message",
    label = "not a message",
    note = "put `#[derive(Message)]` on `{Self}`, with `#[message(reply = Type)]` where it has an answer, or write a `#[message]` method in an `#[actor]` block"
)]
pub trait Message: Send + Sized + 'static {
    /// What an ask for this message answers.
    type Reply: Send + 'static;

    /// How the message looks on the wire, if it may be sent to other theaters: `#[message(remote)]`.
    const WIRE: Option<WireForm<Self>> = None;

    /// What it takes of a [mailbox](crate::Mailbox) that is bounded by bytes: asked once, when it is sent to one.
    ///
    /// By default its own size in memory, without what it points to. A message that carries much behind a pointer, and is sent
    /// where bytes are bounded, says so here.
    #[inline(always)]
    fn bytes(&self) -> usize {
        size_of::<Self>()
    }
}

/// What becomes of a message whose turn has come: see [`Handler::guard`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Guard {
    /// It is handled now.
    Holds,
    /// It waits in the mailbox, and is looked at again after each message that its actor handles.
    Defer,
    /// It is a dead letter, and who asked gets [`AskError::Refused`](crate::AskError::Refused).
    Refuse,
    /// It is dropped without a dead letter. Who asked gets [`AskError::Refused`](crate::AskError::Refused).
    Drop,
}

impl Guard {
    /// What becomes of a message without an answer.
    #[inline(always)]
    pub(crate) fn of_tell(self) -> Admission {
        match self {
            Guard::Holds => Admission::Run,
            Guard::Defer => Admission::Wait,
            Guard::Refuse => Admission::Bounce(Undelivered::Refused),
            Guard::Drop => Admission::Drop,
        }
    }

    /// What becomes of a message whose sender waits for `reply`.
    #[inline(always)]
    pub(crate) fn of_ask<R: Send + 'static>(self, reply: &ReplyTo<R>) -> Admission {
        match self {
            Guard::Holds => Admission::Run,
            // Nothing is done for it: it is taken from the mailbox.
            Guard::Defer if reply.is_over() => Admission::Run,
            Guard::Defer => Admission::Wait,
            Guard::Refuse | Guard::Drop => Admission::Bounce(Undelivered::Refused),
        }
    }
}

/// Handles messages of type `M` to completion.
///
/// A handler should not block: it holds its worker. One that does is noticed after some ten milliseconds, and its
/// worker's other actors go on in another thread; for a handler that always blocks use
/// [`Placement::Dedicated`](crate::Placement::Dedicated).
#[diagnostic::on_unimplemented(
    message = "the actor `{Self}` has no handler for the message `{M}`",
    label = "`{Self}` does not handle `{M}`",
    note = "write `impl Handler<{M}> for {Self}` (or `AsyncHandler`), or a `#[message]` method in its `#[actor]` block"
)]
pub trait Handler<M: Message>: Actor {
    /// Handles one message.
    fn handle(&mut self, message: M, ctx: &mut Context<Self>) -> M::Reply;

    /// Whether the message can be handled now: asked when its turn has come. Usually written by
    /// `#[message(when = "..")]`.
    ///
    /// A message that is deferred waits in the mailbox. After each message that the actor handles, those that wait are
    /// looked at again, the oldest first, and before newer mail; so this should be quick, and depend on nothing but the
    /// actor's state and the message. It costs nothing where it is not written.
    ///
    /// A panic in it is a crash of the actor, and the message is lost.
    #[inline(always)]
    fn guard(&self, _message: &M) -> Guard {
        Guard::Holds
    }
}

/// Handles messages of type `M` with a function that may await.
///
/// While a handler waits, its actor handles no other message (they are put aside in order), and its worker goes on with
/// other actors. A handler that does not have to wait costs no allocation.
///
/// It may await any future. Those that need a runtime around them, such as the timers and sockets of tokio, are spawned
/// there, since a worker is no thread of that runtime: with `runtime: tokio::runtime::Handle` in the actor,
/// `self.runtime.spawn(async move { .. }).await`.
#[diagnostic::on_unimplemented(
    message = "the actor `{Self}` has no async handler for the message `{M}`",
    label = "`{Self}` does not handle `{M}`",
    note = "write `impl AsyncHandler<{M}> for {Self}`, or an `async` `#[message]` method in its `#[actor]` block"
)]
pub trait AsyncHandler<M: Message>: Actor {
    /// Handles one message. Write it as `async fn handle`.
    ///
    /// # Cancel safety
    /// The future is dropped at an await where the actor is killed, restarted, or the system shuts down.
    fn handle(&mut self, message: M, ctx: &mut Context<Self>) -> impl Future<Output = M::Reply> + Send;

    /// Whether the message can be handled now: see [`Handler::guard`].
    #[inline(always)]
    fn guard(&self, _message: &M) -> Guard {
        Guard::Holds
    }
}

/// The handler runs to completion: see [`HandledBy`].
#[derive(Debug)]
pub enum SyncMode {}
/// The handler may wait: see [`HandledBy`].
#[derive(Debug)]
pub enum AsyncMode {}

/// A message of which clones are sent again and again: each one that is `Clone`.
#[diagnostic::on_unimplemented(
    message = "clones of the message `{Self}` are to be sent, and it is not `Clone`",
    label = "not `Clone`",
    note = "write `#[message(derive(Clone))]` at its method in an `#[actor]` block, or `#[derive(Clone)]` at `{Self}`"
)]
pub trait Repeated: Clone {}

#[diagnostic::do_not_recommend]
impl<M: Clone> Repeated for M {}

/// A message that the actor `A` handles: implemented for every message with a [`Handler`] or an [`AsyncHandler`] in `A`.
///
/// `Mode` says which of the two; it is always inferred. (The trait is the message's and not the actor's so that the
/// compiler, where it is missing, names both.)
#[diagnostic::on_unimplemented(
    message = "the actor `{A}` does not handle the message `{Self}`",
    label = "`{A}` has no handler for this message",
    note = "a `#[message]` method of `{A}` makes its own message type: `fn add(..)` makes `Add`",
    note = "for a message type that exists (`#[derive(Message)]`), write `impl Handler<{Self}> for {A}`, or implement `AsyncHandler` or `DeferredHandler`"
)]
pub trait HandledBy<A: Actor, Mode>: Message {
    #[doc(hidden)]
    fn post_tell(self, to: Address<ActorState<A>>);
    #[doc(hidden)]
    fn post_unwaiting(self, to: Address<ActorState<A>>);
    /// As `post_unwaiting`; given back where the receiver's mailbox is full.
    #[doc(hidden)]
    fn try_post(self, to: Address<ActorState<A>>) -> Result<(), Self>;
    #[doc(hidden)]
    fn post_urgent(self, to: Address<ActorState<A>>);
    /// With `now`, the handler is run at once where that cannot be told from sending; where it can, `now` says whether
    /// the request is to be sent.
    #[doc(hidden)]
    fn post_ask(self, to: Address<ActorState<A>>, reply: ReplyTo<Self::Reply>, now: Option<MaySend<'_>>);
    #[doc(hidden)]
    fn post_fired(to: Address<ActorState<A>>, fired: Fired<Self>);
}

impl<A: Handler<M>, M: Message> HandledBy<A, SyncMode> for M {
    #[inline(always)]
    fn post_tell(self, to: Address<ActorState<A>>) {
        to.send(Tell(self));
    }

    fn post_unwaiting(self, to: Address<ActorState<A>>) {
        to.send_request(Tell(self));
    }

    fn try_post(self, to: Address<ActorState<A>>) -> Result<(), M> {
        to.try_send(Tell(self)).map_err(|mail| mail.0)
    }

    fn post_urgent(self, to: Address<ActorState<A>>) {
        to.send_urgent(Tell(self));
    }

    fn post_ask(self, to: Address<ActorState<A>>, reply: ReplyTo<M::Reply>, now: Option<MaySend<'_>>) {
        // One call of one of two functions, because each call has a place for the message on the stack.
        let post = if size_of::<M>() > CARRIED_BYTES_MAX { post_large::<A, M> } else { post_carried::<A, M, M> };
        post(self, to, reply, now);
    }

    fn post_fired(to: Address<ActorState<A>>, fired: Fired<M>) {
        to.send(fired);
    }
}

impl<A: AsyncHandler<M>, M: Message> HandledBy<A, AsyncMode> for M {
    #[inline(always)]
    fn post_tell(self, to: Address<ActorState<A>>) {
        to.send_async(AsyncTell(self));
    }

    fn post_unwaiting(self, to: Address<ActorState<A>>) {
        to.send_request_async(AsyncTell(self));
    }

    fn try_post(self, to: Address<ActorState<A>>) -> Result<(), M> {
        to.try_send_async(AsyncTell(self)).map_err(|mail| mail.0)
    }

    fn post_urgent(self, to: Address<ActorState<A>>) {
        to.send_urgent_async(AsyncTell(self));
    }

    fn post_ask(self, to: Address<ActorState<A>>, reply: ReplyTo<M::Reply>, now: Option<MaySend<'_>>) {
        // One call of one of two functions, because each call has a place for the message on the stack.
        let post =
            if size_of::<M>() > CARRIED_BYTES_MAX { post_large_async::<A, M> } else { post_carried_async::<A, M, M> };
        post(self, to, reply, now);
    }

    fn post_fired(to: Address<ActorState<A>>, fired: Fired<M>) {
        to.send_async(AsyncFired(fired));
    }
}

#[inline]
fn post_carried<A: Handler<M>, M: Message, C: Carries<M>>(
    message: C,
    to: Address<ActorState<A>>,
    reply: ReplyTo<M::Reply>,
    now: Option<MaySend<'_>>,
) {
    let mut mail = AskMail::<M, C> { message, reply };
    if let Some(may_send) = now {
        match to.call_now(mail) {
            Err(back) if may_send() => mail = back,
            _ => return,
        }
    }
    to.send_request(mail);
}

#[inline(never)]
fn post_large<A: Handler<M>, M: Message>(
    message: M,
    to: Address<ActorState<A>>,
    reply: ReplyTo<M::Reply>,
    now: Option<MaySend<'_>>,
) {
    post_carried::<A, M, Box<M>>(Box::new(message), to, reply, now);
}

#[inline]
fn post_carried_async<A: AsyncHandler<M>, M: Message, C: Carries<M>>(
    message: C,
    to: Address<ActorState<A>>,
    reply: ReplyTo<M::Reply>,
    now: Option<MaySend<'_>>,
) {
    let mut mail = AsyncAskMail::<M, C> { message, reply };
    if let Some(may_send) = now {
        match to.call_now_async(mail) {
            Err(back) if may_send() => mail = back,
            _ => return,
        }
    }
    to.send_request_async(mail);
}

#[inline(never)]
fn post_large_async<A: AsyncHandler<M>, M: Message>(
    message: M,
    to: Address<ActorState<A>>,
    reply: ReplyTo<M::Reply>,
    now: Option<MaySend<'_>>,
) {
    post_carried_async::<A, M, Box<M>>(Box::new(message), to, reply, now);
}
