//! Samples of the actors that the workers run, for tools that look for busy actors. `worker/take_samples.rs` takes
//! them.

use std::sync::Mutex;

use crate::memory::raw_address::RawAddress;
use crate::sync::locks::lock;

/// Collects samples as long as it exists.
#[derive(Debug, Default)]
pub struct Sampler(pub(crate) Mutex<Vec<RawAddress>>);

impl Sampler {
    /// Returns the receivers of messages that were next in some queue, since the last call.
    pub fn take(&self) -> Vec<RawAddress> {
        std::mem::take(&mut *lock(&self.0))
    }
}
