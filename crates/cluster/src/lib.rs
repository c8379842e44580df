//! The membership of a cluster: the ordered views, the leases of the members, and the owners of the slots.
//!
//! [`Membership`] is a pure state machine without input, output, clock or thread. A host passes it results and messages by
//! [`Membership::step`] and carries out the [`Effect`]s. The only shared state is one [`View`], in a ledger under one key.

#![forbid(unsafe_code)]

mod membership;
mod view;

#[cfg(test)]
mod explored;

pub use membership::{
    Config, ConfigError, Effect, End, Input, Membership, Message, Outcome, ReadError, RequestId, Stored, Time,
};
pub use view::{ANCESTORS_MAX, Accusation, Holder, Member, MemberId, SLOTS_MAX, Slot, Status, Timing, View, ViewError};
