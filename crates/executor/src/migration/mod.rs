//! Actors that move between theaters: stubs of actors that are elsewhere, and cells that freeze.

pub(crate) mod freeze;
pub(crate) mod stub;
