//! The envelopes of actors' messages.

use std::any::type_name;
use std::borrow::Borrow;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;

use playhouse_executor::{
    Address, Admission, AsyncEnvelope, AwayCx, Cx, Envelope, MailKind, SystemCore, Undelivered, contained,
};

use crate::actor::context::Context;
use crate::actor::{Actor, ActorState, Terminated, dead_letter};
use crate::answer::error::AskError;
use crate::answer::inherited_deadline::as_answering;
use crate::answer::reply_to::{ReplyTo, TakeAnswer};
use crate::answer::wait_graph;
use crate::message::clock::{Clock, TimersOfActor};
use crate::message::forward;
use crate::message::{AsyncHandler, Guard, Handler, Message};

/// A message without an answer.
#[repr(transparent)]
pub(crate) struct Tell<M>(pub(crate) M);

impl<A: Handler<M>, M: Message> Envelope<ActorState<A>> for Tell<M> {
    #[inline(always)]
    fn run(self, state: &mut ActorState<A>, cx: &mut Cx<ActorState<A>>) {
        let _unasked = state.actor.handle(self.0, Context::of(cx));
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

/// A message without an answer, for an async handler.
#[repr(transparent)]
pub(crate) struct AsyncTell<M>(pub(crate) M);

impl<A: AsyncHandler<M>, M: Message> AsyncEnvelope<ActorState<A>> for AsyncTell<M> {
    fn run<'a>(
        self,
        state: &'a mut ActorState<A>,
        cx: &'a mut Cx<ActorState<A>>,
    ) -> impl Future<Output = ()> + Send + 'a {
        let ctx = Context::of(cx);
        wait_graph::as_actor(ctx.id(), async move {
            let _unasked = state.actor.handle(self.0, ctx).await;
        })
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

/// The size of the largest messages that requests carry unboxed. A request is moved several times before it is in a
/// queue, and each move may take room on the stack.
pub(crate) const CARRIED_BYTES_MAX: usize = 4096;

/// A request's form of carrying its message: unboxed or boxed.
pub(crate) trait Carries<M>: Borrow<M> + Send + 'static {
    /// The future of an async handler.
    type Handling<F: Future + Send>: Future<Output = F::Output> + Send;

    fn open(self) -> M;

    fn handle<F: Future + Send>(self, handle: impl FnOnce(M) -> F) -> Self::Handling<F>;
}

impl<M: Message> Carries<M> for M {
    type Handling<F: Future + Send> = F;

    #[inline(always)]
    fn open(self) -> M {
        self
    }

    #[inline(always)]
    fn handle<F: Future + Send>(self, handle: impl FnOnce(M) -> F) -> F {
        handle(self)
    }
}

/// The handler's future owns the message and is boxed, too.
impl<M: Message> Carries<M> for Box<M> {
    type Handling<F: Future + Send> = Pin<Box<F>>;

    fn open(self) -> M {
        *self
    }

