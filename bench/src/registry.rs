//! The one list of benchmarks.

use std::sync::LazyLock;

use playhouse::prelude::*;
use serde::{Deserialize, Serialize};

use crate::outcome::{Failure, Outcome, Size};
#[cfg(feature = "whole")]
use crate::savina;
use crate::steps::Steps;
use crate::workloads;

/// One benchmark: what it is, how to run it on Playhouse, how to run its floor, and what it should reach.
#[derive(Clone, Copy)]
pub struct Benchmark {
    /// The name used on the command line and in reports; unique.
    pub name: &'static str,
    /// What one operation is.
    pub op: &'static str,
    /// Where the workload comes from: the paper and its section, or the suite.
    pub source: &'static str,
    /// What happens, in one line.
    pub summary: &'static str,
    /// How idle workers steal. `None`: the runtime's default.
    pub stealing: Option<Stealing>,
    /// The fewest workers that the workload makes sense on.
    pub workers_min: usize,
    /// With which others it is called together.
    pub family: Family,
    /// Runs the workload once on a freshly started system. Only Savina's programs work with each message.
    pub workload: fn(&System, Size, Steps) -> Result<Outcome, Failure>,
    /// What it is measured against, in turns, if there is something.
    pub limit: Option<Limit>,
    /// What it should reach, if that is settled.
    pub target: Option<Target>,
}

/// Benchmarks that belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// Those of one system, with this project's sizes.
    Local,
    /// Those of actors that other theaters reach.
    Remote,
    /// The 30 programs of the Savina suite, with its sizes.
    Savina,
}

impl Family {
    /// All families.
    pub const ALL: [Self; 3] = [Self::Local, Self::Remote, Self::Savina];

    /// What its benchmarks are called together.
    pub fn name(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::Remote => "remote",
            Self::Savina => "savina",
        }
    }
}

/// What a workload is measured against.
#[derive(Clone, Copy)]
pub enum Limit {
    /// Its floor: the same written by hand, without actors. Runs it once.
    Hand(fn(Size) -> Result<Outcome, Failure>),
    /// The benchmark of this name: the same with actors that can do less, where what is asked is what the rest costs.
    Benchmark(&'static str),
}

/// What the floor of `count` takes per message on the machine that the targets in nanoseconds are for.
pub const COUNT_LIMIT_NS: f64 = 4.7;

/// What a benchmark should reach on two workers.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Target {
    /// The largest ratio to the floor measured in the same run.
    pub ratio: Option<f64>,
    /// The most nanoseconds per operation; in the registry on a machine where the floor of `count` takes
    /// [`COUNT_LIMIT_NS`].
    pub ns_per_op: Option<f64>,
    /// Whether the time is that of a machine where the floor of `count` takes [`COUNT_LIMIT_NS`]; if not, of any.
    pub scales: bool,
}

impl Target {
    /// A bound on the ratio to the floor and one on the time.
    pub(crate) const fn new(ratio: f64, ns_per_op: f64) -> Option<Self> {
        Some(Self { ratio: Some(ratio), ns_per_op: Some(ns_per_op), scales: true })
    }

    /// A bound on the time only.
    pub(crate) const fn ns(ns_per_op: f64) -> Option<Self> {
        Some(Self { ratio: None, ns_per_op: Some(ns_per_op), scales: true })
    }

    /// A bound on the ratio only.
    pub(crate) const fn ratio(ratio: f64) -> Option<Self> {
        Some(Self { ratio: Some(ratio), ns_per_op: None, scales: false })
    }

    /// As `new` or `ns`, for any machine: what the system's calls take says little about what messages take.
    pub(crate) const fn any_machine(ratio: Option<f64>, ns_per_op: f64) -> Option<Self> {
        Some(Self { ratio, ns_per_op: Some(ns_per_op), scales: false })
    }

    /// The same on a machine that takes `scale` times as long.
    pub(crate) fn scaled(self, scale: f64) -> Self {
        Self { ns_per_op: self.ns_per_op.map(|ns| if self.scales { ns * scale } else { ns }), ..self }
    }
}

/// Those that other actor runtimes play in one process, too. Without the feature `remote` there are no others.
pub(crate) const SHARED: [Benchmark; 11] = [
    workloads::count::COUNT,
    workloads::pingpong::PINGPONG,
    workloads::rings::THREADRING,
    workloads::rings::RINGMULTI,
    workloads::fjcreate::FJCREATE,
    workloads::skynet::SKYNET,
    workloads::chameneos::CHAMENEOS,
    workloads::big::BIG,
    workloads::fib::FIB,
    workloads::executor::EXECUTOR,
    workloads::repeat::REPEAT,
];

