//! Whom the workers run: samples, for who wants to know which actors have much to do.
//!
//! At a checkup a worker notes the receiver of the next message in its queue. Checkups come with time and with messages
//! ([`crate::worker::exchange`]), so who has much to do is seen often; and where nobody asks, it costs nothing.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, Weak};

use crate::memory::record::Record;
use crate::message::address::RawAddress;
use crate::sync::locks::lock;
use crate::system::SystemCore;
use crate::worker::Worker;

/// So many samples are kept at most, until they are asked for.
const SAMPLES_MAX: usize = 4096;

/// Collects samples as long as it is there.
#[derive(Debug, Default)]
pub struct Sampler(Mutex<Vec<RawAddress>>);

impl Sampler {
    /// The receivers of messages that were next in some queue, since this was asked last.
    pub fn take(&self) -> Vec<RawAddress> {
        std::mem::take(&mut *lock(&self.0))
    }
}

impl SystemCore {
    /// Has samples collected.
    pub fn sample(&self) -> Arc<Sampler> {
        let sampler = Arc::default();
        lock(&self.samplers).push(Arc::downgrade(&sampler));
        self.sampling.store(true, Ordering::Relaxed);
        sampler
    }
}

impl Worker {
    /// At a checkup.
    pub(crate) fn note_sample(&self) {
        if !self.system.sampling.load(Ordering::Relaxed) || !self.advance() {
            return;
        }
        // SAFETY: something is queued, so at the cursor is a whole record.
        let record = unsafe { &*self.run_at.get().cast::<Record>() };
        if record.is_buried() {
            return;
        }
        let receiver = RawAddress::of(record.cell);
        let mut samplers = lock(&self.system.samplers);
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
        self.system.sampling.store(!samplers.is_empty(), Ordering::Relaxed);
    }
}