    fn handle<F: Future + Send>(self, handle: impl FnOnce(M) -> F) -> Pin<Box<F>> {
        Box::pin(handle(*self))
    }
}

/// A message with an answer.
pub(crate) struct AskMail<M: Message, C = M> {
    pub(crate) message: C,
    pub(crate) reply: ReplyTo<M::Reply>,
}

impl<A: Handler<M>, M: Message, C: Carries<M>> Envelope<ActorState<A>> for AskMail<M, C> {
    fn run(self, state: &mut ActorState<A>, cx: &mut Cx<ActorState<A>>) {
        if self.reply.begin().is_none() {
            return;
        }
        let ctx = Context::of(cx);
        let answer = state.actor.handle(self.message.open(), ctx);
        self.reply.send(ctx.unless_failed(answer));
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

/// A message with an answer, for an async handler.
pub(crate) struct AsyncAskMail<M: Message, C = M> {
    pub(crate) message: C,
    pub(crate) reply: ReplyTo<M::Reply>,
}

impl<A: AsyncHandler<M>, M: Message, C: Carries<M>> AsyncEnvelope<ActorState<A>> for AsyncAskMail<M, C> {
    fn run<'a>(
        self,
        state: &'a mut ActorState<A>,
        cx: &'a mut Cx<ActorState<A>>,
    ) -> impl Future<Output = ()> + Send + 'a {
        let ctx = Context::of(cx);
        let begun = self.reply.begin();
        let due = begun.as_ref().and_then(|begun| begun.due);
        as_answering(ctx.id(), due, async move {
            if begun.is_some() {
                let answer = self.message.handle(|message| state.actor.handle(message, ctx)).await;
                self.reply.send(ctx.unless_failed(answer));
            }
        })
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

/// The name of the answer to a request `M` in reports.
struct AnswerTo<M>(PhantomData<M>);

/// The continuation of `ctx.ask(..).then(f)`.
///
/// Its memory travels with the request to the answering thread, and returns with the answer. The same thread therefore
/// allocates and frees it, unless the asker has moved to another worker. Threads that free each other's memory wait for
/// each other in the allocator.
pub(crate) struct Continuation<A: Actor, M, F> {
    pub(crate) asker: Address<ActorState<A>>,
    pub(crate) then: F,
    pub(crate) request: PhantomData<fn(M)>,
}

impl<A, M, F, R> TakeAnswer<R> for Continuation<A, M, F>
where
    A: Actor,
    M: 'static,
    R: Send + 'static,
    F: FnOnce(&mut A, Result<R, AskError>, &mut Context<A>) + Send + 'static,
{
    fn take(self: Box<Self>, answer: Result<R, AskError>) {
        self.asker.send(Answer { continuation: self, answer });
    }

    fn is_wanted(&self) -> bool {
        !self.asker.raw().is_stale()
    }
}

/// The answer to `ctx.ask(..).then(f)`, on its way back with `f`.
struct Answer<A: Actor, M, F, R> {
    continuation: Box<Continuation<A, M, F>>,
    answer: Result<R, AskError>,
}

impl<A, M, F, R> Envelope<ActorState<A>> for Answer<A, M, F, R>
where
    A: Actor,
    M: 'static,
    R: Send + 'static,
    F: FnOnce(&mut A, Result<R, AskError>, &mut Context<A>) + Send + 'static,
{
    fn run(self, state: &mut ActorState<A>, cx: &mut Cx<ActorState<A>>) {
        let ctx = Context::of(cx);
        let Continuation { then, .. } = *self.continuation;
        then(&mut state.actor, self.answer, ctx);
    }

    fn describe() -> (MailKind, &'static str) {
        (MailKind::Answer, type_name::<R>())
    }

    fn bounce(self, _: Undelivered) {}

    fn send_on(self, _: &mut AwayCx<ActorState<A>>) {
        dead_letter::<A, AnswerTo<M>>(Undelivered::Unreachable);
    }
}

/// Turns the answer to `ctx.ask(..).pipe_to_self(..)` into a message.
pub(crate) struct Pipe<A: Actor, M, F> {
    pub(crate) asker: Address<ActorState<A>>,
    /// Makes a message of the answer, and sends it to the asker.
    pub(crate) tell: F,
    pub(crate) request: PhantomData<fn(M)>,
}

impl<A, M, F, R> TakeAnswer<R> for Pipe<A, M, F>
where
    A: Actor,
    M: 'static,
    R: Send + 'static,
    F: FnOnce(Result<R, AskError>) + Send + 'static,
{
    fn take(self: Box<Self>, answer: Result<R, AskError>) {
        self.asker.send(Piped { pipe: self, answer });
    }

    fn is_wanted(&self) -> bool {
        !self.asker.raw().is_stale()
    }
}

/// The answer to `ctx.ask(..).pipe_to_self(..)`, on its way to the theater of the asker. The message is made in that
/// theater, because a panic in it is the asker's.
struct Piped<A: Actor, M, F, R> {
    pipe: Box<Pipe<A, M, F>>,
    answer: Result<R, AskError>,
}

impl<A, M, F, R> Envelope<ActorState<A>> for Piped<A, M, F, R>
where
    A: Actor,
    M: 'static,
    R: Send + 'static,
    F: FnOnce(Result<R, AskError>) + Send + 'static,
{
    fn run(self, _: &mut ActorState<A>, _: &mut Cx<ActorState<A>>) {
        (self.pipe.tell)(self.answer);
    }

    fn describe() -> (MailKind, &'static str) {
        (MailKind::Answer, type_name::<R>())
    }

    /// An actor that has ended needs no answers. An actor that has migrated would have received it.
    fn bounce(self, why: Undelivered) {
        let asker = self.pipe.asker.raw();
        if !asker.is_stale() && asker.is_away() {
            // This thread may belong to another system, and the asker's system may be closed.
            if let Some(system) = SystemCore::by_id(asker.system()) {
                system.dead_letter(type_name::<A>(), type_name::<AnswerTo<M>>(), why);
            }
        }
    }

    fn send_on(self, _: &mut AwayCx<ActorState<A>>) {
        if contained(|| (self.pipe.tell)(self.answer)).is_none() {
            dead_letter::<A, AnswerTo<M>>(Undelivered::Unreachable);
        }
    }
}

/// A timer that has fired: its message, unless the actor has cancelled the timer since.
pub struct Fired<M> {
    pub(crate) id: u64,
    /// The number of this firing of the timer.
    pub(crate) number: u64,
    pub(crate) clock: Arc<Clock<M>>,
}

impl<M: Message> Fired<M> {
    /// Returns the admission that the message's guard decides. A message whose timer was cancelled is not deferred.
    #[inline(always)]
    pub(crate) fn admission<A: Actor>(&self, cx: &mut Cx<ActorState<A>>, guard: impl FnOnce(&M) -> Guard) -> Admission {
        match self.clock.look(guard).unwrap_or(Guard::Holds) {
            Guard::Holds => Admission::Run,
            _ if !cx.with_extra_if_any(|extra| extra.wants(self.id, self.number)).unwrap_or(false) => Admission::Run,
            Guard::Defer => Admission::Wait,
            other => {
                cx.with_extra(|extra| extra.go_on(self.id));
                other.of_tell()
            }
        }
    }

    /// Returns the message, if the actor still has this timer.
    pub(crate) fn take(self, timers: &mut impl TimersOfActor) -> Option<M> {
        if !timers.wants(self.id, self.number) {
            return None;
        }
        if self.clock.is_once() {
            timers.forget(self.id);
        }
        self.clock.take()
    }

    /// Handles the message, if the actor still has this timer.
    pub(crate) fn handle_with<A: Actor>(
        self,
        cx: &mut Cx<ActorState<A>>,
        handle: impl FnOnce(M, &mut Cx<ActorState<A>>),
    ) {
        let id = self.id;
        if let Some(message) = cx.with_extra(|extra| self.take(extra)) {
            handle(message, cx);
            cx.with_extra(|extra| extra.go_on(id));
        }
    }
}

impl<M> Drop for Fired<M> {
    fn drop(&mut self) {
        self.clock.has_come();
    }
}

impl<A: Handler<M>, M: Message> Envelope<ActorState<A>> for Fired<M> {
    fn run(self, state: &mut ActorState<A>, cx: &mut Cx<ActorState<A>>) {
        self.handle_with(cx, |message, cx| Tell(message).run(state, cx));
    }

    #[inline(always)]
    fn admission(&self, state: &ActorState<A>, cx: &mut Cx<ActorState<A>>) -> Admission {
        self.admission(cx, |message| state.actor.guard(message))
    }

    fn describe() -> (MailKind, &'static str) {
        (MailKind::Timer, type_name::<M>())
    }

    fn bounce(self, _: Undelivered) {}

    fn send_on(self, cx: &mut AwayCx<ActorState<A>>) {
        if let Some(message) = self.take(cx.extra()) {
            forward::send_on::<A, M>(&message, cx);
        }
    }
}

/// A timer that has fired, like [`Fired`], for an async handler.
#[repr(transparent)]
pub(crate) struct AsyncFired<M>(pub(crate) Fired<M>);

impl<A: AsyncHandler<M>, M: Message> AsyncEnvelope<ActorState<A>> for AsyncFired<M> {
    fn run<'a>(
        self,
        state: &'a mut ActorState<A>,
        cx: &'a mut Cx<ActorState<A>>,
    ) -> impl Future<Output = ()> + Send + 'a {
        let id = self.0.id;
        let message = cx.with_extra(|extra| self.0.take(extra));
        let actor = Context::of(cx).id();
        wait_graph::as_actor(actor, async move {
            if let Some(message) = message {
                let _unasked = state.actor.handle(message, Context::of(cx)).await;
                cx.with_extra(|extra| extra.go_on(id));
            }
        })
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

/// The end of a watched actor. `MOVES_ALONG`: this actor is recorded as its watcher, unless it was notified already or
/// has ended the watch.
pub(crate) struct TerminatedMail<const MOVES_ALONG: bool>(pub(crate) Terminated);

impl<A: Actor, const MOVES_ALONG: bool> Envelope<ActorState<A>> for TerminatedMail<MOVES_ALONG> {
    fn run(self, state: &mut ActorState<A>, cx: &mut Cx<ActorState<A>>) {
        let ctx = Context::of(cx);
        if !MOVES_ALONG || ctx.forget_watched(self.0.who) {
            state.actor.terminated(self.0, ctx);
        }
    }

    fn describe() -> (MailKind, &'static str) {
        (MailKind::Control, "terminated")
    }

    fn bounce(self, _: Undelivered) {}
}

/// A value that is dropped when the actor has handled all messages sent to it before, or never will.
pub(crate) struct Mark<T>(pub(crate) T);

impl<A: Actor, T: Send + 'static> Envelope<ActorState<A>> for Mark<T> {
    fn run(self, _: &mut ActorState<A>, _: &mut Cx<ActorState<A>>) {}

    fn describe() -> (MailKind, &'static str) {
        (MailKind::Control, "mark")
    }

    fn bounce(self, _: Undelivered) {}
}
