//! Messages that come back if their receiver does not handle them: the calls of a cluster's virtual actors.
//!
//! A plain message to an actor that has ended is a dead letter. A [`Returning`] one is given back with the right to answer it, and its owner sends it
//! to the next activation. The owner also decides, when the turn of the message has come, whether the receiver may handle it at all.

use std::any::type_name;
use std::cell::Cell;
use std::marker::PhantomData;

use playhouse_executor::{Address, Admission, AsyncEnvelope, AwayCx, Cx, Envelope, MailKind, MaySend, Undelivered};

use crate::actor::{Actor, ActorState, dead_letter};
use crate::answer::error::AskError;
use crate::answer::reply_to::ReplyTo;
use crate::message::mail::{AskMail, AsyncAskMail, AsyncTell, Tell};
use crate::message::{AsyncHandler, Guard, HandledBy, Handler, Message, forward};

/// The owner of messages that come back.
pub trait TakeBack<M: Message>: Send + 'static {
    /// Returns whether the receiver may handle a message now. A message that it may not handle comes back.
    fn may_run(&self) -> bool;

    /// Notes that the handler of a message begins or ends.
    fn set_running(&self, is_running: bool);

    /// Takes a message back. No handler has begun it.
    fn take_back(self, message: M, reply: Returned<M::Reply>);
}

/// The target of the answer to a message that has come back, if it was an ask.
pub struct Returned<R: Send + 'static>(pub(crate) Option<ReplyTo<R>>);

/// A message that comes back if its receiver does not handle it. `Mode`: the way in which the receiver handles `M`.
#[doc(hidden)]
pub struct Returning<M, B, Mode> {
    /// The message.
    pub message: M,
    /// Its owner.
    pub back: B,
    mode: PhantomData<fn(Mode)>,
}

impl<M, B, Mode> Returning<M, B, Mode> {
    /// Makes a message of `back`.
    pub fn new(message: M, back: B) -> Self {
        Returning { message, back, mode: PhantomData }
    }
}

#[doc(hidden)]
impl<M: Message, B: TakeBack<M>, Mode: 'static> Message for Returning<M, B, Mode> {
    type Reply = M::Reply;

    fn bytes(&self) -> usize {
        self.message.bytes()
    }
}

/// The receiver handles the message inside a [`Returning`] one: see [`HandledBy`].
#[doc(hidden)]
#[derive(Debug)]
pub struct ReturningMode<Mode>(PhantomData<fn(Mode)>);

#[doc(hidden)]
#[diagnostic::do_not_recommend]
impl<A, M, B, Mode> HandledBy<A, ReturningMode<Mode>> for Returning<M, B, Mode>
where
    A: Actor,
    M: HandledBy<A, Mode>,
    B: TakeBack<M>,
    Mode: 'static,
{
    fn post_tell(self, to: Address<ActorState<A>>) {
        M::post_returning(ReturningMail::new(self.message, self.back, None), to, Posting::Tell);
    }

    fn post_unwaiting(self, to: Address<ActorState<A>>) {
        M::post_returning(ReturningMail::new(self.message, self.back, None), to, Posting::Unwaiting);
    }

    fn try_post(self, to: Address<ActorState<A>>) -> Result<(), Self> {
        // The owner takes it back in any case.
        self.post_unwaiting(to);
        Ok(())
    }

    fn post_urgent(self, to: Address<ActorState<A>>) {
        self.post_unwaiting(to);
    }

    fn post_ask(self, to: Address<ActorState<A>>, reply: ReplyTo<M::Reply>, now: Option<MaySend<'_>>) {
        M::post_returning(ReturningMail::new(self.message, self.back, Some(reply)), to, Posting::Ask(now));
    }

    /// No timer sends such a message.
    fn post_fired(_: Address<ActorState<A>>, _: crate::message::mail::Fired<Self>) {}

    fn post_returning<C: TakeBack<Self>>(_: ReturningMail<Self, C>, _: Address<ActorState<A>>, _: Posting<'_>) {
        unreachable!("the message inside is no `Returning` one");
    }
}

/// The way in which a message is posted.
pub enum Posting<'a> {
    /// The sender waits for room.
    Tell,
    /// The sender does not wait.
    Unwaiting,
    /// A request, whose handler may run at once.
    Ask(Option<MaySend<'a>>),
}

/// The envelope of a [`Returning`] message.
pub struct ReturningMail<M: Message, B> {
    pub(crate) message: M,
    pub(crate) back: B,
    pub(crate) reply: Option<ReplyTo<M::Reply>>,
    /// Whether the owner has refused it.
    is_refused: Cell<bool>,
}

impl<M: Message, B: TakeBack<M>> ReturningMail<M, B> {
    fn new(message: M, back: B, reply: Option<ReplyTo<M::Reply>>) -> Self {
        ReturningMail { message, back, reply, is_refused: Cell::new(false) }
    }

    #[inline]
    pub(crate) fn admission(&self, guard: impl FnOnce(&M) -> Guard) -> Admission {
        if !self.back.may_run() {
            self.is_refused.set(true);
            return Admission::Bounce(Undelivered::Refused);
        }
        let guard = guard(&self.message);
        match &self.reply {
            Some(reply) => guard.of_ask(reply),
            None => guard.of_tell(),
        }
    }

    #[cold]
    pub(crate) fn bounce<A: Actor>(self, why: Undelivered) {
        let ReturningMail { message, back, reply, is_refused } = self;
        if is_refused.get() || matches!(why, Undelivered::Stopped) {
            // The owner has the request from now on, as a handler would. It may therefore forward it.
            if reply.as_ref().is_none_or(|reply| reply.begin().is_some()) {
                back.take_back(message, Returned(reply));
            }
            return;
        }
        match reply {
            Some(reply) => reply.send(Err(AskError::undelivered(why))),
            None => dead_letter::<A, M>(why),
        }
    }

