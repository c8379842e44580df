//! Pools.

use std::fmt;
use std::ops::Deref;

use playhouse_actor::{Actor, System};

use super::{Router, Routing};

/// A [`Router`] that starts its members, spread over the stages, and replaces those that end.
///
/// A member that ends, crashes too, is replaced by one with a new state: at once, or where several end within two seconds
/// after a pause that grows from 10 ms to 1 s. What was queued for it is dead letters. Where members are to keep their mailbox
/// over a crash, have them started by a [`Supervisor`](playhouse_actor::Supervisor), and add them to a router.
///
/// When the last handle to its router is dropped, members are drained. (A member that has a handle in its state keeps it.)
pub struct Pool<A: Actor> {
    router: Router<A>,
}

impl<A: Actor> Pool<A> {
    /// Starts `size` members that `factory` makes.
    ///
    /// # Panics
    /// If the system was shut down, or `factory` panics.
    pub fn start(
        system: &System,
        routing: Routing,
        size: usize,
        factory: impl Fn() -> A + Send + Sync + 'static,
    ) -> Pool<A> {
        let router = Router::build(system, routing, Some(Box::new(factory)));
        router.state.resize(size);
        Pool { router }
    }

    /// Changes how many members there are: starts some, or takes out those that came last and drains them.
    ///
    /// # Panics
    /// If the factory panics.
    pub fn resize(&self, size: usize) {
        self.router.state.resize(size);
    }
}

impl<A: Actor> Deref for Pool<A> {
    type Target = Router<A>;

    fn deref(&self) -> &Router<A> {
        &self.router
    }
}

impl<A: Actor> Clone for Pool<A> {
    fn clone(&self) -> Self {
        Pool { router: self.router.clone() }
    }
}

impl<A: Actor> fmt::Debug for Pool<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.router.fmt(f)
    }
}
