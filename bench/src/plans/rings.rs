//! The amounts of `threadring`, `ringmulti` and `nfold-ring`.

use crate::harness::outcome::Size;
use crate::harness::steps::Steps;

/// The amounts of a workload of rings.
pub(crate) struct Plan {
    /// Rings.
    pub(crate) rings: u32,
    /// Actors per ring.
    pub(crate) members: u32,
    /// Tokens per ring.
    pub(crate) tokens: u32,
    /// Hops of each token.
    pub(crate) hops: u64,
    /// Work of a member with each token.
    pub(crate) work: Steps,
}

impl Plan {
    pub(crate) fn one(size: Size) -> Self {
        Self { rings: 1, members: 503, tokens: 1, hops: size.pick(5_000, 5_000_000, 5_000_000), work: Steps::NONE }
    }

    pub(crate) fn many(size: Size) -> Self {
        Self {
            rings: size.pick(10, 100, 100),
            members: size.pick(20, 100, 100),
            tokens: 1,
            hops: size.pick(500, 100_000, 100_000),
            work: Steps::NONE,
        }
    }

    /// Returns the plan of `nfold-ring`. The paper runs eight rings on eight threads and counts hops in a time window; the
    /// number of hops is this project's.
    pub(crate) fn nfold(size: Size) -> Self {
        Self {
            rings: 8,
            members: size.pick(20, 1_000, 1_000),
            tokens: 1,
            hops: size.pick(500, 1_000_000, 1_000_000),
            work: Steps::NONE,
        }
    }

    /// Hops of all tokens of all rings.
    pub(crate) fn hops_total(&self) -> u64 {
        self.tokens_total() * self.hops
    }

    /// Tokens of all rings.
    pub(crate) fn tokens_total(&self) -> u64 {
        u64::from(self.rings) * u64::from(self.tokens)
    }

    /// Returns the expected sum of the positions at which the tokens stop.
    pub(crate) fn positions_sum(&self) -> u64 {
        self.tokens_total() * (self.hops % u64::from(self.members))
    }
}
