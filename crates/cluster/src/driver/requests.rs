//! The requests of programs to the actor of a member.

use playhouse_actor::{Message, Recipient};

use super::state::ClusterState;
use crate::view::MemberId;

/// A request that is answered when the member is active: [`Cluster::activated`](crate::Cluster::activated) sends it.
#[derive(Debug)]
#[non_exhaustive]
pub struct Activated;

impl Message for Activated {
    type Reply = MemberId;
}

/// A request to leave the cluster: [`Cluster::leave`](crate::Cluster::leave) sends it.
#[derive(Debug)]
#[non_exhaustive]
pub struct Leave;

impl Message for Leave {
    type Reply = ();
}

/// Sends the states of the cluster to an actor.
pub(super) struct Watch(pub(super) Recipient<ClusterState>);

impl Message for Watch {
    type Reply = ();
}
