//! The amounts of `send-static` and `send-dynamic`.

use crate::harness::outcome::Size;

/// The amounts of the workload.
pub(crate) struct Plan {
    /// Sends, one after the other.
    pub(crate) sends: u64,
}

impl Plan {
    pub(crate) fn of_static(size: Size) -> Self {
        Self { sends: size.pick(10_000, 50_000_000, 100_000_000) }
    }

    pub(crate) fn of_dynamic(size: Size) -> Self {
        Self { sends: size.pick(5_000, 5_000_000, 20_000_000) }
    }
}
