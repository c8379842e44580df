//! The workloads, as actors: one file per workload or family of workloads.
//!
//! They are written as a user of Playhouse would write them: small message types, one `Handler` per message, no shared state
//! except constants. The work before the start event (creating the actors of a ring, introducing them) is not timed, unless the
//! workload measures creation.
//!
//! Every file holds the [`Benchmark`](crate::Benchmark) entries of its workloads and, in `Plan`, how much they do at each
//! Every file holds the [`Benchmark`](crate::Benchmark) entries of its workloads. The amounts at each [`Size`](crate::Size) are
//! in `plans`, because the baseline of the same workload takes the same plan.

pub(crate) mod messaging;
#[cfg(feature = "whole")]
pub(crate) mod migration;
#[cfg(feature = "remote")]
pub(crate) mod remote;
pub(crate) mod spawn;
