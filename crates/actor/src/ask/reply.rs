//! Replies given after the handler has returned, or by another actor: [`Reply`] and [`DeferredHandler`].
//!
//! The envelope of a request gives its handler the [`ReplyTo`] that other envelopes keep for themselves. Every event
//! that ends an ask works on the target of the answer, and not on the envelope. Such events are deadlines, the end of
//! the asker, requests that are taken back, and links to other theaters.
//!
//! # Forwarding
//!
//! A forwarded request waits in a mailbox again, so it can be taken back again. An actor that awaits the answer waits
//! for the new receiver from then on: its edge in the graph of waiting actors is redirected before the request is sent
//! ([`wait_graph`](crate::answer::wait_graph)). If the edge closes a cycle, the ask fails, and nothing is sent. At any time at
//! most 1 actor has the request and can redirect the edge.
//!
//! The edge of an asker in another theater is not redirected. The forwarding theater records the new receiver, and
//! tells other theaters when they search for cycles (`cycles.rs` of `playhouse-theater`).

use std::any::type_name;
use std::fmt;

use playhouse_executor::{
    Address, Admission, AwayCx, Cx, Envelope, MailKind, MaySend, Undelivered, with_current_system,
};

use crate::actor::context::Context;
use crate::actor::names::Label;
use crate::actor::{Actor, ActorId, ActorState, dead_letter};
use crate::answer::error::AskError;
use crate::answer::reply_to::ReplyTo;
use crate::ask::recipient::AskTarget;
use crate::ask::returning::post_deferred;
use crate::message::forward;
use crate::message::mail::{CARRIED_BYTES_MAX, Carries, Fired};
use crate::message::returning::{Posting, ReturningMail, TakeBack};
use crate::message::{Guard, HandledBy, Message};

/// The right to answer one request: given to a handler with a parameter `reply: Reply<T>`, and used when the answer is
/// known.
///
/// The actor may keep it in its state, move it into the continuation of `ctx.ask(..).then(..)`, or send it to another
/// actor of this program. The actor handles other messages until then. The answer is dropped if the message was no ask:
/// sent by `tell` or by a timer.
///
/// A `Reply` that is dropped ends the ask with [`AskError::Unanswered`]. The same holds for a `Reply` in the state of
/// an actor that ends, restarts, or migrates. A `Reply` does not leave its theater, so the state of a mobile actor
/// skips it (`#[serde(skip)]`).
///
/// A handler that crashes, or calls [`Context::fail`], after it has used its `Reply` has answered. If it still has the
/// `Reply` when it panics, the ask fails with [`AskError::Panicked`]. If it has put the `Reply` into its state, the ask
/// fails with [`AskError::Unanswered`].
///
/// # Cycles
///
/// An asker that awaits the answer in a handler waits for the asked actor until that actor calls
/// [`forward`](Reply::forward). Three cases follow:
/// - The asked actor *sends* its `Reply` to a second actor, and then awaits an ask to the asker. The second ask fails with
///   [`AskError::Cycle`], although the second actor could answer.
/// - The second actor awaits an ask to the asker. The cycle is not found, and neither is it if the `Reply` was moved to a
///   thread or a task: give such asks a deadline.
/// - The asked actor uses `ctx.ask(..).then(..)`. It is not known to wait, so a cycle over a `Reply` in such a
///   continuation is not found.
///
/// ```
/// # use playhouse_actor::{Actor, Context, DeferredHandler, Handler, Message, Reply, System};
/// /// Takes what somebody else puts there.
/// struct Take;
/// impl Message for Take {
///     type Reply = u32;
/// }
/// struct Put(u32);
/// impl Message for Put {
///     type Reply = ();
/// }
///
/// #[derive(Default)]
/// struct Shelf {
///     waiting: Vec<Reply<u32>>,
/// }
///
/// impl Actor for Shelf {}
///
/// impl DeferredHandler<Take> for Shelf {
///     fn handle(&mut self, _: Take, reply: Reply<u32>, _: &mut Context<Self>) {
///         self.waiting.push(reply);
///     }
/// }
///
/// impl Handler<Put> for Shelf {
///     fn handle(&mut self, Put(thing): Put, _: &mut Context<Self>) {
///         if let Some(reply) = self.waiting.pop() {
///             reply.send(thing);
///         }
///     }
/// }
///
/// let system = System::start().unwrap();
/// let shelf = system.spawn(Shelf::default());
/// let taker = std::thread::spawn(move || shelf.ask(Take).wait());
/// while !taker.is_finished() {
///     shelf.tell(Put(7));
/// }
/// assert_eq!(taker.join().unwrap(), Ok(7));
/// ```
#[must_use = "a reply that is dropped ends the ask with `AskError::Unanswered`"]
pub struct Reply<T: Send + 'static> {
    /// `None` after its use, and if the message was no ask.
    pub(crate) to: Option<ReplyTo<T>>,
}

