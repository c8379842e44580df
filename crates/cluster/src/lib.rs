//! A cluster of theaters: the ordered views, the leases of the members, the owners of the slots, and the virtual actors.
//!
//! [`Cluster::join`] makes a theater a member. [`Cluster::register`] and [`Cluster::actor`] give it virtual actors. The folders:
//!
//! - `driver`: the actor that runs a theater's part in the membership, and the handle to it.
//! - `membership`: [`Membership`], a pure state machine without input, output, clock or thread. A host passes it results and messages by
//!   [`Membership::step`] and carries out the [`Effect`]s.
//!
//! - `virtual_actors`: actors under keys, which the owners of the slots activate.
//!
//! The only shared state is one [`View`], in a ledger under one key.

#![forbid(unsafe_code)]

mod driver;
mod membership;
mod view;
mod virtual_actors;

#[cfg(test)]
mod explored;

pub use driver::cluster::Cluster;
pub use driver::errors::JoinError;
pub use driver::options::ClusterOptions;
pub use driver::requests::{Activated, Leave};
pub use driver::state::ClusterState;
pub use membership::{
    Config, ConfigError, Effect, End, Input, Membership, Message, Outcome, ReadError, RequestId, Stored, Time,
};
pub use view::{ANCESTORS_MAX, Accusation, Holder, Member, MemberId, SLOTS_MAX, Slot, Status, Timing, View, ViewError};
pub use virtual_actors::{
    Activation, Passivation, PassivationReason, RegisterError, Virtual, VirtualActor, VirtualMessage, VirtualOptions,
};

/// The parts that [`virtual_messages!`] uses.
#[doc(hidden)]
pub mod wire {
    pub use playhouse_actor::wire::submit;

    pub use crate::virtual_actors::{Call, Route, entry};
}
