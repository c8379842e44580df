//! The amounts of `fjcreate`.

use crate::harness::outcome::Size;
use crate::harness::steps::Steps;

/// The amounts of a wave of `fjcreate`.
pub(crate) struct Plan {
    /// Actors created, all alive before the first of them gets its message.
    pub(crate) actors: u64,
    /// Additional work of each actor.
    pub(crate) work: Steps,
}

impl Plan {
    /// Actors created, or told to work, before the master lets others run and goes on by a message to itself.
    pub(crate) const SLICE: u64 = 1_000;
    /// Waves after which memory may not grow.
    pub(crate) const WAVES_TO_SETTLE: u64 = 2;

    pub(crate) fn of(size: Size) -> Self {
        Self { actors: size.pick(2_000, 1_000_000, 1_000_000), work: Steps::NONE }
    }

    /// Returns the allowed growth of memory after that. The number of messages in flight differs from wave to wave, but the
    /// headers of another wave's actors take 244 MiB at the default size. At the smoke size the rest of the process is a
    /// larger share.
    pub(crate) fn growth_mb_max(size: Size) -> f64 {
        size.pick(64.0, 32.0, 32.0)
    }

    /// Returns the expected sum of the acknowledgements.
    pub(crate) fn sum(&self) -> u64 {
        (0..self.actors).map(work).fold(0, u64::wrapping_add)
    }
}

/// The trivial work of one actor.
pub(crate) fn work(number: u64) -> u64 {
    number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32
}
