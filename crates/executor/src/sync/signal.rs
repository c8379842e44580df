//! What a worker is asked to look at before its next message.

use crate::sync::primitives::{AtomicU32, Ordering};

/// A word of requests to one worker thread.
#[derive(Default)]
pub(crate) struct Signal(AtomicU32);

impl Signal {
    /// Mail in the system or urgent lane.
    pub(crate) const LANES: u32 = 1;
    /// A thief waits.
    pub(crate) const THIEF: u32 = 2;
    /// A slice of time is over: look at timers, mail and others' needs.
    pub(crate) const TICK: u32 = 4;
    /// The monitor took (or tries to take) the worker's work away from this thread.
    pub(crate) const REVOKED: u32 = 8;
    /// A muted stage of a knot may go on.
    pub(crate) const GO_ON: u32 = 16;

    #[inline(always)]
    pub(crate) fn get(&self) -> u32 {
        // Relaxed: a hint, except REVOKED, which is paired by the asymmetric fence.
        self.0.load(Ordering::Relaxed)
    }

    pub(crate) fn raise(&self, bits: u32) {
        // Release: what the raiser wrote before is seen by the worker that takes the bit.
        self.0.fetch_or(bits, Ordering::Release);
    }

    /// Takes the bits away and returns those that were set.
    pub(crate) fn clear(&self, bits: u32) -> u32 {
        // Acquire: pairs with `raise`.
        self.0.fetch_and(!bits, Ordering::Acquire) & bits
    }
}
