//! How a handler that is not `async` has a future awaited.

use std::fmt;

use playhouse_actor::{Actor, Await, Context, Waiter};

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
    await_in_child(ctx, future, |this, outcome, ctx| match outcome {
        Some(outcome) => then(this, outcome, ctx),
        None => ctx.fail_without_place(Panicked),
    });
}

/// The same, but only `settle` is called where the actor was restarted, or has been away, meanwhile: see [`Context::incarnation`].
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

/// None: the future has panicked.
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
