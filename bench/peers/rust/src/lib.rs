//! The common part of the programs: the amounts of each workload, its expected results, and the printed line.
//!
//! The actors themselves share nothing: each program is written the way its runtime wants it.

pub mod partner;

use std::fmt::Debug;
use std::process::{ExitCode, exit};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};
use std::{io, thread};

/// How much a workload does.
#[derive(Clone, Copy)]
pub struct Size {
    smoke: bool,
}

impl Size {
    /// That of this name.
    pub fn named(name: &str) -> Result<Self, String> {
        match name {
            "smoke" => Ok(Self { smoke: true }),
            "default" => Ok(Self { smoke: false }),
            _ => Err(format!("there is no size `{name}`: there are smoke and default")),
        }
    }

    /// The figure of this size.
    pub fn pick<T>(self, smoke: T, default: T) -> T {
        if self.smoke { smoke } else { default }
    }
}

/// Messages that an actor with a long list to send sends before it lets others run and goes on by a message to itself.
pub const SLICE: u64 = 1_000;

/// Increments of `count`.
pub fn count(size: Size) -> u64 {
    size.pick(10_000, 10_000_000)
}

/// Round trips of `pingpong`.
pub fn pingpong(size: Size) -> u64 {
    size.pick(2_000, 2_000_000)
}

/// Rings, each with one token.
#[derive(Clone, Copy)]
pub struct Rings {
    pub rings: u64,
    pub members: u64,
    pub hops: u64,
}

impl Rings {
    /// Those of `threadring`.
    pub fn one(size: Size) -> Self {
        Self { rings: 1, members: 503, hops: size.pick(5_000, 5_000_000) }
    }

    /// Those of `ringmulti`.
    pub fn many(size: Size) -> Self {
        Self { rings: size.pick(10, 100), members: size.pick(20, 100), hops: size.pick(500, 100_000) }
    }

    /// The positions at which the tokens stop, added up.
    pub fn positions_sum(self) -> u64 {
        self.rings * (self.hops % self.members)
    }

    /// Hops of all tokens.
    pub fn ops(self) -> u64 {
        self.rings * self.hops
    }
}

/// Actors of `fjcreate`.
pub fn fjcreate(size: Size) -> u64 {
    size.pick(2_000, 1_000_000)
}

/// The work of one actor of `fjcreate`.
pub fn work(number: u64) -> u64 {
    2 * number
}

/// The work of all, added up.
pub fn work_sum(actors: u64) -> u64 {
    actors * (actors - 1)
}

/// Leaves of `skynet`.
pub fn skynet(size: Size) -> u64 {
    size.pick(1_000, 1_000_000)
}

/// Children of an actor of `skynet`.
pub const DEGREE: u64 = 10;

/// Actors of `skynet`.
pub fn skynet_actors(leaves: u64) -> u64 {
    (leaves * DEGREE - 1) / (DEGREE - 1)
}

/// Meetings of `chameneos`.
pub fn chameneos(size: Size) -> u64 {
    size.pick(1_000, 2_000_000)
}

/// Creatures of `chameneos`.
pub const CREATURES: u64 = 10;

/// The colour of a creature.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Colour {
    Blue,
    Red,
    Yellow,
}

impl Colour {
    /// That of creature `number` at the start.
    pub fn of(number: u64) -> Self {
        [Self::Blue, Self::Red, Self::Yellow][(number % 3) as usize]
    }

    /// What it turns into where it meets `other`.
    pub fn complement(self, other: Self) -> Self {
        if self == other {
            return self;
        }
        [Self::Blue, Self::Red, Self::Yellow].into_iter().find(|&third| third != self && third != other).unwrap_or(self)
    }
}

/// Pings of each actor of `big`.
pub fn big(size: Size) -> u64 {
    size.pick(20, 20_000)
}

/// Actors of `big`.
pub const MEMBERS: u32 = 120;

/// Whom an actor of `big` pings next: a linear congruential generator of 32 bits.
pub struct Dice(u32);

impl Dice {
    /// That of actor `number`.
    pub fn of(number: u32) -> Self {
        Self(number.wrapping_mul(0x9E37_79B9))
    }

    /// An actor other than `number`.
    pub fn other(&mut self, number: u32) -> usize {
        self.0 = self.0.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let step = (u64::from(self.0) * u64::from(MEMBERS - 1)) >> 32;
        ((number + 1 + step as u32) % MEMBERS) as usize
    }
}

/// The argument of `fib`.
pub fn fib(size: Size) -> u64 {
    size.pick(10, 25)
}

/// The Fibonacci number of `n`, and how many calls its naive computation has.
pub fn fib_and_actors(n: u64) -> (u64, u64) {
    let value = (0..n).fold((0, 1), |(a, b), _| (b, a + b)).0;
    let actors = (0..n).fold((1, 1), |(a, b), _| (b, a + b + 1)).0;
    (value, actors)
}

/// Groups of `executor`, and sends of each of their actors.
pub fn executor(size: Size) -> (u64, u64) {
    size.pick((4, 100), (400, 400))
}

