//! The programs that are workloads of this project too, with Savina's parameters.

use playhouse::prelude::*;

use super::program;
use crate::baselines;
use crate::harness::benchmark::{Baseline, Benchmark, Family};
use crate::harness::outcome::Size;
use crate::harness::steps::Steps;
use crate::plans;
use crate::workloads::messaging::{big, chameneos, count, pingpong, rings};
use crate::workloads::spawn::{fib, fjcreate};

pub(crate) const PINGPONG: Benchmark = Benchmark {
    baseline: Some(Baseline::Hand(|size| baselines::messages::pingpong(&round_trips(size, Steps::NONE)))),
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

fn round_trips(size: Size, work: Steps) -> plans::pingpong::Plan {
    plans::pingpong::Plan { round_trips: size.smoke_or(500, 40_000), work }
}

pub(crate) const THREADRING: Benchmark = Benchmark {
    baseline: Some(Baseline::Hand(|size| baselines::rings::rings(&ring(size, Steps::NONE)))),
    ..program(
        "savina-threadring",
        "hop",
        "one token goes round 100 actors of one group, 100,000 hops",
        |system, size, work| rings::run(system, size, ring(size, work), |_| Placement::Group(Group::new(system))),
    )
};

fn ring(size: Size, work: Steps) -> plans::rings::Plan {
    plans::rings::Plan { rings: 1, members: 100, tokens: 1, hops: size.smoke_or(1_010, 100_000), work }
}

pub(crate) const COUNT: Benchmark = Benchmark {
    baseline: Some(Baseline::Hand(|size| baselines::messages::count(&increments(size, Steps::NONE)))),
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

fn increments(size: Size, work: Steps) -> plans::count::Plan {
    plans::count::Plan { increments: size.smoke_or(5_000, 1_000_000), work }
}

pub(crate) const FJCREATE: Benchmark = Benchmark {
    baseline: Some(Baseline::Hand(|size| baselines::creation::fjcreate(&actors(size, Steps::NONE)))),
    ..program(
        "savina-fjcreate",
        "actor",
        "a master creates 40,000 actors, then tells each to work; each acknowledges and stops",
        |system, size, work| fjcreate::run(system, size, actors(size, work), 1),
    )
};

fn actors(size: Size, work: Steps) -> plans::fjcreate::Plan {
    plans::fjcreate::Plan { actors: size.smoke_or(1_500, 40_000), work }
}

pub(crate) const CHAMENEOS: Benchmark = Benchmark {
    baseline: Some(Baseline::Hand(|size| baselines::meetings::chameneos(&meetings(size, Steps::NONE)))),
    ..program(
        "savina-chameneos",
        "meeting",
        "100 chameneos of one group and their mall, 200,000 meetings of four messages each",
        |system, size, work| chameneos::run(system, size, meetings(size, work)),
    )
};

fn meetings(size: Size, work: Steps) -> plans::chameneos::Plan {
    plans::chameneos::Plan { meetings: size.smoke_or(500, 200_000), creatures: 100, work }
}

/// The size is that of `big`.
pub(crate) const BIG: Benchmark = Benchmark {
    name: "savina-big",
    workload: |system, size, work| big::run(system, size, plans::big::Plan { work, ..plans::big::Plan::of(size) }),
    family: Family::Savina,
    target: None,
    ..big::BIG
};

/// The size is that of `fib`.
pub(crate) const FIB: Benchmark = Benchmark {
    name: "savina-fib",
    workload: |system, size, work| fib::run(system, size, plans::fib::Plan { work, ..plans::fib::Plan::of(size) }),
    family: Family::Savina,
    target: None,
    ..fib::FIB
};
