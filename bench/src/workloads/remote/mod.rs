//! Workloads with actors that other theaters reach.

#[cfg(feature = "whole")]
pub(crate) mod kinds;
pub(crate) mod links;
pub(crate) mod theater_rings;