impl<T: Send + 'static> Reply<T> {
    /// Returns a reply that calls `answered` with the answer, or with the asker's error: for unit tests that call
    /// message methods without a system.
    ///
    /// ```
    /// # use playhouse_actor::{AskError, Reply};
    /// use std::sync::mpsc;
    ///
    /// let (tell, told) = mpsc::channel();
    /// let reply = Reply::from_fn(move |answer| tell.send(answer).unwrap());
    /// reply.send(7);
    /// assert_eq!(told.recv(), Ok(Ok(7)));
    /// ```
    pub fn from_fn(answered: impl FnOnce(Result<T, AskError>) + Send + 'static) -> Reply<T> {
        Reply { to: Some(ReplyTo::then(Box::new(answered))) }
    }

    /// Returns a reply without an asker, like that of a message that was told.
    #[doc(hidden)]
    pub fn without_asker() -> Reply<T> {
        Reply { to: None }
    }

    /// Gives the answer. It is dropped if no asker waits for it any more.
    #[doc(alias("reply", "answer", "respond", "complete"))]
    pub fn send(self, answer: T) {
        drop(self.try_send(answer));
    }

    /// Gives the answer, if an asker waits for it.
    ///
    /// # Errors
    /// Gives the answer back if no asker is known to wait for it: see [`Reply::is_awaited`].
    pub fn try_send(mut self, answer: T) -> Result<(), T> {
        match self.to.take() {
            Some(to) => to.try_send(answer),
            None => Err(answer),
        }
    }

    /// Ends the ask with an error.
    pub(crate) fn fail(mut self, error: AskError) {
        if let Some(to) = self.to.take() {
            to.send(Err(error));
        }
    }

    /// Ends the ask with an error, or counts the message `M` to an `A` as a dead letter if it was no ask.
    #[doc(hidden)]
    pub fn undelivered<A, M>(self, error: AskError) {
        if self.to.is_some() { self.fail(error) } else { dead_letter::<A, M>(Undelivered::Unreachable) }
    }

    /// Returns whether the message was an ask.
    #[doc(hidden)]
    pub fn is_of_ask(&self) -> bool {
        self.to.is_some()
    }

    /// Returns whether an asker waits for the answer, as far as this theater knows.
    ///
    /// It is `false` in 3 cases:
    /// - the message was no ask;
    /// - the asker has given up: its deadline has passed, it has dropped the ask, or it has ended;
    /// - the asker's theater is lost.
    ///
    #[must_use]
    pub fn is_awaited(&self) -> bool {
        self.to.as_ref().is_some_and(ReplyTo::is_awaited)
    }

    /// Forwards the request: sends `message` to `to`, whose answer goes straight to the asker. The deadline of the ask
    /// is unchanged.
    ///
    /// Nothing is sent if no asker waits for the answer any more. If the original message was no ask, `message` is sent
    /// as by `tell`.
    ///
    /// The ask fails with [`AskError::Cycle`], and nothing is sent, if the asker awaits the answer in its handler and
    /// the new receiver waits for the asker, directly or over other actors. Earlier effects of this handler remain.
    ///
    /// If one of these actors is in another theater, the message is sent, and one ask of the cycle fails when the cycle
    /// is found.
    #[doc(alias("forward_to", "delegate"))]
    pub fn forward<M: Message<Reply = T>, Mode>(mut self, to: impl AskTarget<M, Mode>, message: M) {
        let Some(reply) = self.to.take() else { return to.tell_it(message) };
        let requests = to.requests();
        if reply.forward(Label::of_type(to.type_for_reports(), ActorId(requests.raw()))) {
            requests.request(&mut Some(message), reply, None);
        }
    }
}

impl<T: Send + 'static> Drop for Reply<T> {
    fn drop(&mut self) {
        if let Some(to) = self.to.take() {
            to.send(Err(unanswered()));
        }
    }
}

