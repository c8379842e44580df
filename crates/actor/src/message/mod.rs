//! Messages and their handlers.

pub(crate) mod clock;
#[doc(hidden)]
pub mod clones;
pub(crate) mod decision;
pub(crate) mod forward;
pub(crate) mod mail;
pub(crate) mod returning;
pub(crate) mod send;
pub(crate) mod stream;
pub(crate) mod wire_form;

use crate::actor::context::Context;
use crate::actor::{Actor, ActorState};
use crate::answer::reply_to::ReplyTo;
use crate::message::mail::{AskMail, AsyncAskMail, AsyncFired, AsyncTell, CARRIED_BYTES_MAX, Carries, Fired, Tell};
use crate::message::returning::{Posting, ReturningMail, TakeBack, post_async, post_sync};
use crate::message::wire_form::WireForm;
use playhouse_executor::{Address, Admission, MaySend, Undelivered};

/// A value that can be sent to an actor. It is moved to the receiver, never copied.
///
/// Usually derived: `#[derive(Message)]`, with `#[message(reply = u64)]` if the message has an answer.
///
/// Messages of up to 256 bytes lie in the receiver's queue; larger ones are boxed once, at the send. Before that, a
/// message is on the stack of its sender, and several times in a build without optimisation: box messages of more than
/// 1 MiB.
///
/// # Examples
///
/// ```
/// # use playhouse_actor::*;
/// struct Add(u64);
/// impl Message for Add {
///     type Reply = (); // no answer
/// }
///
/// struct Get;
/// impl Message for Get {
///     type Reply = u64;
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a message",
    label = "not a message",
    note = "put `#[derive(Message)]` on `{Self}`, with `#[message(reply = Type)]` where it has an answer, or write a `#[message]` method in an `#[actor]` block"
)]
pub trait Message: Send + Sized + 'static {
    /// The answer to an ask with this message.
    type Reply: Send + 'static;

    /// The wire form of the message, if it may be sent to other theaters: `#[message(remote)]`.
    const WIRE: Option<WireForm<Self>> = None;

    /// Returns the bytes that the message takes of a [mailbox](crate::Mailbox) bounded by bytes. It is called once,
    /// when the message is sent to such a mailbox.
    ///
    /// By default it is the message's own size in memory, without the memory that it points to. Override it for
    /// messages that carry much behind a pointer, and are sent to mailboxes bounded by bytes.
    #[inline(always)]
    fn bytes(&self) -> usize {
        size_of::<Self>()
    }
}

/// The decision of a [guard](Handler::guard) on the next message.
///
/// # Examples
///
/// ```
/// # use playhouse_actor::*;
/// # struct Put(u32);
/// # impl Message for Put { type Reply = (); }
/// # struct Take;
/// # impl Message for Take { type Reply = u32; }
/// struct Slot(Option<u32>);
/// impl Actor for Slot {}
///
/// impl Handler<Put> for Slot {
///     fn handle(&mut self, Put(value): Put, _: &mut Context<Self>) {
///         self.0 = Some(value);
///     }
/// }
///
/// impl Handler<Take> for Slot {
///     fn handle(&mut self, _: Take, _: &mut Context<Self>) -> u32 {
///         self.0.take().expect("the guard holds")
///     }
///
///     fn guard(&self, _: &Take) -> Guard {
///         if self.0.is_some() { Guard::Holds } else { Guard::Defer }
///     }
/// }
/// # let system = System::start()?;
/// let slot = system.spawn(Slot(None));
/// # std::thread::scope(|scope| {
/// #     scope.spawn(move || slot.tell(Put(7)));
/// assert_eq!(slot.ask(Take).wait(), Ok(7)); // waits in the mailbox until another thread sends `Put(7)`
/// # });
/// # system.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(alias("stash", "become", "unstash"))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Guard {
    /// The message is handled now.
    Holds,
    /// The message waits in the mailbox. Its guard is called again after each message that the actor handles.
    Defer,
    /// The message is a dead letter, and its asker gets [`AskError::Refused`](crate::AskError::Refused).
    Refuse,
    /// The message is dropped without a dead letter. Its asker gets [`AskError::Refused`](crate::AskError::Refused).
    Drop,
}

