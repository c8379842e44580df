//! The clock of leases: it goes on while the machine sleeps.

use std::time::Duration;

use playhouse_actor::{System, Uncounted};

/// A clock that all parts of one member read. In a simulation it is the clock of the theater.
pub(crate) struct Clock {
    system: Uncounted,
    is_simulated: bool,
}

impl Clock {
    pub(crate) fn of(system: &System) -> Clock {
        Clock { system: Uncounted::of(system), is_simulated: system.core().is_simulated() }
    }

    /// Returns the time of this clock, from any start.
    pub(crate) fn now(&self) -> Duration {
        if self.is_simulated { self.system.core().now() } else { self.real() }
    }

    #[cfg(target_os = "linux")]
    fn real(&self) -> Duration {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
        // The kernel counts from the start of the machine, so both numbers are positive.
        Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
    }

    /// Returns the time since the start of the system. On some systems it stands still while the machine sleeps. Two members that sleep for
    /// different times could then disagree, and the epochs of the slots must fence the later writes.
    #[cfg(not(target_os = "linux"))]
    fn real(&self) -> Duration {
        self.system.core().now()
    }
}
