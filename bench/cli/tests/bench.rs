//! `playhouse bench`, as a user runs it.

mod program;

use program::{refused, run};
use serde_json::Value;

const SMOKE: [&str; 5] = ["bench", "--size", "smoke", "--runs", "1"];

fn smoke(arguments: &[&str]) -> String {
    let (code, out, errors) = run(&[&SMOKE, arguments].concat());
    assert_eq!((code, &*errors), (0, ""), "{out}");
    out
}

fn json(arguments: &[&str]) -> Vec<Value> {
    let out = smoke(&[&["--json"], arguments].concat());
    out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value}"))
}

#[test]
fn a_table_fits_a_terminal_and_says_what_its_targets_are_for() {
    let table = smoke(&["flood", "fib", "count"]);
    assert!(table.lines().all(|line| line.chars().count() <= 100), "{table}");
    let names: Vec<_> = table.lines().skip(2).take(4).filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(names, ["count", "flood", "asks:", "fib"], "{table}");
    let limit = table.lines().nth(2).unwrap().split_whitespace().nth(5).unwrap();
    assert!(table.contains(&format!("count is 4.7 ns; here it is {limit} ns")), "{table}");
    let table = smoke(&["idle"]);
    assert!(!table.contains("4.7 ns"), "nothing has a target, and\n{table}");
}

#[test]
fn targets_are_scaled_by_the_baseline_of_count() {
    let [count, fib, idle] = &json(&["fib", "count", "idle"])[..] else { panic!("not three") };
    let scale = number(&count["limit_ns_per_op"]) / 4.7;
    for (report, target_ns) in [(count, 9.0), (fib, 100.0)] {
        let scaled = number(&report["target"]["ns_per_op"]);
        assert!((scaled / scale - target_ns).abs() < 0.01, "{report}");
        let reached = report["reached"].as_str().unwrap();
        let in_time = number(&report["ns_per_op"]) <= scaled;
        assert_eq!(in_time, ["yes", "ns only"].contains(&reached), "{report}");
    }
    assert!(idle["limit_ns_per_op"].is_null() && idle["ratio"].is_null(), "{idle}");
    assert_eq!((idle.get("target"), idle.get("reached")), (None, None));
}

#[test]
fn without_count_its_baseline_is_measured_for_the_targets() {
    let [fib, skynet] = &json(&["fib", "skynet"])[..] else { panic!("not two") };
    assert!(number(&fib["target"]["ns_per_op"]) > 0.0, "{fib}");
    assert_eq!(fib["target"]["ns_per_op"], skynet["target"]["ns_per_op"]);
}

#[test]
fn counters_stand_below_their_row() {
    let table = smoke(&["count", "--stats"]);
    assert!(table.contains("received") && table.contains("average gulp"), "{table}");
    assert!(table.lines().all(|line| line.chars().count() <= 100), "{table}");
}

#[test]
fn a_sweep_ends_with_a_verdict() {
    let out = smoke(&["--sweep-stages", "count", "idle"]);
    assert!(out.lines().take(4).all(|line| line.chars().count() <= 80), "{out}");
    assert!(out.contains(" 1   2   4   8  16  32  64 128 256 512"), "{out}");
    assert!(out.lines().last().unwrap().contains("collapse"), "{out}");
    let [sweep] = &json(&["--sweep-stages", "count"])[..] else { panic!("not one") };
    let times: Vec<_> = sweep["ns_per_op"].as_array().unwrap().iter().map(number).collect();
    assert_eq!((times.len(), &sweep["stages_per_worker"][9]), (10, &Value::from(512)));
    let worst_over_best = number(&sweep["worst_over_best"]);
    assert!(worst_over_best >= 1.0, "{sweep}");
    assert_eq!(sweep["collapse"], worst_over_best > 2.0);
}

