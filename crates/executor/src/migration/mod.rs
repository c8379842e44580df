//! Migration between theaters: stubs of actors in other theaters, and cells that freeze.

pub(crate) mod freeze;
pub(crate) mod stub;
