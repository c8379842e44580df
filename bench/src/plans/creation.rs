//! The amounts of `creation`.

use crate::harness::outcome::Size;

/// The amounts of `creation`.
pub(crate) struct Plan {
    /// Actors created; the paper has 100,000 to 600,000.
    pub(crate) actors: u64,
}

impl Plan {
    /// Actors created before the master lets others run and goes on by a message to itself.
    pub(crate) const SLICE: u64 = 1_000;

    pub(crate) fn of(size: Size) -> Self {
        Self { actors: size.pick(2_000, 600_000, 600_000) }
    }
}
