//! What slows senders: see also `muting.rs`, `fullness.rs` and `knot.rs`.

pub(crate) mod accounts;