impl Guard {
    /// Returns the admission of a message without an answer.
    #[inline(always)]
    pub(crate) fn of_tell(self) -> Admission {
        match self {
            Guard::Holds => Admission::Run,
            Guard::Defer => Admission::Wait,
            Guard::Refuse => Admission::Bounce(Undelivered::Refused),
            Guard::Drop => Admission::Drop,
        }
    }

    /// Returns the admission of a message whose sender waits for `reply`.
    #[inline(always)]
    pub(crate) fn of_ask<R: Send + 'static>(self, reply: &ReplyTo<R>) -> Admission {
        match self {
            Guard::Holds => Admission::Run,
            // The ask is over, so the message is not deferred: running it takes it from the mailbox without an effect.
            Guard::Defer if reply.is_over() => Admission::Run,
            Guard::Defer => Admission::Wait,
            Guard::Refuse | Guard::Drop => Admission::Bounce(Undelivered::Refused),
        }
    }
}

/// Handles messages of type `M` to completion.
///
/// A handler should not block, because it holds its worker. A handler that blocks is noticed after about 10 ms, and the
/// other actors of its worker continue on another thread. Use [`Placement::Dedicated`](crate::Placement::Dedicated) for
/// a handler that always blocks.
///
/// # Examples
///
/// ```
/// # use playhouse_actor::*;
/// struct Counter(u64);
/// impl Actor for Counter {}
///
/// struct Add(u64);
/// impl Message for Add {
///     type Reply = u64;
/// }
///
/// impl Handler<Add> for Counter {
///     fn handle(&mut self, Add(by): Add, _: &mut Context<Self>) -> u64 {
///         self.0 += by;
///         self.0
///     }
/// }
/// # let system = System::start()?;
/// assert_eq!(system.spawn(Counter(1)).ask(Add(2)).wait()?, 3);
/// # system.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(alias("receive", "handle_call", "handle_cast"))]
#[diagnostic::on_unimplemented(
    message = "the actor `{Self}` has no handler for the message `{M}`",
    label = "`{Self}` does not handle `{M}`",
    note = "write `impl Handler<{M}> for {Self}` (or `AsyncHandler`), or a `#[message]` method in its `#[actor]` block"
)]
pub trait Handler<M: Message>: Actor {
    /// Handles one message and returns its answer.
    ///
    /// A panic is a crash of the actor: its supervisor decides, and the asker gets
    /// [`AskError::Panicked`](crate::AskError::Panicked).
    fn handle(&mut self, message: M, ctx: &mut Context<Self>) -> M::Reply;

    /// Decides whether the message can be handled now. It is called before the handler. Usually
    /// `#[message(when = "..")]` writes it.
    ///
    /// A deferred message waits in the mailbox. After each message that the actor handles, the guards of the deferred
    /// messages are called again, the oldest first, and before newer mail. A guard should therefore be quick, and
    /// depend only on the actor's state and the message. A handler without a guard pays nothing.
    ///
    /// A panic in it is a crash of the actor, and the message is lost.
    #[inline(always)]
    #[doc(alias("stash", "become", "receive_when", "selective_receive"))]
    fn guard(&self, _message: &M) -> Guard {
        Guard::Holds
    }
}

/// Handles messages of type `M` with a function that may await.
///
/// While a handler waits, its actor handles no other message (they are parked in order), and its worker runs other
/// actors. A handler that never waits costs no allocation.
///
/// It may await any future. Futures that need a runtime, such as the timers and sockets of tokio, are spawned on that
/// runtime, because a worker is no thread of it: with `runtime: tokio::runtime::Handle` in the actor,
/// `self.runtime.spawn(async move { .. }).await`.
///
/// # Examples
///
/// ```
/// # use playhouse_actor::*;
/// use std::time::Duration;
///
/// struct Oven;
/// impl Actor for Oven {}
///
/// struct Bake;
/// impl Message for Bake {
///     type Reply = &'static str;
/// }
///
/// impl AsyncHandler<Bake> for Oven {
///     async fn handle(&mut self, _: Bake, ctx: &mut Context<Self>) -> &'static str {
///         ctx.sleep(Duration::from_millis(1)).await;
///         "bread"
///     }
/// }
/// # let system = System::start()?;
/// assert_eq!(system.spawn(Oven).ask(Bake).wait()?, "bread");
/// # system.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "the actor `{Self}` has no async handler for the message `{M}`",
    label = "`{Self}` does not handle `{M}`",
    note = "write `impl AsyncHandler<{M}> for {Self}`, or an `async` `#[message]` method in its `#[actor]` block"
)]
pub trait AsyncHandler<M: Message>: Actor {
    /// Handles one message and returns its answer. Write it as `async fn handle`.
    ///
    /// # Cancel safety
    /// The future is dropped at an await if the actor is killed or restarted, or if the system shuts down.
    fn handle(&mut self, message: M, ctx: &mut Context<Self>) -> impl Future<Output = M::Reply> + Send;

