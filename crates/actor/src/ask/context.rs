//! The asks of a context, which do not block their actor.

use std::marker::PhantomData;
use std::time::Duration;

use playhouse_executor::with_current_system;

use crate::actor::Actor;
use crate::actor::context::Context;
use crate::answer::error::AskError;
use crate::answer::reply_to::{ReplyTo, TakeAnswer};
use crate::ask::Ask;
use crate::ask::recipient::AskTarget;
use crate::message::mail::{Continuation, Pipe};
use crate::message::{HandledBy, Message};

impl<A: Actor> Context<A> {
    /// Sends `message` to `to` when the returned [`ContextAsk`] is completed by `then`, `pipe_to_self` or `.await`.
    ///
    /// With `then` and `pipe_to_self` the answer arrives as a message of its own. This actor handles other messages
    /// until then.
    #[doc(alias("call", "gen_server_call", "request", "send"))]
    pub fn ask<M: Message, Mode>(&mut self, to: impl AskTarget<M, Mode>, message: M) -> ContextAsk<'_, A, M> {
        ContextAsk { ctx: self, ask: Ask::new(to, message) }
    }

    /// Returns the answer for the asker, when the handler has returned `answer`.
    #[inline]
    pub(crate) fn unless_failed<R>(&mut self, answer: R) -> Result<R, AskError> {
        if self.cx.has_failed() { Err(AskError::Panicked) } else { Ok(answer) }
    }
}

/// A request of an actor that is not sent yet: choose how the answer is handled.
///
/// An async handler may await it: `ctx.ask(to, message).await` is `to.ask(message).await`. The actor handles no other
/// messages until the answer comes.
///
/// # Examples
///
/// ```
/// # use playhouse_actor::*;
/// # use std::{sync::mpsc, time::Duration};
/// # struct Price(&'static str);
/// # impl Message for Price { type Reply = u32; }
/// # struct Shop;
/// # impl Actor for Shop {}
/// # impl Handler<Price> for Shop { fn handle(&mut self, _: Price, _: &mut Context<Self>) -> u32 { 3 } }
/// struct Customer {
///     shop: ActorRef<Shop>,
///     paid: mpsc::Sender<u32>,
/// }
///
/// impl Actor for Customer {
///     fn started(&mut self, ctx: &mut Context<Self>) {
///         ctx.ask(self.shop, Price("apple")).within(Duration::from_secs(1)).then(|this, answer, _| {
///             this.paid.send(answer.unwrap_or(0)).unwrap();
///         });
///     }
/// }
/// # let system = System::start()?;
/// # let (paid, received) = mpsc::channel();
/// # system.spawn(Customer { shop: system.spawn(Shop), paid });
/// # assert_eq!(received.recv()?, 3);
/// # system.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "nothing is sent before `then`, `pipe_to_self` or `.await`"]
pub struct ContextAsk<'a, A: Actor, M: Message> {
    ctx: &'a mut Context<A>,
    /// The request, not sent yet.
    ask: Ask<M>,
}

impl<A: Actor, M: Message> IntoFuture for ContextAsk<'_, A, M> {
    type Output = Result<M::Reply, AskError>;
    type IntoFuture = Ask<M>;

    fn into_future(self) -> Ask<M> {
        self.ask
    }
}

/// A trait that no type implements: the bound of [`ContextAsk::wait`].
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "an actor does not wait for an answer: it would hold its worker",
    label = "a handler would block here",
    note = "in a handler, write `.then(|this, answer, ctx| ..)` or `.pipe_to_self(..)`; in an `async` handler, `.await`"
)]
pub trait MayBlock {}

