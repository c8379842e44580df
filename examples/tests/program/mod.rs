//! Programs that a test runs.

use std::process::{Command, Output, Stdio};

/// Runs a program to its end. Returns its exit code, its output, and its standard error.
pub fn run(program: &str, arguments: &[&str]) -> (i32, String, String) {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).env("RUST_BACKTRACE", "0");
    let Output { status, stdout, stderr } = command.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (status.code().expect("ended by itself"), text(stdout), text(stderr))
}
