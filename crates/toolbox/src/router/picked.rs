//! A member that was chosen, and its load.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use playhouse_actor::{Actor, ActorRef};

/// A member that a router has chosen: used like its reference, in the same statement or for as long as it is needed.
///
/// Under [`Routing::LeastLoaded`], the member counts as loaded until this is dropped and what was sent to it before is handled.
#[must_use = "nothing is sent by picking a member"]
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

/// One of the things that load a member.
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
