//! A store in memory.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex};

use super::{Saved, Store, StoreError, check_key, check_revision, check_state};
use crate::panics::lock;

/// A store for tests. States survive their actors, but not the process. Clones are handles to the same store.
///
/// # Examples
///
/// ```
/// use playhouse::durable::{MemoryStore, Store};
///
/// let store = MemoryStore::new();
/// store.save("a", 0, b"state")?;
/// assert_eq!(store.keys("")?, ["a"]);
/// # Ok::<(), playhouse::durable::StoreError>(())
/// ```
#[derive(Clone, Default)]
pub struct MemoryStore {
    states: Arc<Mutex<States>>,
}

#[derive(Default)]
struct States {
    saved: BTreeMap<String, Saved>,
    /// The last revision that was given to any key.
    last: u64,
}

impl MemoryStore {
    /// Creates an empty store.
    pub fn new() -> MemoryStore {
        MemoryStore::default()
    }
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryStore").field("states", &lock(&self.states).saved.len()).finish()
    }
}

impl States {
    fn check(&self, key: &str, expected: u64) -> Result<(), StoreError> {
        check_revision(key, expected, self.saved.get(key).map_or(0, |saved| saved.revision))
    }
}

impl Store for MemoryStore {
    fn load(&self, key: &str) -> Result<Option<Saved>, StoreError> {
        check_key(key)?;
        Ok(lock(&self.states).saved.get(key).cloned())
    }

    fn save(&self, key: &str, expected: u64, bytes: &[u8]) -> Result<u64, StoreError> {
        check_key(key)?;
        check_state(key, bytes)?;
        let mut states = lock(&self.states);
        states.check(key, expected)?;
        states.last += 1;
        let revision = states.last;
        states.saved.insert(key.to_owned(), Saved { revision, bytes: bytes.to_vec() });
        Ok(revision)
    }

    fn remove(&self, key: &str, expected: u64) -> Result<(), StoreError> {
        check_key(key)?;
        let mut states = lock(&self.states);
        states.check(key, expected)?;
        states.saved.remove(key);
        Ok(())
    }

    fn keys(&self, prefix: &str) -> Result<Vec<String>, StoreError> {
        Ok(lock(&self.states).saved.keys().filter(|key| key.starts_with(prefix)).cloned().collect())
    }
}
