//! The baselines: every workload once more, written by hand, without an actor runtime.
//!
//! A baseline measures the need of the machine for the workload's messages and actors alone. The ratio to it is the cost of the
//! runtime, on any machine, in the same run. A baseline is no useful program: one thread, all actors in plain vectors known
//! beforehand, no stale addresses, no fairness, no stopping, no watching.
//!
//! - [`flat`]: the engine of the single-threaded baselines, two flat buffers of envelopes and an indirect call per message.
//! - [`cells`]: individually allocated actors, for the baselines that measure creation.
//! - [`cross`]: two pinned threads, for the workloads that force every message from one worker to another.
//!
//! They are safe Rust: at these figures bounds checks cost less than the noise of the measurement.

pub(crate) mod cells;
pub(crate) mod creation;
pub(crate) mod cross;
pub(crate) mod executor;
pub(crate) mod flat;
#[cfg(feature = "remote")]
pub(crate) mod links;
pub(crate) mod matrix;
pub(crate) mod meetings;
pub(crate) mod messages;
mod pin;
pub(crate) mod rings;
