//! `playhouse demo --local` and `playhouse scenario`, as a user runs them.

mod program;

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use program::{is_hang_up_ignored, playhouse, refused, run};

/// A scenario file that is there while its test runs.
struct File(PathBuf);

impl File {
    fn new(name: &str, text: &str) -> File {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::write(&path, text).unwrap();
        File(path)
    }

    fn path(&self) -> &str {
        self.0.to_str().unwrap()
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

const LITTLE: &str = "turns = 5\nclients = 40\ndirectories = 2\n[behaviour]\nnew_chat = 10\npost = 60\nleave = 5\n\
                      [connectedness]\nbefriend = 20\ninvite = 50\n";

#[test]
fn a_scenario_file_runs_and_prints_a_table() {
    let file = File::new("table.toml", LITTLE);
    let (code, table, errors) = run(&["demo", "--local", "--scenario", file.path(), "--workers", "2"]);
    assert_eq!((code, &*errors), (0, ""), "{table}");
    for word in ["messages/s", "p50", "p99", "max", "peak memory", "actors", "2 workers", "delivery check  passed: "] {
        assert!(table.contains(word), "no {word} in\n{table}");
    }
    assert!(!table.contains('\x1b'), "colours where there is no terminal");
}

#[test]
fn without_a_command_the_demo_runs() {
    let (code, table, errors) = run(&["--local", "--scenario", "small", "--workers", "1", "--quiet"]);
    assert_eq!((code, &*errors), (0, ""), "{table}");
    assert!(table.contains("small, seed 2019") && table.contains("1 worker,"), "{table}");
}

#[test]
fn json_parses_and_is_the_same_on_any_number_of_workers() {
    let file = File::new("json.toml", LITTLE);
    let json = |workers: &str| -> serde_json::Value {
        let (code, json, errors) = run(&["demo", "--local", "--scenario", file.path(), "--json", "--workers", workers]);
        assert_eq!((code, &*errors), (0, ""), "{json}");
        serde_json::from_str(&json).unwrap()
    };
    let one = json("1");
    assert_eq!(one["turns"], 5);
    assert_eq!(one["check"]["passed"], true);
    assert!(one["statistics"]["received"].as_u64() > one["messages"].as_u64());
    for key in ["messages_per_second", "turn_latency", "peak_rss_mb", "actors", "workers", "stages", "wall_seconds"] {
        assert!(one.get(key).is_some(), "no {key}");
    }
    for workers in ["2", "4"] {
        let many = json(workers);
        for key in ["messages", "messages_by_kind", "moves", "growth", "delivery", "checksum"] {
            assert_eq!(one[key], many[key], "{key} on {workers} workers");
        }
    }
}

#[test]
fn a_seed_of_ones_own_is_used() {
    let file = File::new("seed.toml", LITTLE);
    let checksum = |seed: &str| -> serde_json::Value {
        let (code, json, _) = run(&["demo", "--local", "--scenario", file.path(), "--json", "--seed", seed]);
        assert_eq!(code, 0);
        serde_json::from_str::<serde_json::Value>(&json).unwrap()["checksum"].clone()
    };
    assert_eq!(checksum("5"), checksum("5"));
    assert_ne!(checksum("5"), checksum("6"));
}

/// Checks that a file is refused with its name and these words.
fn refused_file(name: &str, text: &str, words: &[&str]) {
    let file = File::new(name, text);
    refused(&["demo", "--local", "--scenario", file.path()], &[words, &[file.path()]].concat());
}

#[test]
fn bad_scenarios_are_refused_with_file_key_value_and_what_is_allowed() {
    let unknown = format!("clints = 7\n{LITTLE}");
    refused_file("unknown.toml", &unknown, &[":1: clints = 7: unknown key", "allowed here: turns, clients"]);
    refused_file("type.toml", "turns = \"x\"\nclients = 1", &[":1: turns = \"x\": must be a whole number from 1 to"]);
    refused_file(
        "size.toml",
        "turns = 1\nclients = 99999999999",
        &[":2: clients = 99999999999: must be a whole number"],
    );
    let sum = "turns = 1\nclients = 1\n[behaviour]\nleave = 70\npost = 70";
    refused_file("sum.toml", sum, &[":5: behaviour.post = 70: ", "sum to at most 100"]);
    refused_file(
        "many.toml",
        "turns = 1\nclients = 5\ndirectories = 9",
        &[":3: directories = 9: must be from 1 to", "is 5"],
    );
    refused_file("missing.toml", "turns = 1", &["clients: is missing"]);
    refused_file("syntax.toml", "turns == 1", &[":1: not TOML"]);
    refused_file(
        "all.toml",
        "turns = 0\nclients = 0\ncolour = 1",
        &[":1: turns = 0", ":2: clients = 0", ":3: colour = 1"],
    );
}

#[test]
fn a_file_that_cannot_be_read_is_named_with_what_is_allowed() {
    let built_in = "default, four-theaters, small, sequential";
    refused(&["demo", "--local", "--scenario", "no/such.toml"], &["\"no/such.toml\"", built_in]);
    refused(&["demo", "--local", "--scenario", ""], &["\"\"", built_in]);
    let directory = env!("CARGO_MANIFEST_DIR");
    refused(
        &["demo", "--local", "--scenario", directory],
        &[directory, "it is a folder, and no regular file; a scenario is a TOML file"],
    );
    let file = File::new("binary.toml", "");
    std::fs::write(file.path(), [0xff, 0xfe, 0x00]).unwrap();
    refused(
        &["demo", "--local", "--scenario", file.path()],
        &[file.path(), "no text in UTF-8", "a scenario is a TOML file"],
    );
    refused_file("large.toml", &"#".repeat(1_000_001), &["it has 1000001 bytes, and at most 1000000 are read"]);
    #[cfg(unix)]
    refused(&["demo", "--local", "--scenario", "/dev/zero"], &["/dev/zero", "it is no regular file"]);
}

#[test]
fn wrong_arguments_are_refused() {
    refused(&["demo", "--workers", "0"], &["--workers", "'0'", "1..=1024"]);
    refused(&["demo", "--workers", "100000"], &["--workers", "'100000'", "1..=1024"]);
    refused(&["demo", "--workers", "two"], &["--workers", "'two'"]);
    refused(&["demo", "--stages", "0"], &["--stages", "'0'", "1..=65536"]);
    refused(&["demo", "--stages", "65537"], &["--stages", "'65537'", "1..=65536"]);
    refused(&["demo", "--seed", "4294967296"], &["--seed", "'4294967296'", "0..=4294967295"]);
    refused(&["demo", "--stages", "64"], &["--local"]);
    refused(&["demo", "--stats"], &["--local"]);
    refused(&["demo", "--serve", "--local"], &["--serve", "--local"]);
    refused(&["demo", "--scenario", "no/such.toml"], &["no/such.toml"]);
    refused(&["demo", "--speed", "9"], &["--speed"]);
    refused(&["demo", "evening.toml"], &["evening.toml"]);
    refused(&["dance"], &["dance"]);
}

#[test]
fn fewer_stages_than_workers_are_refused() {
    let (code, out, errors) = run(&["demo", "--local", "--scenario", "small", "--workers", "4", "--stages", "2"]);
    assert_eq!((code, &*out), (2, ""), "{errors}");
    assert!(errors.contains("stages"), "{errors}");
}

#[test]
fn built_in_scenarios_are_listed_printed_and_can_be_copied() {
    let (code, list, _) = run(&["scenario"]);
    assert_eq!((code, list.lines().count()), (0, 10));
    for line in list.lines() {
        let (name, title) = line.split_once(' ').unwrap();
        let (code, text, _) = run(&["scenario", name]);
        assert_eq!(code, 0);
        assert!(text.contains(title.trim()) && text.contains("clients = "), "{text}");
    }
    let (_, text, _) = run(&["scenario", "small"]);
    let file = File::new("copy.toml", &text);
    assert_eq!(run(&["demo", "--local", "--scenario", file.path()]).0, 0);
    let (code, _, errors) = run(&["scenario", "huge"]);
    assert_eq!(code, 2);
    assert!(errors.contains("huge") && errors.contains("many-idle"), "{errors}");
}

/// A signal in the middle of a world that would take very long: one line, and the exit code of the signal.
#[cfg(target_os = "linux")]
#[test]
fn a_signal_ends_the_program_with_a_line_that_says_how_far_it_got() {
    let file = File::new("long.toml", &LITTLE.replace("turns = 5", "turns = 10_000_000"));
    for (signal, bit, code, word) in
        [("-INT", 1, 130, "interrupted"), ("-TERM", 14, 143, "terminated"), ("-HUP", 0, 129, "hung up")]
    {
        if signal == "-HUP" && is_hang_up_ignored() {
            continue;
        }
        let mut command = playhouse(&["demo", "--local", "--scenario", file.path()]);
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        // A handler for the signal is there once the kernel says that it is caught; nothing runs before it is.
        let pid = child.id().to_string();
        let threads = || std::fs::read_dir(format!("/proc/{pid}/task")).map_or(0, Iterator::count);
        let caught = |status: String| {
            let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).map_or("0", str::trim);
            u64::from_str_radix(mask, 16).unwrap() & (1 << bit) != 0
        };
        // The threads of the signals and of the work: from then on, the world ends with the line.
        while !std::fs::read_to_string(format!("/proc/{pid}/status")).is_ok_and(caught) || threads() < 3 {
            std::thread::yield_now();
        }
        assert!(Command::new("kill").args([signal, &pid]).status().unwrap().success());
        let lines: Vec<String> = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap).collect();
        assert_eq!(child.wait().unwrap().code(), Some(code));
        assert_eq!(lines.len(), 1, "{lines:?}");
        let start = format!("{word} after ");
        assert!(lines[0].starts_with(&start) && lines[0].contains(" of 10000000 turns"), "{lines:?}");
    }
}

