//! Routers that start their members.

use std::fmt;
use std::ops::Deref;

use playhouse_actor::{Actor, System};

use super::{Router, Routing};

/// A [`Router`] that starts its members, spreads them over the stages, and replaces those that end.
///
/// A member that ends or crashes is replaced by one with a new state. The replacement is started at once, or after a
/// pause from 10 ms to 1 s if several members end within 2 s. Messages that were queued for the ended member are dead
/// letters. To keep mailboxes over crashes, start members under a [`Supervisor`](playhouse_actor::Supervisor) and add
/// them to a router.
///
/// The members are drained when the last handle to the router is dropped. A member with a handle in its own state
/// keeps the pool alive.
///
/// # Examples
///
/// ```
/// use playhouse::prelude::*;
/// use playhouse::router::{Pool, Routing};
///
/// struct Worker;
///
/// #[actor]
/// impl Worker {
///     #[message]
///     fn double(&self, n: u64) -> u64 { 2 * n }
/// }
///
/// let system = System::start()?;
/// let pool = Pool::start(&system, Routing::RoundRobin, 2, || Worker);
/// pool.resize(3);
/// assert_eq!(pool.members().len(), 3);
/// assert_eq!(pool.pick()?.ask(Double(4)).wait()?, 8);
/// # system.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(alias = "PoolRouter")]
#[doc(alias = "ActorPool")]
#[doc(alias = "worker_pool")]
pub struct Pool<A: Actor> {
    router: Router<A>,
}

impl<A: Actor> Pool<A> {
    /// Starts `size` members that `factory` makes.
    ///
    /// # Panics
    /// The system was shut down, or `factory` panics.
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

    /// Changes the number of members. The pool starts new members, or removes and drains the youngest.
    ///
    /// # Panics
    /// The factory panics.
    #[doc(alias = "Resizer")]
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
