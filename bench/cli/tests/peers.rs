//! `playhouse bench --peers`, with peers that are scripts.
#![cfg(unix)]

mod program;

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use program::{refused, run};
use serde_json::Value;

/// A folder of peers, removed at the end.
struct Peers(PathBuf);

impl Peers {
    /// With these programs, each a script.
    fn new(test: &str, programs: &[(&str, &str)]) -> Self {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("peers-{test}-{}", std::process::id()));
        fs::create_dir_all(folder.join("bin")).unwrap();
        fs::write(folder.join("install"), "").unwrap();
        for (name, script) in programs {
            let program = folder.join("bin").join(name);
            fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
            fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        }
        Self(folder)
    }

    fn bench(&self, arguments: &[&str]) -> (i32, String, String) {
        run(&[&self.always(), arguments].concat())
    }

    fn always(&self) -> [&str; 7] {
        ["bench", "--size", "smoke", "--workers", "1", "--peers-dir", self.0.to_str().unwrap()]
    }

    /// What those say who have called [`ALIVE`]; nobody is left of them when there is no more.
    fn alive(&self) -> Receiver<String> {
        let pipe = self.0.join("alive");
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let (said, hears) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(fs::File::open(pipe).unwrap()).lines() {
                let _ = said.send(line.unwrap());
            }
        });
        hears
    }

    /// The rows, and what was said on standard error.
    fn rows(&self, arguments: &[&str]) -> (Vec<Value>, String) {
        let (_, out, errors) = self.bench(&[&["--json"], arguments].concat());
        (out.lines().map(|line| serde_json::from_str(line).unwrap()).collect(), errors)
    }
}

