//! Several processes with one database: none loses an update, and an acknowledged save survives the end of its process.
use std::env;
use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::channel;

use playhouse::durable::{Ledger, Store, StoreError};
use playhouse_sqlite::SqliteStore;

use crate::folder::Folder;

/// The variable that makes the test program play a part. Its value is the name of the part.
const PART: &str = "PLAYHOUSE_SQLITE_PART";
const FILE: &str = "PLAYHOUSE_SQLITE_FILE";

const EACH: u64 = 40;

/// The entry of the processes that the tests start.
#[test]
fn part() {
    let Ok(part) = env::var(PART) else { return };
    let store = SqliteStore::open(env::var(FILE).unwrap()).unwrap();
    match part.as_str() {
        "count" => (0..EACH).for_each(|_| _ = count(&store)),
        "count for ever" => loop {
            println!("counted {}", count(&store));
            std::io::stdout().flush().unwrap();
        },
        "fill" => fill(&store),
        other => panic!("{other}"),
    }
}

/// Adds 1 to the number under the key `n`, and returns the sum.
fn count(store: &SqliteStore) -> u64 {
    loop {
        let (revision, n) = store.load("n").unwrap().map_or((0, 0), |saved| (saved.revision, number(&saved.bytes)));
        match store.save("n", revision, &(n + 1).to_le_bytes()) {
            Ok(_) => return n + 1,
            Err(StoreError::Conflict { .. }) => {}
            // Another process has written for long, as on a slow disk.
            Err(StoreError::Io { error, .. }) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => panic!("{error}"),
        }
    }
}

fn number(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes.try_into().unwrap())
}

/// Saves until the storage is full, and checks that a failed save has changed nothing.
fn fill(store: &SqliteStore) {
    let mut last = (0, 0);
    let error = (1..).find_map(|size| {
        let bytes = vec![size as u8; size * 10_000];
        match store.save("large", last.0, &bytes) {
            Ok(revision) => {
                last = (revision, bytes.len());
                None
            }
            Err(error) => Some(error),
        }
    });
    let found = store.load("large").unwrap().unwrap();
    assert_eq!((found.revision, found.bytes.len()), last, "after {error:?}");
    let revision = store.save("large", last.0, b"small").unwrap();
    store.save("other", 0, b"small").unwrap();
    println!("full: {}; revision {}", error.unwrap(), revision);
}

fn start(part: &str, file: &Path) -> Command {
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["processes::part", "--exact", "--nocapture"]).env(PART, part).env(FILE, file).stdout(Stdio::piped());
    command
}

/// Ends its process when a test fails.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

// GUARANTEE: Two incarnations do not overwrite each other
#[test]
fn processes_that_count_together_lose_no_update() {
    const PROCESSES: u64 = 4;
    let folder = Folder::new("together");
    let file = folder.path("states.db");
    // All of them create the database.
    let started: Vec<_> = (0..PROCESSES).map(|_| Ended(start("count", &file).spawn().unwrap())).collect();
    for mut process in started {
        assert!(process.0.wait().unwrap().success());
    }
    let store = SqliteStore::open(&file).unwrap();
    assert_eq!(number(&store.load("n").unwrap().unwrap().bytes), PROCESSES * EACH);
}

// GUARANTEE: Watches miss no change
#[test]
fn a_watch_is_told_of_the_saves_of_another_process() {
    let folder = Folder::new("watched");
    let file = folder.path("states.db");
    let store = SqliteStore::open(&file).unwrap();
    let (tell, told) = channel();
    let _watch = store.watch("n", Box::new(move || _ = tell.send(()))).unwrap();
    let mut process = Ended(start("count", &file).spawn().unwrap());
    while store.load("n").unwrap().is_none_or(|saved| number(&saved.bytes) < EACH) {
        told.recv().unwrap();
    }
    assert!(process.0.wait().unwrap().success());
}

#[test]
fn an_acknowledged_save_survives_the_kill_of_its_process() {
    let folder = Folder::new("killed");
    let file = folder.path("states.db");
    let mut before = 0;
    for lines in [1, 3, 20] {
        let mut process = Ended(start("count for ever", &file).spawn().unwrap());
        let output = BufReader::new(process.0.stdout.take().unwrap());
        let counted = output.lines().filter_map(|line| line.unwrap().strip_prefix("counted ")?.parse::<u64>().ok());
        let last = counted.take(lines).last().unwrap();
        process.0.kill().unwrap();
        process.0.wait().unwrap();
        assert_eq!(last, before + lines as u64);
        before = number(&SqliteStore::open(&file).unwrap().load("n").unwrap().unwrap().bytes);
        // It may have counted on before it was killed.
        assert!(before >= last, "{before} < {last}");
    }
}

#[test]
fn a_full_disk_is_told_and_changes_nothing() {
    let folder = Folder::new("full");
    let program = start("fill", &folder.path("states.db"));
    // Files of this process have at most 1 MiB, and the signal that tells so is ignored.
    let mut limited = Command::new("sh");
    limited.args(["-c", "trap '' XFSZ; ulimit -f 2048; exec \"$0\" \"$@\""]).arg(program.get_program());
    limited.args(program.get_args()).envs(program.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let output = limited.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains("full: the storage has failed for \"large\": "), "{text}");
}
