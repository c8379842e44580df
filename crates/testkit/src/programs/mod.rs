//! Known programs, each in a right version and in one with a bug. They test and measure the model checker, and show
//! what it can check.
//!
//! # Examples
//!
//! ```
//! use playhouse_testkit::{Checker, programs};
//!
//! let program = programs::named("election").expect("it is one of them");
//! let report = Checker::new().run(program.wrong());
//! assert!(report.failure().is_some());
//! ```

mod chameneos;
mod commit;
mod election;
mod fibonacci;
mod path;
mod philosophers;

use std::fmt;

use playhouse::System;

use crate::check::Checker;

/// A program to check.
///
/// # Examples
///
/// ```
/// use playhouse_testkit::{check, programs::PROGRAMS};
///
/// let fibonacci = PROGRAMS.into_iter().find(|program| program.name == "fibonacci").expect("it is one of them");
/// assert!(check(fibonacci.right()).is_passed());
/// ```
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Program {
    /// The name of the program.
    pub name: &'static str,
    /// The task of the program, and its bug.
    pub about: &'static str,
    run: fn(&System, bool) -> u64,
}

impl Program {
    /// Returns the right version. Its result is the same under all orders.
    pub fn right(self) -> impl Fn(&System) -> u64 {
        move |system| (self.run)(system, false)
    }

    /// Returns the version with the bug. It fails under some order.
    pub fn wrong(self) -> impl Fn(&System) -> u64 {
        move |system| (self.run)(system, true)
    }
}

impl Program {
    /// Returns the figures of the model checker for this program. Some programs take seconds.
    ///
    /// # Panics
    /// The right version does not pass, or the bug of the wrong version is not found.
    pub fn figures(self) -> Figures {
        let right = Checker::new().count_orders().run(self.right());
        assert!(right.is_passed(), "{}: {right}", self.name);
        let wrong = Checker::new().run(self.wrong());
        let failure = wrong.failure().unwrap_or_else(|| panic!("{}: its bug was not found", self.name));
        Figures {
            program: self.name,
            orders: right.orders(),
            schedules: right.schedules(),
            given_up: right.given_up(),
            shortest: failure.deliveries.len(),
        }
    }
}

/// The figures of the model checker for a program.
///
/// # Examples
///
/// ```
/// use playhouse_testkit::programs::{Figures, named};
///
/// let figures: Figures = named("commit").expect("it is one of them").figures();
/// assert!(u128::from(figures.schedules) <= figures.orders);
/// println!("{figures}");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Figures {
    /// The name of the program.
    pub program: &'static str,
    /// The number of orders of its messages.
    pub orders: u128,
    /// The number of orders that were tried, because the others differ only in commuting steps.
    pub schedules: u64,
    /// The number of runs that were abandoned.
    pub given_up: u64,
    /// The number of deliveries in the shortest schedule that shows the bug.
    pub shortest: usize,
}

/// The figures as a row of a table.
impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Figures { program, orders, schedules, given_up, shortest } = self;
        let digits = orders.to_string();
        let groups: Vec<&str> =
            digits.as_bytes().rchunks(3).rev().map(|group| str::from_utf8(group).unwrap_or("")).collect();
        let orders = groups.join(",");
        write!(f, "| {program} | {orders} | {schedules} | {given_up} | {shortest} |")
    }
}

/// All programs.
pub const PROGRAMS: [Program; 6] = [
    Program {
        name: "philosophers",
        about: "three philosophers dine once, each with two forks. Bug: all take the left one first",
        run: philosophers::dine,
    },
    Program {
        name: "election",
        about: "three nodes of a ring elect the highest (Chang and Roberts). Bug: a node that hears of another before it begins does not stand",
        run: election::elect,
    },
    Program {
        name: "chameneos",
        about: "three creatures meet twice and change their colours. Bug: they show each other their colours after the meeting",
        run: chameneos::meet,
    },
    Program {
        name: "fibonacci",
        about: "a tree of actors computes the fifth Fibonacci number. Bug: 0 is taken for no answer",
        run: fibonacci::compute,
    },
    Program {
        name: "path",
        about: "the nodes of a graph find their distances (Bellman and Ford). Bug: a node keeps the first distance that it hears of",
        run: path::find,
    },
    Program {
        name: "commit",
        about: "two-phase commit of three participants, one of which votes no. Bug: the coordinator decides when most have voted",
        run: commit::decide,
    },
];

/// Returns the program with this name.
pub fn named(name: &str) -> Option<Program> {
    PROGRAMS.into_iter().find(|program| program.name == name)
}
