//! The envelopes that actors' messages travel in.

use playhouse_executor::{AsyncEnvelope, Cx, Envelope, Undelivered};

use crate::actor::{Actor, Down, Life, dead_letter};
use crate::actor_ref::ActorRef;
use crate::ask::{AskError, ReplyTo};
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
        self.reply.send(Ok(answer));
        ctx.into_cx()
    }

    fn bounce(self, why: Undelivered) {
        self.reply.send(Err(AskError::undelivered(why)));
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
                self.reply.send(Ok(answer));
            }
            ctx.into_cx()
        })
    }

    fn bounce(self, why: Undelivered) {
        self.reply.send(Err(AskError::undelivered(why)));
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

/// A timer fired: the actor posts the message to itself, unless it has cancelled the timer meanwhile.
pub(crate) struct Fired<F> {
    pub(crate) id: u64,
    pub(crate) once: bool,
    pub(crate) post: F,
}

impl<A: Actor, F: FnOnce(ActorRef<A>) + Send + 'static> Envelope<Life<A>> for Fired<F> {
    fn run(self, _: &mut Life<A>, mut cx: Cx<Life<A>>) -> Cx<Life<A>> {
        let timers = &mut cx.extra().timers;
        let live = if self.once { timers.remove(&self.id).is_some() } else { timers.contains_key(&self.id) };
        if live {
            (self.post)(ActorRef::new(cx.address()));
        }
        cx
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
