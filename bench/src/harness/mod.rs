//! The harness: the parts of every benchmark, and the runner.
//!
//! It knows no workload. The list of the benchmarks is the [`registry`](crate::registry).

#[cfg(feature = "benchmarks")]
pub mod benchmark;
#[cfg(feature = "benchmarks")]
pub mod machine;
pub mod memory;
pub mod outcome;
#[cfg(feature = "benchmarks")]
pub mod runner;
#[cfg(feature = "benchmarks")]
pub mod steps;
#[cfg(feature = "benchmarks")]
pub mod sweep;
#[cfg(feature = "benchmarks")]
pub mod topology;
#[cfg(feature = "benchmarks")]
pub mod worker_sweep;

#[cfg(feature = "remote")]
pub mod remote_peer;

#[cfg(feature = "chatapp")]
pub(crate) mod busy_work;
#[cfg(feature = "benchmarks")]
pub(crate) mod finish;
#[cfg(feature = "whole")]
pub(crate) mod peers_folder;
#[cfg(feature = "benchmarks")]
pub(crate) mod placement;
#[cfg(feature = "benchmarks")]
pub mod process;
#[cfg(feature = "chatapp")]
pub(crate) mod random;
