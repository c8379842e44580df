//! The 20 programs of Rajesh Kumar's *Efficient Execution of Fine-Grained Actors on Multicore Processors* (2013), table 7.1,
//! written for Playhouse. The data of their messages is moved or shared, and never copied at a send.
//!
//! The thesis describes few of them. The programs of the ActorFoundry distribution follow that distribution, and the benchmarks
//! follow their well-known descriptions. The thesis gives only the names of the 4 programs by students (`clownfish`,
//! `rainbow_fish`, `swordfish`, `threadfin`). Other programs that students like to write stand in for them.
//!
//! Each program is a file with a function `run`, which returns whether its result is right. [`passing`] has the ways to pass an
//! argument, and their counters. The program `safe_messages` prints the tables.

pub mod passing;

mod chameneos;
mod clownfish;
mod concurrent;
mod copymessages;
mod fibonacci;
mod leader;
mod performance;
mod philosophers;
mod pi;
mod pingpong;
mod quicksort_copy;
mod quicksort_copy2;
mod rainbow_fish;
mod refmessages;
mod rpcping;
mod shortestpath;
mod sor;
mod swordfish;
mod threadfin;
mod threadring;

use std::time::{Duration, Instant};

use playhouse::prelude::*;

use passing::{Account, Mode, in_mode};

/// One of the 20 programs.
#[derive(Debug)]
pub struct Program {
    /// Its name in table 7.1.
    pub name: &'static str,
    /// The file in this folder, without its ending.
    pub file: &'static str,
    /// The size of its work in tests.
    pub small: usize,
    /// The size of its work in measurements.
    pub full: usize,
    /// Its rows in the tables of the thesis.
    pub thesis: Thesis,
    run: fn(&System, usize) -> playhouse::Result<bool>,
}

/// A row of table 7.1, and of table 7.2 where it has one.
#[derive(Clone, Copy, Debug)]
pub struct Thesis {
    /// Arguments in the program's code.
    pub arguments: usize,
    /// Arguments that could be passed by reference.
    pub ideal: usize,
    /// Arguments that SOTER finds.
    pub soter: usize,
    /// The speed-up of the program without any needless copy: table 7.2, before / ideal.
    pub speed_up: Option<f64>,
}

const fn thesis(arguments: usize, ideal: usize, soter: usize) -> Thesis {
    Thesis { arguments, ideal, soter, speed_up: None }
}

/// Returns the same, with the times of table 7.2 in milliseconds.
const fn timed(arguments: usize, ideal: usize, soter: usize, before: f64, fastest: f64) -> Thesis {
    Thesis { arguments, ideal, soter, speed_up: Some(before / fastest) }
}

/// Names a program, its file, its sizes, and its row.
macro_rules! programs {
    ($($name:literal $file:ident $small:literal $full:literal $thesis:expr;)*) => {
        [$(Program {
            name: $name,
            file: stringify!($file),
            small: $small,
            full: $full,
            thesis: $thesis,
            run: $file::run,
        }),*]
    };
}

/// The programs, in the order of table 7.1.
pub const PROGRAMS: [Program; 20] = programs! {
    "threadring" threadring 2_000 2_000_000 timed(7, 7, 7, 25_870.0, 1_880.0);
    "concurrent" concurrent 12 600 timed(12, 12, 7, 187_510.0, 1_390.0);
    "copymessages" copymessages 200 16_384 timed(19, 18, 10, 7_730.0, 610.0);
    "performance" performance 100 200_000 thesis(14, 14, 12);
    "pingpong" pingpong 300 500_000 thesis(9, 9, 8);
    "refmessages" refmessages 20 200_000 thesis(3, 3, 2);
    "rpcping" rpcping 20 200_000 thesis(9, 9, 9);
    "sor" sor 8 80 timed(36, 36, 18, 76_960.0, 5_890.0);
    "chameneos" chameneos 100 500_000 timed(12, 12, 4, 56_890.0, 1_620.0);
    "fibonacci" fibonacci 8 22 thesis(28, 28, 24);
    "leader" leader 50 30_000 timed(12, 12, 2, 14_050.0, 7_380.0);
    "philosophers" philosophers 5 30_000 timed(6, 6, 6, 9_550.0, 1_380.0);
    "pi" pi 10 3_000 timed(6, 6, 4, 4_210.0, 3_880.0);
    "shortestpath" shortestpath 40 2_000 thesis(59, 59, 52);
    "quicksortCopy" quicksort_copy 100 100_000 timed(3, 3, 3, 24_660.0, 4_530.0);
    "quicksortCopy2" quicksort_copy2 100 100_000 timed(8, 8, 6, 16_320.0, 3_580.0);
    "clownfish" clownfish 20 20_000 thesis(87, 87, 59);
    "rainbow_fish" rainbow_fish 20 5_000 thesis(68, 68, 67);
    "swordfish" swordfish 3 100 thesis(83, 83, 13);
    "threadfin" threadfin 50 50_000 thesis(101, 101, 98);
};

impl Program {
    /// Runs the program on `system` and returns the arguments that it sent.
    ///
    /// # Errors
    /// Fails if an ask failed or the result is wrong.
    pub fn count(&self, system: &System, size: usize) -> playhouse::Result<Account> {
        let (result, account) = in_mode(Mode::Counted, || self.check(system, size));
        result.map(|()| account)
    }

    /// Runs the program on `system` and returns its time, including the check.
    ///
    /// # Errors
    /// Fails if an ask failed or the result is wrong.
    pub fn time(&self, system: &System, size: usize, mode: Mode) -> playhouse::Result<Duration> {
        let timed = || {
            let started = Instant::now();
            self.check(system, size).map(|()| started.elapsed())
        };
        in_mode(mode, timed).0
    }

    fn check(&self, system: &System, size: usize) -> playhouse::Result<()> {
        if (self.run)(system, size)? { Ok(()) } else { Err(format!("{}: the result is wrong", self.name).into()) }
    }
}

/// Returns numbers in no order, the same each time.
fn numbers(count: usize) -> Vec<u64> {
    (1..=count as u64).map(|number| number.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect()
}
