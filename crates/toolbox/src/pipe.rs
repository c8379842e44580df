//! How a handler that is not `async` has a future awaited.

use std::fmt;

use playhouse_actor::{Actor, AsyncHandler, Context, Message};

/// Awaits one future, and ends.
struct Bearer;

impl Actor for Bearer {}

struct Await<F>(F);

impl<F: Future<Output: Send + 'static> + Send + 'static> Message for Await<F> {
    type Reply = F::Output;
}

impl<F: Future<Output: Send + 'static> + Send + 'static> AsyncHandler<Await<F>> for Bearer {
    async fn handle(&mut self, Await(future): Await<F>, ctx: &mut Context<Self>) -> F::Output {
        ctx.stop();
        future.await
    }
}

#[derive(Debug)]
struct Panicked;

impl fmt::Display for Panicked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("what the actor waited for has panicked")
    }
}

impl std::error::Error for Panicked {}

/// Has `future` awaited by an actor of its own; `then` is called with the outcome as a message of this actor, or not at all if
/// it has ended. Where the future panics, this actor crashes.
pub(crate) fn pipe<A: Actor, F>(
    ctx: &mut Context<A>,
    future: F,
    then: impl FnOnce(&mut A, F::Output, &mut Context<A>) + Send + 'static,
) where
    F: Future<Output: Send + 'static> + Send + 'static,
{
    let bearer = ctx.spawn(Bearer);
    ctx.ask(bearer, Await(future)).then(|this, outcome, ctx| match outcome {
        Ok(outcome) => then(this, outcome, ctx),
        Err(_) => ctx.fail(Panicked),
    });
}

/// The same, but `then` is not called where the actor was restarted, or has been away, meanwhile: see [`Context::life`].
pub(crate) fn pipe_in_this_life<A: Actor, F>(
    ctx: &mut Context<A>,
    future: F,
    then: impl FnOnce(&mut A, F::Output, &mut Context<A>) + Send + 'static,
) where
    F: Future<Output: Send + 'static> + Send + 'static,
{
    let life = ctx.life();
    pipe(ctx, future, move |this, outcome, ctx| {
        if ctx.life() == life {
            then(this, outcome, ctx);
        }
    });
}
