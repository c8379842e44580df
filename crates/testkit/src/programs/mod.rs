//! Known programs, each right or with a bug planted in it: what the model checker is tested and measured with, and examples of
//! what can be given to it.

mod chameneos;
mod commit;
mod election;
mod fibonacci;
mod path;
mod philosophers;

use std::fmt;

use playhouse::System;

use crate::check::Checker;

/// A program that can be checked.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Program {
    /// What it is called.
    pub name: &'static str,
    /// What it does, and what its bug is.
    pub about: &'static str,
    run: fn(&System, bool) -> u64,
}

impl Program {
    /// The program as it should be: it returns the same under all orders.
    pub fn right(self) -> impl Fn(&System) -> u64 {
        move |system| (self.run)(system, false)
    }

    /// The program with its bug: under some order something goes wrong.
    pub fn wrong(self) -> impl Fn(&System) -> u64 {
        move |system| (self.run)(system, true)
    }
}

impl Program {
    /// What the model checker makes of it. Takes seconds for some.
    ///
    /// # Panics
    /// If the right program does not pass, or the bug of the wrong one is not found.
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

/// What the model checker makes of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Figures {
    /// Which.
    pub program: &'static str,
    /// In how many orders its messages can be delivered.
    pub orders: u128,
    /// How many of them were tried, since the others differ in what commutes only.
    pub schedules: u64,
    /// How many more were begun, and given up.
    pub given_up: u64,
    /// Deliveries of the shortest schedule in which its bug shows.
    pub shortest: usize,
}

/// A row of a table.
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

/// All of them.
pub const PROGRAMS: [Program; 6] = [
    Program {
        name: "philosophers",
        about: "three philosophers dine once, each with two forks. Bug: all take the left one first",
        run: philosophers::dine,
    },
    Program {
        name: "election",
        about: "three nodes of a ring elect the highest (Chang and Roberts). Bug: who hears of another before it begins does not stand",
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
        about: "the nodes of a graph find their distances (Bellman and Ford). Bug: a node keeps the first it hears of",
        run: path::find,
    },
    Program {
        name: "commit",
        about: "two-phase commit of three, one of whom is against. Bug: the coordinator decides when most have voted",
        run: commit::decide,
    },
];

/// The program with this name.
pub fn named(name: &str) -> Option<Program> {
    PROGRAMS.into_iter().find(|program| program.name == name)
}
