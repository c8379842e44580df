//! `playhouse chatapp record`, `serve` and `drive`, as a user runs them.

mod program;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, ChildStdout, Command, Stdio};

#[cfg(unix)]
use playhouse_bench::chatapp::{self, Options, Scenario};
use program::{playhouse, refused, run};

const LITTLE: &str = "turns = 5\nclients = 40\ndirectories = 2\n[behaviour]\nnew_chat = 10\npost = 60\nleave = 5\n\
                      [connectedness]\nbefriend = 20\ninvite = 50\n";

/// A folder with a scenario and its recording, which is there while its test runs.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let folder = Folder(Path::new(env!("CARGO_TARGET_TMPDIR")).join(name));
        std::fs::create_dir_all(&folder.0).unwrap();
        std::fs::write(folder.path("little.toml"), LITTLE).unwrap();
        let (code, out, errors) = run(&["chatapp", "record", &folder.path("little.toml"), &folder.path("little.chat")]);
        assert_eq!((code, &*errors), (0, ""));
        assert!(out.contains("5 turns, ") && out.contains(" moves, ") && out.contains(" bytes"), "{out}");
        folder
    }

    fn path(&self, file: &str) -> String {
        self.0.join(file).to_str().unwrap().to_owned()
    }

    fn files(&self) -> Vec<String> {
        let files = std::fs::read_dir(&self.0).unwrap();
        let mut names: Vec<String> = files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn line(reader: &mut impl BufRead) -> String {
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    line.trim_end().to_owned()
}

/// A process that ends with its test.
struct Running {
    process: Child,
    out: BufReader<ChildStdout>,
    errors: BufReader<ChildStderr>,
}

impl Running {
    fn start(arguments: &[&str]) -> Running {
        let mut command = playhouse(arguments);
        let mut process = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (out, errors) = (process.stdout.take().unwrap(), process.stderr.take().unwrap());
        Running { process, out: BufReader::new(out), errors: BufReader::new(errors) }
    }

    /// A server, and where it listens.
    fn serve(arguments: &[&str]) -> (Running, String) {
        let mut server = Running::start(&[&["chatapp", "serve", "--workers", "2"], arguments].concat());
        let first = line(&mut server.out);
        let address = first.strip_prefix("listening at ").unwrap_or_else(|| panic!("{first:?}")).to_owned();
        (server, address)
    }

    #[cfg(unix)]
    fn interrupt(&self) {
        self.signal("-INT");
    }

    #[cfg(unix)]
    fn signal(&self, signal: &str) {
        assert!(Command::new("kill").args([signal, &self.process.id().to_string()]).status().unwrap().success());
    }

    fn code(&mut self) -> Option<i32> {
        self.process.wait().unwrap().code()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _it_has_ended = self.process.kill();
        let _ = self.process.wait();
    }
}

#[cfg(unix)]
#[test]
fn a_recording_drives_a_server_to_what_the_dice_make_of_the_scenario() {
    let folder = Folder::new("drives");
    let scenario =
        Scenario::from_toml("little", &std::fs::read_to_string(folder.path("little.toml")).unwrap()).unwrap();
    let report = chatapp::run(&scenario, &Options::default(), |_| ()).unwrap();
    let dice: serde_json::Value = serde_json::from_str(&report.to_json()).unwrap();
    let (mut server, address) = Running::serve(&[&folder.path("little.toml")]);
    for _ in 0..2 {
        let (code, json, errors) = run(&["chatapp", "drive", &folder.path("little.chat"), &address, "--json"]);
        assert_eq!((code, &*errors), (0, ""), "{json}");
        let driven: serde_json::Value = serde_json::from_str(&json).unwrap();
        for key in ["messages", "messages_by_kind", "moves", "growth", "delivery", "checksum"] {
            assert_eq!(driven["report"][key], dice[key], "{key}");
        }
        assert_eq!((&driven["turns"], &driven["moves"]), (&5.into(), &200.into()));
        for key in ["p50_ns", "p90_ns", "p99_ns", "max_ns"] {
            assert!(driven["latency"][key].as_u64() > Some(0), "{driven}");
        }
        assert!(driven["moves_per_second"].as_f64() > Some(0.0), "{driven}");
    }
    let (code, table, errors) = run(&["chatapp", "drive", &folder.path("little.chat"), &address]);
    assert_eq!((code, &*errors), (0, ""), "{table}");
    for words in ["moves/s", "p50", "p90", "p99", "max", "from outside", "in the world", "delivery check  passed"] {
        assert!(table.contains(words), "no {words} in\n{table}");
    }
    server.interrupt();
    let mut said = String::new();
    server.out.read_to_string(&mut said).unwrap();
    assert_eq!(said.matches("delivery check  passed: ").count(), 3, "{said}");
    assert!(said.ends_with("closed\n"), "{said}");
    assert_eq!(server.code(), Some(130));
    let mut errors = String::new();
    server.errors.read_to_string(&mut errors).unwrap();
    assert_eq!(errors.matches(" has come: the set-up is next").count(), 3, "{errors}");
    assert!(errors.ends_with("closing; another signal ends at once\n"), "{errors}");
}

#[test]
fn a_server_for_one_world_ends_with_it() {
    let folder = Folder::new("once");
    let (mut server, address) = Running::serve(&[&folder.path("little.toml"), "--once", "--json"]);
    assert_eq!(run(&["chatapp", "drive", &folder.path("little.chat"), &address, "--quiet"]).0, 0);
    let mut report = String::new();
    server.out.read_to_string(&mut report).unwrap();
    let report: serde_json::Value = serde_json::from_str(&report).unwrap();
    assert_eq!((&report["turns"], &report["check"]["passed"]), (&5.into(), &true.into()));
    assert_eq!(server.code(), Some(0));
}

#[cfg(unix)]
#[test]
fn a_server_that_is_interrupted_closes_though_somebody_drives() {
    let folder = Folder::new("closes");
    let (mut server, address) = Running::serve(&[&folder.path("little.toml")]);
    let driver = TcpStream::connect(&address).unwrap();
    let mut driver = BufReader::new(driver);
    assert!(line(&mut driver).contains(" clients 40 turns 5 next 0 "));
    assert!(line(&mut server.errors).ends_with(" has come: the set-up is next"));
    server.interrupt();
    assert_eq!(line(&mut server.errors), "closing; another signal ends at once");
    assert_eq!((line(&mut server.out), server.code()), ("closed".to_owned(), Some(130)));
    assert_eq!(line(&mut driver), "");
}

#[cfg(unix)]
#[test]
fn a_service_that_is_terminated_has_done_its_work() {
    let folder = Folder::new("terminated");
    let (mut server, _) = Running::serve(&[&folder.path("little.toml")]);
    server.signal("-TERM");
    assert_eq!(line(&mut server.errors), "closing; another signal ends at once");
    assert_eq!((line(&mut server.out), server.code()), ("closed".to_owned(), Some(0)));
}

#[cfg(unix)]
#[test]
fn a_driver_that_a_signal_ends_says_how_far_it_got() {
    let folder = Folder::new("signalled");
    let text = std::fs::read_to_string(folder.path("little.chat")).unwrap();
    let (numbers, name) = text.lines().nth(1).unwrap().strip_prefix("scenario ").unwrap().rsplit_once(' ').unwrap();
    for (signal, word, code) in [("-INT", "interrupted", 130), ("-TERM", "terminated", 143)] {
        // A server that never answers to the second turn.
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let mut driver = Running::start(&["chatapp", "drive", &folder.path("little.chat"), &address]);
        let (mut stream, _) = listener.accept().unwrap();
        writeln!(stream, "playhouse-chatapp 1 {numbers} next 0 {name}\ndone 0 1 1\ndone 1 1 1").unwrap();
        let mut said = BufReader::new(stream.try_clone().unwrap());
        while line(&mut said) != "end 2" {}
        driver.signal(signal);
        let words = format!("{word} after 1 of 5 turns; the world waits for the next driver");
        assert_eq!((line(&mut driver.errors), driver.code()), (words, Some(code)));
    }
}

#[cfg(unix)]
#[test]
fn a_recording_that_a_signal_ends_leaves_nothing() {
    let folder = Folder::new("unfinished");
    let (long, chat) = (folder.path("little.toml"), folder.path("long.chat"));
    std::fs::write(&long, LITTLE.replace("turns = 5", "turns = 10000000")).unwrap();
    for (signal, word, code) in [("-INT", "interrupted", 130), ("-TERM", "terminated", 143)] {
        let mut recorder = Running::start(&["chatapp", "record", &long, &chat]);
        while folder.files().len() == 2 {
            std::thread::yield_now();
        }
        recorder.signal(signal);
        let said = line(&mut recorder.errors);
        assert!(said.starts_with(word), "{said}");
        assert_eq!(recorder.code(), Some(code));
        assert_eq!(folder.files(), ["little.chat", "little.toml"]);
    }
}

#[cfg(unix)]
#[test]
fn a_recording_replaces_files_only_and_keeps_their_mode() {
    use std::os::unix::fs::{FileTypeExt, PermissionsExt, symlink};

    let folder = Folder::new("replaces");
    let (little, chat) = (folder.path("little.toml"), folder.path("little.chat"));
    let (fifo, link) = (folder.path("fifo"), folder.path("link"));
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    symlink(&chat, &link).unwrap();
    let kind = |path: &str| std::fs::symlink_metadata(path).unwrap().file_type();
    for (path, words) in [(&*fifo, "a FIFO"), (&*link, "is a link to"), ("/dev/full", "a device")] {
        let before = kind(path);
        let (code, out, errors) = run(&["chatapp", "record", &little, path]);
        assert_eq!((code, &*out), (1, ""), "{errors}");
        assert!(errors.contains(path) && errors.contains(words), "{errors}");
        assert_eq!(kind(path), before, "{path}");
    }
    assert!(kind(&fifo).is_fifo() && kind(&link).is_symlink());

    std::fs::write(&chat, "old").unwrap();
    std::fs::set_permissions(&chat, std::fs::Permissions::from_mode(0o640)).unwrap();
    assert_eq!(run(&["chatapp", "record", &little, &chat, "--quiet"]).0, 0);
    assert_eq!(std::fs::metadata(&chat).unwrap().permissions().mode() & 0o777, 0o640);
    assert!(std::fs::read_to_string(&chat).unwrap().ends_with("close\n"));
    assert_eq!(folder.files(), ["fifo", "link", "little.chat", "little.toml"]);
}

/// The result is the file, and not the line about it.
#[cfg(unix)]
#[test]
fn a_recording_is_written_without_a_reader_of_the_output() {
    let folder = Folder::new("unread");
    let (scenario, chat) = (folder.path("little.toml"), folder.path("other.chat"));
    std::fs::write(&scenario, LITTLE.replace("turns = 5", "turns = 20000")).unwrap();
    let (_, writer) = std::io::pipe().unwrap();
    let ended = playhouse(&["chatapp", "record", &scenario, &chat]).stdout(writer).output().unwrap();
    assert_eq!((ended.status.code(), &*String::from_utf8(ended.stderr).unwrap()), (Some(0), ""));
    assert!(std::fs::read_to_string(&chat).unwrap().ends_with("close\n"));
}

#[cfg(target_os = "linux")]
#[test]
fn output_that_cannot_be_written_is_an_error() {
    let folder = Folder::new("full");
    let (little, chat) = (folder.path("little.toml"), folder.path("other.chat"));
    for arguments in [&["chatapp", "record", &little, &chat][..], &["chatapp", "--help"]] {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let ended = playhouse(arguments).stdout(full).output().unwrap();
        let errors = String::from_utf8(ended.stderr).unwrap();
        assert_eq!(ended.status.code(), Some(1), "{errors}");
        assert!(errors.starts_with("error: standard output is not complete: No space left on device"), "{errors}");
    }
}

#[test]
fn a_recording_of_ones_own_seed_is_for_a_server_of_that_seed() {
    let folder = Folder::new("seed");
    let (little, other) = (folder.path("little.toml"), folder.path("other.chat"));
    assert_eq!(run(&["chatapp", "record", &little, &other, "--seed", "7", "--quiet"]).0, 0);
    let (_server, address) = Running::serve(&[&little]);
    refused(
        &["chatapp", "drive", &other, &address],
        &["the recording is of scenario ", "and the server plays scenario "],
    );
    let (_server, address) = Running::serve(&[&little, "--seed", "7"]);
    assert_eq!(run(&["chatapp", "drive", &other, &address]).0, 0);
}

#[test]
fn a_failed_recording_leaves_no_file() {
    let folder = Folder::new("no-file");
    let little = folder.path("little.toml");
    let expected = ["little.chat", "little.toml"];
    refused(&["chatapp", "record", "no/such.toml", &folder.path("x.chat")], &["\"no/such.toml\""]);
    for file in [folder.path("no/such.chat"), folder.path("")] {
        let (code, out, errors) = run(&["chatapp", "record", &little, &file]);
        assert_eq!((code, &*out), (1, ""), "{errors}");
        let error = format!("error: the recording cannot be written: {}", file.trim_end_matches('/'));
        assert!(errors.starts_with(&error), "{errors}");
    }
    assert_eq!(folder.files(), expected);
}

#[test]
fn bad_recordings_addresses_and_servers_are_refused() {
    let folder = Folder::new("bad");
    let (little, chat) = (folder.path("little.toml"), folder.path("little.chat"));
    let text = std::fs::read_to_string(&chat).unwrap();
    let bad = folder.path("bad.chat");
    let drive = |text: &str, words: &[&str]| {
        std::fs::write(&bad, text).unwrap();
        refused(&["chatapp", "drive", &bad, "127.0.0.1:1"], &[words, &[&*bad]].concat());
    };
    drive("", &["is empty"]);
    drive(LITTLE, &[":1: is not a recording of this format"]);
    drive(&text[..text.len() / 2], &["ends in the middle of"]);
    drive(&text.replace("close\n", ""), &["ends without close, after turn 5 of 5"]);
    refused(&["chatapp", "drive", "no/such.chat", "127.0.0.1:1"], &["no/such.chat: No such file"]);
    refused(&["chatapp", "drive", &chat, "here"], &["an address reads host:port"]);
    refused(&["chatapp", "serve", "no/such.toml"], &["\"no/such.toml\""]);
    refused(&["chatapp", "serve", &little, "--listen", "here"], &["an address reads host:port"]);
    refused(
        &["chatapp", "serve", &little, "--listen", "0.0.0.0:0"],
        &["0.0.0.0:0 is not on the loopback", "--plaintext"],
    );
    refused(&["chatapp", "serve", &little, "--workers", "4", "--stages", "2"], &["stages"]);
    refused(&["chatapp"], &["record", "serve", "drive"]);

    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = listener.local_addr().unwrap().to_string();
    let (code, out, errors) = run(&["chatapp", "serve", &little, "--listen", &taken]);
    assert_eq!((code, &*out), (1, ""), "{errors}");
    assert!(errors.contains(&format!("{taken}: cannot listen: ")), "{errors}");
    drop(listener);
    let (code, out, errors) = run(&["chatapp", "drive", &chat, &taken]);
    assert_eq!((code, &*out), (1, ""), "{errors}");
    assert!(errors.contains(&format!("{taken}: no server answers: ")), "{errors}");
}
