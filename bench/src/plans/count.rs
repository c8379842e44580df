//! The amounts of `count`.

use crate::harness::outcome::Size;
use crate::harness::steps::Steps;

/// The amounts of `count`.
pub(crate) struct Plan {
    /// Messages sent to the counter.
    pub(crate) increments: u64,
    /// Work of the counter with each.
    pub(crate) work: Steps,
}

impl Plan {
    /// Messages that the producer sends before it lets others run and goes on by a message to itself.
    pub(crate) const SLICE: u64 = 1_000;

    pub(crate) fn of(size: Size) -> Self {
        Self { increments: size.pick(10_000, 10_000_000, 10_000_000), work: Steps::NONE }
    }
}
