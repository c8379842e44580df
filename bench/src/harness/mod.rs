//! The harness: the parts of every benchmark, and the runner.
//!
//! It knows no workload. The list of the benchmarks is the [`registry`](crate::registry).

pub mod benchmark;
pub mod machine;
pub mod memory;
pub mod outcome;
pub mod runner;
pub mod steps;
pub mod sweep;
pub mod topology;
pub mod worker_sweep;

#[cfg(feature = "remote")]
pub mod remote_peer;

#[cfg(feature = "whole")]
pub(crate) mod busy_work;
pub(crate) mod finish;
#[cfg(feature = "whole")]
pub(crate) mod peers_folder;
pub(crate) mod placement;
pub(crate) mod process;
#[cfg(feature = "whole")]
pub(crate) mod random;
