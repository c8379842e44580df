//! Backpressure: accounts that find the senders to be slowed down, and the rules by which those go on.
//!
//! [`overload`] stops the stages of such senders. [`stage`] says which stages are full, and [`deadlock`] finds stages
//! that are muted for each other.

pub(crate) mod accounts;
pub(crate) mod deadlock;
pub(crate) mod other_systems;
pub(crate) mod overload;
pub(crate) mod relays;
pub(crate) mod source_admission;
pub(crate) mod stage;
pub(crate) mod standing;