impl Drop for Peers {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// What a peer does that has played `count` in small, in so many nanoseconds.
fn counted(peer: &str, ns: u64) -> String {
    format!(
        "echo '{{\"peer\":\"{peer}\",\"version\":\"1.2\",\"workload\":\"count\",\"ops\":10000,\"ns\":{ns}}}'\nread end || true"
    )
}

/// Opens the pipe of [`Peers::alive`] for as long as this process or one that it starts is there, and says so.
const ALIVE: &str = "exec 3> \"$(dirname \"$0\")/../alive\"; echo here >&3";
/// Longer than anything here takes that does not go on for ever.
const ANSWER_MAX: Duration = Duration::from_secs(60);

#[test]
fn peers_stand_beside_ours_in_the_same_run() {
    let log = r#"echo "$@" >> "$(dirname "$0")/../log""#;
    let peers = Peers::new(
        "beside",
        &[
            ("actix", &format!("{log}\necho a line before\n{}", counted("actix", 1_000_000_000))),
            ("kameo", &format!("{log}\n{}", counted("kameo", 20_000))),
        ],
    );
    let (rows, errors) = peers.rows(&["--peers", "kameo,actix", "--runs", "3", "count"]);
    assert_eq!(errors, "");
    let [ours, actix, kameo] = &rows[..] else { panic!("{rows:?}") };
    assert_eq!((&ours["who"], &ours["ratio"]), (&"playhouse".into(), &Value::Null));
    assert_eq!((&actix["who"], &kameo["who"]), (&"actix".into(), &"kameo".into()));
    assert_eq!((&actix["version"], &actix["workers"]), (&"1.2".into(), &1.into()));
    for (row, ns) in [(actix, 100_000.0), (kameo, 2.0)] {
        assert_eq!([&row["ns_per_op"], &row["min"], &row["max"]], [&Value::from(ns); 3], "{row}");
        let ratio = ns / ours["ns_per_op"].as_f64().unwrap();
        assert!((row["ratio"].as_f64().unwrap() - ratio).abs() < 0.001 + ratio / 100.0, "{ours}\n{row}");
    }
    for row in &rows {
        assert_eq!((row["runs"].as_array().unwrap().len(), &row["ops"]), (3, &10_000.into()), "{row}");
        let peak = row["peak_rss_mb"].as_f64();
        assert!(!cfg!(target_os = "linux") || peak.is_some_and(|mb| mb > 0.1), "{row}");
    }
    // In turns: not all runs of one, and then all of the other.
    let asked = fs::read_to_string(peers.0.join("log")).unwrap();
    assert_eq!(asked, "count --size smoke --workers 1\n".repeat(6));
}

#[test]
fn runs_are_taken_in_turns() {
    let script = |peer| format!("echo {peer} >> \"$(dirname \"$0\")/../log\"\n{}", counted(peer, 20_000));
    let peers = Peers::new("turns", &[("actix", &script("actix")), ("caf", &script("caf"))]);
    let (code, _, errors) = peers.bench(&["--peers", "actix,caf", "--runs", "3", "count"]);
    assert_eq!((code, &*errors), (0, ""));
    assert_eq!(fs::read_to_string(peers.0.join("log")).unwrap(), "actix\ncaf\n".repeat(3));
}

/// The memory is that of the peer's process, not of ours.
#[cfg(target_os = "linux")]
#[test]
fn the_peak_is_that_of_the_peer() {
    let script = format!("held=$(head -c 33554432 /dev/zero | tr '\\0' x)\n{}", counted("actix", 20_000));
    let peers = Peers::new("peak", &[("actix", &script), ("caf", &counted("caf", 20_000))]);
    let (rows, _) = peers.rows(&["--peers", "actix,caf", "--runs", "1", "count"]);
    let peak = |row: &Value| row["peak_rss_mb"].as_f64().unwrap();
    assert!(peak(&rows[1]) > 32.0 && peak(&rows[2]) < 8.0, "{rows:?}");
}

#[test]
fn an_absent_peer_is_left_out_with_the_line_that_gets_it() {
    let peers = Peers::new("absent", &[("actix", &counted("actix", 20_000))]);
    let (code, out, errors) = peers.bench(&["--peers", "actix,erlang", "--runs", "1", "count"]);
    assert_eq!(code, 0);
    let install = peers.0.join("install");
    assert_eq!(errors, format!("note: erlang is not installed; `{} erlang` gets it\n", install.display()));
    assert!(out.contains("actix") && !out.contains("erlang"), "{out}");
    // Without names it is all of them.
    let (_, _, errors) = peers.bench(&["count", "--runs", "1", "--peers"]);
    assert_eq!(errors.matches("is not installed").count(), 7, "{errors}");
}

#[test]
fn the_error_of_a_peer_is_printed() {
    let peers = Peers::new(
        "wrong",
        &[
            ("actix", "echo nothing of use"),
            ("ractor", "echo first >&2; echo 'wrong: the result should be 1 and is 2' >&2; exit 3"),
            ("kameo", r#"echo '{"peer":"kameo","version":"1","workload":"count","ops":9999,"ns":5}'"#),
            ("pekko", r#"echo '{"peer":"pekko","version":"1","workload":"big","ops":10000,"ns":5}'"#),
            ("protoactor", &counted("erlang", 5)),
            ("erlang", &counted("erlang", 0)),
            ("caf", &counted("caf", 20_000)),
            ("alone", &counted("alone", 20_000)),
        ],
    );
    let (rows, errors) = peers.rows(&["--peers", "--runs", "2", "count"]);
    for error in [
        "count: actix: its answer should name the benchmark and its figures, and is `nothing of use`",
        "count: ractor: exit status: 3: first / wrong: the result should be 1 and is 2",
        "count: kameo: it has played 9999 operations (messages) instead of 10000",
        "count: pekko: its answer should name the benchmark and its figures, and is `{",
        "count: protoactor: its answer should name the benchmark and its figures, and is `{",
        "count: erlang: its answer should name the benchmark and its figures, and is `{",
    ] {
        assert!(errors.contains(&format!("error: {error}")), "{errors}");
    }
    assert_eq!(errors.lines().count(), 6, "{errors}");
    assert_eq!(rows.len(), 9, "{rows:?}");
    for row in &rows {
        let plays = ["playhouse", "caf", "alone"].contains(&row["who"].as_str().unwrap());
        assert_eq!((row["ns_per_op"].is_number(), row.get("remark").is_none()), (plays, plays), "{row}");
    }
    let (code, _, _) = peers.bench(&["--peers", "actix", "--runs", "1", "count"]);
    assert_eq!(code, 1);
}

#[test]
fn a_peer_that_takes_too_long_is_over_the_limit() {
    let script = "echo once >> \"$(dirname \"$0\")/../log\"; exec tail -f /dev/null";
    let peers = Peers::new("over", &[("actix", script), ("caf", &counted("caf", 20_000))]);
    let arguments = ["--peers", "actix,caf", "--peer-limit", "5", "--runs", "2", "count"];
    let (code, out, errors) = peers.bench(&arguments);
    assert_eq!((code, &*errors), (0, ""));
    assert!(out.lines().any(|line| line.contains("actix") && line.ends_with("over 5 s")), "{out}");
    assert_eq!(fs::read_to_string(peers.0.join("log")).unwrap(), "once\n", "it is tried once, not in each run");
    let (_, csv, _) = peers.bench(&[&arguments[..], &["--csv"]].concat());
    assert!(csv.contains("\ncount,message,actix,,1,,,,,\"over 5 s\"\n"), "{csv}");
}

// GUARANTEE: Peers of benchmarks end
/// Also one that does not listen to its input.
#[cfg(target_os = "linux")]
#[test]
fn no_peer_outlives_the_program_that_started_it() {
    for (test, signal) in [("killed", "-KILL"), ("interrupted", "-INT")] {
        let peers = Peers::new(test, &[("actix", &format!("{ALIVE}\nexec sleep infinity"))]);
        let alive = peers.alive();
        let mut program = program::playhouse(&[&peers.always()[..], &["count", "--peers", "actix"]].concat());
        let started = program.process_group(0).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let mut child = started.unwrap();
        assert_eq!(alive.recv_timeout(ANSWER_MAX).as_deref(), Ok("here"));
        // As a terminal does it: who is not in its group hears nothing.
        let group = format!("-{}", child.id());
        assert!(Command::new("kill").args([signal, "--", &group]).status().unwrap().success());
        child.wait().unwrap();
        assert_eq!(alive.recv_timeout(ANSWER_MAX), Err(std::sync::mpsc::RecvTimeoutError::Disconnected), "{signal}");
    }
}

// GUARANTEE: Peers of benchmarks end
#[test]
fn a_peer_that_stays_after_its_last_word_is_ended() {
    // Whether or not it closes its output.
    for (test, closes) in [("stays", "exec >/dev/null 2>&1"), ("open", "")] {
        let script = format!("{ALIVE}\n{}\n{closes}\nexec sleep infinity", counted("actix", 20_000));
        let peers = Peers::new(test, &[("actix", &script)]);
        let alive = peers.alive();
        let (code, _, errors) = peers.bench(&["--peers", "actix", "--runs", "1", "count"]);
        assert_eq!((code, &*errors), (1, "error: count: actix: it has not ended 5 s after its last output\n"));
        assert_eq!(alive.iter().collect::<Vec<_>>(), ["here"]);
    }
}

// GUARANTEE: Peers of benchmarks end
/// It holds the ends of its pipes, and would have everybody wait.
#[test]
fn a_process_started_by_a_peer_ends_with_it() {
    let script = format!("{ALIVE}\ntail -f /dev/null &\n{}", counted("actix", 20_000));
    let peers = Peers::new("two", &[("actix", &script)]);
    let alive = peers.alive();
    let (rows, errors) = peers.rows(&["--peers", "actix", "--peer-limit", "60", "--runs", "1", "count"]);
    assert_eq!((&*errors, &rows[1]["ns_per_op"]), ("", &2.0.into()));
    assert_eq!(alive.iter().collect::<Vec<_>>(), ["here"]);
}

#[test]
fn remote_benchmarks_are_played_by_peers_with_remoting() {
    let script = |peer| {
        format!(
            r#"case $1 in rpingpong) ops=400;; rthroughput) ops=20000;; rcreate) ops=100;; rrings-1) ops=80;; *) ops=320;; esac
echo '{{"peer":"{peer}","version":"1.2","workload":"'$1'","ops":'$ops',"ns":5}}'"#
        )
    };
    let names = ["actix", "ractor", "kameo", "erlang", "alone"];
    let scripts = names.map(script);
    let programs: Vec<_> = names.into_iter().zip(&scripts).map(|(name, script)| (name, &**script)).collect();
    let peers = Peers::new("remote", &programs);
    let (rows, errors) = peers.rows(&["--peers", &names.join(","), "--runs", "1", "remote"]);
    let all = ["rpingpong", "rthroughput", "rcreate", "rrings-1", "rrings-32", "rrings-320"];
    let note = |peer| format!("note: {peer} does not play {}: bench/peers/README.md says why\n", all.join(", "));
    assert_eq!(errors, note("actix"));
    let played: Vec<_> =
        rows.iter().map(|row| [&row["bench"], &row["who"]].map(|name| name.as_str().unwrap())).collect();
    let players = |bench| ["playhouse", "ractor", "kameo", "erlang", "alone"].map(|who| [bench, who]);
    assert_eq!(played, all.map(players).concat());
    assert!(rows.iter().all(|row| row["ns_per_op"].is_number()), "{rows:?}");
}

#[test]
fn absent_servers_are_said_with_the_line_that_gets_them_and_the_rest_runs() {
    let peers = Peers::new("no-servers", &[("kameo", &counted("kameo", 20_000))]);
    let absent = format!("web is not installed; `{} web` gets it\n", peers.0.join("install").display());
    let (code, out, errors) = peers.bench(&["web", "count", "--runs", "1"]);
    assert_eq!((code, errors), (1, format!("error: web: {absent}")));
    assert!(out.contains("\ncount "), "{out}");
    // Beside peers it is left out, as peers are that are not installed.
    let (code, out, errors) = peers.bench(&["web", "count", "--runs", "1", "--peers", "kameo"]);
    assert_eq!((code, errors), (0, format!("note: {absent}")));
    assert!(out.contains("\ncount ") && out.contains(" kameo ") && !out.contains("\nweb "), "{out}");
    let (_, list, errors) = peers.bench(&["--list"]);
    assert!(list.contains("\nweb (operation: request)") && errors.is_empty(), "{list}{errors}");
}

#[test]
fn the_error_of_a_server_is_printed_and_the_server_is_ended() {
    let error = "the server should print its address, and printed `nothing of use`";
    let script = format!("{ALIVE}\necho nothing of use; exec sleep infinity");
    let peers = Peers::new("server", &[("web", &script)]);
    let alive = peers.alive();
    let (code, _, errors) = peers.bench(&["web", "--runs", "2"]);
    assert_eq!((code, errors), (1, format!("error: web: {error}\n")));
    assert_eq!(alive.iter().collect::<Vec<_>>(), ["here"]);

    let script = r#"echo "$@" >> "$(dirname "$0")/../log"; echo nothing of use; exec sleep infinity"#;
    let peers = Peers::new("servers", &[("web", script)]);
    let (rows, errors) = peers.rows(&["web", "--runs", "2", "--peers", "kameo,actix"]);
    let names = ["playhouse", "actix", "kameo"];
    assert_eq!(errors, names.map(|name| format!("error: web: {name}: {error}\n")).concat());
    assert!(rows.len() == 3 && rows.iter().all(|row| row["remark"].is_string()), "{rows:?}");
    let asked = fs::read_to_string(peers.0.join("log")).unwrap();
    assert_eq!(asked, names.map(|name| format!("{name} --workers 1\n")).concat());
}

/// With a `cargo` that makes programs which say what they are and what they are asked.
#[test]
fn a_peer_for_several_processes_has_its_own_program_for_them() {
    let peers = Peers::new("install", &[]);
    let cargo = r#"for word; do case $before in --bin|--package) name=$word;; --target-dir) at=$word/release;; esac; before=$word; done
mkdir -p "$at"; printf '#!/bin/sh\necho "$(basename "$0") $*"\n' > "$at/$name"; chmod +x "$at/$name""#;
    let tools = peers.0.join("tools");
    fs::create_dir(&tools).unwrap();
    fs::write(tools.join("cargo"), format!("#!/bin/sh\n{cargo}\n")).unwrap();
    fs::set_permissions(tools.join("cargo"), fs::Permissions::from_mode(0o755)).unwrap();
    let install = peers.0.join("install");
    fs::copy(Path::new(env!("CARGO_MANIFEST_DIR")).join("../peers/install"), &install).unwrap();
    let path = format!("{}:{}", tools.display(), std::env::var("PATH").unwrap());
    let installed =
        Command::new("bash").arg(install).args(["ractor", "kameo", "actix", "alone", "web"]).env("PATH", path).output();
    let installed = installed.unwrap();
    assert!(installed.status.success(), "{}", String::from_utf8_lossy(&installed.stderr));
    for (peer, workload, program) in [
        ("ractor", "repeat", "ractor"),
        ("ractor", "ringmulti", "ractor"),
        ("ractor", "rpingpong", "ractor-remote"),
        ("kameo", "rthroughput", "kameo-remote"),
        ("kameo", "rcreate", "kameo-remote"),
        ("kameo", "rrings-320", "kameo-remote"),
        ("alone", "fib", "playhouse-self-peer"),
        ("alone", "rpingpong", "playhouse-self-peer-remote"),
        ("actix", "rpingpong", "actix"),
        // The servers are one program here, and its first word names one of them.
        ("web", "playhouse", "web-playhouse"),
        ("web", "actix", "web-actix"),
        ("web", "kameo", "web-kameo"),
        ("web", "locks", "web-locks"),
    ] {
        let asked = Command::new(peers.0.join("bin").join(peer)).args([workload, "--size", "smoke"]).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&asked.stdout), format!("{program} {workload} --size smoke\n"));
    }
}

#[test]
fn the_server_without_actors_plays_the_web_only() {
    let peers = Peers::new("without-actors", &[("actix", &counted("actix", 20_000))]);
    let (_, table, notes) = peers.bench(&["--peers", "locks,actix", "--runs", "1", "count"]);
    assert_eq!(notes, "note: locks does not play count: bench/peers/README.md says why\n");
    assert!(!table.contains("locks"), "{table}");
    let (_, _, notes) = peers.bench(&["--peers", "--runs", "1", "count"]);
    assert!(!notes.contains("locks"), "{notes}");
}

#[test]
fn a_table_fits_a_terminal_and_csv_has_a_line_per_run() {
    let peers = Peers::new("forms", &[("protoactor", &counted("protoactor", 12_345_678_900))]);
    let (_, table, _) = peers.bench(&["--peers", "protoactor", "--runs", "2", "count"]);
    let lines: Vec<_> = table.lines().collect();
    assert!(lines.iter().all(|line| line.chars().count() <= 80), "{table}");
    assert!(lines[2].starts_with("count      playhouse "), "{table}");
    assert!(lines[3].trim_start().starts_with("protoactor  1234568  1234568  1234568 "), "{table}");
    assert!(lines[5].starts_with("playhouse ") && lines[5].contains(", protoactor 1.2; "), "{table}");
    let (_, csv, _) = peers.bench(&["--peers", "protoactor", "--runs", "2", "--csv", "count"]);
    let lines: Vec<Vec<_>> = csv.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!((lines.len(), lines[0].len()), (5, 10), "{csv}");
    assert!(lines.iter().all(|line| line.len() == 10), "{csv}");
    assert_eq!(lines[4][..8], ["count", "message", "protoactor", "1.2", "1", "10000", "2", "1234567.89"], "{csv}");
}

#[test]
fn a_workload_that_peers_do_not_play_is_refused() {
    let peers = Peers::new("refused", &[]);
    let folder = peers.0.to_str().unwrap();
    let refused = |arguments: &[&str], words: &[&str]| {
        refused(&[&["bench", "--peers-dir", folder], arguments].concat(), words);
    };
    refused(&["--peers", "akka", "count"], &["'akka'", "actix, ractor, kameo, pekko, protoactor, erlang, caf"]);
    refused(&["idle", "--peers"], &["`idle`", "they play count, pingpong", "rpingpong"]);
    refused(&["savina", "--peers"], &["`savina-pingpong`", "they play count, pingpong"]);
    refused(&["--size", "paper", "count", "--peers"], &["`paper`", "smoke and default"]);
    refused(&["count", "--peers", "--stats"], &["--peers", "--stats"]);
    refused(&["count", "--csv"], &["--peers"]);
    refused(&["count", "--peers", "--peer-limit", "0"], &["--peer-limit", "0"]);
    let nowhere = ["bench", "count", "--peers", "--peers-dir", "/nowhere"];
    program::refused(&nowhere, &["/nowhere is not the folder of the peers", "install"]);
}
