//! The workloads, as actors: one file per workload or family of workloads.
//!
//! They are written as a user of Playhouse would write them: small message types, one `Handler` per message, no state
//! shared between actors except what nobody changes. What a workload does before its start event (creating the actors of
//! a ring, telling them of each other) is not timed, unless creating actors is what it measures.
//!
//! Every file holds the [`Benchmark`](crate::Benchmark) entries of its workloads and, in `Plan`, how much they do at each
//! [`Size`](crate::Size); the baseline of the same workload takes the same plan.

pub(crate) mod messaging;
#[cfg(feature = "whole")]
pub(crate) mod migration;
#[cfg(feature = "remote")]
pub(crate) mod remote;
pub(crate) mod spawn;