impl<T: Send + 'static> fmt::Debug for Reply<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reply").field("is_awaited", &self.is_awaited()).finish()
    }
}

#[cold]
fn unanswered() -> AskError {
    if std::thread::panicking() {
        return AskError::Panicked;
    }
    let shut_down = with_current_system(|system| system.is_some_and(|system| system.sweeps_on_this_thread()));
    if shut_down { AskError::Shutdown } else { AskError::Unanswered }
}

/// Handles messages of type `M` with a function that may answer later: it may keep `reply`, and return.
///
/// Usually `#[actor]` writes it, for a message method with a parameter `reply: Reply<T>`.
///
/// # Examples
///
/// ```
/// # use playhouse_actor::*;
/// # struct Enter;
/// # impl Message for Enter { type Reply = u32; }
/// # struct Open;
/// # impl Message for Open { type Reply = (); }
/// #[derive(Default)]
/// struct Gate {
///     waiting: Vec<Reply<u32>>,
/// }
/// impl Actor for Gate {}
///
/// impl DeferredHandler<Enter> for Gate {
///     fn handle(&mut self, _: Enter, reply: Reply<u32>, _: &mut Context<Self>) {
///         self.waiting.push(reply);
///     }
/// }
///
/// impl Handler<Open> for Gate {
///     fn handle(&mut self, _: Open, _: &mut Context<Self>) {
///         for (number, reply) in (1..).zip(self.waiting.drain(..)) {
///             reply.send(number);
///         }
///     }
/// }
/// # struct Visitor(ActorRef<Gate>, std::sync::mpsc::Sender<Result<u32, AskError>>);
/// # impl Actor for Visitor {
/// #     fn started(&mut self, ctx: &mut Context<Self>) {
/// #         ctx.ask(self.0, Enter).then(|this, answer, _| this.1.send(answer).unwrap());
/// #         self.0.tell(Open);
/// #     }
/// # }
/// # let system = System::start()?;
/// # let (tell, told) = std::sync::mpsc::channel();
/// # system.spawn(Visitor(system.spawn(Gate::default()), tell));
/// # assert_eq!(told.recv()?, Ok(1));
/// # system.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "the actor `{Self}` has no handler with a `Reply` for the message `{M}`",
    label = "`{Self}` does not handle `{M}`",
    note = "write `impl DeferredHandler<{M}> for {Self}`, or a `#[message]` method with a parameter `reply: Reply<..>` in its `#[actor]` block"
)]
pub trait DeferredHandler<M: Message>: Actor {
    /// Handles one message, with the right to answer it.
    fn handle(&mut self, message: M, reply: Reply<M::Reply>, ctx: &mut Context<Self>);

    /// Decides whether the message can be handled now: see [`Handler::guard`](crate::Handler::guard).
    #[inline(always)]
    fn guard(&self, _message: &M) -> Guard {
        Guard::Holds
    }
}

/// The handler may answer later: see [`HandledBy`].
#[derive(Debug)]
pub enum DeferredMode {}

impl<A: DeferredHandler<M>, M: Message> HandledBy<A, DeferredMode> for M {
    #[inline(always)]
    fn post_tell(self, to: Address<ActorState<A>>) {
        to.send(DeferredTell(self));
    }

    fn post_unwaiting(self, to: Address<ActorState<A>>) {
        to.send_request(DeferredTell(self));
    }

    fn try_post(self, to: Address<ActorState<A>>) -> Result<(), M> {
        to.try_send(DeferredTell(self)).map_err(|mail| mail.0)
    }

    fn post_urgent(self, to: Address<ActorState<A>>) {
        to.send_urgent(DeferredTell(self));
    }

    fn post_ask(self, to: Address<ActorState<A>>, reply: ReplyTo<M::Reply>, now: Option<MaySend<'_>>) {
        // One call of one of two functions, because each call reserves stack for the message.
        let post = if size_of::<M>() > CARRIED_BYTES_MAX { post_large::<A, M> } else { post_carried::<A, M, M> };
        post(self, to, reply, now);
    }

    fn post_fired(to: Address<ActorState<A>>, fired: Fired<M>) {
        to.send(DeferredFired(fired));
    }

    fn post_returning<B: TakeBack<M>>(mail: ReturningMail<M, B>, to: Address<ActorState<A>>, posting: Posting<'_>) {
        post_deferred(mail, to, posting);
    }
}

