//! The workloads, as actors: one file per workload or family of workloads.
//!
//! They are written as a user of Playhouse would write them: small message types, one `Handler` per message, no state
//! shared between actors except what nobody changes. What a workload does before its start event (creating the actors of
//! a ring, telling them of each other) is not timed, unless creating actors is what it measures.
//!
//! Every file holds the [`Benchmark`](crate::Benchmark) entries of its workloads and, in `Plan`, how much they do at each
//! [`Size`](crate::Size); the floor of the same workload takes the same plan.

#[cfg(feature = "whole")]
pub(crate) mod asks;
pub(crate) mod balance;
pub(crate) mod big;
pub(crate) mod chameneos;
pub(crate) mod count;
#[cfg(feature = "whole")]
pub(crate) mod create_migrated;
pub(crate) mod creation;
#[cfg(feature = "whole")]
pub(crate) mod drain;
pub(crate) mod executor;
pub(crate) mod fib;
pub(crate) mod finish;
pub(crate) mod fjcreate;
pub(crate) mod flood;
pub(crate) mod idle;
#[cfg(feature = "whole")]
pub(crate) mod kinds;
pub(crate) mod matrix;
#[cfg(feature = "whole")]
pub(crate) mod migration;
#[cfg(feature = "whole")]
pub(crate) mod mobile_rings;
pub(crate) mod pairs;
pub(crate) mod pingpong;
#[cfg(feature = "remote")]
pub(crate) mod remote;
pub(crate) mod repeat;
pub(crate) mod rings;
pub(crate) mod send;
pub(crate) mod skynet;
#[cfg(feature = "remote")]
pub(crate) mod theater_rings;
#[cfg(feature = "whole")]
pub(crate) mod web;

use playhouse::prelude::*;

/// Options that place an actor.
fn placed(placement: Placement) -> SpawnOptions {
    SpawnOptions::new().placement(placement)
}

/// The `nth` stage of those that `worker` starts with (stage `s` belongs to worker `s % workers` until it is stolen).
fn stage_of(system: &System, worker: usize, nth: usize) -> Placement {
    let (workers, stages) = (system.workers(), system.stages());
    let worker = worker % workers;
    let own = (stages - worker).div_ceil(workers);
    let stage = worker + (nth % own) * workers;
    Placement::Stage(u16::try_from(stage).expect("a system has at most 65,536 stages"))
}
