//! The baselines: every workload once more, written by hand, without an actor runtime.
//!
//! A baseline says what the machine needs for the workload's messages and actors alone, so that "how much does the runtime
//! add" can be answered on any machine, in the same run. It is not a program anyone would want to write: one thread, all
//! actors in plain vectors known beforehand, no address that can be stale, nothing that could be fair, stopped or watched.
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
