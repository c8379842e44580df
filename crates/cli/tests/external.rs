//! `playhouse bench` and `playhouse chatapp`, which another program has.
#![cfg(unix)]

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// A folder with the program, and perhaps with another one beside it. Removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(test: &str) -> Self {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("external-{test}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        // The program looks beside its own file, so a symbolic link is of no use.
        fs::hard_link(env!("CARGO_BIN_EXE_playhouse"), folder.join("playhouse")).unwrap();
        Self(folder)
    }

    fn script(&self, at: &str, script: &str) {
        let path = self.0.join(at);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// The program, which finds others beside it, in the folder `path` and in those of the shell's tools.
    fn playhouse(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(self.0.join("playhouse"));
        let path = format!("{}:/usr/bin:/bin", self.0.join("path").display());
        command.args(arguments).env("PATH", path).stdin(Stdio::null());
        command
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn text(output: &Output) -> (Option<i32>, String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

#[test]
fn the_program_beside_is_run_with_the_same_arguments_and_its_exit_code() {
    let folder = Folder::new("beside");
    folder.script("playhouse-bench", "for word; do echo \"<$word>\"; done; exit 7");
    folder.script("path/playhouse-bench", "echo from the path");
    for (arguments, words) in [
        (&["bench"][..], "<bench>\n"),
        (&["bench", "count", "--runs", "3", "a b"], "<bench>\n<count>\n<--runs>\n<3>\n<a b>\n"),
        (&["bench", "--help"], "<bench>\n<--help>\n"),
        (&["chatapp", "record", "--", "-x"], "<chatapp>\n<record>\n<-->\n<-x>\n"),
    ] {
        let output = folder.playhouse(arguments).output().unwrap();
        assert_eq!(text(&output), (Some(7), words.to_owned(), String::new()), "{arguments:?}");
    }
}

#[test]
fn the_program_in_the_path_is_run_if_none_is_beside() {
    let folder = Folder::new("path");
    folder.script("path/playhouse-bench", "echo from the path: \"$@\"");
    let output = folder.playhouse(&["bench", "--list"]).output().unwrap();
    assert_eq!(text(&output), (Some(0), "from the path: bench --list\n".to_owned(), String::new()));
}

#[test]
fn without_the_program_the_error_says_what_to_type() {
    let folder = Folder::new("missing");
    for command in ["bench", "chatapp"] {
        let (code, out, errors) = text(&folder.playhouse(&[command, "--list"]).output().unwrap());
        assert_eq!((code, &*out), (Some(1), ""), "{errors}");
        let words = [
            format!("error: `playhouse {command}` runs the program playhouse-bench, which is neither in "),
            format!("{} nor in PATH\n", folder.0.canonicalize().unwrap().display()),
            "type in the checkout of Playhouse: cargo build -p playhouse-bench-cli\n".to_owned(),
        ];
        assert!(words.iter().all(|words| errors.contains(words)), "{errors}");
    }
}

#[test]
fn options_that_the_other_program_does_not_have_are_refused() {
    let folder = Folder::new("options");
    folder.script("playhouse-bench", "echo started");
    for option in [["--config", "none.toml"], ["--log", "warn"], ["--log-format", "json"]] {
        let output = folder.playhouse(&[&option[..], &["bench", "--list"]].concat()).output().unwrap();
        let (code, out, errors) = text(&output);
        assert_eq!((code, &*out), (Some(2), ""), "{errors}");
        assert!(errors.contains(&format!("error: {} is for the other commands", option[0])), "{errors}");
    }
}

#[test]
fn a_signal_reaches_the_other_program_and_ends_this_one() {
    let folder = Folder::new("signal");
    folder.script("playhouse-bench", "echo started; exec tail -f /dev/null");
    let mut child = folder.playhouse(&["bench"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    // It stays open: `tail` ends when nobody reads its output.
    let mut output = BufReader::new(child.stdout.take().unwrap());
    output.read_line(&mut line).unwrap();
    assert_eq!(line, "started\n");
    assert!(Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap().success());
    assert_eq!(child.wait().unwrap().signal(), Some(15));
}

#[test]
fn the_help_lists_the_commands_of_the_other_program() {
    let folder = Folder::new("help");
    let (code, help, _) = text(&folder.playhouse(&["--help"]).output().unwrap());
    assert_eq!(code, Some(0));
    assert!(help.contains("\n  bench ") && help.contains("\n  chatapp ") && help.contains("playhouse-bench"), "{help}");
}
