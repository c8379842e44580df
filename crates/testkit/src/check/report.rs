//! The report of a search.

use std::fmt;

use super::failure::Failure;

/// The report of a search: numbers, and the shortest failure.
///
/// # Examples
///
/// ```
/// use playhouse::prelude::*;
/// use playhouse_testkit::{Report, check};
///
/// let report: Report = check(|_: &System| 7);
/// assert!(report.is_complete() && report.is_passed());
/// assert_eq!(report.schedules(), 1);
/// ```
#[derive(Clone, Debug)]
pub struct Report {
    pub(super) schedules: u64,
    pub(super) given_up: u64,
    pub(super) deliveries: u64,
    pub(super) orders: u128,
    pub(super) is_complete: bool,
    pub(super) failure: Option<Failure>,
}

impl Report {
    /// Returns the number of complete runs. With reduction, each has an order that differs from all others in more
    /// than commuting steps.
    pub fn schedules(&self) -> u64 {
        self.schedules
    }

    /// Returns the number of runs that were abandoned, because they led to nothing new.
    pub fn given_up(&self) -> u64 {
        self.given_up
    }

    /// Returns the number of orders that the tried schedules stand for: the orders that swap only commuting steps.
    /// The result is 0 without [`Checker::count_orders`](super::Checker::count_orders).
    pub fn orders(&self) -> u128 {
        self.orders
    }

    /// Returns the number of deliveries over all runs.
    pub fn deliveries(&self) -> u64 {
        self.deliveries
    }

    /// Returns whether all orders were tried. Otherwise the limit was reached.
    pub fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// Returns the failure with the shortest schedule, if any.
    pub fn failure(&self) -> Option<&Failure> {
        self.failure.as_ref()
    }

    /// Returns whether all orders were tried, and none has failed.
    pub fn is_passed(&self) -> bool {
        self.is_complete && self.failure.is_none()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tried = if self.is_complete { "all orders were tried" } else { "the limit was reached" };
        writeln!(f, "{} schedules, {tried}", self.schedules)?;
        match &self.failure {
            Some(failure) => write!(f, "{failure}"),
            None if self.is_complete => f.write_str("nothing went wrong"),
            None => f.write_str("nothing went wrong so far: make the program smaller, or the limit larger"),
        }
    }
}
