//! The suite for stores accepts correct stores, and finds the flaws of others.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::ThreadId;

use playhouse::durable::{FileStore, MemoryStore, STATE_BYTES_MAX, Saved, Store, StoreError, check_key, check_state};
use playhouse_testkit::conformance::{Report, store};

/// A folder that is removed when its test ends.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        static NUMBERS: AtomicU64 = AtomicU64::new(0);
        let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
        let folder = format!("store-{name}-{}-{number}", std::process::id());
        Folder(Path::new(env!("CARGO_TARGET_TMPDIR")).join(folder))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

// GUARANTEE: Two incarnations do not overwrite each other
#[test]
fn a_store_in_memory_keeps_all_rules() {
    let report = store::check(|| {
        let storage = MemoryStore::new();
        move || storage.clone()
    });
    report.assert_all_kept();
    assert_eq!(report.to_string(), format!("store: all {} rules are kept", store::RULES.len()));
}

// GUARANTEE: Two incarnations do not overwrite each other
#[test]
fn a_store_in_files_keeps_all_rules() {
    let report = store::check(|| {
        let folder = Folder::new("opened");
        move || FileStore::open(&folder.0).unwrap()
    });
    report.assert_all_kept();
}

#[test]
fn a_store_in_files_that_is_shared_keeps_all_rules() {
    let report = store::check(|| {
        let folder = Folder::new("shared");
        let store = FileStore::open(&folder.0).unwrap();
        move || {
            let _it_is_there_as_long = &folder;
            Arc::new(store.clone()) as Arc<dyn Store>
        }
    });
    report.assert_all_kept();
}

/// A flaw of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flaw {
    StartsFull,
    IsText,
    TakesEmptyForNone,
    CutsOff,
    HasNoLimit,
    StopsCounting,
    FailsOnConflict,
    TakesNewerRevisions,
    ConflictCounts,
    ConflictWrites,
    ConflictRemoves,
    ListsRemoved,
    BeginsAnewAtOne,
    ForgetsRemovals,
    FlushesLater,
    Caches,
    IgnoresCase,
    NormalisesPaths,
    TakesAnyKey,
    TakesPatterns,
    ListsBackwards,
    LosesUpdates,
    FailsOnce,
    LosesOthers,
    WritesInPlace,
    Panics,
}

use Flaw::*;

/// Each flaw, with the rule that it breaks above all.
const FLAWS: [(Flaw, &str); 26] = [
    (StartsFull, "empty at first"),
    (IsText, "saved is loaded"),
    (TakesEmptyForNone, "empty is a state"),
    (CutsOff, "large states"),
    (HasNoLimit, "large states"),
    (StopsCounting, "revisions grow"),
    (FailsOnConflict, "conflicts are told"),
    (TakesNewerRevisions, "conflicts are told"),
    (ConflictCounts, "conflicts change nothing"),
    (ConflictWrites, "conflicts change nothing"),
    (ConflictRemoves, "conflicts change nothing"),
    (ListsRemoved, "removed is gone"),
    (BeginsAnewAtOne, "no revision twice"),
    (ForgetsRemovals, "no revision twice"),
    (FlushesLater, "saved is there when reopened"),
    (Caches, "handles agree"),
    (IgnoresCase, "keys are apart"),
    (NormalisesPaths, "keys are apart"),
    (TakesAnyKey, "wrong keys are refused"),
    (TakesPatterns, "prefixes"),
    (ListsBackwards, "prefixes"),
    (LosesUpdates, "one wins each revision"),
    (FailsOnce, "one wins each revision"),
    (LosesOthers, "keys at one time"),
    (WritesInPlace, "states are whole"),
    (Panics, "saved is loaded"),
];

#[derive(Default)]
struct Shelf {
    states: BTreeMap<String, Saved>,
    removed: Vec<String>,
    last: u64,
    last_saved_by: Option<ThreadId>,
    loads: u64,
}

/// A handle on a store with a flaw.
struct Flawed {
    flaw: Flaw,
    shelf: Arc<Mutex<Shelf>>,
    /// States that only this handle knows.
    unsaved: Mutex<BTreeMap<String, Saved>>,
    seen: Mutex<BTreeMap<String, Option<Saved>>>,
    mark: AtomicU64,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

impl Flawed {
    fn is(&self, flaw: Flaw) -> bool {
        self.flaw == flaw
    }

