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
use crate::ask::reply::{DeferredHandler, Reply};
use crate::message::mail::{AskMail, AsyncAskMail, AsyncTell, Tell};
use crate::message::{AsyncHandler, Guard, HandledBy, Handler, Message, forward};

/// The owner of messages that come back.
pub trait TakeBack<M: Message>: Send + 'static {
    /// Returns whether the receiver may handle a message now. A message that it may not handle comes back.
    fn may_run(&self) -> bool;

    /// Notes that the handler of a message begins or ends.
    fn set_running(&self, is_running: bool);

    /// Takes a message back. No handler has begun it.
    fn take_back(self, message: M, reply: Reply<M::Reply>);
}

/// A message that comes back if its receiver does not handle it. `Mode`: the way in which the receiver handles `M`.
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

impl<M: Message, B: TakeBack<M>, Mode: 'static> Message for Returning<M, B, Mode> {
    type Reply = M::Reply;

    fn bytes(&self) -> usize {
        self.message.bytes()
    }
}

/// The receiver handles the message inside a [`Returning`] one: see [`HandledBy`].
#[derive(Debug)]
pub struct ReturningMode<Mode>(PhantomData<fn(Mode)>);

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
    message: M,
    back: B,
    reply: Option<ReplyTo<M::Reply>>,
    /// Whether the owner has refused it.
    is_refused: Cell<bool>,
}

impl<M: Message, B: TakeBack<M>> ReturningMail<M, B> {
    fn new(message: M, back: B, reply: Option<ReplyTo<M::Reply>>) -> Self {
        ReturningMail { message, back, reply, is_refused: Cell::new(false) }
    }

