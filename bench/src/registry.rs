//! The one list of benchmarks.

use std::sync::LazyLock;

use crate::harness::benchmark::{Benchmark, Family};
use crate::harness::outcome::Failure;
#[cfg(feature = "whole")]
use crate::savina;
#[cfg(feature = "whole")]
use crate::workloads::migration::{create_migrated, drain, mobile_rings, rounds};
#[cfg(feature = "remote")]
use crate::workloads::remote;
use crate::workloads::{messaging, spawn};

/// The benchmarks that other actor runtimes play in one process, too. Without the feature `remote` there are no others.
pub(crate) const SHARED: [Benchmark; 11] = [
    messaging::count::COUNT,
    messaging::pingpong::PINGPONG,
    messaging::rings::THREADRING,
    messaging::rings::RINGMULTI,
    spawn::fjcreate::FJCREATE,
    spawn::skynet::SKYNET,
    messaging::chameneos::CHAMENEOS,
    messaging::big::BIG,
    spawn::fib::FIB,
    messaging::executor::EXECUTOR,
    messaging::repeat::REPEAT,
];

/// The benchmarks that other actor runtimes play in several processes, too. With `remote` and without `whole` there are no
/// others.
#[cfg(all(feature = "remote", not(feature = "whole")))]
const SHARED_REMOTE: &[Benchmark] = &[
    remote::links::RPINGPONG,
    remote::links::RTHROUGHPUT,
    remote::links::RCREATE,
    remote::theater_rings::RRINGS_1,
    remote::theater_rings::RRINGS_32,
    remote::theater_rings::RRINGS_320,
];

/// The suite's table, then the additions of the papers.
#[cfg(feature = "whole")]
const TABLE: &[Benchmark] = &[
    messaging::count::COUNT,
    messaging::count::COUNT_CROSS,
    messaging::pingpong::PINGPONG,
    messaging::pingpong::PINGPONG_CROSS,
    messaging::pingpong::PINGPONG_AUTO,
    messaging::asks::ASKS_FROM_TOKIO,
    messaging::asks::ASKS_FROM_TOKIO_1,
    messaging::web::WEB,
    messaging::rings::THREADRING,
    messaging::rings::THREADRING_NEAR,
    messaging::rings::RINGMULTI,
    messaging::rings::RINGMULTI_NEAR,
    spawn::fjcreate::FJCREATE,
    spawn::skynet::SKYNET,
    messaging::chameneos::CHAMENEOS,
    messaging::big::BIG,
    spawn::fib::FIB,
    messaging::executor::EXECUTOR,
    messaging::executor::EXECUTOR_SPREAD,
    messaging::repeat::REPEAT,
    messaging::send::SEND_STATIC,
    messaging::send::SEND_DYNAMIC,
    messaging::matrix::MATRIX,
    messaging::balance::BALANCE_ONE_LONGEST,
    messaging::balance::BALANCE_ONE_RANDOM,
    messaging::balance::BALANCE_ONE_NONE,
    messaging::balance::BALANCE_MULTI_LONGEST,
    messaging::balance::BALANCE_MULTI_RANDOM,
    messaging::balance::BALANCE_MULTI_NONE,
    messaging::rings::NFOLD_RING,
    messaging::pairs::PINGPONG_GROUPED,
    messaging::pairs::PINGPONG_BULK,
    spawn::creation::CREATION,
];

/// The benchmarks of several theaters.
#[cfg(feature = "whole")]
const THEATERS: &[Benchmark] = &[
    remote::kinds::THREADRING_REMOTE,
    remote::kinds::THREADRING_MOBILE,
    remote::kinds::CREATION_REMOTE,
    remote::kinds::CREATION_MOBILE,
    remote::links::RPINGPONG,
    remote::links::RTHROUGHPUT,
    remote::links::RPINGPONG_TLS,
    remote::links::RTHROUGHPUT_TLS,
    remote::links::RCREATE,
    remote::links::RCREATE_WAITING,
    create_migrated::RCREATE_MIGRATED,
    remote::theater_rings::RRINGS_1,
    remote::theater_rings::RRINGS_32,
    remote::theater_rings::RRINGS_320,
    mobile_rings::RRINGS_MOBILE_1,
    mobile_rings::RRINGS_MOBILE_32,
    mobile_rings::RRINGS_MOBILE_320,
    rounds::MIGRATION_RINGS_1,
    rounds::MIGRATION_RINGS_32,
    rounds::MIGRATION_RINGS_320,
    rounds::MIGRATE_1MIB,
    drain::DRAIN,
];

/// The benchmarks of memory in one process.
#[cfg(feature = "whole")]
const MEMORY: &[Benchmark] = &[spawn::idle::IDLE, spawn::fjcreate::WAVES, messaging::flood::FLOOD];

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

/// Returns every benchmark, in the order of the reports. Without the feature `whole` these are the benchmarks of the peers: with
/// `remote` those of several processes, without it those of one.
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
/// Returns the errors of [`find`].
pub fn find_all(name: &str) -> Result<Vec<&'static Benchmark>, Failure> {
    match Family::ALL.into_iter().find(|family| family.name() == name) {
        Some(family) => Ok(all().iter().filter(|benchmark| benchmark.family == family).collect()),
        None => find(name).map(|benchmark| vec![benchmark]),
    }
}

/// Returns the benchmark called `name`.
///
/// # Errors
///
/// Lists all names if no benchmark has this one.
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
    use crate::harness::benchmark::Baseline;

    #[test]
    fn names_are_unique_and_found() {
        let names: HashSet<_> = all().iter().map(|benchmark| benchmark.name).collect();
        assert_eq!(names.len(), all().len());
        for benchmark in all() {
            assert_eq!(find(benchmark.name).unwrap().name, benchmark.name);
            if let Some(Baseline::Benchmark(other)) = benchmark.baseline {
                assert!(find(other.name).is_ok() && other.name != benchmark.name, "{}", benchmark.name);
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

    /// Actors and messages that may cross to another process, as `actor: message`. Moving or renaming a type leaves its name on the wire.
    #[cfg(feature = "whole")]
    #[test]
    fn names_on_the_wire_stay_what_they_are() {
        let here = concat!(env!("CARGO_CRATE_NAME"), "::");
        let entries = playhouse::wire::handles().map(|entry| ((entry.actor_name)(), (entry.message_name)()));
        let ours = entries.filter(|(actor, message)| [actor, message].iter().any(|name| is_ours(name, here)));
        let mut names: Vec<_> = ours.map(|(actor, message)| format!("{actor}: {message}")).collect();
        names.sort();
        assert_eq!(names.join("\n"), include_str!("../tests/wire-names.txt").trim_end());
    }

    #[cfg(feature = "whole")]
    fn is_ours(name: &str, here: &str) -> bool {
        name.starts_with(here) || name.starts_with("bench.")
    }
}
