//! A store in memory.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, Weak};

use super::{Changed, Ledger, LedgerWatch, Saved, Store, StoreError, check_key, check_revision, check_state};
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
    watchers: Arc<Mutex<Vec<Weak<Watcher>>>>,
}

/// A watch that has not ended.
struct Watcher {
    prefix: String,
    changed: Changed,
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

impl MemoryStore {
    /// Calls the watchers of `key`. No lock is held while one runs.
    fn tell_of(&self, key: &str) {
        let mut watchers = lock(&self.watchers);
        watchers.retain(|watcher| watcher.strong_count() > 0);
        let told: Vec<_> = watchers.iter().filter_map(Weak::upgrade).collect();
        drop(watchers);
        told.iter().filter(|watcher| key.starts_with(&watcher.prefix)).for_each(|watcher| (watcher.changed)());
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
        drop(states);
        self.tell_of(key);
        Ok(revision)
    }

    fn remove(&self, key: &str, expected: u64) -> Result<(), StoreError> {
        check_key(key)?;
        let mut states = lock(&self.states);
        states.check(key, expected)?;
        let removed = states.saved.remove(key);
        drop(states);
        if removed.is_some() {
            self.tell_of(key);
        }
        Ok(())
    }

    fn keys(&self, prefix: &str) -> Result<Vec<String>, StoreError> {
        Ok(lock(&self.states).saved.keys().filter(|key| key.starts_with(prefix)).cloned().collect())
    }
}

impl Ledger for MemoryStore {
    fn watch(&self, prefix: &str, changed: Changed) -> Result<LedgerWatch, StoreError> {
        let watcher = Arc::new(Watcher { prefix: prefix.to_owned(), changed });
        let mut watchers = lock(&self.watchers);
        watchers.retain(|watcher| watcher.strong_count() > 0);
        watchers.push(Arc::downgrade(&watcher));
        Ok(LedgerWatch::new(watcher))
    }
}
