//! A handle of a store in a test.

use std::sync::Arc;

use playhouse::durable::{Saved, Store, StoreError};

use super::OpenStore;

/// A handle of a store. Its errors name the operation.
pub(super) struct StoreHandle {
    pub(super) store: Arc<dyn Store>,
    /// The storage, if only this handle is open on it.
    pub(super) _storage: Option<OpenStore>,
}

impl StoreHandle {
    /// Creates one handle of several on the same storage.
    pub(super) fn of(store: Arc<dyn Store>) -> StoreHandle {
        StoreHandle { store, _storage: None }
    }

    pub(super) fn load(&self, key: &str) -> Result<Option<Saved>, String> {
        self.store.load(key).map_err(|error| format!("{key:?} was not loaded: {error}"))
    }

    pub(super) fn save(&self, key: &str, expected: u64, bytes: &[u8]) -> Result<u64, String> {
        let saved = self.store.save(key, expected, bytes);
        saved.map_err(|error| format!("{} bytes were not saved under {key:?}: {error}", bytes.len()))
    }

    pub(super) fn remove(&self, key: &str, expected: u64) -> Result<(), String> {
        self.store.remove(key, expected).map_err(|error| format!("{key:?} was not removed: {error}"))
    }

    pub(super) fn keys(&self, prefix: &str) -> Result<Vec<String>, String> {
        self.store.keys(prefix).map_err(|error| format!("the keys that begin with {prefix:?} were not listed: {error}"))
    }

    /// Checks that the store has this state.
    pub(super) fn has(&self, key: &str, expected: Option<(u64, &[u8])>, when: &str) -> Result<(), String> {
        let expected = expected.map(|(revision, bytes)| Saved { revision, bytes: bytes.to_vec() });
        let found = self.load(key)?;
        let say = || format!("{when}, {key:?} is {}, not {}", shown(found.as_ref()), shown(expected.as_ref()));
        expect(&found, &expected, say)
    }

    /// Checks that the result of an operation with a wrong revision is a conflict.
    pub(super) fn is_conflict<R: std::fmt::Debug>(
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

/// Shows a state in a report.
pub(super) fn shown(saved: Option<&Saved>) -> String {
    match saved {
        None => "nothing".to_owned(),
        Some(Saved { revision, bytes }) if bytes.len() <= 40 => {
            format!("\"{}\" with revision {revision}", bytes.escape_ascii())
        }
        Some(Saved { revision, bytes }) => format!("{} bytes with revision {revision}", bytes.len()),
    }
}

pub(super) fn expect<T: PartialEq>(found: &T, expected: &T, say: impl FnOnce() -> String) -> Result<(), String> {
    if found == expected { Ok(()) } else { Err(say()) }
}
