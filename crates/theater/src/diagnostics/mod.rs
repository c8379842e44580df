//! Reports of a theater on itself: the inspector, figures, and cycles of asks over several theaters.

pub(crate) mod cycles;
pub(crate) mod inspector;
#[cfg(feature = "metrics")]
pub(crate) mod metrics;
