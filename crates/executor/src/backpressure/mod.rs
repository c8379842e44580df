//! Backpressure: senders that are slowed down, and the rules by which those go on. [`crate::load`] has the measures.
//!
//! [`overload`] stops the stages of such senders. [`full_stages`] says which stages are full, and [`deadlock`] finds
//! stages that are muted for each other.

pub(crate) mod deadlock;
pub(crate) mod full_stages;
pub(crate) mod other_systems;
pub(crate) mod overload;
