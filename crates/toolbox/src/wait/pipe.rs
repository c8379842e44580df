//! Awaiting a future for a handler that is not `async`.

use std::fmt;

use playhouse_actor::{Actor, Await, Context, Waiter};

#[derive(Debug)]
struct Panicked;

impl fmt::Display for Panicked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a future that the actor awaited has panicked")
    }
}

impl std::error::Error for Panicked {}

/// Awaits `future` in a child actor, and calls `then` with the output as a message of this actor. The call is omitted
/// if the actor has ended. A future that panics crashes this actor.
pub(crate) fn pipe<A: Actor, F>(
    ctx: &mut Context<A>,
    future: F,
    then: impl FnOnce(&mut A, F::Output, &mut Context<A>) + Send + 'static,
) where
    F: Future<Output: Send + 'static> + Send + 'static,
{
    await_in_child(ctx, future, |this, outcome, ctx| match outcome {
        Some(outcome) => then(this, outcome, ctx),
        None => ctx.fail_without_place(Panicked),
    });
}

/// Awaits `future` as [`pipe`] does, but calls `then` only in the incarnation that began it: see [`Context::incarnation`].
/// In a later incarnation only `settle` is called.
pub(crate) fn pipe_in_incarnation<A: Actor, F, R>(
    ctx: &mut Context<A>,
    future: F,
    settle: impl FnOnce(F::Output) -> R + Send + 'static,
    then: impl FnOnce(&mut A, R, &mut Context<A>) + Send + 'static,
) where
    F: Future<Output: Send + 'static> + Send + 'static,
{
    let life = ctx.incarnation();
    await_in_child(ctx, future, move |this, outcome, ctx| match outcome.map(settle) {
        _ if ctx.incarnation() != life => {}
        Some(outcome) => then(this, outcome, ctx),
        None => ctx.fail_without_place(Panicked),
    });
}

/// Calls `then` with the output, or with `None` if the future has panicked.
fn await_in_child<A: Actor, F>(
    ctx: &mut Context<A>,
    future: F,
    then: impl FnOnce(&mut A, Option<F::Output>, &mut Context<A>) + Send + 'static,
) where
    F: Future<Output: Send + 'static> + Send + 'static,
{
    let waiter = ctx.spawn(Waiter);
    ctx.ask(waiter, Await(future)).then(|this, outcome, ctx| then(this, outcome.ok(), ctx));
    waiter.drain();
}
