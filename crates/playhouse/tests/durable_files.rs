//! A store in files: it stays whole, and several processes share it. A process may be killed.

mod support;

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};

use playhouse::durable::{FileStore, Saved, Store, StoreError};

/// A folder that exists while its test runs.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Folder {
        static NUMBERS: AtomicU64 = AtomicU64::new(0);
        let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
        Folder(Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("durable-files-{}-{number}", std::process::id())))
    }

    /// Returns the only file in or below the folder with this ending.
    fn file(&self, ending: &str) -> PathBuf {
        let drawers = fs::read_dir(&self.0).unwrap().map(|drawer| drawer.unwrap().path());
        let files = drawers.flat_map(|drawer| fs::read_dir(drawer).unwrap().map(|file| file.unwrap().path()));
        let files: Vec<_> = files.filter(|file| file.to_str().unwrap().ends_with(ending)).collect();
        assert_eq!(files.len(), 1, "{files:?}");
        files[0].clone()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

// GUARANTEE: A state is intact or reported as damaged
#[test]
fn a_file_that_is_damaged_is_an_error_and_nothing_else() {
    let folder = Folder::new();
    let store = FileStore::open(&folder.0).unwrap();
    let revision = store.save("account/7", 0, b"the state").unwrap();
    let file = folder.file("account%2f7.state");
    let whole = fs::read(&file).unwrap();
    let is_damaged = |outcome: Result<(), StoreError>| match outcome {
        Err(StoreError::Damaged { key, what }) => {
            assert_eq!(key, "account/7");
            assert!(what.starts_with(&format!("{}: ", file.display())), "{what}");
        }
        other => panic!("{other:?}"),
    };
    for length in 0..whole.len() {
        fs::write(&file, &whole[..length]).unwrap();
        is_damaged(store.load("account/7").map(drop));
    }
    let mut changed = whole.clone();
    *changed.last_mut().unwrap() ^= 1;
    fs::write(&file, &changed).unwrap();
    is_damaged(store.load("account/7").map(drop));
    // A save does not overwrite it either, because an operator may want it.
    is_damaged(store.save("account/7", revision, b"new").map(drop));
    is_damaged(store.remove("account/7", revision));
    assert_eq!(fs::read(&file).unwrap(), changed);
    let error = store.load("account/7").unwrap_err().to_string();
    assert!(error.ends_with("the checksum of the file does not match its contents: restore it from a copy"), "{error}");
    fs::write(&file, &whole).unwrap();
    assert_eq!(store.load("account/7").unwrap(), Some(Saved { revision, bytes: b"the state".to_vec() }));
}

#[test]
fn a_damaged_mark_is_told_apart_from_a_damaged_state() {
    let folder = Folder::new();
    let store = FileStore::open(&folder.0).unwrap();
    let revision = store.save("account/7", 0, b"the state").unwrap();
    store.remove("account/7", revision).unwrap();
    let mark = folder.0.join("9").join("mark");
    fs::write(&mark, b"playhouse-sta").unwrap();
    assert_eq!(store.load("account/7").unwrap(), None);
    let error = store.save("account/7", 0, b"new").unwrap_err();
    assert!(matches!(&error, StoreError::Damaged { .. }), "{error:?}");
    let error = error.to_string();
    let says_where = error.contains(&format!("{}: ", mark.display()));
    assert!(says_where && error.contains("only its latest copy is right"), "{error}");
}

// GUARANTEE: Stores stay readable
#[test]
fn a_folder_stays_readable_and_what_was_left_over_is_tidied() {
    let folder = Folder::new();
    FileStore::open(&folder.0).unwrap().save("account/7", 0, b"the state").unwrap();
    // The path and the format of a file do not change, because folders are older than programs.
    let file = folder.file(".state");
    assert_eq!(file, folder.0.join("9/account%2f7.state"));
    let left_over = folder.0.join("9/new");
    fs::write(&left_over, b"playhouse-sta").unwrap();
    fs::write(folder.0.join("9/notes.txt"), b"not ours").unwrap();
    let store = FileStore::open(&folder.0).unwrap();
    assert!(!left_over.exists());
    assert_eq!(store.keys("").unwrap(), ["account/7"]);
    assert_eq!(store.load("account/7").unwrap().unwrap().bytes, b"the state");
}

#[test]
fn a_folder_that_cannot_be_opened_is_said() {
    let folder = Folder::new();
    fs::create_dir_all(&folder.0).unwrap();
    let file = folder.0.join("file");
    fs::write(&file, b"").unwrap();
    let error = FileStore::open(&file).unwrap_err().to_string();
    assert!(error.starts_with(file.to_str().unwrap()), "{error}");
}

/// The variable that names the folder in the other processes.
const FOLDER: &str = "PLAYHOUSE_TEST_FOLDER";

/// A state with a number, large enough to be torn.
fn state(number: u64) -> Vec<u8> {
    number.to_le_bytes().repeat(20_000)
}

fn number_in(state: &[u8]) -> u64 {
    let number = u64::from_le_bytes(state[..8].try_into().unwrap());
    assert_eq!(state, self::state(number), "parts of different states");
    number
}

/// Returns a command that runs one test of this program.
fn other_process(test: &str, folder: &Folder) -> (Child, BufReader<ChildStdout>) {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--nocapture"]).env(FOLDER, &folder.0);
    let mut process = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    let out = BufReader::new(process.stdout.take().unwrap());
    (process, out)
}

/// No test: the process that the test kills. It saves one state after the other, and reports each save.
#[test]
fn saves_until_it_is_killed() {
    let Ok(folder) = std::env::var(FOLDER) else { return };
    let store = FileStore::open(folder).unwrap();
    let (mut revision, mut number) =
        store.load("key").unwrap().map_or((0, 0), |saved| (saved.revision, number_in(&saved.bytes)));
    println!("\nbegins");
    loop {
        number += 1;
        revision = store.save("key", revision, &state(number)).unwrap();
        println!("saved {number}");
    }
}

// GUARANTEE: Saved states are durable
#[cfg(unix)]
#[test]
fn an_acknowledged_save_survives_a_killed_process() {
    let folder = Folder::new();
    let mut dice = support::Dice(1);
    let mut last = 0;
    for round in 0..25 {
        let (mut process, out) = other_process("saves_until_it_is_killed", &folder);
        let until = 1 + dice.below(8);
        let mut acknowledged = 0;
        for line in out.lines() {
            let line = line.unwrap();
            if let Some(number) = line.strip_prefix("saved ") {
                last = number.parse().unwrap();
                acknowledged += 1;
                if acknowledged == until {
                    // SIGKILL. The test still reads the earlier reports.
                    process.kill().unwrap();
                }
            }
        }
        process.wait().unwrap();
        assert!(acknowledged >= until);
        let saved = FileStore::open(&folder.0).unwrap().load("key").unwrap().unwrap();
        let found = number_in(&saved.bytes);
        assert!(found == last || found == last + 1, "round {round}: {last} was acknowledged, {found} is there");
        last = found;
    }
}

/// No test: one of several processes that share a folder.
#[test]
fn counts_to_fifty() {
    let Ok(folder) = std::env::var(FOLDER) else { return };
    let store = FileStore::open(folder).unwrap();
    for _ in 0..50 {
        loop {
            let (revision, sum) =
                store.load("sum").unwrap().map_or((0, 0), |saved| (saved.revision, number_in(&saved.bytes)));
            match store.save("sum", revision, &state(sum + 1)) {
                Ok(_) => break,
                Err(StoreError::Conflict { .. }) => {}
                Err(error) => panic!("{error}"),
            }
        }
    }
}

// GUARANTEE: Two incarnations do not overwrite each other
#[test]
fn several_processes_share_a_folder_and_lose_nothing() {
    let folder = Folder::new();
    let processes: Vec<_> = (0..4).map(|_| other_process("counts_to_fifty", &folder)).collect();
    for (mut process, out) in processes {
        let said: Vec<_> = out.lines().map(Result::unwrap).collect();
        assert!(process.wait().unwrap().success(), "{said:#?}");
    }
    let saved = FileStore::open(&folder.0).unwrap().load("sum").unwrap().unwrap();
    assert_eq!((number_in(&saved.bytes), saved.revision), (200, 200));
}
