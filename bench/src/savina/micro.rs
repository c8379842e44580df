//! The programs that are workloads of this project too, with Savina's parameters.

use playhouse::prelude::*;

use super::program;
use crate::limit;
use crate::outcome::Size;
use crate::registry::{Benchmark, Family, Limit};
use crate::steps::Steps;
use crate::workloads::{big, chameneos, count, fib, fjcreate, pingpong, rings};

pub(crate) const PINGPONG: Benchmark = Benchmark {
    limit: Some(Limit::Hand(|size| limit::messages::pingpong(&round_trips(size, Steps::NONE)))),
    ..program(
        "savina-pingpong",
        "message",
        "two actors of one group bounce one message, 40,000 round trips",
        |system, size, work| {
            let group = Placement::Group(Group::new(system));
            pingpong::run(system, size, round_trips(size, work), group, group, 2)
        },
    )
};

fn round_trips(size: Size, work: Steps) -> pingpong::Plan {
    pingpong::Plan { round_trips: size.smoke_or(500, 40_000), work }
}

pub(crate) const THREADRING: Benchmark = Benchmark {
    limit: Some(Limit::Hand(|size| limit::rings::rings(&ring(size, Steps::NONE)))),
    ..program(
        "savina-threadring",
        "hop",
        "one token goes round 100 actors of one group, 100,000 hops",
        |system, size, work| rings::run(system, size, ring(size, work), |_| Placement::Group(Group::new(system))),
    )
};

fn ring(size: Size, work: Steps) -> rings::Plan {
    rings::Plan { rings: 1, members: 100, tokens: 1, hops: size.smoke_or(1_010, 100_000), work }
}

pub(crate) const COUNT: Benchmark = Benchmark {
    limit: Some(Limit::Hand(|size| limit::messages::count(&increments(size, Steps::NONE)))),
    ..program(
        "savina-count",
        "message",
        "a producer sends 1,000,000 increments to a counter in its group, then asks for the count",
        |system, size, work| {
            let group = Placement::Group(Group::new(system));
            count::run(system, size, increments(size, work), group, group)
        },
    )
};

fn increments(size: Size, work: Steps) -> count::Plan {
    count::Plan { increments: size.smoke_or(5_000, 1_000_000), work }
}

pub(crate) const FJCREATE: Benchmark = Benchmark {
    limit: Some(Limit::Hand(|size| limit::creation::fjcreate(&actors(size, Steps::NONE)))),
    ..program(
        "savina-fjcreate",
        "actor",
        "a master creates 40,000 actors, then tells each to work; each acknowledges and stops",
        |system, size, work| fjcreate::run(system, size, actors(size, work), 1),
    )
};

fn actors(size: Size, work: Steps) -> fjcreate::Plan {
    fjcreate::Plan { actors: size.smoke_or(1_500, 40_000), work }
}

pub(crate) const CHAMENEOS: Benchmark = Benchmark {
    limit: Some(Limit::Hand(|size| limit::meetings::chameneos(&meetings(size, Steps::NONE)))),
    ..program(
        "savina-chameneos",
        "meeting",
        "100 chameneos of one group and their mall, 200,000 meetings of four messages each",
        |system, size, work| chameneos::run(system, size, meetings(size, work)),
    )
};

fn meetings(size: Size, work: Steps) -> chameneos::Plan {
    chameneos::Plan { meetings: size.smoke_or(500, 200_000), creatures: 100, work }
}

/// The size is that of `big`.
pub(crate) const BIG: Benchmark = Benchmark {
    name: "savina-big",
    workload: |system, size, work| big::run(system, size, big::Plan { work, ..big::Plan::of(size) }),
    family: Family::Savina,
    target: None,
    ..big::BIG
};

/// The size is that of `fib`.
pub(crate) const FIB: Benchmark = Benchmark {
    name: "savina-fib",
    workload: |system, size, work| fib::run(system, size, fib::Plan { work, ..fib::Plan::of(size) }),
    family: Family::Savina,
    target: None,
    ..fib::FIB
};