/// Those that other actor runtimes play in several processes, too. With `remote` and without `whole` there are no others.
#[cfg(all(feature = "remote", not(feature = "whole")))]
const SHARED_REMOTE: &[Benchmark] = &[
    workloads::remote::RPINGPONG,
    workloads::remote::RTHROUGHPUT,
    workloads::remote::RCREATE,
    workloads::theater_rings::RRINGS_1,
    workloads::theater_rings::RRINGS_32,
    workloads::theater_rings::RRINGS_320,
];

/// The suite's table, then what the papers add.
#[cfg(feature = "whole")]
const TABLE: &[Benchmark] = &[
    workloads::count::COUNT,
    workloads::count::COUNT_CROSS,
    workloads::pingpong::PINGPONG,
    workloads::pingpong::PINGPONG_CROSS,
    workloads::pingpong::PINGPONG_AUTO,
    workloads::asks::ASKS_FROM_TOKIO,
    workloads::asks::ASKS_FROM_TOKIO_1,
    workloads::web::WEB,
    workloads::rings::THREADRING,
    workloads::rings::THREADRING_NEAR,
    workloads::rings::RINGMULTI,
    workloads::rings::RINGMULTI_NEAR,
    workloads::fjcreate::FJCREATE,
    workloads::skynet::SKYNET,
    workloads::chameneos::CHAMENEOS,
    workloads::big::BIG,
    workloads::fib::FIB,
    workloads::executor::EXECUTOR,
    workloads::executor::EXECUTOR_SPREAD,
    workloads::repeat::REPEAT,
    workloads::send::SEND_STATIC,
    workloads::send::SEND_DYNAMIC,
    workloads::matrix::MATRIX,
    workloads::balance::BALANCE_ONE_LONGEST,
    workloads::balance::BALANCE_ONE_RANDOM,
    workloads::balance::BALANCE_ONE_NONE,
    workloads::balance::BALANCE_MULTI_LONGEST,
    workloads::balance::BALANCE_MULTI_RANDOM,
    workloads::balance::BALANCE_MULTI_NONE,
    workloads::rings::NFOLD_RING,
    workloads::pairs::PINGPONG_GROUPED,
    workloads::pairs::PINGPONG_BULK,
    workloads::creation::CREATION,
];

/// Those of several theaters.
#[cfg(feature = "whole")]
const THEATERS: &[Benchmark] = &[
    workloads::kinds::THREADRING_REMOTE,
    workloads::kinds::THREADRING_MOBILE,
    workloads::kinds::CREATION_REMOTE,
    workloads::kinds::CREATION_MOBILE,
    workloads::remote::RPINGPONG,
    workloads::remote::RTHROUGHPUT,
    workloads::remote::RPINGPONG_TLS,
    workloads::remote::RTHROUGHPUT_TLS,
    workloads::remote::RCREATE,
    workloads::remote::RCREATE_WAITING,
    workloads::create_migrated::RCREATE_MIGRATED,
    workloads::theater_rings::RRINGS_1,
    workloads::theater_rings::RRINGS_32,
    workloads::theater_rings::RRINGS_320,
    workloads::mobile_rings::RRINGS_MOBILE_1,
    workloads::mobile_rings::RRINGS_MOBILE_32,
    workloads::mobile_rings::RRINGS_MOBILE_320,
    workloads::migration::MIGRATION_RINGS_1,
    workloads::migration::MIGRATION_RINGS_32,
    workloads::migration::MIGRATION_RINGS_320,
    workloads::migration::MIGRATE_1MIB,
    workloads::drain::DRAIN,
];

/// What can be had in one process without running out of memory or patience.
#[cfg(feature = "whole")]
const MEMORY: &[Benchmark] = &[workloads::idle::IDLE, workloads::fjcreate::WAVES, workloads::flood::FLOOD];

