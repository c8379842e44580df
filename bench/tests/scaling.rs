//! The group `scaling` at smoke size.

use playhouse_bench::Size;
use playhouse_bench::scaling::implementation::Implementation;
use playhouse_bench::scaling::load::Load;
use playhouse_bench::scaling::pattern::Pattern;
use playhouse_bench::scaling::work::Work;

#[test]
fn each_pattern_has_the_right_result_in_each_implementation() {
    for pattern in Pattern::all() {
        for (ns, workers) in [(0, 1), (0, 2), (1_000, 2), (100_000, 2)] {
            let load = Load { work: Work::of_ns(ns), size: Size::Smoke };
            let runs = Implementation::ALL.map(|implementation| {
                let run = implementation.run(pattern, &load, workers, None);
                let name = implementation.name();
                run.unwrap_or_else(|failure| {
                    panic!("{} on {name}, {ns} ns, {workers} workers: {failure}", pattern.name)
                })
            });
            let [playhouse, tokio, threads] = runs;
            // All implementations run the same number of operations.
            assert_eq!((playhouse.ops, playhouse.ops), (tokio.ops, threads.ops), "{}", pattern.name);
            assert!(runs.iter().all(|run| run.ns_per_op() > 0.0), "{}: {runs:?}", pattern.name);
            let activity = playhouse.activity.unwrap();
            assert!((0.0..=1.0).contains(&activity.parked), "{}: {activity:?}", pattern.name);
            assert_eq!((tokio.activity, threads.activity), (None, None));
        }
    }
}
