//! The knob of Savina's programs: work with each message, so that hidden parallelism shows (Run, Actor, Run! §5.1).

use crate::chatapp::Work;

/// Steps of arithmetic that an actor does with each message besides, each about a nanosecond.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Steps(pub u32);

impl Steps {
    /// No work.
    pub const NONE: Self = Self(0);

    /// Does the work.
    #[inline]
    pub(crate) fn work(self) {
        if self != Self::NONE {
            Work::Compute(self.0).perform(self.0);
        }
    }
}
