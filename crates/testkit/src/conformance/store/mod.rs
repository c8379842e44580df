//! The suite for [stores](Store).
//!
//! ```
//! use playhouse::durable::MemoryStore;
//! use playhouse_testkit::conformance::store;
//!
//! // New storage each time it is called, with a way to open it.
//! let fresh = || {
//!     let storage = MemoryStore::new();
//!     move || storage.clone()
//! };
//! store::check(fresh).assert_all_kept();
//! ```
//!
//! What a machine leaves of the storage when it fails, it cannot see. It takes some seconds where each save takes some milliseconds.

mod contest;
mod names;
mod single;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use playhouse::durable::{Saved, Store, StoreError};

use super::{Report, Rule};

/// A rule that is not decided after so long is broken. Some save a thousand times.
const LIMIT: Duration = Duration::from_secs(300);

/// Opens storage: each handle that it returns is one on the same storage.
type Opens = Box<dyn Fn() -> Arc<dyn Store> + Send + Sync>;

/// What is tried: makes new storage.
pub struct Storage {
    fresh: Box<dyn Fn() -> Opens + Send + Sync>,
}

/// The rules, in the order in which they are tried.
pub const RULES: [Rule<Storage>; 17] = [
    single::EMPTY_AT_FIRST,
    single::SAVED_IS_LOADED,
    single::EMPTY_IS_A_STATE,
    single::LARGE_STATES,
    single::REVISIONS_GROW,
    single::CONFLICTS_ARE_TOLD,
    single::CONFLICTS_CHANGE_NOTHING,
    single::REMOVED_IS_GONE,
    single::NO_REVISION_TWICE,
    single::REOPENED,
    single::HANDLES_AGREE,
    names::KEYS_ARE_APART,
    names::WRONG_KEYS,
    names::PREFIXES,
    contest::ONE_WINS,
    contest::KEYS_AT_ONE_TIME,
    contest::STATES_ARE_WHOLE,
];

/// Tries all rules. `fresh` makes new, empty storage each time it is called, and returns what opens it: the handles that this
/// returns, one or several at one time, are on the same storage, which may go when it is dropped. A rule of which nothing has come
/// after five minutes is broken; what it waits for is left behind.
pub fn check<S, Open>(fresh: impl Fn() -> Open + Send + Sync + 'static) -> Report
where
    S: Store,
    Open: Fn() -> S + Send + Sync + 'static,
{
    let fresh = move || -> Opens {
        let open = fresh();
        Box::new(move || Arc::new(open()))
    };
    let storage = Storage { fresh: Box::new(fresh) };
    Report::of("store", &RULES, storage, LIMIT)
}

impl fmt::Debug for Storage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Storage(..)")
    }
}

impl Storage {
    /// A store with nothing in it.
    fn store(&self) -> Used {
        let open = (self.fresh)();
        Used { store: open(), _storage: Some(open) }
    }
}

/// A store in a test: what should not fail says what it was doing.
struct Used {
    store: Arc<dyn Store>,
    /// What only this one is open on.
    _storage: Option<Opens>,
}

/// A state as reports show it.
fn shown(saved: Option<&Saved>) -> String {
    match saved {
        None => "nothing".to_owned(),
        Some(Saved { revision, bytes }) if bytes.len() <= 40 => {
            format!("\"{}\" with revision {revision}", bytes.escape_ascii())
        }
        Some(Saved { revision, bytes }) => format!("{} bytes with revision {revision}", bytes.len()),
    }
}

fn expect<T: PartialEq>(found: &T, expected: &T, say: impl FnOnce() -> String) -> Result<(), String> {
    if found == expected { Ok(()) } else { Err(say()) }
}

impl Used {
    /// One handle of several.
    fn of(store: Arc<dyn Store>) -> Used {
        Used { store, _storage: None }
    }

    fn load(&self, key: &str) -> Result<Option<Saved>, String> {
        self.store.load(key).map_err(|error| format!("{key:?} was not loaded: {error}"))
    }

    fn save(&self, key: &str, expected: u64, bytes: &[u8]) -> Result<u64, String> {
        let saved = self.store.save(key, expected, bytes);
        saved.map_err(|error| format!("{} bytes were not saved under {key:?}: {error}", bytes.len()))
    }

    fn remove(&self, key: &str, expected: u64) -> Result<(), String> {
        self.store.remove(key, expected).map_err(|error| format!("{key:?} was not removed: {error}"))
    }

    fn keys(&self, prefix: &str) -> Result<Vec<String>, String> {
        self.store.keys(prefix).map_err(|error| format!("the keys that begin with {prefix:?} were not listed: {error}"))
    }

    /// This is there now.
    fn has(&self, key: &str, expected: Option<(u64, &[u8])>, when: &str) -> Result<(), String> {
        let expected = expected.map(|(revision, bytes)| Saved { revision, bytes: bytes.to_vec() });
        let found = self.load(key)?;
        let say = || format!("{when}, {key:?} is {}, not {}", shown(found.as_ref()), shown(expected.as_ref()));
        expect(&found, &expected, say)
    }

    /// This, which was tried by a wrong revision, is a conflict.
    fn is_conflict<R: std::fmt::Debug>(
        &self,
        what: &str,
        outcome: Result<R, StoreError>,
        (key, expected, found): (&str, u64, u64),
    ) -> Result<(), String> {
        match outcome {
            Err(StoreError::Conflict { key: told, expected: as_expected, found: as_found }) => {
                let told = (told.as_str(), as_expected, as_found);
                let say = || {
                    format!(
                        "the conflict of {what} is {told:?}, not {:?} (key, expected, found)",
                        (key, expected, found)
                    )
                };
                expect(&told, &(key, expected, found), say)
            }
            other => Err(format!(
                "{what} that expected revision {expected} of {key:?}, where {found} is, was no conflict but {other:?}"
            )),
        }
    }
}