    #[inline]
    fn admission(&self, guard: impl FnOnce(&M) -> Guard) -> Admission {
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
    fn bounce<A: Actor>(self, why: Undelivered) {
        let ReturningMail { message, back, reply, is_refused } = self;
        if is_refused.get() || matches!(why, Undelivered::Stopped) {
            // The owner has the request from now on, as a handler would. It may therefore forward it.
            if reply.as_ref().is_none_or(|reply| reply.begin().is_some()) {
                back.take_back(message, Reply { to: reply });
            }
            return;
        }
        match reply {
            Some(reply) => reply.send(Err(AskError::undelivered(why))),
            None => dead_letter::<A, M>(why),
        }
    }

    fn send_on<A: Actor>(self, cx: &mut AwayCx<ActorState<A>>) {
        match self.reply {
            Some(reply) => forward::ask_on::<A, M>(&self.message, reply, cx),
            None => forward::send_on::<A, M>(&self.message, cx),
        }
    }
}

/// Notes that a handler runs, until it is dropped.
struct Running<M: Message, B: TakeBack<M>>(B, PhantomData<fn(M)>);

impl<M: Message, B: TakeBack<M>> Running<M, B> {
    fn begin(back: B) -> Self {
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
/// The envelope for a handler that may answer later.
#[repr(transparent)]
struct InDeferred<T>(T);

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

pub(crate) fn post_deferred<A: DeferredHandler<M>, M: Message, B: TakeBack<M>>(
    mail: ReturningMail<M, B>,
    to: Address<ActorState<A>>,
    posting: Posting<'_>,
) {
    match posting {
        Posting::Tell => to.send(InDeferred(mail)),
        // A request always becomes a message, as in `reply.rs`.
        Posting::Ask(now) => {
            if now.is_none_or(|may_send| may_send()) {
                to.send_request(InDeferred(mail));
            }
        }
        Posting::Unwaiting => to.send_request(InDeferred(mail)),
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

impl<A: DeferredHandler<M>, M: Message, B: TakeBack<M>> Envelope<ActorState<A>> for InDeferred<ReturningMail<M, B>> {
    fn run(self, state: &mut ActorState<A>, cx: &mut Cx<ActorState<A>>) {
        let ReturningMail { message, reply, back, .. } = self.0;
        let _running = Running::<M, B>::begin(back);
        if reply.as_ref().is_none_or(|reply| reply.begin().is_some()) {
            state.actor.handle(message, Reply { to: reply }, crate::actor::context::Context::of(cx));
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

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::{Arc, mpsc};

    use super::*;
    use crate::actor::context::Context;
    use crate::actor::reference::ActorRef;
    use crate::ask::reply::DeferredMode;
    use crate::message::{AsyncMode, SyncMode};
    use crate::system::System;

    struct Counter(u64);
    impl Actor for Counter {}

    struct Add(u64);
    impl Message for Add {
        type Reply = u64;
    }
    struct AddLater(u64);
    impl Message for AddLater {
        type Reply = u64;
    }
    struct AddWith(u64);
    impl Message for AddWith {
        type Reply = u64;
    }

    impl Handler<Add> for Counter {
        fn handle(&mut self, Add(by): Add, _: &mut Context<Self>) -> u64 {
            self.0 += by;
            self.0
        }
    }
    impl AsyncHandler<AddLater> for Counter {
        async fn handle(&mut self, AddLater(by): AddLater, _: &mut Context<Self>) -> u64 {
            self.0 += by;
            self.0
        }
    }
    impl DeferredHandler<AddWith> for Counter {
        fn handle(&mut self, AddWith(by): AddWith, reply: Reply<u64>, _: &mut Context<Self>) {
            self.0 += by;
            reply.send(self.0);
        }
    }

    /// Passes the messages that come back to the test, or forwards them as `Add` to another counter.
    #[derive(Clone)]
    struct Owner {
        is_open: Arc<AtomicBool>,
        is_running: Arc<AtomicBool>,
        back: mpsc::Sender<(u64, Reply<u64>)>,
        next: Option<ActorRef<Counter>>,
    }

    impl<M: Message<Reply = u64> + Into<u64>> TakeBack<M> for Owner {
        fn may_run(&self) -> bool {
            self.is_open.load(Ordering::Relaxed)
        }

        fn set_running(&self, is_running: bool) {
            self.is_running.store(is_running, Ordering::Relaxed);
        }

        fn take_back(self, message: M, reply: Reply<u64>) {
            match self.next {
                Some(next) => reply.forward(next, Add(message.into())),
                None => self.back.send((message.into(), reply)).unwrap(),
            }
        }
    }

    impl From<Add> for u64 {
        fn from(Add(by): Add) -> u64 {
            by
        }
    }
    impl From<AddLater> for u64 {
        fn from(AddLater(by): AddLater) -> u64 {
            by
        }
    }
    impl From<AddWith> for u64 {
        fn from(AddWith(by): AddWith) -> u64 {
            by
        }
    }

    fn check<M, Mode>(make: fn(u64) -> M)
    where
        M: HandledBy<Counter, Mode> + Message<Reply = u64> + Into<u64>,
        Mode: 'static,
    {
        let system = System::builder().simulated(1).start().unwrap();
        let (back, returned) = mpsc::channel();
        let owner = Owner { is_open: Arc::new(AtomicBool::new(true)), is_running: Arc::default(), back, next: None };
        let counter = system.spawn(Counter(0));
        let returning = |by| Returning::<M, Owner, Mode>::new(make(by), owner.clone());
        assert_eq!(counter.ask::<_, ReturningMode<Mode>>(returning(1)).wait(), Ok(1));
        counter.tell::<_, ReturningMode<Mode>>(returning(2));
        assert_eq!(counter.ask::<_, ReturningMode<Mode>>(returning(0)).wait(), Ok(3));
        assert!(returned.try_recv().is_err());

        // The receiver may not handle it when its turn has come.
        counter.tell::<_, ReturningMode<Mode>>(returning(4));
        owner.is_open.store(false, Ordering::Relaxed);
        system.run_until_idle();
        let (by, reply) = returned.try_recv().unwrap();
        assert_eq!((by, reply.is_awaited()), (4, false));
        owner.is_open.store(true, Ordering::Relaxed);
        assert_eq!(counter.ask::<_, ReturningMode<Mode>>(returning(0)).wait(), Ok(3), "it was not handled");

        // The receiver has ended, before it was sent and afterwards.
        counter.tell::<_, ReturningMode<Mode>>(returning(5));
        counter.stop();
        system.run_until_idle();
        let (answer, answered) = mpsc::channel();
        let ask = counter.ask::<_, ReturningMode<Mode>>(returning(6));
        let sent = |_| ReplyTo::then(Box::new(move |result| answer.send(result).unwrap()));
        ask.send_for(sent);
        system.run_until_idle();
        let (five, six) = (returned.try_recv().unwrap(), returned.try_recv().unwrap());
        assert_eq!((five.0, six.0, six.1.is_awaited()), (5, 6, true));
        // The owner has the right to answer.
        six.1.send(60);
        assert_eq!(answered.try_recv(), Ok(Ok(60)));
        assert!(!owner.is_running.load(Ordering::Relaxed));

        // The owner forwards the request of a thread that waits.
        let next = Owner { next: Some(system.spawn(Counter(100))), ..owner.clone() };
        let returning = |by| Returning::<M, Owner, Mode>::new(make(by), next.clone());
        assert_eq!(counter.ask::<_, ReturningMode<Mode>>(returning(7)).wait(), Ok(107));
        system.shutdown().unwrap();
    }

    #[test]
    fn a_message_that_is_not_handled_comes_back_to_its_owner() {
        check::<Add, SyncMode>(Add);
        check::<AddLater, AsyncMode>(AddLater);
        check::<AddWith, DeferredMode>(AddWith);
    }
}
