//! The amounts of `repeat`.

use crate::harness::outcome::Size;

/// The amounts of `repeat`.
pub(crate) struct Plan {
    /// Servers.
    pub(crate) servers: u64,
    /// Rounds; the next begins when all replies of the last are in.
    pub(crate) rounds: u64,
}

impl Plan {
    /// Requests that the client sends before it lets others run and goes on by a message to itself.
    pub(crate) const SLICE: u64 = 1_000;

    pub(crate) fn of(size: Size) -> Self {
        Self { servers: size.pick(2_500, 100_000, 100_000), rounds: size.pick(4, 40, 200) }
    }

    /// Returns the expected sum of the numbers of requests that the servers reply.
    pub(crate) fn requests_sum(&self) -> u64 {
        self.servers * (self.rounds * (self.rounds + 1) / 2)
    }
}
