//! The settings of a membership.

use std::fmt;

use crate::view::{SLOTS_MAX, Timing};

/// The settings of a cluster that begins. A member of one that exists follows the view instead.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Config {
    /// The durations.
    pub timing: Timing,
    /// A random number, which tells clusters apart.
    pub cluster: u64,
    /// The number of slots.
    pub slots: u32,
}

/// The reason why settings are refused.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConfigError {
    /// The durations are not in order.
    Order(Timing),
    /// The number of slots is not possible.
    Slots {
        /// [`Config::slots`].
        found: u32,
    },
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConfigError::Order(Timing { renew, lease, wait, .. }) => {
                write!(f, "renew {renew:?}, lease {lease:?}, wait {wait:?}: 0 < renew < lease < wait must hold")
            }
            ConfigError::Slots { found } => write!(f, "{found} slots: from 1 to {SLOTS_MAX} are possible"),
        }
    }
}

impl std::error::Error for ConfigError {}

impl Config {
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        if !self.timing.is_possible() {
            return Err(ConfigError::Order(self.timing));
        }
        let is_possible = (1..=SLOTS_MAX).contains(&(self.slots as usize));
        if is_possible { Ok(()) } else { Err(ConfigError::Slots { found: self.slots }) }
    }
}
