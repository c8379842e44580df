//! Accounts that find the senders to be slowed down, and the rules by which those go on.
//!
//! `muting.rs` stops the stages of such senders. `fullness.rs` and `knot.rs` hold the other parts of backpressure.

pub(crate) mod accounts;
pub(crate) mod admission;
pub(crate) mod elsewhere;
pub(crate) mod relays;
pub(crate) mod standing;
