//! The common part of the sorting programs: their numbers, and the join of two halves.

use playhouse::prelude::*;

use super::dice;
use crate::harness::finish::Finish;
use crate::harness::outcome::{Failure, check};

/// Numbers below 2^60.
pub(super) fn numbers(count: usize) -> Vec<u64> {
    let mut dice = dice(0);
    (0..count).map(|_| (u64::from(dice.roll()) << 28) ^ u64::from(dice.roll())).collect()
}

/// Returns whether these are the sorted [`numbers`].
pub(super) fn check_sorted(sorted: &[u64]) -> Result<(), Failure> {
    let mut expected = numbers(sorted.len());
    expected.sort_unstable();
    check("that the numbers are sorted", true, expected == sorted)
}

/// The half of its parent's numbers that an actor has.
#[derive(Clone, Copy)]
pub(super) enum Half {
    First,
    Second,
}

/// A message to the parent: a half is sorted.
#[derive(Message)]
pub(super) struct Sorted(pub(super) Half, pub(super) Vec<u64>);

/// The receiver of an actor's sorted numbers.
pub(super) enum Above {
    Parent(Recipient<Sorted>, Half),
    Finish(Finish<Vec<u64>>),
}

impl Above {
    pub(super) fn give(&self, numbers: Vec<u64>) {
        match self {
            Above::Parent(parent, half) => parent.tell(Sorted(*half, numbers)),
            Above::Finish(finish) => finish.reached(numbers),
        }
    }
}

/// The halves that have come back.
#[derive(Default)]
pub(super) struct Halves {
    first: Option<Vec<u64>>,
    second: Option<Vec<u64>>,
}

impl Halves {
    /// Takes one half, and returns both if both have arrived.
    pub(super) fn take(&mut self, Sorted(half, numbers): Sorted) -> Option<(Vec<u64>, Vec<u64>)> {
        match half {
            Half::First => self.first = Some(numbers),
            Half::Second => self.second = Some(numbers),
        }
        if self.first.is_none() || self.second.is_none() {
            return None;
        }
        self.first.take().zip(self.second.take())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unsorted_list_is_a_failure() {
        let mut sorted = numbers(100);
        assert!(sorted.iter().all(|number| *number < 1 << 60));
        assert!(check_sorted(&sorted).is_err());
        sorted.sort_unstable();
        assert!(check_sorted(&sorted).is_ok());
        sorted[7] = sorted[8];
        let failure = check_sorted(&sorted).unwrap_err();
        assert_eq!(failure.to_string(), "wrong result: that the numbers are sorted should be true and is false");
    }

    #[test]
    fn halves_come_in_any_order() {
        for halves in [[Half::First, Half::Second], [Half::Second, Half::First]] {
            let mut back = Halves::default();
            let [one, other] = halves.map(|half| Sorted(half, vec![half as u64]));
            assert!(back.take(one).is_none());
            assert_eq!(back.take(other), Some((vec![0], vec![1])));
        }
    }
}