/// The programs of Savina work if they are told to, and then have no baseline beside them.
#[test]
fn work_takes_time() {
    let ns_per_op = |work: &str| {
        let [report] = &json(&["savina-pingpong", "--work", work])[..] else { panic!("not one") };
        assert_eq!(report["limit_ns_per_op"].is_null(), work != "0", "{report}");
        number(&report["ns_per_op"])
    };
    assert!(ns_per_op("0") > 0.0);
    // No step takes less than a tenth of a nanosecond.
    assert!(ns_per_op("100000") > 10_000.0);
}

#[test]
fn benchmarks_are_listed() {
    let (code, list, _) = run(&["bench", "--list"]);
    assert_eq!(code, 0);
    for name in ["count", "idle", "waves", "flood"] {
        assert!(list.contains(&format!("{name} (operation: ")), "{list}");
    }
    assert!(list.starts_with("local:\ncount (operation: "), "{list}");
    let (before, savina) = list.split_once("\nsavina:\n").unwrap();
    assert!(before.contains("\nremote:\n") && !before.contains("\nsavina-"), "{list}");
    assert_eq!(savina.matches("savina-").count(), 30, "{list}");
}

#[test]
fn the_list_has_one_json_object_per_benchmark() {
    let (code, list, errors) = run(&["bench", "--list", "--json"]);
    assert_eq!((code, &*errors), (0, ""));
    let listed: Vec<Value> = list.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let (_, text, _) = run(&["bench", "--list"]);
    let mut names: Vec<_> =
        text.lines().filter_map(|line| line.split_once(" (operation: ")).map(|(name, _)| name).collect();
    let mut of_json: Vec<_> = listed.iter().map(|of| of["name"].as_str().unwrap()).collect();
    // The text is sorted by families.
    names.sort_unstable();
    of_json.sort_unstable();
    assert_eq!(of_json, names);
    for of in &listed {
        let keys = ["family", "op", "summary"];
        assert!(keys.iter().all(|key| of[key].as_str().is_some_and(|text| !text.is_empty())), "{of}");
        assert_eq!(of["source"].is_string(), of["family"] != "scaling", "{of}");
    }
    let (_, one, _) = run(&["bench", "--list", "--json", "savina-banking"]);
    assert!(one.lines().count() == 1 && one.contains("\"family\":\"savina\""), "{one}");
}

/// Runs patterns, and returns the output. Notes that other programs took CPU time are allowed on standard error.
fn scaling(arguments: &[&str]) -> String {
    let (code, out, errors) = run(&[&SMOKE, arguments].concat());
    let notes = errors.lines().all(|line| line.starts_with("note: other programs took "));
    assert!(code == 0 && notes, "{errors}\n{out}");
    out
}

const PATTERNS: [&str; 9] =
    ["gossip-10000", "gossip-100", "scatter", "tree", "pipeline", "clients", "independent", "skewed", "bursty"];

#[test]
fn patterns_have_a_row_per_work_and_number_of_workers() {
    let table = scaling(&["scaling", "--workers", "2"]);
    assert!(table.lines().all(|line| line.chars().count() <= 110), "{table}");
    let rows: Vec<Vec<_>> = table.lines().skip(2).map(|line| line.split_whitespace().collect()).collect();
    let rows: Vec<_> = rows.iter().take_while(|row| !row.is_empty()).collect();
    assert_eq!(rows.len(), PATTERNS.len() * 5 * 2, "{table}");
    for (rows, pattern) in rows.chunks(10).zip(PATTERNS) {
        assert!(rows.iter().all(|row| row[0] == pattern), "{table}");
    }
    assert!(rows[2][1..4] == ["0.1", "µs", "1"] && rows[3][1..4] == ["0.1", "µs", "2"], "{table}");
    assert!(table.contains("medians; runs: 1, in turns") && table.contains("a speed-up of 1.8"), "{table}");
}

