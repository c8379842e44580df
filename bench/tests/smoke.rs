//! Runs every benchmark at its smallest size, and checks the form of the reports.

use std::time::Duration;

use playhouse::prelude::*;
use playhouse_bench::harness::benchmark::{Baseline, Benchmark};
use playhouse_bench::harness::outcome::check;
use playhouse_bench::harness::runner::{Options, answer_parent, measure, measure_baseline, measure_workload};
use playhouse_bench::peers::peer::check_installed;
use playhouse_bench::registry;
use playhouse_bench::report::Table;
use playhouse_bench::{Failure, Outcome, Size, Steps};

const SMOKE: Options =
    Options { workers: 2, stages_per_worker: Some(4), runs: 1, size: Size::Smoke, work: Steps::NONE };

const KEYS: [&str; 11] =
    ["bench", "op", "ops", "ns_per_op", "min", "max", "limit_ns_per_op", "ratio", "peak_rss_mb", "workers", "stages"];

/// Keys whose value may be `null`.
const MAYBE: [&str; 3] = ["limit_ns_per_op", "ratio", "peak_rss_mb"];

/// Keys that may be missing.
const OTHERS: [&str; 4] = ["latency", "cpu_ns_per_op", "target", "reached"];

/// Returns the benchmarks that can run: the programs of some may not be installed.
fn installed() -> impl Iterator<Item = &'static Benchmark> {
    registry::all().iter().filter(|benchmark| check_installed(benchmark).is_ok())
}

#[test]
fn every_benchmark_runs_and_reports() {
    for benchmark in installed() {
        let measured = measure(benchmark, &SMOKE).unwrap_or_else(|failure| panic!("{}: {failure}", benchmark.name));
        let report = &measured.report;
        assert_eq!(report.bench, benchmark.name);
        assert!(report.ops > 0 && report.ns_per_op > 0.0, "{report:?}");
        assert_eq!(report.baseline_ns_per_op.is_some_and(|ns| ns > 0.0), benchmark.baseline.is_some(), "{report:?}");
        assert_eq!(report.ratio.is_some(), benchmark.baseline.is_some(), "{report:?}");
        assert!(report.min <= report.ns_per_op && report.ns_per_op <= report.max, "{report:?}");
        assert_eq!((report.workers, report.stages), (2, 8), "{report:?}");
        assert!(!measured.statistics.is_empty(), "{}: no statistics", benchmark.name);

        let json: serde_json::Map<_, _> = serde_json::from_str(&report.to_json()).unwrap();
        let unknown = json.keys().find(|key| !KEYS.contains(&&***key) && !OTHERS.contains(&&***key));
        assert_eq!(unknown, None);
        for key in KEYS {
            let text = key == "bench" || key == "op";
            let value = json.get(key).unwrap_or_else(|| panic!("no {key}"));
            let right = value.is_number() || value.is_null() && MAYBE.contains(&key);
            assert!(if text { value.is_string() } else { right }, "{key}: {value}");
        }
        assert!(Table::of([benchmark.name]).row(report).starts_with(benchmark.name));
    }
}

#[test]
fn a_flood_reports_how_long_its_bystander_waits() {
    let report = measure(registry::find("flood").unwrap(), &SMOKE).unwrap().report;
    let latency = report.latency.unwrap();
    assert!(0 < latency.p50_ns && latency.p50_ns <= latency.p99_ns && latency.p99_ns <= latency.max_ns, "{latency:?}");
    let json: serde_json::Value = serde_json::from_str(&report.to_json()).unwrap();
    assert_eq!(json["latency"]["max_ns"], latency.max_ns);
}

#[test]
fn the_baseline_alone_can_be_measured() {
    assert!(measure_baseline(registry::find("count").unwrap(), &SMOKE).unwrap().unwrap() > 0.0);
    assert_eq!(measure_baseline(registry::find("flood").unwrap(), &SMOKE).unwrap(), None);
    let failure = measure_baseline(&broken(), &SMOKE).unwrap_err();
    assert_eq!(failure.to_string(), "in the baseline: wrong result: the sum should be 4 and is 5");
}

