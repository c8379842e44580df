//! Measures of load: accounts that find the senders to be slowed down, and bounds. No file here knows workers.
//!
//! [`crate::backpressure`] acts on them.

pub(crate) mod accounts;
pub(crate) mod bounds;
pub(crate) mod mute_deadlocks;
pub(crate) mod relays;
pub(crate) mod source_admission;
pub(crate) mod stage_backpressure;
pub(crate) mod standing;
