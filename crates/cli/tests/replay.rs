//! `playhouse replay` shows the same run for the same seed.

use std::fs;
use std::process::{Command, Output};

fn replay(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_playhouse")).arg("replay").args(args).output().expect("the program starts")
}

fn text(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("it prints text")
}

#[test]
fn the_same_seed_prints_the_same_chart() {
    let first = replay(&["42"]);
    assert!(first.status.success());
    let chart = text(&first);
    assert!(
        chart.contains("Philosopher \"0\"") && chart.contains("-Take-") && chart.contains("seed 42, commit "),
        "{chart}"
    );
    assert_eq!(chart, text(&replay(&["42"])));
    assert_ne!(chart, text(&replay(&["43"])));
}

#[test]
fn a_bug_is_shown_and_the_chart_is_written() {
    let path = std::env::temp_dir().join(format!("playhouse-replay-{}.svg", std::process::id()));
    // Two of three votes are for it: in most orders, the bug shows.
    let wrong = (0..20).map(|seed| {
        let seed = seed.to_string();
        replay(&[&seed, "--program", "commit", "--wrong", "--svg", path.to_str().expect("a path in UTF-8")])
    });
    let failed: Vec<Output> = wrong.filter(|output| !output.status.success()).collect();
    assert!(!failed.is_empty() && failed.len() < 20, "{} of 20", failed.len());
    assert!(text(&failed[0]).contains("what was aborted is not committed"), "{}", text(&failed[0]));
    assert!(fs::read_to_string(&path).expect("it was written").starts_with("<svg "));
    fs::remove_file(&path).expect("it is there");
}

#[test]
fn an_unknown_program_is_refused_with_those_that_there_are() {
    let output = replay(&["1", "--program", "dinner"]);
    assert!(!output.status.success());
    let error = String::from_utf8(output.stderr).expect("it prints text");
    assert!(error.contains("dinner") && error.contains("philosophers") && error.contains("commit"), "{error}");
}
