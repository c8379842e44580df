//! The amounts of `fib`.

use crate::harness::outcome::Size;
use crate::harness::steps::Steps;

/// The amounts of `fib`.
pub(crate) struct Plan {
    /// The argument.
    pub(crate) n: u32,
    /// Work of each actor.
    pub(crate) work: Steps,
}

impl Plan {
    pub(crate) fn of(size: Size) -> Self {
        Self { n: size.pick(10, 25, 25), work: Steps::NONE }
    }

    /// Returns the value.
    pub(crate) fn value(&self) -> u64 {
        (0..self.n).fold((0, 1), |(a, b), _| (b, a + b)).0
    }

    /// Returns the number of calls, which is also the number of actors.
    pub(crate) fn actors(&self) -> u64 {
        (0..self.n).fold((1, 1), |(a, b), _| (b, a + b + 1)).0
    }
}
