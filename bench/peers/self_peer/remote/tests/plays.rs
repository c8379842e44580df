//! The program as `playhouse bench --peers` starts it.

use std::io::{BufRead, BufReader};
use std::os::fd::AsFd;
use std::process::{Command, Stdio};

fn program() -> Command {
    Command::new(env!("CARGO_BIN_EXE_playhouse-self-peer-remote"))
}

#[test]
fn the_program_answers_and_ends_with_its_input() {
    for workload in ["rpingpong", "rthroughput", "rcreate", "rrings-1", "rrings-32", "rrings-320"] {
        let mut command = program();
        command.args([workload, "--size", "smoke", "--workers", "1"]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert!(line.starts_with(r#"{"peer":"alone","version":""#), "{line}");
        assert!(line.contains(&format!(r#""workload":"{workload}""#)), "{line}");
        // Its input was open until this line.
        assert!(child.try_wait().unwrap().is_none());
        drop(child.stdin.take());
        assert!(child.wait().unwrap().success());
    }
}

#[test]
fn the_program_refuses_workloads_that_it_does_not_play() {
    for (words, said) in [
        (&["count", "--size", "smoke", "--workers", "1"][..], "there is no benchmark `count`"),
        (&["rpingpong", "--size", "smoke", "--workers", "two"], "`two` is not a number of workers"),
        (&["rpingpong"], "usage: alone WORKLOAD --size smoke|default --workers N"),
    ] {
        // Not at its end, or it would not be said.
        let child = program().args(words).stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let input = child.stdin.as_ref().map(|input| input.as_fd().try_clone_to_owned().unwrap());
        let ended = child.wait_with_output().unwrap();
        drop(input);
        let errors = String::from_utf8_lossy(&ended.stderr);
        assert!(!ended.status.success() && errors.contains(said), "{words:?}: {errors}");
    }
}
