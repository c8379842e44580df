//! What a search has come to.

use std::fmt;

use super::failure::Failure;

/// What a search has come to.
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
    /// Runs that were made to their end: with reduction, each in an order that differs from all others in more than in what
    /// commutes.
    pub fn schedules(&self) -> u64 {
        self.schedules
    }

    /// Runs that were begun and turned out to lead to nothing new.
    pub fn given_up(&self) -> u64 {
        self.given_up
    }

    /// The orders that the tried schedules stand for: of each, in how many orders its deliveries can be put without changing
    /// that of two which do not commute. 0 where [`Checker::count_orders`] was not asked for.
    pub fn orders(&self) -> u128 {
        self.orders
    }

    /// Messages that were delivered, over all runs.
    pub fn deliveries(&self) -> u64 {
        self.deliveries
    }

    /// Whether all orders were tried. If not: the limit was reached.
    pub fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// The shortest schedule in which something goes fault, if it does in any.
    pub fn failure(&self) -> Option<&Failure> {
        self.failure.as_ref()
    }

    /// Whether all orders were tried, and nothing went wrong in any.
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
