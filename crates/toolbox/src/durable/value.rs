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

/// A value in a store, as it was saved last.
///
/// The value is written with the names of its fields. A later version of the program reads it if its new fields have
/// `#[serde(default)]`.
///
/// One save runs at a time. An actor that awaits the save handles no other message, and each message finds the value
/// of the messages before it. With [`Save::then`] the actor handles messages during the save, and they find the
/// former value.
///
/// Two values of one key, in two incarnations or two processes, do not see each other's saves. Only one of them can
/// save, and the other fails with [`StoreError::Conflict`](super::StoreError::Conflict). A value with a conflict is
/// out of date. Let the actor crash, and open the value again in its next incarnation.
///
/// # Examples
///
/// ```
/// use playhouse::durable::{Durable, MemoryStore};
/// use playhouse::prelude::*;
/// use playhouse::resource::ResourcePool;
///
/// let system = System::start()?;
/// let pool = ResourcePool::start(&system, 1, 10)?;
/// let store = MemoryStore::new();
/// let first = Durable::open(&pool, store.clone(), "counter", 0).wait()?;
/// let second = Durable::open(&pool, store, "counter", 0).wait()?;
/// first.update(|n| *n += 1).wait()?;
/// assert!(second.update(|n| *n += 1).wait().unwrap_err().is_conflict());
/// # system.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(alias = "persistence")]
#[doc(alias = "DurableStateBehavior")]
#[doc(alias = "EventSourcedBehavior")]
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
    /// Loads the value under `key` on a thread of `pool`. If the store has none, the value is `empty`, and nothing is
    /// saved yet.
    pub fn open(pool: &ResourcePool, store: impl Store, key: impl Into<String>, empty: T) -> Open<T> {
        Open { pool: pool.clone(), store: Arc::new(store), key: key.into(), empty }
    }

    /// Returns the value as it was saved last.
    pub fn get(&self) -> Arc<T> {
        Arc::clone(&lock(&self.shared.current).value)
    }

    /// Returns the revision in the store, or 0 if the value was never saved.
    pub fn revision(&self) -> u64 {
        lock(&self.shared.current).revision
    }

    /// Saves `new` as the value. If the save fails, the local value stays the former one.
    ///
    /// After [`StoreError::Io`](super::StoreError::Io) or a dropped save, the store may have either value. If it has
    /// `new`, the next save fails with [`StoreError::Conflict`](super::StoreError::Conflict). Open the value again to
    /// find out.
    pub fn save(&self, new: T) -> Save<T> {
        Save { shared: Arc::clone(&self.shared), guard: self.guard(), new: Arc::new(new) }
    }

    /// Returns the guard of a save, or `None` if another save is running.
    pub(super) fn guard(&self) -> Option<SaveGuard<T>> {
        let guard = !std::mem::replace(&mut lock(&self.shared.current).saving, true);
        guard.then(|| SaveGuard(Arc::clone(&self.shared)))
    }

    /// Saves a copy of the value after `change`, as [`save`](Durable::save) does. If another save is running,
    /// `change` is not called, and this save fails with [`DurableError::Busy`](super::DurableError::Busy).
    ///
    /// ```
    /// # use playhouse_toolbox::durable::{Durable, MemoryStore};
    /// # use playhouse_toolbox::resource::ResourcePool;
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
        // The guard is taken first, so that no other save ends between the copy and this save.
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