/// The Savina suite.
#[cfg(feature = "whole")]
const SAVINA: &[Benchmark] = &[
    savina::micro::PINGPONG,
    savina::micro::THREADRING,
    savina::micro::COUNT,
    savina::micro::FJCREATE,
    savina::fjthrput::FJTHRPUT,
    savina::micro::CHAMENEOS,
    savina::micro::BIG,
    savina::micro::FIB,
    savina::concdict::CONCDICT,
    savina::concsll::CONCSLL,
    savina::bndbuffer::BNDBUFFER,
    savina::philosophers::PHILOSOPHERS,
    savina::barber::BARBER,
    savina::cigsmok::CIGSMOK,
    savina::logmap::LOGMAP,
    savina::banking::BANKING,
    savina::radixsort::RADIXSORT,
    savina::filterbank::FILTERBANK,
    savina::sieve::SIEVE,
    savina::uct::UCT,
    savina::facloc::FACLOC,
    savina::trapezoid::TRAPEZOID,
    savina::piprecision::PIPRECISION,
    savina::recmatmul::RECMATMUL,
    savina::quicksort::QUICKSORT,
    savina::apsp::APSP,
    savina::sor::SOR,
    savina::astar::ASTAR,
    savina::nqueens::NQUEENS,
    savina::bitonicsort::BITONICSORT,
];

/// Every benchmark, in the order of the reports. Without the feature `whole` only those that the peers play: with `remote` in several
/// processes, without it in one.
pub fn all() -> &'static [Benchmark] {
    #[cfg(feature = "whole")]
    const PARTS: [&[Benchmark]; 4] = [TABLE, THEATERS, MEMORY, SAVINA];
    #[cfg(all(feature = "remote", not(feature = "whole")))]
    const PARTS: [&[Benchmark]; 1] = [SHARED_REMOTE];
    #[cfg(not(feature = "remote"))]
    const PARTS: [&[Benchmark]; 1] = [&SHARED];
    static ALL: LazyLock<Vec<Benchmark>> = LazyLock::new(|| PARTS.concat());
    &ALL
}

/// The benchmark called `name`, or all of the [`Family`] of that name.
///
/// # Errors
///
/// As [`find`].
pub fn find_all(name: &str) -> Result<Vec<&'static Benchmark>, Failure> {
    match Family::ALL.into_iter().find(|family| family.name() == name) {
        Some(family) => Ok(all().iter().filter(|benchmark| benchmark.family == family).collect()),
        None => find(name).map(|benchmark| vec![benchmark]),
    }
}

/// The benchmark called `name`.
///
/// # Errors
///
/// Says which names there are if none is called that.
pub fn find(name: &str) -> Result<&'static Benchmark, Failure> {
    all().iter().find(|benchmark| benchmark.name == name).ok_or_else(|| {
        let names: Vec<_> = all().iter().map(|benchmark| benchmark.name).collect();
        Failure::new(format!("there is no benchmark `{name}`; the benchmarks are {}", names.join(", ")))
    })
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn names_are_unique_and_found() {
        let names: HashSet<_> = all().iter().map(|benchmark| benchmark.name).collect();
        assert_eq!(names.len(), all().len());
        for benchmark in all() {
            assert_eq!(find(benchmark.name).unwrap().name, benchmark.name);
            if let Some(Limit::Benchmark(other)) = benchmark.limit {
                assert!(find(other).is_ok() && other != benchmark.name, "{}", benchmark.name);
            }
        }
    }

    #[test]
    fn remote_are_those_that_other_theaters_reach() {
        let remote = find_all("remote").unwrap();
        let is_remote = |name| remote.iter().any(|benchmark| benchmark.name == name);
        assert!(["rpingpong", "creation-mobile", "rrings-1", "migration-rings-1", "drain"].into_iter().all(is_remote));
        assert!(!is_remote("pingpong") && find("remote").is_err());
        assert_eq!(find_all("count").unwrap()[0].name, "count");
    }

    #[test]
    fn savina_has_thirty_programs_and_its_families_are_everything() {
        let savina = find_all("savina").unwrap();
        assert_eq!(savina.len(), 30);
        assert!(savina.iter().all(|benchmark| benchmark.name.starts_with("savina-")));
        let families = Family::ALL.map(|family| find_all(family.name()).unwrap().len());
        assert_eq!(families.iter().sum::<usize>(), all().len());
    }

    #[test]
    fn an_unknown_name_is_answered_with_the_known_ones() {
        let message = find("cuont").err().unwrap().to_string();
        assert!(message.contains("`cuont`"), "{message}");
        for benchmark in all() {
            assert!(message.contains(benchmark.name), "{message}");
        }
    }
}