    /// Decides whether the message can be handled now: see [`Handler::guard`].
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

/// A message whose clones can be sent repeatedly: every message that is `Clone`.
#[diagnostic::on_unimplemented(
    message = "clones of the message `{Self}` are to be sent, and it is not `Clone`",
    label = "not `Clone`",
    note = "write `#[message(derive(Clone))]` at its method in an `#[actor]` block, or `#[derive(Clone)]` at `{Self}`"
)]
pub trait Repeated: Clone {}

#[diagnostic::do_not_recommend]
impl<M: Clone> Repeated for M {}

/// A message that the actor `A` handles: implemented for every message with a [`Handler`] or an [`AsyncHandler`] in
/// `A`.
///
/// `Mode` tells the two kinds apart; it is always inferred. (The message implements the trait, and not the actor,
/// because the compiler then names both in its error.)
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
/// /// Sends a message to each of some actors of any type that handles it.
/// fn broadcast<A: Actor, M: HandledBy<A, Mode> + Clone, Mode>(actors: &[ActorRef<A>], message: M) {
///     actors.iter().for_each(|actor| actor.tell(message.clone()));
/// }
///
/// let counters = [system.spawn(Counter::default()), system.spawn(Counter::default())];
/// broadcast(&counters, Add(3));
/// assert_eq!(counters[1].ask(Get).wait()?, 3);
/// # system.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
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
    /// Posts the message like `post_unwaiting`, but gives it back if the receiver's mailbox is full.
    #[doc(hidden)]
    fn try_post(self, to: Address<ActorState<A>>) -> Result<(), Self>;
    #[doc(hidden)]
    fn post_urgent(self, to: Address<ActorState<A>>);
    /// Posts a request. With `now`, the handler runs at once if that cannot be told from sending. If it can, `now`
    /// decides whether the request is sent.
    #[doc(hidden)]
    fn post_ask(self, to: Address<ActorState<A>>, reply: ReplyTo<Self::Reply>, now: Option<MaySend<'_>>);
    #[doc(hidden)]
    fn post_fired(to: Address<ActorState<A>>, fired: Fired<Self>);
    /// Posts the message in an envelope that gives it back.
    #[doc(hidden)]
    fn post_returning<B: TakeBack<Self>>(
        mail: ReturningMail<Self, B>,
        to: Address<ActorState<A>>,
        posting: Posting<'_>,
    );
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
        // One call of one of two functions, because each call reserves stack for the message.
        let post = if size_of::<M>() > CARRIED_BYTES_MAX { post_large::<A, M> } else { post_carried::<A, M, M> };
        post(self, to, reply, now);
    }

    fn post_fired(to: Address<ActorState<A>>, fired: Fired<M>) {
        to.send(fired);
    }

    fn post_returning<B: TakeBack<M>>(mail: ReturningMail<M, B>, to: Address<ActorState<A>>, posting: Posting<'_>) {
        post_sync(mail, to, posting);
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
        // One call of one of two functions, because each call reserves stack for the message.
        let post =
            if size_of::<M>() > CARRIED_BYTES_MAX { post_large_async::<A, M> } else { post_carried_async::<A, M, M> };
        post(self, to, reply, now);
    }

    fn post_fired(to: Address<ActorState<A>>, fired: Fired<M>) {
        to.send_async(AsyncFired(fired));
    }

    fn post_returning<B: TakeBack<M>>(mail: ReturningMail<M, B>, to: Address<ActorState<A>>, posting: Posting<'_>) {
        post_async(mail, to, posting);
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
