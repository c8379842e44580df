//! Standard output and standard error that are closed or full, for every command.

#![cfg(unix)]

#[allow(dead_code, reason = "other tests use all of it")]
mod program;

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use program::playhouse;

/// A pipe that no process reads.
fn closed() -> Stdio {
    let (_, writer) = std::io::pipe().unwrap();
    writer.into()
}

fn full() -> Stdio {
    File::options().write(true).open("/dev/full").unwrap().into()
}

/// Waits for the end of a process, which has to come.
fn end(mut process: Child, arguments: &[&str]) -> Option<i32> {
    let id = process.id();
    let (ended, code) = mpsc::channel();
    std::thread::spawn(move || ended.send(process.wait().unwrap().code()));
    code.recv_timeout(Duration::from_secs(120)).unwrap_or_else(|_| {
        signal(id, "-KILL");
        panic!("{arguments:?} hangs")
    })
}

fn signal(process: u32, name: &str) {
    assert!(Command::new("kill").args([name, &process.to_string()]).status().unwrap().success());
}

/// A theater in a process of its own, which ends with its test.
struct Host {
    process: Child,
    address: String,
}

impl Host {
    fn start() -> Host {
        let mut command = playhouse(&["theater", "--listen", "127.0.0.1:0", "--workers", "1"]);
        let mut process = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut first = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut first).unwrap();
        let address = first.trim_end().strip_prefix("listening at ").unwrap().to_owned();
        Host { process, address }
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let _it_has_ended = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Every command that ends by itself. `DIR` is a folder that does not exist, and `HOST` a theater.
const COMMANDS: [&[&str]; 20] = [
    &["--help"],
    &["-V"],
    &["--version"],
    &["help", "theater"],
    &["theater", "--help"],
    &["top", "--help"],
    &["demo", "--local", "--scenario", "small", "--workers", "1"],
    &["demo", "--local", "--scenario", "small", "--workers", "1", "--json"],
    &["demo", "--scenario", "small", "--workers", "1"],
    &["demo", "--scenario", "small", "--workers", "1", "--json"],
    &["scenario"],
    &["scenario", "small"],
    &["scenario", "--json"],
    &["replay", "42"],
    &["replay", "42", "--json"],
    &["completions", "bash"],
    &["man"],
    &["certificates", "DIR"],
    &["top", "HOST", "--once", "--every", "0.2"],
    &["top", "HOST", "--once", "--every", "0.2", "--json"],
];

/// Runs every command, and gives its arguments, its exit code and its errors, if they can be read, to `check`.
fn each(name: &str, streams: impl Fn() -> (Stdio, Stdio), check: impl Fn(&[&str], Option<i32>, &str)) {
    let host = Host::start();
    for arguments in COMMANDS {
        let folder: PathBuf = std::env::temp_dir().join(format!("playhouse-streams-{name}-{}", std::process::id()));
        let arguments: Vec<&str> = arguments
            .iter()
            .map(|argument| match *argument {
                "DIR" => folder.to_str().unwrap(),
                "HOST" => &host.address,
                argument => argument,
            })
            .collect();
        let (out, err) = streams();
        let mut process = playhouse(&arguments).stdout(out).stderr(err).spawn().unwrap();
        let errors = process.stderr.take().map(|errors: ChildStderr| {
            std::thread::spawn(move || {
                let mut text = String::new();
                { errors }.read_to_string(&mut text).unwrap();
                text
            })
        });
        let code = end(process, &arguments);
        let errors = errors.map_or(String::new(), |errors| errors.join().unwrap());
        assert!(!errors.contains("panicked"), "{arguments:?}: {errors}");
        check(&arguments, code, &errors);
        let _ = std::fs::remove_dir_all(&folder);
    }
}

// GUARANTEE: Output may be closed or full
#[test]
fn a_reader_that_goes_away_is_a_quiet_end() {
    each(
        "closed",
        || (closed(), Stdio::piped()),
        |arguments, code, errors| {
            assert_eq!(code, Some(0), "{arguments:?}: {errors}");
            assert!(!errors.contains("error"), "{arguments:?}: {errors}");
        },
    );
}

// GUARANTEE: Output may be closed or full
#[test]
fn a_full_device_is_an_error() {
    each(
        "full",
        || (full(), Stdio::piped()),
        |arguments, code, errors| {
            assert_eq!(code, Some(1), "{arguments:?}: {errors}");
            assert!(errors.contains("error: standard output is not complete: "), "{arguments:?}: {errors}");
        },
    );
}

// GUARANTEE: Output may be closed or full
#[test]
fn messages_that_nobody_can_read_end_nothing() {
    each("mute", || (Stdio::null(), closed()), |arguments, code, _| assert_eq!(code, Some(0), "{arguments:?}"));
    each("mute-full", || (Stdio::null(), full()), |arguments, code, _| assert_eq!(code, Some(0), "{arguments:?}"));
}

// GUARANTEE: Output may be closed or full
#[test]
fn one_pipe_for_both_streams_that_is_closed_is_a_quiet_end() {
    let both = || {
        let (_, writer) = std::io::pipe().unwrap();
        (writer.try_clone().unwrap().into(), writer.into())
    };
    each("both", both, |arguments, code, _| assert_eq!(code, Some(0), "{arguments:?}"));
}

// GUARANTEE: Output may be closed or full
/// A command without an end stops when its output has no reader.
#[test]
fn endless_output_ends_with_its_reader() {
    let host = Host::start();
    for arguments in [
        &["top", &host.address, "--json", "--every", "0.2"][..],
        &["demo", "--serve", "--scenario", "small", "--workers", "1"],
    ] {
        let (mut reader, writer) = std::io::pipe().unwrap();
        let mut command = playhouse(arguments);
        command.stdout(writer.try_clone().unwrap()).stderr(writer);
        let process = command.spawn().unwrap();
        drop(command);
        reader.read_exact(&mut [0]).unwrap();
        drop(reader);
        assert_eq!(end(process, arguments), Some(0), "{arguments:?}");
    }
}

/// A theater is a service: it goes on without a reader, and drains after SIGTERM. Where its address cannot be written it ends.
#[test]
fn a_theater_goes_on_without_a_reader_and_ends_where_its_address_cannot_be_written() {
    let arguments = ["theater", "--listen", "127.0.0.1:0", "--workers", "1"];
    let mut process = playhouse(&arguments).stdout(closed()).stderr(Stdio::piped()).spawn().unwrap();
    let mut errors = BufReader::new(process.stderr.take().unwrap());
    let mut line = String::new();
    errors.read_line(&mut line).unwrap();
    assert!(line.contains("theater started"), "{line}");
    signal(process.id(), "-TERM");
    assert_eq!(end(process, &arguments), Some(0));

    let mut process = playhouse(&arguments).stdout(full()).stderr(Stdio::piped()).spawn().unwrap();
    let mut errors = process.stderr.take().unwrap();
    assert_eq!(end(process, &arguments), Some(1));
    let mut text = String::new();
    errors.read_to_string(&mut text).unwrap();
    assert!(text.contains("error: standard output is not complete: "), "{text}");
}
