//! The amounts of `pingpong-grouped` and `pingpong-bulk`.

use crate::harness::outcome::Size;

/// The amounts of the workload. The paper counts messages in a time window; these numbers are this project's.
pub(crate) struct Plan {
    /// Pairs of players.
    pub(crate) pairs: u32,
    /// Balls in flight per pair.
    pub(crate) balls: u32,
    /// The number of hits of each ball.
    pub(crate) bounces: u64,
}

impl Plan {
    pub(crate) fn grouped(size: Size) -> Self {
        Self { pairs: size.pick(10, 100, 100), balls: 1, bounces: size.pick(200, 50_000, 50_000) }
    }

    pub(crate) fn bulk(size: Size) -> Self {
        Self { pairs: size.pick(10, 100, 100), balls: size.pick(10, 100, 100), bounces: size.pick(50, 1_000, 1_000) }
    }

    /// Balls of all pairs.
    pub(crate) fn balls_total(&self) -> u64 {
        u64::from(self.pairs) * u64::from(self.balls)
    }

    /// Returns the number of hits of all balls.
    pub(crate) fn bounces_total(&self) -> u64 {
        self.balls_total() * self.bounces
    }
}