    fn key(&self, key: &str) -> Result<String, StoreError> {
        if !self.is(TakesAnyKey) {
            check_key(key)?;
        }
        Ok(match self.flaw {
            IgnoresCase => key.to_lowercase(),
            NormalisesPaths => key.replace("//", "/").replace("a/../", ""),
            _ => key.to_owned(),
        })
    }

    fn look(&self, key: &str, shelf: &mut Shelf) -> Option<Saved> {
        lock(&self.unsaved).get(key).or(shelf.states.get(key)).cloned()
    }

    /// Reacts to another revision than the expected one.
    fn conflict(&self, key: &str, (expected, found): (u64, u64), bytes: &[u8], shelf: &mut Shelf) -> StoreError {
        match self.flaw {
            FailsOnConflict => {
                return StoreError::Io { key: key.to_owned(), error: std::io::Error::other("another revision") };
            }
            ConflictCounts => drop(shelf.states.get_mut(key).map(|saved| saved.revision += 1)),
            ConflictWrites => drop(shelf.states.get_mut(key).map(|saved| saved.bytes = bytes.to_vec())),
            ConflictRemoves => drop(shelf.states.remove(key)),
            _ => {}
        }
        StoreError::Conflict { key: key.to_owned(), expected, found }
    }
}

impl Store for Flawed {
    fn load(&self, key: &str) -> Result<Option<Saved>, StoreError> {
        let key = self.key(key)?;
        if self.is(Caches) {
            let mut seen = lock(&self.seen);
            let load = || self.look(&key, &mut lock(&self.shelf));
            return Ok(seen.entry(key.clone()).or_insert_with(load).clone());
        }
        let mut shelf = lock(&self.shelf);
        shelf.loads += 1;
        if shelf.loads == 7 && self.is(FailsOnce) {
            return Err(StoreError::Io { key, error: std::io::Error::other("once") });
        }
        let found = self.look(&key, &mut shelf);
        assert!(found.is_none() || !self.is(Panics), "out of order");
        Ok(found.filter(|saved| !saved.bytes.is_empty() || !self.is(TakesEmptyForNone)))
    }

    fn save(&self, key: &str, expected: u64, bytes: &[u8]) -> Result<u64, StoreError> {
        let key = self.key(key)?;
        if !self.is(HasNoLimit) {
            check_state(&key, bytes)?;
        }
        let mut shelf = lock(&self.shelf);
        let found = self.look(&key, &mut shelf).map_or(0, |saved| saved.revision);
        let thread = std::thread::current().id();
        let other = shelf.last_saved_by.replace(thread).is_some_and(|other| other != thread);
        // The other handle has looked before this one has written.
        let races = self.is(LosesUpdates) && other && expected + 1 == found;
        let passes = races || self.is(TakesNewerRevisions) && expected > found && expected < u64::MAX;
        if found != expected && !passes {
            return Err(self.conflict(&key, (expected, found), bytes, &mut shelf));
        }
        shelf.last += 1;
        let last = match self.flaw {
            BeginsAnewAtOne => found,
            ForgetsRemovals => found.max(self.mark.load(Ordering::Relaxed)),
            _ => shelf.last - 1,
        };
        let revision = if self.is(StopsCounting) { (found + 1).min(2) } else { last + 1 };
        let bytes = match self.flaw {
            IsText => String::from_utf8_lossy(bytes).into_owned().into_bytes(),
            CutsOff => bytes[..bytes.len().min(1 << 16)].to_vec(),
            _ => bytes.to_vec(),
        };
        if self.is(LosesOthers) && other {
            return Ok(revision);
        }
        if self.is(FlushesLater) {
            let flushed = lock(&self.unsaved).insert(key.clone(), Saved { revision, bytes });
            shelf.states.extend(flushed.map(|flushed| (key, flushed)));
            return Ok(revision);
        }
        if self.is(WritesInPlace) && found > 0 {
            let there = shelf.states.get_mut(&key).unwrap();
            let half = bytes.len().min(there.bytes.len()) / 2;
            there.bytes[..half].copy_from_slice(&bytes[..half]);
            let before = shelf.loads;
            drop(shelf);
            // The loop ends when somebody has looked, if anybody does.
            for _ in 0..1000 {
                if lock(&self.shelf).loads > before {
                    break;
                }
                std::thread::yield_now();
            }
            shelf = lock(&self.shelf);
        }
        shelf.states.insert(key, Saved { revision, bytes });
        Ok(revision)
    }

