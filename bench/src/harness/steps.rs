//! Additional work with each message of Savina's programs, which shows hidden parallelism (Run, Actor, Run! §5.1).

use std::hint::black_box;

/// Steps of arithmetic that an actor does in addition with each message, each about a nanosecond.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Steps(pub u32);

impl Steps {
    /// No work.
    pub const NONE: Self = Self(0);

    /// Does the work.
    #[inline]
    pub(crate) fn work(self) {
        if self != Self::NONE {
            let step = |x: u32, _| x.wrapping_mul(1_664_525).wrapping_add(1_013_904_223) ^ (x >> 15);
            black_box((0..self.0).fold(self.0, step));
        }
    }
}
