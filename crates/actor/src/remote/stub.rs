//! Stubs of remote actors.
//!
//! A stub is a cell without a state (see `stub.rs` of the executor). Its extra part holds a [`Forwarder`], which knows
//! the actor's location.

use std::sync::Arc;

use playhouse_executor::SystemCore;

use crate::actor::reference::ActorRef;
use crate::message::forward::{Forwarder, forwarding};
use crate::remote::registry::Remote;

/// The stage of a stub.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StubPlacement {
    /// A stage of a link. It may be any stage, if the actor can migrate into this theater.
    Link(u16),
    /// The stage of the actor's group.
    Group(u16),
}

/// Makes a stub for a remote `A`.
pub fn spawn_stub<A: Remote>(
    system: &SystemCore,
    stub_placement: StubPlacement,
    forwarder: Arc<dyn Forwarder>,
) -> ActorRef<A> {
    let stage = match stub_placement {
        StubPlacement::Link(_) if A::MOBILE => system.next_stage(),
        StubPlacement::Link(stage) | StubPlacement::Group(stage) => stage,
    };
    ActorRef::new(system.spawn_away(stage, forwarding(forwarder), None))
}