    fn remove(&self, key: &str, expected: u64) -> Result<(), StoreError> {
        let key = self.key(key)?;
        let mut shelf = lock(&self.shelf);
        let found = self.look(&key, &mut shelf).map_or(0, |saved| saved.revision);
        if found != expected {
            return Err(self.conflict(&key, (expected, found), b"", &mut shelf));
        }
        self.mark.fetch_max(found, Ordering::Relaxed);
        lock(&self.unsaved).remove(&key);
        shelf.states.remove(&key);
        shelf.removed.push(key);
        Ok(())
    }

    fn keys(&self, prefix: &str) -> Result<Vec<String>, StoreError> {
        let shelf = lock(&self.shelf);
        let fits = |key: &&String| match self.flaw {
            TakesPatterns => {
                let matches = |(pattern, c): (char, char)| pattern == '_' || pattern == c;
                key.chars().count() >= prefix.chars().count() && prefix.chars().zip(key.chars()).all(matches)
            }
            _ => key.starts_with(prefix),
        };
        let unsaved = lock(&self.unsaved);
        let all: BTreeSet<&String> = shelf.states.keys().chain(unsaved.keys()).collect();
        let mut keys: Vec<String> = all.into_iter().filter(fits).cloned().collect();
        if self.is(ListsRemoved) {
            keys.extend(shelf.removed.clone());
        }
        if self.is(ListsBackwards) {
            keys.reverse();
        }
        Ok(keys)
    }
}

fn check(flaw: Flaw) -> Report {
    store::check(move || {
        let mut shelf = Shelf::default();
        if flaw == StartsFull {
            shelf.states.insert("welcome".to_owned(), Saved { revision: 1, bytes: Vec::new() });
        }
        let shelf = Arc::new(Mutex::new(shelf));
        move || Flawed {
            flaw,
            shelf: Arc::clone(&shelf),
            unsaved: Mutex::default(),
            seen: Mutex::default(),
            mark: AtomicU64::new(0),
        }
    })
}

// GUARANTEE: The suite for stores finds flaws
#[test]
fn each_flaw_breaks_its_rule_and_each_rule_is_broken_by_a_flaw() {
    let mut unbroken: BTreeSet<&str> = store::RULES.iter().map(|rule| rule.name).collect();
    assert_eq!(unbroken.len(), store::RULES.len(), "two rules have one name");
    for (flaw, rule) in FLAWS {
        let report = check(flaw);
        let broken: Vec<_> = report.broken().iter().map(|broken| broken.rule).collect();
        assert!(broken.contains(&rule), "{flaw:?} did not break {rule:?}: {report}");
        assert!(report.to_string().contains(&format!("\n- {rule}: ")), "{report}");
        assert_eq!(broken.len() + report.kept().len(), store::RULES.len());
        unbroken.retain(|rule| !broken.contains(rule) || FLAWS.iter().all(|(_, first)| first != rule));
    }
    assert!(unbroken.is_empty(), "no flaw is for {unbroken:?}");
}

// GUARANTEE: The suite for stores finds flaws
#[test]
fn a_report_says_what_was_expected_and_what_was_found() {
    let report = check(BeginsAnewAtOne);
    let expected = format!(
        "store: {} of {} rules are broken:\n\
         - no revision twice: a state that is created after a removal has a revision above all earlier ones, so that a \
         stale caller overwrites nothing\n  \
         but revision 1 came after 1, with a removal between them",
        report.broken().len(),
        store::RULES.len()
    );
    assert!(report.to_string().starts_with(&expected), "{report}");
    let report = check(CutsOff);
    assert!(
        report.to_string().contains(&format!(
            "\n  but after a large state was saved, \"key\" is 65536 bytes with revision 1, not {STATE_BYTES_MAX} bytes with revision 1"
        )),
        "{report}"
    );
    let report = check(Panics);
    assert!(report.to_string().contains("\n  but it has panicked: out of order"), "{report}");
}

#[test]
#[should_panic(expected = "- prefixes: the keys that begin with a prefix")]
fn a_broken_rule_fails_the_test() {
    check(ListsBackwards).assert_all_kept();
}
