//! The program, as a user runs it.

use std::process::{Command, Output, Stdio};

pub fn playhouse(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_playhouse"));
    command.args(arguments).stdin(Stdio::null());
    command
}

/// Returns whether `nohup` has started the tests. The program then ignores SIGHUP, too.
pub fn is_hang_up_ignored() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.is_some_and(|mask| u64::from_str_radix(mask.trim(), 16).unwrap() & 1 != 0)
}

/// Runs the program to its end: its exit code, what it printed, and what it said on standard error.
pub fn run(arguments: &[&str]) -> (i32, String, String) {
    let Output { status, stdout, stderr } = playhouse(arguments).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (status.code().expect("ended by itself"), text(stdout), text(stderr))
}

/// Checks that the program refuses `arguments` with exit code 2 and these words, and that nothing has run.
pub fn refused(arguments: &[&str], words: &[&str]) {
    let (code, out, errors) = run(arguments);
    assert_eq!((code, &*out), (2, ""), "{arguments:?}: {errors}");
    for word in words {
        assert!(errors.contains(word), "{arguments:?}: no {word} in\n{errors}");
    }
}