#[test]
fn every_benchmark_runs_with_one_stage_per_worker() {
    let options = Options { stages_per_worker: Some(1), ..SMOKE };
    for benchmark in installed() {
        measure_workload(benchmark, &options).unwrap_or_else(|failure| panic!("{}: {failure}", benchmark.name));
    }
}

#[test]
fn every_benchmark_that_can_runs_with_one_worker() {
    let options = Options { workers: 1, ..SMOKE };
    for benchmark in installed() {
        match measure_workload(benchmark, &options) {
            Ok(_) => assert_eq!(benchmark.workers_min, 1, "{}", benchmark.name),
            Err(failure) => {
                assert!(benchmark.workers_min > 1, "{}: {failure}", benchmark.name);
                assert!(failure.to_string().contains("needs 2 workers and has 1"), "{failure}");
            }
        }
    }
}

#[cfg(unix)]
#[test]
fn a_child_answers_or_fails() {
    use std::process::Command;

    use playhouse_bench::harness::runner::measure_in_child;

    let echo = |answer: &str| {
        let mut command = Command::new("echo");
        command.arg(answer);
        command
    };
    let benchmark = registry::find("count").unwrap();
    let measured = measure_in_child(echo(&answer_parent(benchmark, &SMOKE))).unwrap();
    assert_eq!((measured.report.bench.as_str(), measured.report.ops), ("count", 10_000));
    let failure = measure_in_child(echo(&answer_parent(&broken(), &SMOKE))).unwrap_err();
    assert_eq!(failure.to_string(), "wrong result: the sum should be 4 and is 5");
    let failure = measure_in_child(Command::new("false")).unwrap_err();
    assert!(failure.to_string().starts_with("the child process ended without an answer"), "{failure}");
    let failure = measure_in_child(Command::new("/nonexistent/playhouse")).unwrap_err();
    assert!(failure.to_string().starts_with("the child process could not be run"), "{failure}");
}

fn right(_: &System, _: Size, _: Steps) -> Result<Outcome, Failure> {
    Ok(Outcome::new(1, Duration::from_nanos(1)))
}

fn wrong() -> Result<Outcome, Failure> {
    check("the sum", 4, 2 + 3)?;
    Ok(Outcome::new(1, Duration::from_nanos(1)))
}

fn broken() -> Benchmark {
    Benchmark {
        name: "broken",
        workload: |_, _, _| wrong(),
        baseline: Some(Baseline::Hand(|_| wrong())),
        ..registry::all()[0]
    }
}

#[test]
fn a_wrong_result_fails_the_run() {
    let failure = measure(&broken(), &SMOKE).unwrap_err();
    assert_eq!(failure.to_string(), "wrong result: the sum should be 4 and is 5");
    assert_eq!(measure_workload(&broken(), &SMOKE).unwrap_err(), failure);
    assert_eq!(answer_parent(&broken(), &SMOKE), format!("{{\"Err\":\"{failure}\"}}"));
}

#[test]
fn a_wrong_result_of_the_baseline_fails_the_run() {
    let failure = measure(&Benchmark { workload: right, ..broken() }, &SMOKE).unwrap_err();
    assert_eq!(failure.to_string(), "in the baseline: wrong result: the sum should be 4 and is 5");
}

#[test]
fn an_actor_that_panics_fails_the_run() {
    #[derive(Message)]
    struct Fall;

    struct Falling;

    impl Actor for Falling {}

    impl Handler<Fall> for Falling {
        fn handle(&mut self, _: Fall, _: &mut Context<Self>) {
            panic!("as intended by this test");
        }
    }

    fn fall(system: &System, _: Size, _: Steps) -> Result<Outcome, Failure> {
        let answer = system.spawn(Falling).ask(Fall).wait();
        answer.map_err(|error| Failure::new(format!("no answer: {error}")))?;
        Ok(Outcome::new(1, Duration::from_nanos(1)))
    }

    let failure = measure(&Benchmark { workload: fall, ..broken() }, &SMOKE).unwrap_err();
    assert!(failure.to_string().starts_with("no answer"), "{failure}");
}

#[test]
fn a_system_that_cannot_start_is_a_failure() {
    let impossible = Options { stages_per_worker: Some(0), ..SMOKE };
    let failure = measure(&registry::all()[0], &impossible).unwrap_err();
    assert!(failure.to_string().contains("could not be started"), "{failure}");
}