/// Actors in a group of `executor`.
pub const GROUP: u64 = 100;

/// Servers and rounds of `repeat`.
pub fn repeat(size: Size) -> (u64, u64) {
    size.pick((2_500, 4), (100_000, 40))
}

/// The numbers of requests that the servers of `repeat` answer with, added up.
pub fn requests_sum(servers: u64, rounds: u64) -> u64 {
    servers * (rounds * (rounds + 1) / 2)
}

/// Round trips of `rpingpong`.
pub fn rpingpong(size: Size) -> u64 {
    size.pick(200, 100_000)
}

/// Messages of `rthroughput`.
pub fn rthroughput(size: Size) -> u64 {
    size.pick(20_000, 2_000_000)
}

/// Messages of `rthroughput` that are under way at most.
pub const WINDOW: u64 = 10_000;

/// Messages of `rthroughput` that are acknowledged together.
pub const ACKNOWLEDGE: u64 = 1_000;

/// Actors of `rcreate`.
pub fn rcreate(size: Size) -> u64 {
    size.pick(100, 5_000)
}

/// Rings of `rrings` and how often a token goes round each, if it is called so.
pub fn rrings(workload: &str, size: Size) -> Option<(u64, u64)> {
    let rings = workload.strip_prefix("rrings-")?.parse().ok()?;
    Some((size.pick(4.min(rings), rings), size.pick(20, 1_000)))
}

/// Held by the actor that reaches the final state: it takes the time at once.
#[derive(Clone)]
pub struct Finish(Sender<(Instant, u64)>);

impl Finish {
    /// The final state is reached now, with this result.
    pub fn reached(&self, result: u64) {
        // The main thread listens until it has heard.
        let _ = self.0.send((Instant::now(), result));
    }
}

/// Waits until so many are done, and finishes with the sum of their numbers.
pub struct Tally {
    missing: u64,
    sum: u64,
    finish: Finish,
}

impl Tally {
    /// So many are not done yet.
    pub fn new(missing: u64, finish: Finish) -> Self {
        Self { missing, sum: 0, finish }
    }

    /// One of them is, with this number.
    pub fn done(&mut self, number: u64) {
        self.sum += number;
        self.missing -= 1;
        if self.missing == 0 {
            self.finish.reached(self.sum);
        }
    }
}

/// Held by the main thread.
pub struct Finished(Receiver<(Instant, u64)>);

/// The two ends.
pub fn finish() -> (Finish, Finished) {
    let (sender, receiver) = channel();
    (Finish(sender), Finished(receiver))
}

/// A run: its operations and their time, or an error.
pub type Played = Result<(u64, Duration), String>;

impl Finished {
    /// Calls `start`, and waits for the final state, whose result must be `expected` after so many operations.
    pub fn time(self, ops: u64, expected: u64, start: impl FnOnce()) -> Played {
        let started = Instant::now();
        start();
        let (ended, result) = self.0.recv().map_err(|_| "the actor that should finish ended before")?;
        check("the result", expected, result)?;
        Ok((ops, ended - started))
    }
}

/// Compares a result with the expected one.
pub fn check<T: PartialEq + Debug>(what: &str, expected: T, found: T) -> Result<(), String> {
    if expected == found { Ok(()) } else { Err(format!("wrong: {what} should be {expected:?} and is {found:?}")) }
}

/// Reads `WORKLOAD --size smoke|default --workers N`, has the workload played, prints the line, and waits. Ends with the standard
/// input, whatever the others are at.
pub fn run(peer: &str, version: &str, play: impl FnOnce(&str, Size, usize) -> Option<Played>) -> ExitCode {
    let listener = thread::spawn(end_with_input);
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let [workload, "--size", size, "--workers", workers] = words[..] else {
        fail(&format!("usage: {peer} WORKLOAD --size smoke|default --workers N"));
    };
    let size = Size::named(size).unwrap_or_else(|wrong| fail(&wrong));
    let Ok(workers) = workers.parse() else {
        fail(&format!("`{workers}` is no number of workers"));
    };
    match play(workload, size, workers) {
        Some(Ok((ops, elapsed))) => {
            let ns = elapsed.as_nanos();
            println!(r#"{{"peer":"{peer}","version":"{version}","workload":"{workload}","ops":{ops},"ns":{ns}}}"#);
            // Its memory is looked at until its input ends.
            let _ = listener.join();
            ExitCode::SUCCESS
        }
        Some(Err(wrong)) => fail(&wrong),
        None => fail(&format!("there is no workload `{workload}`")),
    }
}

/// Ends this process when its standard input ends.
pub fn end_with_input() {
    // An error is as good as its end.
    let _ = io::copy(&mut io::stdin(), &mut io::sink());
    exit(0)
}

/// Prints the error and ends this process. A panic would end only its actor, and the run would wait for it.
pub fn fail(text: &str) -> ! {
    eprintln!("{text}");
    exit(1)
}
