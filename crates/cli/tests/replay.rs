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
fn json_has_the_deliveries_and_the_failure() {
    let json =
        |args: &[&str]| -> serde_json::Value { serde_json::from_slice(&replay(args).stdout).expect("it is JSON") };
    let right = json(&["42", "--json"]);
    assert_eq!(
        (&right["program"], &right["seed"], &right["failure"]),
        (&"philosophers".into(), &42.into(), &().into())
    );
    let deliveries = right["deliveries"].as_array().expect("a list");
    assert!(deliveries.iter().any(|sent| sent["message"] == "Take"), "{right}");
    let failures =
        (0..20).map(|seed| json(&[&seed.to_string(), "--program", "commit", "--wrong", "--json"])["failure"].clone());
    assert!(
        failures.filter_map(|failure| Some(failure.as_str()?.to_owned())).all(|failure| failure.contains("committed"))
    );
}

// GUARANTEE: Files are replaced completely
/// The chart replaces regular files only, and they keep their mode.
#[cfg(unix)]
#[test]
fn the_chart_replaces_no_device_and_no_link_and_keeps_the_mode_of_a_file() {
    use std::os::unix::fs::{FileTypeExt, PermissionsExt, symlink};

    let folder = std::env::temp_dir().join(format!("playhouse-replay-files-{}", std::process::id()));
    fs::create_dir(&folder).expect("the folder is new");
    let path = |name: &str| folder.join(name).to_str().expect("a path in UTF-8").to_owned();
    let (chart, link) = (path("chart.svg"), path("link.svg"));
    fs::write(&chart, "old").expect("it is written");
    fs::set_permissions(&chart, fs::Permissions::from_mode(0o600)).expect("the owner may");
    symlink(&chart, &link).expect("the link is new");
    for (path, words) in [(&*link, "is a link to"), ("/dev/full", "is a device"), (&*path(""), "is a folder")] {
        let output = replay(&["1", "--svg", path]);
        let errors = String::from_utf8(output.stderr).expect("it prints text");
        assert_eq!(output.status.code(), Some(1), "{errors}");
        assert!(errors.contains(words) && errors.contains(path.trim_end_matches('/')), "{errors}");
    }
    assert_eq!(fs::read_to_string(&chart).expect("it is there"), "old");
    assert!(fs::metadata("/dev/full").expect("it is there").file_type().is_char_device());
    assert_eq!(replay(&["1", "--svg", &chart]).status.code(), Some(0));
    assert!(fs::read_to_string(&chart).expect("it is there").starts_with("<svg "));
    assert_eq!(fs::metadata(&chart).expect("it is there").permissions().mode() & 0o777, 0o600);
    assert_eq!(fs::read_dir(&folder).expect("it is there").count(), 2);
    fs::remove_dir_all(&folder).expect("it is there");
}

#[test]
fn the_picture_does_not_go_to_standard_output() {
    let output = replay(&["1", "--svg", "-"]);
    let errors = String::from_utf8(output.stderr).expect("it prints text");
    assert_eq!(output.status.code(), Some(2), "{errors}");
    assert!(errors.contains("--svg") && errors.contains("the picture goes to a file"), "{errors}");
    assert!(!fs::exists("-").expect("the folder can be read"));
}

#[test]
fn an_unknown_program_is_refused_with_a_list_of_the_known_ones() {
    let output = replay(&["1", "--program", "dinner"]);
    assert!(!output.status.success());
    let error = String::from_utf8(output.stderr).expect("it prints text");
    assert!(error.contains("dinner") && error.contains("philosophers") && error.contains("commit"), "{error}");
}
