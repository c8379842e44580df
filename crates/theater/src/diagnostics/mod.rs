//! Reports of a theater on itself: the inspector and figures.

pub(crate) mod inspector;
#[cfg(feature = "metrics")]
pub(crate) mod metrics;
