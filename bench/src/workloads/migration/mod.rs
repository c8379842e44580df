//! Workloads with actors that can migrate to other theaters.

pub(crate) mod create_migrated;
pub(crate) mod drain;
pub(crate) mod mobile_rings;
pub(crate) mod rounds;
