//! Files that a signal removes, in a process of its own.

#![cfg(unix)]

use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use playhouse_console::files::{self, Readers};
use playhouse_console::signals;

const FOLDER: &str = "PLAYHOUSE_TEST_FOLDER";

/// The other process: it has written files, and waits for a signal.
#[test]
fn writes_files_and_waits() {
    let Some(folder) = std::env::var_os(FOLDER).map(PathBuf::from) else { return };
    signals::start();
    files::create(&folder.join("kept"), b"kept", Readers::All).unwrap().keep();
    let _unkept = files::create(&folder.join("unkept"), b"unkept", Readers::Owner).unwrap();
    println!("\nwritten");
    std::io::stdin().read_exact(&mut [0]).unwrap();
}

// GUARANTEE: Files are replaced completely
#[test]
fn a_signal_removes_the_files_that_are_not_complete() {
    let folder = std::env::temp_dir().join(format!("playhouse-signals-{}", std::process::id()));
    std::fs::create_dir(&folder).unwrap();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "writes_files_and_waits", "--nocapture"]).env(FOLDER, &folder);
    let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    // The other process waits at its input, which `wait` would close.
    let _input = process.stdin.take();
    let mut lines = BufReader::new(process.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert!(lines.any(|line| line == "written"));
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 2);
    assert!(Command::new("kill").args(["-TERM", &process.id().to_string()]).status().unwrap().success());
    assert_eq!(process.wait().unwrap().code(), Some(143));
    let left: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["kept"]);
    std::fs::remove_dir_all(&folder).unwrap();
}