impl<A: Actor, M: Message> ContextAsk<'_, A, M> {
    /// Sets a deadline: the answer is [`AskError::Deadline`] if it takes longer. The resolution is 1 ms.
    pub fn within(mut self, deadline: Duration) -> Self {
        self.ask = self.ask.within(deadline);
        self
    }

    /// Cannot be called: the compiler's error says what to write.
    #[doc(hidden)]
    pub fn wait(self) -> Result<M::Reply, AskError>
    where
        Self: MayBlock,
    {
        unreachable!("no type may block")
    }

    /// Sends the request, and calls `then` with the answer as a message of this actor.
    ///
    /// `then` is called also after a restart of this actor ([`Context::incarnation`] tells), and not at all after its
    /// end.
    ///
    /// A closure cannot follow an actor to another theater. If the actor has migrated before the answer comes, the
    /// answer is a dead letter, and `then` is not called. Mobile actors use [`pipe_to_self`](ContextAsk::pipe_to_self).
    pub fn then<F>(self, then: F)
    where
        F: FnOnce(&mut A, Result<M::Reply, AskError>, &mut Context<A>) + Send + 'static,
    {
        let asker = self.ctx.cx.address();
        self.send(Box::new(Continuation { asker, then, request: PhantomData::<fn(M)> }));
    }

    /// Sends the request, and sends this actor the message that `message` makes of the answer.
    ///
    /// The new message queues behind earlier mail, like any other. It reaches the actor in any incarnation and any
    /// theater.
    ///
    /// `message` is called once, in the theater that asked. It is dropped if the actor has ended.
    ///
    /// The new message needs a wire form if the actor may be in another theater. If the actor has migrated and the
    /// asking theater ends before the answer comes, the answer is a dead letter.
    ///
    /// # Panics
    /// If `message` panics, the actor crashes. If the actor is in another theater by then, nothing is sent and the
    /// panic is reported.
    ///
    /// # Examples
    ///
    /// ```
    /// # use playhouse_actor::*;
    /// # struct Peel(u32);
    /// # impl Message for Peel { type Reply = u32; }
    /// # struct Helper;
    /// # impl Actor for Helper {}
    /// # impl Handler<Peel> for Helper {
    /// #     fn handle(&mut self, peel: Peel, _: &mut Context<Self>) -> u32 { peel.0 }
    /// # }
    /// struct Peeled(Result<u32, AskError>);
    /// # impl Message for Peeled { type Reply = (); }
    /// # struct Chef { helper: ActorRef<Helper>, peeled: u32 }
    /// # impl Actor for Chef {}
    /// impl Handler<Peel> for Chef {
    ///     fn handle(&mut self, peel: Peel, ctx: &mut Context<Self>) -> u32 {
    ///         ctx.ask(self.helper, peel).pipe_to_self(Peeled);
    ///         self.peeled
    ///     }
    /// }
    /// impl Handler<Peeled> for Chef {
    ///     fn handle(&mut self, peeled: Peeled, _: &mut Context<Self>) {
    ///         self.peeled += peeled.0.unwrap_or(0);
    ///     }
    /// }
    /// # let system = System::start().unwrap();
    /// # let helper = system.spawn(Helper);
    /// let chef = system.spawn(Chef { helper, peeled: 0 });
    /// chef.tell(Peel(4));
    /// system.run_until_idle();
    /// assert_eq!(chef.ask(Peel(1)).wait(), Ok(4));
    /// # system.shutdown().unwrap();
    /// ```
    #[doc(alias("pipe_to", "pipe"))]
    pub fn pipe_to_self<N, Mode>(self, message: impl FnOnce(Result<M::Reply, AskError>) -> N + Send + 'static)
    where
        N: HandledBy<A, Mode>,
    {
        let asker = self.ctx.this();
        let tell = move |answer| asker.tell(message(answer));
        self.send(Box::new(Pipe { asker: asker.address, tell, request: PhantomData::<fn(M)> }));
    }

    fn send(self, back: Box<dyn TakeAnswer<M::Reply>>) {
        self.ask.send_for(|within| match within {
            None => ReplyTo::then(back),
            Some(within) => {
                with_current_system(|system| ReplyTo::timed(back, within, system.expect("a handler runs on a worker")))
            }
        });
    }
}
