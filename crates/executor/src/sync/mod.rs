//! Synchronisation below everything else: fences, locks, requests to workers, turns of drivers, and the delays
//! for tests.

pub(crate) mod asymmetric_fence;
#[doc(hidden)]
pub mod jitter;
pub(crate) mod locks;
pub(crate) mod pinning;
pub(crate) mod primitives;
pub(crate) mod turns;
pub(crate) mod worker_requests;
