//! A chosen member, and its load.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use playhouse_actor::{Actor, ActorRef};

/// A chosen member, used like its reference.
///
/// Under [`Routing::LeastLoaded`](super::Routing::LeastLoaded), the pick counts as load until it is dropped and the
/// messages sent before that are handled.
///
/// # Examples
///
/// ```
/// use playhouse::prelude::*;
/// use playhouse::router::{Pool, Routing};
///
/// struct Printer;
///
/// #[actor]
/// impl Printer {
///     #[message]
///     fn print(&self, page: u32) {}
/// }
///
/// let system = System::start()?;
/// let printers = Pool::start(&system, Routing::LeastLoaded, 2, || Printer);
/// let printer = printers.pick()?; // both pages go to one printer
/// printer.tell(Print(1));
/// printer.tell(Print(2));
/// # drop(printer);
/// # system.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "picking a member sends nothing"]
pub struct Picked<A: Actor> {
    pub(super) actor: ActorRef<A>,
    pub(super) load: Option<Load>,
}

impl<A: Actor> Deref for Picked<A> {
    type Target = ActorRef<A>;

    fn deref(&self) -> &ActorRef<A> {
        &self.actor
    }
}

impl<A: Actor> fmt::Debug for Picked<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Picked({:?})", self.actor)
    }
}

impl<A: Actor> Drop for Picked<A> {
    fn drop(&mut self) {
        if let Some(load) = self.load.take() {
            self.actor.mark(load);
        }
    }
}

/// One unit of a member's load, until it is dropped.
pub(super) struct Load(pub(super) Arc<AtomicUsize>);

impl Load {
    pub(super) fn on(load: &Arc<AtomicUsize>) -> Load {
        load.fetch_add(1, Ordering::Relaxed);
        Load(Arc::clone(load))
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
