//! The requests that a worker checks before its next message.

use crate::sync::primitives::{AtomicU32, Ordering};

/// A word of requests to one worker thread.
#[derive(Default)]
pub(crate) struct Signal(AtomicU32);

impl Signal {
    /// Mail in the system or urgent lane.
    pub(crate) const LANES: u32 = 1;
    /// A thief waits.
    pub(crate) const THIEF: u32 = 2;
    /// A slice of time is over: the worker looks at timers, mail and others' requests.
    pub(crate) const TICK: u32 = 4;
    /// The monitor has taken (or tries to take) the worker's work away from this thread.
    pub(crate) const REVOKED: u32 = 8;
    /// A muted stage of a mute deadlock may go on.
    pub(crate) const GO_ON: u32 = 16;

    #[inline(always)]
    pub(crate) fn get(&self) -> u32 {
        // Relaxed: a hint, except REVOKED, which is paired by the asymmetric fence.
        self.0.load(Ordering::Relaxed)
    }

    pub(crate) fn raise(&self, bits: u32) {
        // Release: the worker that takes the bit sees all earlier writes of the raiser.
        self.0.fetch_or(bits, Ordering::Release);
    }

    /// Takes the bits away and returns those that were set.
    pub(crate) fn clear(&self, bits: u32) -> u32 {
        // Acquire: pairs with `raise`.
        self.0.fetch_and(!bits, Ordering::Acquire) & bits
    }
}
