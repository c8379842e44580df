//! Unbalanced load: the executor workload placed on some workers only, with each way of stealing.
//!
//! `balance-one-*` loads the first worker only; all others have nothing. `balance-multi-*` loads every other worker, each
//! with as much. With two workers both load one. Without stealing the idle workers cannot help.

use playhouse::prelude::*;

use super::executor::run;
use crate::baselines;
use crate::harness::benchmark::{Baseline, Benchmark, Family};
use crate::harness::outcome::{Failure, Outcome, Size};
use crate::harness::placement::stage_of;
use crate::plans::executor::Plan;

pub(crate) const BALANCE_ONE_LONGEST: Benchmark = Benchmark {
    name: "balance-one-longest",
    op: "message",
    source: "cforall-actors, Performance, Work Stealing",
    summary: "executor, 100 messages per actor, all placed on one worker; idle workers steal from the longest victim",
    stealing: Some(Stealing::LongestVictim),
    workers_min: 2,
    family: Family::Local,
    workload: |system, size, _| one(system, size),
    baseline: Some(Baseline::Hand(|size| baselines::executor::executor(&plan(size, 1)))),
    target: None,
};

pub(crate) const BALANCE_ONE_RANDOM: Benchmark = Benchmark {
    name: "balance-one-random",
    summary: "balance-one; idle workers steal from random victims",
    stealing: Some(Stealing::Random),
    ..BALANCE_ONE_LONGEST
};

pub(crate) const BALANCE_ONE_NONE: Benchmark = Benchmark {
    name: "balance-one-none",
    summary: "balance-one; no worker steals",
    stealing: Some(Stealing::None),
    ..BALANCE_ONE_LONGEST
};

pub(crate) const BALANCE_MULTI_LONGEST: Benchmark = Benchmark {
    name: "balance-multi-longest",
    summary: "executor, 100 messages per actor, on every other worker; idle workers steal from the longest victim",
    workload: |system, size, _| multi(system, size),
    ..BALANCE_ONE_LONGEST
};

pub(crate) const BALANCE_MULTI_RANDOM: Benchmark = Benchmark {
    name: "balance-multi-random",
    summary: "balance-multi; idle workers steal from random victims",
    stealing: Some(Stealing::Random),
    ..BALANCE_MULTI_LONGEST
};

pub(crate) const BALANCE_MULTI_NONE: Benchmark = Benchmark {
    name: "balance-multi-none",
    summary: "balance-multi; no worker steals",
    stealing: Some(Stealing::None),
    ..BALANCE_MULTI_LONGEST
};

/// The executor's groups on each of `loaded` workers, with fewer messages. The paper does not say how many rounds
/// "fewer" are; one round through the group is ours at the default size, and the suite's four at the paper's.
fn plan(size: Size, loaded: usize) -> Plan {
    Plan { groups: size.pick(4, 400, 400) * loaded, sends: size.pick(100, 100, 400) }
}

fn one(system: &System, size: Size) -> Result<Outcome, Failure> {
    run(system, size, plan(size, 1), |group| stage_of(system, 0, group))
}

fn multi(system: &System, size: Size) -> Result<Outcome, Failure> {
    let loaded = system.workers().div_ceil(2);
    let worker = |group: usize| 2 * (group % loaded);
    run(system, size, plan(size, loaded), |group| stage_of(system, worker(group), group / loaded))
}