#[test]
fn a_pattern_and_amounts_of_work_are_selected() {
    let lines = |arguments: &[&str]| {
        let out = scaling(&[&["--json"], arguments].concat());
        out.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()).collect::<Vec<_>>()
    };
    let selected =
        lines(&["scaling-tree", "scaling-gossip-100", "scaling-tree", "--work-ns", "1000,0,0", "--workers", "3"]);
    let keys = |row: &Value| (row["bench"].to_string(), number(&row["work_ns"]), number(&row["workers"]));
    let expected = ["scaling-tree", "scaling-gossip-100"].map(|name| {
        [(0.0, 1.0), (0.0, 3.0), (1_000.0, 1.0), (1_000.0, 3.0)].map(|(work, on)| (format!("{name:?}"), work, on))
    });
    assert_eq!(selected.iter().map(keys).collect::<Vec<_>>(), expected.concat());
    let [one, two] = &lines(&["scaling-skewed", "--work-ns", "1000", "--workers", "2"])[..] else { panic!("not two") };
    assert!(one["target"]["speedup"].is_null() && number(&one["speedup"]) == 1.0, "{one}");
    assert_eq!(number(&two["target"]["speedup"]), 1.8);
    for key in ["ns_per_op", "tokio_ns_per_op", "threads_ns_per_op", "tokio_ratio", "speedup", "ops"] {
        assert!(number(&two[key]) > 0.0, "{key}: {two}");
    }
    for key in ["parked", "mutes", "wake_ups", "steals"] {
        assert!(number(&two[key]) >= 0.0, "{key}: {two}");
    }
    assert!(["yes", "no", "speed-up", "tokio"].contains(&two["reached"].as_str().unwrap()), "{two}");
}

#[test]
fn patterns_stand_below_benchmarks() {
    let table = scaling(&["scaling-pipeline", "fib", "--work-ns", "0", "--workers", "1"]);
    let (before, after) = table.split_once("\nscaling ").unwrap_or_else(|| panic!("{table}"));
    assert!(before.contains("\nfib ") && after.contains("\npipeline "), "{table}");
    let (_, list, _) = run(&["bench", "--list", "scaling"]);
    assert!(list.starts_with("scaling:\nscaling-gossip-10000 (operation: message)"), "{list}");
    assert_eq!(list.matches("(operation: ").count(), PATTERNS.len(), "{list}");
    let (_, list, _) = run(&["bench", "--list"]);
    assert!(list.contains("\nscaling:\n") && list.starts_with("local:\n"), "{list}");
    let (_, list, _) = run(&["bench", "--list", "--work", "5"]);
    assert!(!list.contains("scaling"), "{list}");
}

#[test]
fn patterns_refuse_the_options_of_benchmarks() {
    refused(&["bench", "scaling-tree", "--work", "5"], &["`scaling-tree`", "--work-ns"]);
    refused(&["bench", "scaling", "--sweep-workers"], &["`scaling` chooses its workers itself"]);
    refused(&["bench", "scaling", "--sweep-stages"], &["`scaling` chooses its workers itself"]);
    refused(&["bench", "scaling", "--peers"], &["`scaling` runs beside tokio and threads"]);
    refused(&["bench", "fib", "--work-ns", "5"], &["--work-ns is for the patterns of `scaling`"]);
    refused(&["bench", "scaling", "--work-ns", "1000001"], &["1000001", "--work-ns", "0..=1000000"]);
    refused(&["bench", "scaling-tre"], &["'scaling-tre'", "a similar value exists: 'scaling-tree'"]);
}

