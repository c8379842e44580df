//! The rings of [`theater_rings`](crate::workloads::remote::theater_rings) with actors that could move, and do not.

use playhouse::prelude::*;
use playhouse::serde::{Deserialize, Serialize};

use crate::harness::benchmark::{Baseline, Benchmark};
use crate::harness::outcome::Failure;
use crate::report::Target;
use crate::workloads::remote::theater_rings::{Arrived, Judge, RRINGS_1, RRINGS_32, RRINGS_320, Ring, actors, run};

pub(crate) const RRINGS_MOBILE_1: Benchmark = Benchmark {
    name: "rrings-mobile-1",
    summary: "rrings-1 with actors that could move, and do not; baseline: rrings-1",
    workload: |system, size, _| run(system, size, 1, mobile::build),
    baseline: Some(Baseline::Benchmark(&RRINGS_1)),
    target: Target::ratio(1.03),
    ..RRINGS_1
};

pub(crate) const RRINGS_MOBILE_32: Benchmark = Benchmark {
    name: "rrings-mobile-32",
    summary: "rrings-32 with actors that could move, and do not; baseline: rrings-32",
    workload: |system, size, _| run(system, size, 32, mobile::build),
    baseline: Some(Baseline::Benchmark(&RRINGS_32)),
    ..RRINGS_MOBILE_1
};

pub(crate) const RRINGS_MOBILE_320: Benchmark = Benchmark {
    name: "rrings-mobile-320",
    summary: "rrings-320 with actors that could move, and do not; baseline: rrings-320",
    workload: |system, size, _| run(system, size, 320, mobile::build),
    baseline: Some(Baseline::Benchmark(&RRINGS_320)),
    ..RRINGS_MOBILE_1
};

actors!(
    mobile,
    [remote = "bench.rings.MobileHead", mobile],
    [remote = "bench.rings.MobileMember", mobile],
    [
        "playhouse_bench::workloads::mobile_rings::mobile::CameRound",
        "playhouse_bench::workloads::mobile_rings::mobile::Join",
        "playhouse_bench::workloads::mobile_rings::mobile::Hop",
        "playhouse_bench::workloads::mobile_rings::mobile::Hops"
    ]
);
