//! The amounts of `executor`.

use crate::harness::outcome::Size;

/// The amounts of the workload.
pub(crate) struct Plan {
    /// Groups of actors.
    pub(crate) groups: usize,
    /// Messages that each actor sends: whole rounds through its group.
    pub(crate) sends: u32,
}

impl Plan {
    /// Actors per group.
    pub(crate) const GROUP: usize = 100;

    pub(crate) fn of(size: Size) -> Self {
        // The paper: 400 rounds through the group instead of 4.
        Self { groups: size.pick(4, 400, 400), sends: size.pick(100, 400, 40_000) }
    }

    /// Actors of all groups.
    pub(crate) fn actors(&self) -> u64 {
        (self.groups * Self::GROUP) as u64
    }

    /// Messages that all actors send.
    pub(crate) fn sends_total(&self) -> u64 {
        self.actors() * u64::from(self.sends)
    }
}
