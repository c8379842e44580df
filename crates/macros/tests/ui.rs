//! The errors that users see when they make a mistake, word for word.
//!
//! Some words are the compiler's, so the texts are compared with one compiler only: the one in `tests/ui/compiler`.
//! After a change, `TRYBUILD=overwrite cargo test -p playhouse-macros --test ui` records the `.stderr` files and the
//! compiler anew. Read the difference as a user would.

use std::env;
use std::fs;
use std::io::Write;
use std::process::Command;

const RECORDED: &str = "tests/ui/compiler";

/// Returns the version as `rustc --version` prints it, without the hash and the date: `rustc 1.95.0`.
fn compiler() -> String {
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(rustc).arg("--version").output().expect("rustc runs");
    let version = String::from_utf8(output.stdout).expect("rustc speaks UTF-8");
    version.split_whitespace().take(2).collect::<Vec<_>>().join(" ")
}

#[test]
fn mistakes_are_explained() {
    let cases = trybuild::TestCases::new();
    let (compiler, recorded) = (compiler(), fs::read_to_string(RECORDED).expect("the recorded compiler"));
    if env::var_os("TRYBUILD").is_some_and(|mode| mode == "overwrite") {
        fs::write(RECORDED, format!("{compiler}\n")).expect("the compiler can be recorded");
    } else if compiler != recorded.trim() {
        // The test harness hides the output of `eprintln!` in a passing test.
        let note = format!("NOT COMPARED: error messages, recorded with {}; this is {compiler}", recorded.trim());
        writeln!(std::io::stderr(), "{note}").expect("the note can be written");
        return;
    }
    cases.compile_fail("tests/ui/fail/*.rs");
}
