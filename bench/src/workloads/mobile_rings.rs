//! The rings of [`theater_rings`](super::theater_rings) with actors that could move, and do not.

use playhouse::prelude::*;
use playhouse::serde::{Deserialize, Serialize};

use super::theater_rings::{Arrived, Judge, RRINGS_1, Ring, actors, run};
use crate::outcome::Failure;
use crate::registry::{Benchmark, Limit, Target};

pub(crate) const RRINGS_MOBILE_1: Benchmark = Benchmark {
    name: "rrings-mobile-1",
    summary: "rrings-1 with actors that could move, and do not; limit: rrings-1",
    workload: |system, size, _| run(system, size, 1, mobile::build),
    limit: Some(Limit::Benchmark("rrings-1")),
    target: Target::ratio(1.03),
    ..RRINGS_1
};

pub(crate) const RRINGS_MOBILE_32: Benchmark = Benchmark {
    name: "rrings-mobile-32",
    summary: "rrings-32 with actors that could move, and do not; limit: rrings-32",
    workload: |system, size, _| run(system, size, 32, mobile::build),
    limit: Some(Limit::Benchmark("rrings-32")),
    ..RRINGS_MOBILE_1
};

pub(crate) const RRINGS_MOBILE_320: Benchmark = Benchmark {
    name: "rrings-mobile-320",
    summary: "rrings-320 with actors that could move, and do not; limit: rrings-320",
    workload: |system, size, _| run(system, size, 320, mobile::build),
    limit: Some(Limit::Benchmark("rrings-320")),
    ..RRINGS_MOBILE_1
};

actors!(mobile, [remote = "bench.rings.MobileHead", mobile], [remote = "bench.rings.MobileMember", mobile]);