#[test]
fn scenarios_are_listed_and_printed_as_json() {
    let json = |arguments: &[&str]| -> serde_json::Value {
        let (code, json, errors) = run(arguments);
        assert_eq!((code, &*errors), (0, ""));
        serde_json::from_str(&json).unwrap()
    };
    let all = json(&["scenario", "--json"]);
    let small = all.as_array().unwrap().iter().find(|scenario| scenario["name"] == "small").unwrap();
    let one = json(&["scenario", "small", "--json"]);
    assert_eq!(one["title"], small["title"]);
    assert!(one["toml"].as_str().unwrap().contains("clients = "), "{one}");
}

#[test]
fn options_come_from_variables_and_a_file_and_wrong_ones_are_named() {
    let scenario = File::new("configured-scenario.toml", LITTLE);
    let text = format!("[demo]\nlocal = true\nscenario = {:?}\njson = true\nworkers = 1\n", scenario.path());
    let file = File::new("configured.toml", &text);
    let (code, out, errors) = run(&["--config", file.path()]);
    assert_eq!((code, &*errors), (0, ""), "{out}");
    let workers = |out: &str| serde_json::from_str::<serde_json::Value>(out).unwrap()["workers"].clone();
    assert_eq!(workers(&out), 1);
    let out = playhouse(&["--config", file.path()]).env("PLAYHOUSE_WORKERS", "2").output().unwrap();
    assert_eq!(workers(&String::from_utf8(out.stdout).unwrap()), 2);
    let wrong = File::new("misconfigured.toml", "[demo]\nlocal = true\nwokers = 1\nworkers = 0\n");
    refused(
        &["demo", "--config", wrong.path()],
        &[":3: demo.wokers: unknown key; allowed here: ", ":4: demo.workers = 0: 0 is not in 1..=1024", wrong.path()],
    );
}
