//! Plans: how much each workload does at each [`Size`](crate::Size), and the data that a workload shares with its baseline.
//!
//! A workload and its baseline take the same plan, therefore they do the same work.

pub(crate) mod big;
pub(crate) mod chameneos;
pub(crate) mod count;
pub(crate) mod creation;
pub(crate) mod executor;
pub(crate) mod fib;
pub(crate) mod fjcreate;
#[cfg(feature = "remote")]
pub(crate) mod links;
pub(crate) mod matrix;
pub(crate) mod pairs;
pub(crate) mod pingpong;
pub(crate) mod repeat;
pub(crate) mod rings;
pub(crate) mod send;
pub(crate) mod skynet;
