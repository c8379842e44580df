//! The settings of a membership.

use std::fmt;
use std::time::Duration;

use crate::view::SLOTS_MAX;

/// The settings of a membership. All members of a cluster have the same ones.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Config {
    /// The time between two reads of the ledger, and between two rounds of asks. A request without a result for this long has an
    /// unknown one.
    pub renew: Duration,
    /// The time for which a member may run without a new proof that it lives.
    pub lease: Duration,
    /// The time for which an heir waits. `wait / lease` is the largest ratio between the rates of two clocks.
    pub wait: Duration,
    /// The time for which the members run on their links alone, after the last one has read the ledger. A member that finds only dead
    /// ones in the ledger waits for it. No value can serve both: a theater cannot tell a cluster without a ledger from a dead one.
    pub outage: Duration,
    /// The random number of a cluster that begins. It tells clusters apart.
    pub cluster: u64,
    /// The number of slots of a cluster that begins.
    pub slots: u32,
}

/// The reason why settings are refused.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConfigError {
    /// The durations are not in order.
    Order {
        /// [`Config::renew`].
        renew: Duration,
        /// [`Config::lease`].
        lease: Duration,
        /// [`Config::wait`].
        wait: Duration,
    },
    /// The number of slots is not possible.
    Slots {
        /// [`Config::slots`].
        found: u32,
    },
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConfigError::Order { renew, lease, wait } => {
                write!(f, "renew {renew:?}, lease {lease:?}, wait {wait:?}: 0 < renew < lease < wait must hold")
            }
            ConfigError::Slots { found } => write!(f, "{found} slots: from 1 to {SLOTS_MAX} are possible"),
        }
    }
}

impl std::error::Error for ConfigError {}

impl Config {
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        let Config { renew, lease, wait, slots, .. } = *self;
        if !(Duration::ZERO < renew && renew < lease && lease < wait) {
            return Err(ConfigError::Order { renew, lease, wait });
        }
        let is_possible = (1..=SLOTS_MAX).contains(&(slots as usize));
        if is_possible { Ok(()) } else { Err(ConfigError::Slots { found: slots }) }
    }

    /// Returns the longest time of this clock in which `time` may pass on another one.
    pub(super) fn stretch(&self, time: Duration) -> Duration {
        let nanos = time.as_nanos().saturating_mul(self.wait.as_nanos()).div_ceil(self.lease.as_nanos());
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// Returns the time between a request that has failed and the next one.
    pub(super) fn pause(&self) -> Duration {
        self.renew / 4
    }
}
