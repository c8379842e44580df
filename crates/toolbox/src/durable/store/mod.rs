//! What a store is.

mod error;
mod memory;

use std::sync::Arc;

pub use self::error::StoreError;
pub use self::memory::MemoryStore;

/// So many bytes of UTF-8 may a key have.
pub const KEY_BYTES_MAX: usize = 80;

/// So many bytes may a state have: 16 MiB.
pub const STATE_BYTES_MAX: usize = 16 << 20;

/// Keeps states under keys. Its calls block, and may be made from any number of threads at one time.
///
/// Each state has a revision, which is a number above 0; 0 stands for there being none. Who saves or removes says which revision
/// is there, as far as it knows: `expected`. If that is not so, nothing is changed.
///
/// # Rules for who implements it
/// - What [`save`](Store::save) and [`remove`](Store::remove) have done when they return is durable: it is so for every handle on
///   the same storage, and survives the end of the process. What [`load`](Store::load) returns is durable too.
/// - Where they fail with [`StoreError::Io`], the former or the new state is there, whole. After any other error it is the former
///   one.
/// - The revision that a save returns is larger than each that this key had before, also before it was removed: otherwise who has
///   slept since then could overwrite what was made anew. It need not be the next number.
/// - Any key that [`check_key`] allows, and any state that [`check_state`] allows, is taken, and no other.
///
/// The suite in `playhouse_testkit::conformance::store` checks what of this can be seen from outside.
pub trait Store: Send + Sync + 'static {
    /// What was saved last under this key. None: nothing was, or it was removed.
    ///
    /// # Errors
    /// [`StoreError::Key`], [`StoreError::Damaged`], [`StoreError::Io`].
    fn load(&self, key: &str) -> Result<Option<Saved>, StoreError>;

    /// Saves a state in the place of the one with the revision `expected`, or where none is, if that is 0. Returns the new
    /// revision.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] if another revision is there; [`StoreError::Key`], [`StoreError::TooLarge`],
    /// [`StoreError::Damaged`], [`StoreError::Io`].
    fn save(&self, key: &str, expected: u64, bytes: &[u8]) -> Result<u64, StoreError>;

    /// Removes the state with the revision `expected`. If that is 0 and none is there, there is nothing to do.
    ///
    /// # Errors
    /// As those of [`save`](Store::save).
    fn remove(&self, key: &str, expected: u64) -> Result<(), StoreError>;

    /// The keys that begin with `prefix` and have a state, in the order of their bytes. All, if it is empty. What is saved and
    /// removed meanwhile may be among them or not.
    ///
    /// # Errors
    /// [`StoreError::Io`], with the prefix as the key.
    fn keys(&self, prefix: &str) -> Result<Vec<String>, StoreError>;
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
}

/// A state as it was saved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Saved {
    /// Larger than that of any state that this key had before.
    pub revision: u64,
    /// The state.
    pub bytes: Vec<u8>,
}

/// Checks that this can be a key: 1 to [`KEY_BYTES_MAX`] bytes, and no control characters. Anything else can be in it: `/`, `..`,
/// blanks, letters of any script. Keys are equal if their bytes are.
///
/// # Errors
/// [`StoreError::Key`].
pub fn check_key(key: &str) -> Result<(), StoreError> {
    let why = if key.is_empty() {
        "it is empty".to_owned()
    } else if key.len() > KEY_BYTES_MAX {
        format!("it has {} bytes", key.len())
    } else if let Some(control) = key.chars().find(|c| c.is_control()) {
        format!("{control:?} is in it")
    } else {
        return Ok(());
    };
    Err(StoreError::Key { key: key.to_owned(), why })
}

/// Checks that a state is not larger than [`STATE_BYTES_MAX`].
///
/// # Errors
/// [`StoreError::TooLarge`].
pub fn check_state(key: &str, bytes: &[u8]) -> Result<(), StoreError> {
    if bytes.len() > STATE_BYTES_MAX {
        return Err(StoreError::TooLarge { key: key.to_owned(), bytes: bytes.len() });
    }
    Ok(())
}

/// Checks that the revision that was found is the expected one.
pub(super) fn check_revision(key: &str, expected: u64, found: u64) -> Result<(), StoreError> {
    if found != expected {
        return Err(StoreError::Conflict { key: key.to_owned(), expected, found });
    }
    Ok(())
}
