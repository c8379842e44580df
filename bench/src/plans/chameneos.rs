//! The amounts of `chameneos`.

use crate::harness::outcome::Size;
use crate::harness::steps::Steps;

/// The amounts of `chameneos`.
pub(crate) struct Plan {
    /// Meetings of two.
    pub(crate) meetings: u64,
    /// Chameneos.
    pub(crate) creatures: u64,
    /// Work of a creature with each meeting.
    pub(crate) work: Steps,
}

impl Plan {
    /// Returns a plan with as many chameneos as the paper's second set.
    pub(crate) fn of(size: Size) -> Self {
        Self { meetings: size.pick(1_000, 2_000_000, 6_000_000), creatures: 10, work: Steps::NONE }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Colour {
    Blue,
    Red,
    Yellow,
}

impl Colour {
    /// The colour of creature `number` at the start.
    pub(crate) fn of(number: u64) -> Self {
        [Self::Blue, Self::Red, Self::Yellow][(number % 3) as usize]
    }

    /// Returns the next colour of a creature of this colour that meets `other`: the third colour, or the same one if both are
    /// alike.
    pub(crate) fn complement(self, other: Self) -> Self {
        match (self, other) {
            (Self::Blue, Self::Red) | (Self::Red, Self::Blue) => Self::Yellow,
            (Self::Blue, Self::Yellow) | (Self::Yellow, Self::Blue) => Self::Red,
            (Self::Red, Self::Yellow) | (Self::Yellow, Self::Red) => Self::Blue,
            _ => self,
        }
    }
}
