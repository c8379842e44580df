//! Playhouse's benchmarks: one registry, one runner, one report. And the ChatApp world, a benchmark that is a program.
//!
//! - [`registry`]: every benchmark with its origin (paper and section), its unit, its workload on Playhouse, its baseline if it has one,
//!   and its target.
//! - [`harness`]: the parts of every benchmark. The [`runner`](harness::runner) runs a workload and its baseline in turns, in one process,
//!   and takes medians. A child process can do it, which makes the peak memory that of one benchmark alone.
//! - [`report`]: one JSON object per benchmark, or a table for people; confidence intervals and regression lines.
//! - `plans`: the amounts of work at each [`Size`].
//! - `baselines`: the workloads written by hand, without an actor runtime.
//! - `workloads`: the workloads as actors. Every one checks its own result; a wrong result is a [`Failure`].
//! - `savina`: the 30 programs of the Savina suite, with its parameters; `bench/SAVINA.md` lists the differences.
//! - [`load`]: the requests to the web server of one benchmark.
//! - [`peers`]: the same benchmarks on other actor runtimes, each a program of `bench/peers`, and on Playhouse as such a program.
//! - [`scaling`]: patterns with work per message on more and more workers, beside tokio tasks and hand-written threads.
//! - [`chatapp`]: the ChatApp world, which has a runner and a report of its own.
//!
//! All times are steady times, from the start event to the final state, taken inside the program. They leave out the start of the system,
//! the creation of actors that the workload does not count, and tear-down.

// Without the feature `whole`, some items have no user.
#![cfg_attr(not(feature = "whole"), allow(dead_code))]

#[cfg(feature = "chatapp")]
pub mod chatapp;
pub mod harness;
#[cfg(feature = "whole")]
pub mod load;
#[cfg(feature = "benchmarks")]
pub mod peers;
#[cfg(feature = "benchmarks")]
pub mod registry;
pub mod report;
#[cfg(feature = "whole")]
pub mod scaling;

#[cfg(feature = "benchmarks")]
mod baselines;
#[cfg(feature = "benchmarks")]
mod plans;
#[cfg(feature = "whole")]
mod savina;
#[cfg(feature = "benchmarks")]
mod workloads;

#[cfg(feature = "benchmarks")]
pub use harness::benchmark::Benchmark;
pub use harness::outcome::{Failure, Outcome, Size};
#[cfg(feature = "benchmarks")]
pub use harness::steps::Steps;

/// The version of Playhouse.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
