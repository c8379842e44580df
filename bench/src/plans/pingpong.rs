//! The amounts of `pingpong`.

use crate::harness::outcome::Size;
use crate::harness::steps::Steps;

/// The amounts of a ping-pong.
pub(crate) struct Plan {
    /// The number of times that the message comes back.
    pub(crate) round_trips: u64,
    /// Work of both with each message.
    pub(crate) work: Steps,
}

impl Plan {
    pub(crate) fn of(size: Size) -> Self {
        Self { round_trips: size.pick(2_000, 2_000_000, 2_000_000), work: Steps::NONE }
    }

    pub(crate) fn cross(size: Size) -> Self {
        Self { round_trips: size.pick(500, 200_000, 2_000_000), work: Steps::NONE }
    }
}
