//! The amounts of `big`.

use crate::harness::outcome::Size;
use crate::harness::steps::Steps;

/// The amounts of `big`.
#[derive(Clone, Copy)]
pub(crate) struct Plan {
    /// Actors.
    pub(crate) members: u32,
    /// Pings that each of them sends.
    pub(crate) pings: u32,
    /// Work of a member with each ping.
    pub(crate) work: Steps,
}

impl Plan {
    pub(crate) fn of(size: Size) -> Self {
        Self { members: 120, pings: size.pick(20, 20_000, 20_000), work: Steps::NONE }
    }

    /// Pings of all.
    pub(crate) fn pings_total(&self) -> u64 {
        u64::from(self.members) * u64::from(self.pings)
    }
}

/// A member's dice: the 32-bit linear congruential generator of Numerical Recipes.
pub(crate) struct Dice(u32);

impl Dice {
    /// The dice of member `number`.
    pub(crate) fn of(number: u32) -> Self {
        Self(number.wrapping_mul(0x9E37_79B9))
    }

    /// A member other than `number`, out of `members`.
    pub(crate) fn other(&mut self, number: u32, members: u32) -> u32 {
        self.0 = self.0.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        // The high half of a product instead of a division; the low bits of the state are weak anyway.
        let step = (u64::from(self.0) * u64::from(members - 1)) >> 32;
        let other = number + 1 + step as u32;
        if other < members { other } else { other - members }
    }
}