#[test]
fn bad_input_is_refused_with_what_is_allowed() {
    refused(&["bench", "cuont"], &["'cuont'", "NAME", "pingpong-cross", "a similar value exists: 'count'"]);
    refused(&["bench", "count", "wave"], &["'wave'", "'waves'"]);
    refused(&["bench", "--size", "huge"], &["'huge'", "--size", "smoke, default, paper"]);
    for (option, value, allowed) in [
        ("--workers", "0", "1..=1024"),
        ("--workers", "1000000", "1..=1024"),
        ("--workers", "two", "invalid digit"),
        ("--runs", "0", "1..=1000"),
        ("--runs", "65536", "1..=1000"),
        ("--runs", "-1", "unexpected argument"),
        ("--stages", "0", "1..=65536"),
        ("--stages", "65537", "1..=65536"),
    ] {
        let named = if value.starts_with('-') { value } else { option };
        refused(&["bench", option, value, "count"], &[named, value, allowed]);
    }
    let stages = ["40000 stages per worker", "2 workers", "at most 32768"];
    refused(&["bench", "--workers", "2", "--stages", "40000", "count"], &stages);
    refused(&["bench", "--workers", "200", "--sweep-stages", "count"], &["512 stages per worker", "at most 327"]);
    refused(&["bench", "--workers", "1", "pingpong-cross"], &["`pingpong-cross` needs 2 workers and has 1"]);
    refused(&["bench", "--work", "5", "savina-big", "big"], &["`big` has no work per message", "savina"]);
    refused(&["bench", "--json", "--stats"], &["--json", "--stats"]);
    refused(&["bench", "--fast"], &["--fast"]);
}

/// Ctrl-C in a terminal reaches the program and the child that measures, SIGTERM of a supervisor the program only: both end, with one line.
#[cfg(target_os = "linux")]
#[test]
fn a_signal_ends_the_benchmarks_with_a_line_that_says_so() {
    use std::io::{BufRead, BufReader, Read};
    use std::os::unix::process::CommandExt;
    use std::process::{Command, Stdio};

    for (signal, to_group, word, code) in [("-INT", "-", "interrupted", 130), ("-TERM", "", "terminated", 143)] {
        let mut program = program::playhouse(&["bench", "--size", "smoke", "--runs", "50"]);
        let mut child = program.process_group(0).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut rows = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
        assert!(rows.any(|row| row.starts_with("count ")));
        let to = format!("{to_group}{}", child.id());
        assert!(Command::new("kill").args([signal, "--", &to]).status().unwrap().success());
        // The end of standard error is that of all who can write to it.
        let mut errors = String::new();
        child.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(code), "{errors}");
        let words: Vec<_> = errors.lines().filter(|line| !line.starts_with("note: ")).collect();
        assert_eq!(words, [word]);
        assert!(!rows.any(|row| row.starts_with("flood ")), "it has gone on");
    }
}

/// It would measure for hours.
#[cfg(target_os = "linux")]
#[test]
fn the_benchmarks_end_quietly_when_nobody_reads_their_figures() {
    use std::io::{BufRead, BufReader, Read};
    use std::process::Stdio;
    use std::sync::mpsc::channel;
    use std::time::Duration;

    for arguments in [&["count"][..], &["--sweep-stages", "count"], &["scaling-tree"]] {
        let mut program = program::playhouse(&[&["bench", "--runs", "1000"], arguments].concat());
        let mut child = program.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut head = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut head).unwrap();
        let mut err = child.stderr.take().unwrap();
        let (said, says) = channel();
        std::thread::spawn(move || {
            let mut errors = String::new();
            err.read_to_string(&mut errors).unwrap();
            let _ = said.send(errors);
        });
        let errors = says.recv_timeout(Duration::from_secs(60));
        if errors.is_err() {
            child.kill().unwrap();
        }
        assert_eq!((errors.as_deref(), child.wait().unwrap().code()), (Ok(""), Some(0)), "{arguments:?}");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn output_that_cannot_be_written_is_an_error_and_a_reader_that_has_gone_is_none() {
    for arguments in [&["bench", "--list"][..], &["bench", "--list", "--json"], &["bench", "--help"]] {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let ended = program::playhouse(arguments).stdout(full).output().unwrap();
        let errors = String::from_utf8(ended.stderr).unwrap();
        assert_eq!(ended.status.code(), Some(1), "{errors}");
        assert!(errors.starts_with("error: standard output is not complete: No space left on device"), "{errors}");
        // The pipe has no reader.
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let ended = program::playhouse(arguments).stdout(writer).output().unwrap();
        assert_eq!((ended.status.code(), &*ended.stderr), (Some(0), &b""[..]));
    }
}
