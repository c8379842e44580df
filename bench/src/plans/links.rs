//! The amounts of `rpingpong`, `rthroughput` and `rcreate`.

use crate::harness::outcome::Size;

/// The amounts of the workload.
pub(crate) struct Plan {
    pub(crate) round_trips: u64,
    pub(crate) messages: u64,
    /// Messages in flight, and messages per acknowledgement.
    pub(crate) window: u64,
    pub(crate) acknowledged: u64,
    pub(crate) actors: u64,
}

impl Plan {
    pub(crate) fn of(size: Size) -> Plan {
        Plan {
            round_trips: size.pick(200, 100_000, 100_000),
            messages: size.pick(20_000, 2_000_000, 2_000_000),
            window: 10_000,
            acknowledged: 1_000,
            actors: size.pick(100, 5_000, 5_000),
        }
    }
}
