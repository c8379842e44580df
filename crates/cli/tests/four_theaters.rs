//! `playhouse demo`, as a user runs it: four theaters, each a process.

#![cfg(target_os = "linux")]

#[allow(dead_code, reason = "other tests use all of it")]
mod program;

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use program::{is_hang_up_ignored, playhouse, run};

/// Known to the processes of one run, and to no others.
const MARK: &str = "PLAYHOUSE_TEST";

/// The program, whose processes can be told from those of other tests.
fn marked(mark: &str, arguments: &[&str]) -> Command {
    let mut command = playhouse(arguments);
    command.env(MARK, mark);
    command
}

/// Counts the processes of a run.
fn processes(mark: &str) -> usize {
    processes_of(mark).len()
}

/// The processes of a run.
fn processes_of(mark: &str) -> Vec<String> {
    let wanted = format!("{MARK}={mark}");
    let has_mark = |path: PathBuf| {
        let environment = std::fs::read(path.join("environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|variable| variable == wanted.as_bytes())
    };
    let processes = std::fs::read_dir("/proc").unwrap().flatten().filter(|entry| has_mark(entry.path()));
    processes.map(|entry| entry.file_name().into_string().unwrap()).collect()
}

/// Waits for the end of what all of them write their errors to.
fn all_end(mark: &str, mut errors: impl Read + Send + 'static) {
    let (tell, ended) = mpsc::channel();
    std::thread::spawn(move || tell.send(std::io::copy(&mut errors, &mut std::io::sink())));
    let ended = ended.recv_timeout(Duration::from_secs(10));
    assert!(ended.is_ok(), "{} processes are left", processes(mark));
    assert_eq!(processes(mark), 0);
}

fn signal(child: &Child, name: &str) {
    assert!(Command::new("kill").args([name, &child.id().to_string()]).status().unwrap().success());
}

/// A world without end, in a turn.
fn serve(mark: &str) -> (Child, impl BufRead + Send + use<>) {
    let mut command = marked(mark, &["demo", "--serve", "--scenario", "small", "--workers", "1"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut errors = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    while !line.starts_with("turn ") || line.starts_with("turn 0 ") {
        line.clear();
        assert!(errors.read_line(&mut line).unwrap() > 0, "it has ended");
    }
    assert_eq!(processes(mark), 4);
    (child, errors)
}

#[test]
fn four_theaters_play_the_world_that_one_plays_though_actors_move_and_one_theater_ends() {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("four_theaters.toml");
    let text = "turns = 150\nclients = 60\ndirectories = 5\n[behaviour]\nnew_chat = 4\npost = 50\nleave = 20\n\
                [connectedness]\nbefriend = 20\ninvite = 50\n[message]\nsize = 16\n";
    std::fs::write(&path, text).unwrap();
    let scenario = ["--scenario", path.to_str().unwrap(), "--json", "--quiet", "--workers", "1"];
    let (code, one, _) = run(&[&["demo", "--local"], &scenario[..]].concat());
    assert_eq!(code, 0);
    let out = marked("account", &[&["demo"], &scenario[..]].concat()).output().unwrap();
    assert_eq!(processes("account"), 0);
    let (four, errors) = (String::from_utf8(out.stdout).unwrap(), String::from_utf8(out.stderr).unwrap());
    assert_eq!((out.status.code(), &*errors), (Some(0), ""), "{four}");
    let json = |text: &str| -> serde_json::Value { serde_json::from_str(text).unwrap() };
    let (one, four) = (json(&one), json(&four));
    for key in ["turns", "messages", "messages_by_kind", "moves", "growth", "delivery", "checksum"] {
        assert_eq!(one[key], four[key], "{key}");
    }
    assert_eq!((&four["theaters"], &four["restarts"]), (&4.into(), &1.into()));
    for nothing in ["out_of_order", "dead_letters"] {
        assert_eq!(four[nothing], 0, "{nothing}");
    }
    assert!(
        four["migrations"]["sent"].as_u64() > Some(0) && four["migrations"]["drained"].as_u64() > Some(0),
        "{four}"
    );
    assert_eq!((&four["migrations"]["failed"], &four["check"]["passed"]), (&0.into(), &true.into()));
}

#[test]
fn a_table_says_what_has_come_of_it() {
    let (code, table, errors) = run(&["--scenario", "small", "--workers", "1", "--quiet"]);
    assert_eq!((code, &*errors), (0, ""), "{table}");
    for word in ["small, seed 2019", "p50", "p99", "max", "out of order", "migrations", "delivery check  passed: "] {
        assert!(table.contains(word), "no {word} in\n{table}");
    }
    assert!(!table.contains('\x1b'), "colours where there is no terminal");
}

// GUARANTEE: Signals drain
#[test]
fn a_world_without_end_ends_with_its_results_after_a_signal() {
    for (name, code) in [("-INT", 130), ("-TERM", 0), ("-HUP", 0)] {
        if name == "-HUP" && is_hang_up_ignored() {
            continue;
        }
        let mark = format!("serve{name}");
        let (mut child, errors) = serve(&mark);
        signal(&child, name);
        // The program does not wait for a reader of its messages.
        std::thread::spawn(move || std::io::copy(&mut { errors }, &mut std::io::sink()));
        let mut table = String::new();
        child.stdout.take().unwrap().read_to_string(&mut table).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(code), "{table}");
        assert!(table.contains("delivery check  passed: "), "{table}");
        assert_eq!(processes(&mark), 0);
    }
}

// GUARANTEE: Signals drain
/// A supervisor signals all processes of a service, and the first one has to end the others.
#[test]
fn all_processes_are_signalled_and_the_world_ends_with_its_results() {
    let (mut child, errors) = serve("all");
    for process in processes_of("all") {
        assert!(Command::new("kill").args(["-TERM", &process]).status().unwrap().success());
    }
    std::thread::spawn(move || std::io::copy(&mut { errors }, &mut std::io::sink()));
    let mut table = String::new();
    child.stdout.take().unwrap().read_to_string(&mut table).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0), "{table}");
    assert!(table.contains("delivery check  passed: "), "{table}");
    assert_eq!(processes("all"), 0);
}

#[test]
fn a_second_interrupt_ends_all_processes_at_once() {
    let (mut child, mut errors) = serve("twice");
    // The program cannot end its turn before the second signal has come.
    signal(&child, "-STOP");
    signal(&child, "-INT");
    signal(&child, "-CONT");
    let noted = errors
        .by_ref()
        .lines()
        .map_while(Result::ok)
        .any(|line| line.contains("a second signal ends the program at once"));
    assert!(noted);
    signal(&child, "-INT");
    // The program may have ended before the second signal, with the same code.
    assert_eq!(child.wait().unwrap().code(), Some(130));
    all_end("twice", errors);
}

#[test]
fn no_process_outlives_the_first_one() {
    let (mut child, errors) = serve("orphans");
    child.kill().unwrap();
    child.wait().unwrap();
    all_end("orphans", errors);
}
