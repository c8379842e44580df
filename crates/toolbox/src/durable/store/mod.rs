//! The interface of stores.

mod error;
mod ledger;
mod memory;

use std::sync::Arc;

pub use self::error::StoreError;
pub use self::ledger::{Changed, Ledger, LedgerWatch};
pub use self::memory::MemoryStore;

/// The largest size of a key, in bytes of UTF-8.
pub const KEY_BYTES_MAX: usize = 80;

/// The largest size of a state, in stores that have no smaller limit: 16 MiB.
pub const STATE_BYTES_MAX: usize = 16 << 20;

/// A store of states under keys. Its methods block, and may be called from any number of threads at one time.
///
/// Each state has a revision above 0. The revision 0 stands for no state. A save or removal names the revision that
/// the caller expects. If the store has another revision, it changes nothing.
///
/// # Rules for implementations
/// - The effect of [`save`](Store::save) and [`remove`](Store::remove) is durable when they return: every handle on
///   the same storage sees it, and it survives the process. The result of [`load`](Store::load) is durable too.
/// - After [`StoreError::Io`], the store has the former or the new state, complete. After any other error it has the
///   former state.
/// - The revision that a save returns is greater than every earlier revision of the key, also those before a removal.
///   A caller with a stale revision could otherwise overwrite a newer state. Revisions need not be consecutive.
/// - A store accepts any key that [`check_key`] allows, and any state of at most
///   [`state_bytes_max`](Store::state_bytes_max) bytes, and no other.
///
/// The suite `playhouse_testkit::conformance::store` checks these rules, as far as they can be seen from outside.
///
/// # Examples
///
/// ```
/// use playhouse::durable::{MemoryStore, Store};
///
/// fn rename(store: &impl Store, from: &str, to: &str) -> Result<(), playhouse::durable::StoreError> {
///     if let Some(saved) = store.load(from)? {
///         store.save(to, 0, &saved.bytes)?;
///         store.remove(from, saved.revision)?;
///     }
///     Ok(())
/// }
///
/// let store = MemoryStore::new();
/// store.save("old", 0, b"state")?;
/// rename(&store, "old", "new")?;
/// assert_eq!(store.keys("")?, ["new"]);
/// # Ok::<(), playhouse::durable::StoreError>(())
/// ```
#[doc(alias = "DurableStateStore")]
pub trait Store: Send + Sync + 'static {
    /// Returns the state under this key, or `None` if there is none.
    ///
    /// # Errors
    /// [`StoreError::Key`], [`StoreError::Damaged`], [`StoreError::Io`].
    fn load(&self, key: &str) -> Result<Option<Saved>, StoreError>;

    /// Replaces the state with the revision `expected`, or creates one if `expected` is 0. Returns the new revision.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] if the store has another revision; [`StoreError::Key`], [`StoreError::TooLarge`],
    /// [`StoreError::Damaged`], [`StoreError::Io`].
    fn save(&self, key: &str, expected: u64, bytes: &[u8]) -> Result<u64, StoreError>;

    /// Removes the state with the revision `expected`. With an `expected` of 0 and no state, nothing is done.
    ///
    /// # Errors
    /// The errors of [`save`](Store::save).
    fn remove(&self, key: &str, expected: u64) -> Result<(), StoreError>;

    /// Returns the keys of states that begin with `prefix`, in the order of their bytes. An empty prefix lists all
    /// keys. Concurrent saves and removals may be included or not.
    ///
    /// # Errors
    /// [`StoreError::Io`], with the prefix as the key.
    fn keys(&self, prefix: &str) -> Result<Vec<String>, StoreError>;

    /// Returns the largest size of a state that this store accepts, in bytes. It is at most [`STATE_BYTES_MAX`], and
    /// constant.
    fn state_bytes_max(&self) -> usize {
        STATE_BYTES_MAX
    }
}

impl<S: Store + ?Sized> Store for Arc<S> {
    fn load(&self, key: &str) -> Result<Option<Saved>, StoreError> {
        (**self).load(key)
    }

    fn save(&self, key: &str, expected: u64, bytes: &[u8]) -> Result<u64, StoreError> {
        (**self).save(key, expected, bytes)
    }

    fn remove(&self, key: &str, expected: u64) -> Result<(), StoreError> {
        (**self).remove(key, expected)
    }

    fn keys(&self, prefix: &str) -> Result<Vec<String>, StoreError> {
        (**self).keys(prefix)
    }

    fn state_bytes_max(&self) -> usize {
        (**self).state_bytes_max()
    }
}

/// A stored state with its revision.
///
/// # Examples
///
/// ```
/// use playhouse::durable::{MemoryStore, Saved, Store};
///
/// let store = MemoryStore::new();
/// let revision = store.save("key", 0, b"state")?;
/// assert_eq!(store.load("key")?, Some(Saved { revision, bytes: b"state".to_vec() }));
/// # Ok::<(), playhouse::durable::StoreError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Saved {
    /// The revision, greater than every earlier revision of this key.
    pub revision: u64,
    /// The state.
    pub bytes: Vec<u8>,
}

/// Checks that a text can be a key: 1 to [`KEY_BYTES_MAX`] bytes without control characters. A key may contain `/`,
/// `..`, blanks and letters of any script. Keys are equal if their bytes are.
///
/// # Errors
/// [`StoreError::Key`].
pub fn check_key(key: &str) -> Result<(), StoreError> {
    let why = if key.is_empty() {
        "it is empty".to_owned()
    } else if key.len() > KEY_BYTES_MAX {
        format!("it has {} bytes", key.len())
    } else if let Some(control) = key.chars().find(|c| c.is_control()) {
        format!("it contains {control:?}")
    } else {
        return Ok(());
    };
    Err(StoreError::Key { key: key.to_owned(), why })
}

/// Checks that a state has at most [`STATE_BYTES_MAX`] bytes.
///
/// # Errors
/// [`StoreError::TooLarge`].
pub fn check_state(key: &str, bytes: &[u8]) -> Result<(), StoreError> {
    if bytes.len() > STATE_BYTES_MAX {
        return Err(StoreError::TooLarge { key: key.to_owned(), bytes: bytes.len(), max: STATE_BYTES_MAX });
    }
    Ok(())
}

/// Checks that the revision that was found is the expected one. The revision 0 stands for no state.
///
/// # Errors
/// [`StoreError::Conflict`].
pub fn check_revision(key: &str, expected: u64, found: u64) -> Result<(), StoreError> {
    if found != expected {
        return Err(StoreError::Conflict { key: key.to_owned(), expected, found });
    }
    Ok(())
}