/// The request always becomes a message, although the handler could run on the asker's stack. The handler may forward
/// the request, and the asker's edge in the graph of waiting actors has to exist before that.
#[inline]
fn post_carried<A: DeferredHandler<M>, M: Message, C: Carries<M>>(
    message: C,
    to: Address<ActorState<A>>,
    reply: ReplyTo<M::Reply>,
    now: Option<MaySend<'_>>,
) {
    if now.is_none_or(|may_send| may_send()) {
        to.send_request(DeferredAsk::<M, C> { message, reply });
    }
}

#[inline(never)]
fn post_large<A: DeferredHandler<M>, M: Message>(
    message: M,
    to: Address<ActorState<A>>,
    reply: ReplyTo<M::Reply>,
    now: Option<MaySend<'_>>,
) {
    post_carried::<A, M, Box<M>>(Box::new(message), to, reply, now);
}

/// A message without an asker, for a handler that may answer later.
#[repr(transparent)]
struct DeferredTell<M>(M);

impl<A: DeferredHandler<M>, M: Message> Envelope<ActorState<A>> for DeferredTell<M> {
    fn run(self, state: &mut ActorState<A>, cx: &mut Cx<ActorState<A>>) {
        state.actor.handle(self.0, Reply { to: None }, Context::of(cx));
    }

    #[inline(always)]
    fn admission(&self, state: &ActorState<A>, _cx: &mut Cx<ActorState<A>>) -> Admission {
        state.actor.guard(&self.0).of_tell()
    }

    fn describe() -> (MailKind, &'static str) {
        (MailKind::Message, type_name::<M>())
    }

    fn bytes(&self) -> usize {
        self.0.bytes()
    }

    fn bounce(self, why: Undelivered) {
        dead_letter::<A, M>(why);
    }

    fn send_on(self, cx: &mut AwayCx<ActorState<A>>) {
        forward::send_on::<A, M>(&self.0, cx);
    }
}

/// A message with an asker, for a handler that may answer later.
struct DeferredAsk<M: Message, C> {
    message: C,
    reply: ReplyTo<M::Reply>,
}

impl<A: DeferredHandler<M>, M: Message, C: Carries<M>> Envelope<ActorState<A>> for DeferredAsk<M, C> {
    fn run(self, state: &mut ActorState<A>, cx: &mut Cx<ActorState<A>>) {
        if self.reply.begin().is_some() {
            state.actor.handle(self.message.open(), Reply { to: Some(self.reply) }, Context::of(cx));
        }
    }

    #[inline(always)]
    fn admission(&self, state: &ActorState<A>, _cx: &mut Cx<ActorState<A>>) -> Admission {
        state.actor.guard(self.message.borrow()).of_ask(&self.reply)
    }

    fn describe() -> (MailKind, &'static str) {
        (MailKind::Request, type_name::<M>())
    }

    fn bytes(&self) -> usize {
        self.message.borrow().bytes()
    }

    fn bounce(self, why: Undelivered) {
        self.reply.send(Err(AskError::undelivered(why)));
    }

    fn send_on(self, cx: &mut AwayCx<ActorState<A>>) {
        forward::ask_on::<A, M>(self.message.borrow(), self.reply, cx);
    }
}

/// A timer's message, like [`Fired`], for a handler that may answer later.
#[repr(transparent)]
struct DeferredFired<M>(Fired<M>);

impl<A: DeferredHandler<M>, M: Message> Envelope<ActorState<A>> for DeferredFired<M> {
    fn run(self, state: &mut ActorState<A>, cx: &mut Cx<ActorState<A>>) {
        self.0.handle_with(cx, |message, cx| DeferredTell(message).run(state, cx));
    }

    #[inline(always)]
    fn admission(&self, state: &ActorState<A>, cx: &mut Cx<ActorState<A>>) -> Admission {
        self.0.admission(cx, |message| state.actor.guard(message))
    }

    fn describe() -> (MailKind, &'static str) {
        (MailKind::Timer, type_name::<M>())
    }

    fn bounce(self, _: Undelivered) {}

    fn send_on(self, cx: &mut AwayCx<ActorState<A>>) {
        if let Some(message) = self.0.take(cx.extra()) {
            forward::send_on::<A, M>(&message, cx);
        }
    }
}
