//! The amounts of `skynet`.

use crate::harness::outcome::Size;

/// The amounts of `skynet`.
pub(crate) struct Plan {
    /// Leaves; a power of [`Self::DEGREE`].
    pub(crate) leaves: u64,
}

impl Plan {
    /// Children per actor.
    pub(crate) const DEGREE: u64 = 10;

    pub(crate) fn of(size: Size) -> Self {
        Self { leaves: size.pick(1_000, 1_000_000, 1_000_000) }
    }

    /// Actors of the whole tree.
    pub(crate) fn actors(&self) -> u64 {
        (self.leaves * Self::DEGREE - 1) / (Self::DEGREE - 1)
    }

    /// The sum of the leaves' numbers.
    pub(crate) fn sum(&self) -> u64 {
        self.leaves * (self.leaves - 1) / 2
    }
}
