//! The envelopes that actors' messages travel in.

use std::marker::PhantomData;

use playhouse_executor::{AsyncEnvelope, AwayCx, Cx, Envelope, Undelivered};

use crate::actor::{Actor, Down, Life, dead_letter};
use crate::ask::{AskError, ReplyTo};
use crate::away;
use crate::context::Context;
use crate::message::{AsyncHandler, Handler, Message};
use crate::waiting;

/// The first message of an actor.
pub(crate) struct Start;

impl<A: Actor> Envelope<Life<A>> for Start {
    #[inline(always)]
    fn run(self, life: &mut Life<A>, cx: Cx<Life<A>>) -> Cx<Life<A>> {
        let mut ctx = Context::new(cx);
        life.actor.started(&mut ctx);
        ctx.into_cx()
    }

    fn bounce(self, _: Undelivered) {}
}

/// A message without an answer.
#[repr(transparent)]
pub(crate) struct Tell<M>(pub(crate) M);

impl<A: Handler<M>, M: Message> Envelope<Life<A>> for Tell<M> {
    #[inline(always)]
    fn run(self, life: &mut Life<A>, cx: Cx<Life<A>>) -> Cx<Life<A>> {
        let mut ctx = Context::new(cx);
        let _unasked = life.actor.handle(self.0, &mut ctx);
        ctx.into_cx()
    }

    fn bounce(self, why: Undelivered) {
        dead_letter::<A, M>(why);
    }

    fn send_on(self, cx: &mut AwayCx<Life<A>>) {
        away::send_on::<A, M>(&self.0, cx);
    }
}

/// A message without an answer, for a handler that may wait.
#[repr(transparent)]
pub(crate) struct AsyncTell<M>(pub(crate) M);

impl<A: AsyncHandler<M>, M: Message> AsyncEnvelope<Life<A>> for AsyncTell<M> {
    fn run<'a>(self, life: &'a mut Life<A>, cx: Cx<Life<A>>) -> impl Future<Output = Cx<Life<A>>> + Send + 'a {
        let mut ctx = Context::new(cx);
        waiting::as_actor(ctx.id(), async move {
            let _unasked = life.actor.handle(self.0, &mut ctx).await;
            ctx.into_cx()
        })
    }

    fn bounce(self, why: Undelivered) {
        dead_letter::<A, M>(why);
    }

    fn send_on(self, cx: &mut AwayCx<Life<A>>) {
        away::send_on::<A, M>(&self.0, cx);
    }
}

/// A message with an answer.
pub(crate) struct AskMail<M: Message> {
    pub(crate) message: M,
    pub(crate) reply: ReplyTo<M::Reply>,
}

impl<A: Handler<M>, M: Message> Envelope<Life<A>> for AskMail<M> {
    fn run(self, life: &mut Life<A>, cx: Cx<Life<A>>) -> Cx<Life<A>> {
        if !self.reply.begin() {
            return cx;
        }
        let mut ctx = Context::new(cx);
        let answer = life.actor.handle(self.message, &mut ctx);
        self.reply.send(ctx.unless_failed(answer));
        ctx.into_cx()
    }

    fn bounce(self, why: Undelivered) {
        self.reply.send(Err(AskError::undelivered(why)));
    }

    fn send_on(self, cx: &mut AwayCx<Life<A>>) {
        away::ask_on::<A, M>(&self.message, self.reply, cx);
    }
}

/// A message with an answer, for a handler that may wait.
pub(crate) struct AsyncAskMail<M: Message> {
    pub(crate) message: M,
    pub(crate) reply: ReplyTo<M::Reply>,
}

impl<A: AsyncHandler<M>, M: Message> AsyncEnvelope<Life<A>> for AsyncAskMail<M> {
    fn run<'a>(self, life: &'a mut Life<A>, cx: Cx<Life<A>>) -> impl Future<Output = Cx<Life<A>>> + Send + 'a {
        let mut ctx = Context::new(cx);
        waiting::as_actor(ctx.id(), async move {
            if self.reply.begin() {
                let answer = life.actor.handle(self.message, &mut ctx).await;
                self.reply.send(ctx.unless_failed(answer));
            }
            ctx.into_cx()
        })
    }

    fn bounce(self, why: Undelivered) {
        self.reply.send(Err(AskError::undelivered(why)));
    }

    fn send_on(self, cx: &mut AwayCx<Life<A>>) {
        away::ask_on::<A, M>(&self.message, self.reply, cx);
    }
}

/// The answer to `ctx.ask(..).then(f)`, on its way back with `f`.
pub(crate) struct Answer<F, R> {
    pub(crate) then: F,
    pub(crate) answer: Result<R, AskError>,
}

impl<A, F, R> Envelope<Life<A>> for Answer<F, R>
where
    A: Actor,
    R: Send + 'static,
    F: FnOnce(&mut A, Result<R, AskError>, &mut Context<A>) + Send + 'static,
{
    fn run(self, life: &mut Life<A>, cx: Cx<Life<A>>) -> Cx<Life<A>> {
        let mut ctx = Context::new(cx);
        (self.then)(&mut life.actor, self.answer, &mut ctx);
        ctx.into_cx()
    }

    fn bounce(self, _: Undelivered) {}
}

/// A timer fired: its message, unless the actor has cancelled the timer meanwhile.
pub(crate) struct Fired<M, F> {
    pub(crate) id: u64,
    pub(crate) once: bool,
    /// Makes the message. Called in the actor, so a panic in a `clone` is the actor's.
    pub(crate) message: F,
    pub(crate) of: PhantomData<fn() -> M>,
}

impl<M, F> Fired<M, F> {
    fn is_live<A: Actor>(&self, cx: &mut Cx<Life<A>>) -> bool {
        let timers = &mut cx.extra().timers;
        if self.once { timers.remove(&self.id).is_some() } else { timers.contains_key(&self.id) }
    }
}

impl<A: Handler<M>, M: Message, F: FnOnce() -> M + Send + 'static> Envelope<Life<A>> for Fired<M, F> {
    fn run(self, life: &mut Life<A>, mut cx: Cx<Life<A>>) -> Cx<Life<A>> {
        if self.is_live(&mut cx) { Tell((self.message)()).run(life, cx) } else { cx }
    }

    fn bounce(self, _: Undelivered) {}
}

/// As [`Fired`], for a handler that may wait.
#[repr(transparent)]
pub(crate) struct AsyncFired<M, F>(pub(crate) Fired<M, F>);

impl<A: AsyncHandler<M>, M: Message, F: FnOnce() -> M + Send + 'static> AsyncEnvelope<Life<A>> for AsyncFired<M, F> {
    fn run<'a>(self, life: &'a mut Life<A>, mut cx: Cx<Life<A>>) -> impl Future<Output = Cx<Life<A>>> + Send + 'a {
        let message = self.0.is_live(&mut cx).then(self.0.message);
        let mut ctx = Context::new(cx);
        waiting::as_actor(ctx.id(), async move {
            if let Some(message) = message {
                let _unasked = life.actor.handle(message, &mut ctx).await;
            }
            ctx.into_cx()
        })
    }

    fn bounce(self, _: Undelivered) {}
}

/// A watched actor has ended.
pub(crate) struct DownMail(pub(crate) Down);

impl<A: Actor> Envelope<Life<A>> for DownMail {
    fn run(self, life: &mut Life<A>, cx: Cx<Life<A>>) -> Cx<Life<A>> {
        let mut ctx = Context::new(cx);
        life.actor.terminated(self.0, &mut ctx);
        ctx.into_cx()
    }

    fn bounce(self, _: Undelivered) {}
}
