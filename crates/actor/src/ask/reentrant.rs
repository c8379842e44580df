//! Handlers whose actors handle other messages while they await: [`Reply::send_when_ready`].
//!
//! An actor of its own, a [`Waiter`], awaits the future of the answer, and the request is forwarded to it. Every rule
//! for requests therefore holds for this one: deadlines, requests that are taken back, cycles of asks, the end of the
//! asker.

use crate::actor::Actor;
use crate::actor::context::Context;
use crate::actor::reference::ActorRef;
use crate::answer::error::AskError;
use crate::ask::reply::Reply;
use crate::message::{AsyncHandler, Message};

/// An actor that awaits one future. Its spawner drains it behind the request, because the request may be taken back
/// before it is begun.
#[doc(hidden)]
#[derive(Debug)]
pub struct Waiter;

#[diagnostic::do_not_recommend]
impl Actor for Waiter {}

/// The message with the future to await.
#[doc(hidden)]
#[derive(Debug)]
pub struct Await<F>(pub F);

impl<F: Future<Output: Send + 'static> + Send + 'static> Message for Await<F> {
    type Reply = F::Output;
}

impl<F: Future<Output: Send + 'static> + Send + 'static> AsyncHandler<Await<F>> for Waiter {
    async fn handle(&mut self, Await(future): Await<F>, _: &mut Context<Self>) -> F::Output {
        future.await
    }
}

/// The waiters of one actor. Dropping this ends them.
#[derive(Default)]
pub(crate) struct Waiters(Vec<ActorRef<Waiter>>);

/// The state of a cell with the actor's waiters.
pub(crate) trait HasWaiters {
    fn waiters(&mut self) -> &mut Waiters;
}

impl Waiters {
    fn add(&mut self, waiter: ActorRef<Waiter>) {
        if self.0.len() == self.0.capacity() {
            self.0.retain(|waiter| !waiter.is_stopped());
            // Reserves room for as many waiters again as are left. An addition therefore takes constant time on
            // average.
            self.0.reserve(self.0.len().max(4));
        }
        self.0.push(waiter);
    }

    /// Lets the waiters continue, because the actor stops or migrates.
    pub(crate) fn let_go(&mut self) {
        self.0.clear();
    }
}

impl Drop for Waiters {
    fn drop(&mut self) {
        for waiter in self.0.drain(..) {
            waiter.kill();
        }
    }
}

impl<T: Send + 'static> Reply<T> {
    /// Gives the answer when the future `answer` is ready. The actor handles other messages until then. A method with
    /// `#[message(reentrant)]` does the same.
    ///
    /// The future owns all that it uses, and does not see the actor's state. To change the state, the future sends the
    /// actor a message, as in `this.ask(..).await` with `this` from [`Context::this`]. The future is awaited to its end
    /// even if no asker waits for the answer any more, unless the asker has given up before the future was begun.
    ///
    /// A panic in the future ends the ask with [`AskError::Panicked`], and is no crash of this actor. If this actor is
    /// killed, restarted, or ends by a crash, the future is dropped, and the ask ends with [`AskError::Stopped`].
    ///
    /// If the actor stops, resumes after a crash ([`Directive::Resume`](crate::Directive::Resume)), or migrates to
    /// another theater, the future continues in the theater that began it. If [`Context::fail`] was called before, the
    /// future is not begun, and the ask ends with `AskError::Panicked`.
    ///
    /// An actor of its own awaits the future, beside this one: on this actor's worker, or on another one for a
    /// dedicated actor. Reports of crashes, slow handlers and cycles call that actor `Waiter`, and it counts among the
    /// actors of the system.
    ///
    /// The number of such requests under way is unbounded, because a [bounded mailbox](crate::Mailbox) counts messages
    /// that wait. A guard can count them, if a bound is needed.
    ///
    /// An asker that awaits the answer in a handler waits for the future, and the future waits for the actors that it asks. Such cycles are found as after a
    /// [`forward`](Reply::forward).
    ///
    /// ```
    /// # use playhouse_actor::*;
    /// use std::time::Duration;
    ///
    /// struct Oven {
    ///     begun: u32,
    /// }
    /// impl Actor for Oven {}
    ///
    /// struct Bake(Duration);
    /// impl Message for Bake {
    ///     type Reply = &'static str;
    /// }
    /// struct Begun;
    /// impl Message for Begun {
    ///     type Reply = u32;
    /// }
    ///
    /// impl DeferredHandler<Bake> for Oven {
    ///     fn handle(&mut self, Bake(time): Bake, reply: Reply<&'static str>, ctx: &mut Context<Self>) {
    ///         self.begun += 1;
    ///         let sleep = ctx.sleep(time);
    ///         reply.send_when_ready(ctx, async move {
    ///             sleep.await;
    ///             "bread"
    ///         });
    ///     }
    /// }
    /// impl Handler<Begun> for Oven {
    ///     fn handle(&mut self, _: Begun, _: &mut Context<Self>) -> u32 {
    ///         self.begun
    ///     }
    /// }
    ///
    /// let system = System::builder().simulated(1).start()?;
    /// let oven = system.spawn(Oven { begun: 0 });
    /// oven.tell(Bake(Duration::from_secs(1_200)));
    /// assert_eq!(oven.ask(Bake(Duration::from_secs(600))).wait()?, "bread");
    /// assert_eq!((oven.ask(Begun).wait()?, system.now()), (2, Duration::from_secs(600)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn send_when_ready<A: Actor>(self, ctx: &mut Context<A>, answer: impl Future<Output = T> + Send + 'static) {
        if ctx.has_failed() {
            // A handler that has called `fail` has no answer, whatever it returns.
            return self.fail(AskError::Panicked);
        }
        let waiter = ctx.spawn(Waiter);
        ctx.add_waiter(waiter);
        self.forward(waiter, Await(answer));
        waiter.drain();
    }
}

impl<A: Actor> Context<A> {
    fn add_waiter(&mut self, waiter: ActorRef<Waiter>) {
        self.cx.with_extra(|extra| extra.waiters().add(waiter));
    }
}
