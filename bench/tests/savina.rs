//! Savina's programs do the same however they are run.

use playhouse_bench::harness::runner::{Options, measure};
use playhouse_bench::registry;
use playhouse_bench::{Size, Steps};

fn ops(options: &Options) -> Vec<(String, u64)> {
    let programs = registry::find_all("savina").unwrap();
    let measured = programs.iter().map(|program| {
        let measured = measure(program, options).unwrap_or_else(|failure| panic!("{}: {failure}", program.name));
        (measured.report.bench, measured.report.ops)
    });
    measured.collect()
}

/// Each checks its result; and it has done as much.
#[test]
fn results_are_the_same_on_one_and_two_workers_and_with_work() {
    let one = Options { workers: 1, runs: 1, size: Size::Smoke, ..Options::default() };
    let two = Options { workers: 2, stages_per_worker: Some(3), work: Steps(20), ..one };
    assert_eq!(ops(&one), ops(&two));
}
