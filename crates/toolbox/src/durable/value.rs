//! A value in a store.

use std::fmt;
use std::sync::{Arc, Mutex};

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::open::Open;
use super::save::{Save, SaveGuard};
use super::store::Store;
use crate::panics::lock;
use crate::resource::ResourcePool;

/// A value in a store: as it was saved last, by this one or before it was opened.
///
/// It is written with the names of its fields: what an earlier version of a program has saved is read where the fields that were
/// added since have a `#[serde(default)]`.
///
/// One save at a time is under way. An actor that awaits it handles nothing else meanwhile, so each message finds the value that the
/// messages before it have left. An actor that goes on ([`Save::then`]) finds the former value until it is told of the save.
///
/// Two of them for one key, in two lives of an actor or two processes, do not see each other's saves. But only one can save: the
/// other one is told [`StoreError::Conflict`]. It is out of date then, and so best crashes, and opens the value again in its next
/// life.
pub struct Durable<T> {
    pub(super) shared: Arc<Shared<T>>,
}

pub(super) struct Shared<T> {
    pub(super) pool: ResourcePool,
    pub(super) store: Arc<dyn Store>,
    pub(super) key: String,
    pub(super) current: Mutex<Current<T>>,
}

pub(super) struct Current<T> {
    pub(super) revision: u64,
    pub(super) value: Arc<T>,
    pub(super) saving: bool,
}

impl<T: Serialize + DeserializeOwned + Send + Sync + 'static> Durable<T> {
    /// Loads what was saved under `key`, by a thread of `pool`; where there is nothing, it is `empty`, and nothing is saved yet.
    pub fn open(pool: &ResourcePool, store: impl Store, key: impl Into<String>, empty: T) -> Open<T> {
        Open { pool: pool.clone(), store: Arc::new(store), key: key.into(), empty }
    }

    /// The value as it was saved last.
    pub fn get(&self) -> Arc<T> {
        Arc::clone(&lock(&self.shared.current).value)
    }

    /// Its revision in the store. 0: it was never saved.
    pub fn revision(&self) -> u64 {
        lock(&self.shared.current).revision
    }

    /// Saves `new` in the shared of the value. If that fails, the value is the former one here.
    ///
    /// After [`StoreError::Io`], or where the save was dropped in the middle, it is not known which of them is in the store: if it is
    /// `new`, the next save is a [`StoreError::Conflict`]. To open it again tells.
    pub fn save(&self, new: T) -> Save<T> {
        Save { shared: Arc::clone(&self.shared), guard: self.guard(), new: Arc::new(new) }
    }

    /// None: another save is under way.
    pub(super) fn guard(&self) -> Option<SaveGuard<T>> {
        let guard = !std::mem::replace(&mut lock(&self.shared.current).saving, true);
        guard.then(|| SaveGuard(Arc::clone(&self.shared)))
    }

    /// Saves the value as `change` leaves a copy of it: as [`save`](Durable::save). If another save is under way, `change` is not called, and this one fails
    /// with [`DurableError::Busy`].
    ///
    /// ```
    /// use playhouse_toolbox::durable::{Durable, MemoryStore};
    /// use playhouse_toolbox::resource::ResourcePool;
    /// # let system = playhouse_actor::System::start()?;
    ///
    /// let pool = ResourcePool::start(&system, 1, 10)?;
    /// let visits: Durable<Vec<String>> = Durable::open(&pool, MemoryStore::default(), "visits", Vec::new()).wait()?;
    /// visits.update(|visits| visits.push("Ann".to_owned())).wait()?;
    /// assert_eq!(*visits.get(), ["Ann"]);
    /// # system.shutdown()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn update(&self, change: impl FnOnce(&mut T)) -> Save<T>
    where
        T: Clone,
    {
        // The guard comes first: no other save ends between the copy and this one.
        let guard = self.guard();
        let mut new = self.get();
        if guard.is_some() {
            change(Arc::make_mut(&mut new));
        }
        Save { shared: Arc::clone(&self.shared), guard, new }
    }
}

impl<T> fmt::Debug for Durable<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let revision = lock(&self.shared.current).revision;
        f.debug_struct("Durable").field("key", &self.shared.key).field("revision", &revision).finish()
    }
}
