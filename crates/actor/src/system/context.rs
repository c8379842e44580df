//! The system of an actor and of a group: how an actor reaches its system, and how groups are made in one.

use playhouse_executor::with_current_system;

use crate::actor::context::Context;
use crate::actor::group::Group;
use crate::actor::of_system::migration_host_of;
use crate::actor::{Actor, ActorId};
use crate::system::System;

impl<A: Actor> Context<A> {
    /// Returns the system of this actor.
    pub fn system(&self) -> System {
        with_current_system(|system| System::of(system.expect("a handler runs on a worker")))
    }

    /// Returns the group of this actor: actors started in it share this actor's stage, and are members of its group.
    ///
    /// An actor that was started in no group is a member of none. The returned group is then only its stage, and actors
    /// started in it migrate alone.
    ///
    /// The thread of a [dedicated](crate::Placement::Dedicated) actor takes no other actor. Its group therefore shares
    /// one of the common stages, the same at each call.
    pub fn group(&self) -> Group {
        // The stages of dedicated actors are numbered behind the common ones.
        let (system, address) = (self.system(), self.cx.address().raw());
        let stage = usize::from(address.stage()) % system.stages();
        Group::around(ActorId(address), stage as u16, &system)
    }
}

impl Group {
    /// Makes a new group. Groups are spread over the stages in turn.
    pub fn new(system: &System) -> Group {
        let name = migration_host_of(system.core()).and_then(|migration_host| migration_host.new_group());
        Group { stage: system.core().next_stage(), name }
    }

    /// Returns the group around an actor on this stage.
    fn around(actor: ActorId, stage: u16, system: &System) -> Group {
        Group {
            stage,
            name: migration_host_of(system.core()).and_then(|migration_host| migration_host.group_of(actor)),
        }
    }
}
