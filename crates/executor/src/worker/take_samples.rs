//! Samples of the actors that the workers run, for tools that look for busy actors.
//!
//! At a checkup a worker notes the receiver of the next message in its queue. Checkups come with time and with messages
//! ([`crate::worker::exchange`]), and a busy actor is therefore seen often. Without a sampler, sampling costs nothing.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

use crate::memory::raw_address::RawAddress;
use crate::memory::record::Record;
use crate::observe::sampling::Sampler;
use crate::sync::locks::lock;
use crate::worker::Worker;
use crate::worker::system_core::SystemCore;

/// The largest number of samples that are kept until they are taken.
const SAMPLES_MAX: usize = 4096;

impl SystemCore {
    /// Has samples collected.
    pub fn sample(&self) -> Arc<Sampler> {
        let sampler = Arc::default();
        lock(&self.observation.samplers).push(Arc::downgrade(&sampler));
        self.observation.sampling.store(true, Ordering::Relaxed);
        sampler
    }
}

impl Worker {
    /// Takes a sample at a checkup.
    pub(crate) fn note_sample(&self) {
        if !self.system.observation.sampling.load(Ordering::Relaxed) || !self.advance() {
            return;
        }
        // SAFETY: the queue is not empty, and a whole record is at the cursor.
        let record = unsafe { &*self.run_at.get().cast::<Record>() };
        if record.is_buried() {
            return;
        }
        let receiver = RawAddress::of(record.cell);
        let mut samplers = lock(&self.system.observation.samplers);
        samplers.retain(|sampler: &Weak<Sampler>| {
            let sampler = sampler.upgrade();
            if let Some(sampler) = &sampler {
                let mut samples = lock(&sampler.0);
                if samples.len() < SAMPLES_MAX {
                    samples.push(receiver);
                }
            }
            sampler.is_some()
        });
        self.system.observation.sampling.store(!samplers.is_empty(), Ordering::Relaxed);
    }
}
