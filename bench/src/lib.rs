//! Playhouse's benchmarks: one registry, one runner, one report. And the ChatApp world, the benchmark that is a program.
//!
//! - [`registry`]: every benchmark with its origin (which paper, which section), what one operation of it is, its
//!   workload on Playhouse, its hand-written floor (if there is one), and the figures it should reach.
//! - [`runner`]: runs a workload and its floor in turns, in one process, and takes medians; or has a child process do so,
//!   which makes the measured peak memory that of one benchmark alone.
//! - [`report`]: one JSON object per benchmark, or a table for people.
//! - [`bootstrap`]: how sure a median is.
//! - [`fit`]: lines through the times of benchmarks that differ in their number of rings.
//! - [`sweep`]: the same for ever more stages per worker.
//! - [`worker_sweep`]: one benchmark on more and more workers, up to the number that the [`topology`] of the machine suggests.
//! - [`scaling`]: patterns with work per message on more and more workers, beside tokio tasks and hand-written threads.
//! - [`machine`]: what a figure was measured on.
//! - [`steps`]: work with each message, for Savina's programs.
//! - [`partner`]: the other process of a remote benchmark.
//! - [`peer`]: other actor runtimes beside it, each a program of `bench/peers`.
//! - [`load`]: the requests that a web server answers in one of the benchmarks.
//! - [`alone`]: such a program of Playhouse itself.
//! - `process`: the processes of both.
//! - `workloads`: the workloads as actors. Every one checks its own result; a wrong result is a [`Failure`].
//! - `savina`: the 30 programs of the Savina suite, with its parameters; `bench/SAVINA.md` says what differs.
//! - `limit`: the floors: the same workloads written by hand without an actor runtime.
//! - [`chatapp`]: the ChatApp world, which has a runner and a report of its own.
//!
//! All times are steady times (from the start event to the final state, taken inside the program): starting the
//! system, creating actors that the workload does not count, and tear-down are left out.

// The parts that it leaves out use some of the others.
#![cfg_attr(not(feature = "whole"), allow(dead_code))]

#[cfg(feature = "benchmarks")]
pub mod alone;
#[cfg(feature = "benchmarks")]
pub mod bootstrap;
#[cfg(feature = "chatapp")]
pub mod chatapp;
pub mod fit;
pub mod latency;
#[cfg(feature = "whole")]
pub mod load;
#[cfg(feature = "benchmarks")]
pub mod machine;
pub mod memory;
pub mod outcome;
#[cfg(feature = "remote")]
pub mod partner;
#[cfg(feature = "whole")]
pub mod peer;
#[cfg(feature = "benchmarks")]
pub mod registry;
#[cfg(feature = "benchmarks")]
pub mod report;
#[cfg(feature = "benchmarks")]
pub mod runner;
#[cfg(feature = "whole")]
pub mod scaling;
#[cfg(feature = "benchmarks")]
pub mod steps;
#[cfg(feature = "benchmarks")]
pub mod sweep;
#[cfg(feature = "benchmarks")]
pub mod topology;
#[cfg(feature = "benchmarks")]
pub mod worker_sweep;

#[cfg(feature = "benchmarks")]
mod limit;
#[cfg(feature = "benchmarks")]
mod process;
#[cfg(feature = "whole")]
mod savina;
#[cfg(feature = "benchmarks")]
mod workloads;

pub use outcome::{Failure, Outcome, Size};
#[cfg(feature = "benchmarks")]
pub use registry::Benchmark;
#[cfg(feature = "benchmarks")]
pub use steps::Steps;

/// Of Playhouse.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