    pub(crate) fn send_on<A: Actor>(self, cx: &mut AwayCx<ActorState<A>>) {
        match self.reply {
            Some(reply) => forward::ask_on::<A, M>(&self.message, reply, cx),
            None => forward::send_on::<A, M>(&self.message, cx),
        }
    }
}

/// Notes that a handler runs, until it is dropped.
pub(crate) struct Running<M: Message, B: TakeBack<M>>(B, PhantomData<fn(M)>);

impl<M: Message, B: TakeBack<M>> Running<M, B> {
    pub(crate) fn begin(back: B) -> Self {
        back.set_running(true);
        Running(back, PhantomData)
    }
}

impl<M: Message, B: TakeBack<M>> Drop for Running<M, B> {
    fn drop(&mut self) {
        self.0.set_running(false);
    }
}

/// The envelope for a handler that runs to completion.
#[repr(transparent)]
struct InSync<T>(T);
/// The envelope for an async handler.
#[repr(transparent)]
struct InAsync<T>(T);
pub(crate) fn post_sync<A: Handler<M>, M: Message, B: TakeBack<M>>(
    mail: ReturningMail<M, B>,
    to: Address<ActorState<A>>,
    posting: Posting<'_>,
) {
    match posting {
        Posting::Tell => to.send(InSync(mail)),
        Posting::Ask(Some(may_send)) => match to.call_now(InSync(mail)) {
            Err(mail) if may_send() => to.send_request(mail),
            _ => {}
        },
        Posting::Unwaiting | Posting::Ask(None) => to.send_request(InSync(mail)),
    }
}

pub(crate) fn post_async<A: AsyncHandler<M>, M: Message, B: TakeBack<M>>(
    mail: ReturningMail<M, B>,
    to: Address<ActorState<A>>,
    posting: Posting<'_>,
) {
    match posting {
        Posting::Tell => to.send_async(InAsync(mail)),
        Posting::Ask(Some(may_send)) => match to.call_now_async(InAsync(mail)) {
            Err(mail) if may_send() => to.send_request_async(mail),
            _ => {}
        },
        Posting::Unwaiting | Posting::Ask(None) => to.send_request_async(InAsync(mail)),
    }
}

/// The parts of the envelopes that do not depend on the handler.
macro_rules! common_parts {
    ($state:ty) => {
        fn describe() -> (MailKind, &'static str) {
            (MailKind::Request, type_name::<M>())
        }

        fn bytes(&self) -> usize {
            self.0.message.bytes()
        }

        fn bounce(self, why: Undelivered) {
            self.0.bounce::<A>(why);
        }

        fn send_on(self, cx: &mut AwayCx<$state>) {
            self.0.send_on::<A>(cx);
        }
    };
}
pub(crate) use common_parts;

impl<A: Handler<M>, M: Message, B: TakeBack<M>> Envelope<ActorState<A>> for InSync<ReturningMail<M, B>> {
    fn run(self, state: &mut ActorState<A>, cx: &mut Cx<ActorState<A>>) {
        let ReturningMail { message, reply, back, .. } = self.0;
        let _running = Running::<M, B>::begin(back);
        match reply {
            Some(reply) => AskMail::<M> { message, reply }.run(state, cx),
            None => Tell(message).run(state, cx),
        }
    }

    #[inline(always)]
    fn admission(&self, state: &ActorState<A>, _: &mut Cx<ActorState<A>>) -> Admission {
        self.0.admission(|message| state.actor.guard(message))
    }

    common_parts!(ActorState<A>);
}

impl<A: AsyncHandler<M>, M: Message, B: TakeBack<M>> AsyncEnvelope<ActorState<A>> for InAsync<ReturningMail<M, B>> {
    async fn run<'a>(self, state: &'a mut ActorState<A>, cx: &'a mut Cx<ActorState<A>>) {
        let ReturningMail { message, reply, back, .. } = self.0;
        let _running = Running::<M, B>::begin(back);
        match reply {
            Some(reply) => AsyncAskMail::<M> { message, reply }.run(state, cx).await,
            None => AsyncTell(message).run(state, cx).await,
        }
    }

    #[inline(always)]
    fn admission(&self, state: &ActorState<A>, _: &mut Cx<ActorState<A>>) -> Admission {
        self.0.admission(|message| state.actor.guard(message))
    }

    common_parts!(ActorState<A>);
}

/// Calls a function with an actor.
struct Hook<F>(F);

impl<A: Actor, F> Envelope<ActorState<A>> for Hook<F>
where
    F: FnOnce(&mut A, &mut crate::actor::context::Context<A>) + Send + 'static,
{
    fn run(self, state: &mut ActorState<A>, cx: &mut Cx<ActorState<A>>) {
        (self.0)(&mut state.actor, crate::actor::context::Context::of(cx));
    }

    fn describe() -> (MailKind, &'static str) {
        (MailKind::Control, "hook")
    }

    fn bounce(self, _: Undelivered) {}
}

impl<A: Actor> crate::actor::reference::ActorRef<A> {
    /// Calls `hook` with the actor, behind its earlier mail. The function is dropped if the actor has ended.
    #[doc(hidden)]
    pub fn run_hook(self, hook: impl FnOnce(&mut A, &mut crate::actor::context::Context<A>) + Send + 'static) {
        self.address.send_request(Hook(hook));
    }
}
