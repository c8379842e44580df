//! The errors of stores.

use std::fmt;
use std::io;

use super::KEY_BYTES_MAX;

/// An error of a store.
///
/// # Examples
///
/// ```
/// use playhouse::durable::{MemoryStore, Store, StoreError};
///
/// let store = MemoryStore::new();
/// let first = store.save("key", 0, b"one")?;
/// let second = store.save("key", first, b"two")?;
/// match store.save("key", first, b"three") {
///     Err(StoreError::Conflict { expected, found, .. }) => assert_eq!((expected, found), (first, second)),
///     other => panic!("{other:?}"),
/// }
/// # Ok::<(), StoreError>(())
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum StoreError {
    /// The store has another revision than expected, because somebody else has saved or removed the state. Nothing
    /// was changed.
    Conflict {
        /// The key of the state.
        key: String,
        /// The expected revision; 0 means none.
        expected: u64,
        /// The revision in the store; 0 means none.
        found: u64,
    },
    /// The stored bytes are not those that were saved.
    Damaged {
        /// The key of the state.
        key: String,
        /// The damage, and its place.
        what: String,
    },
    /// The text cannot be a key: see [`check_key`](super::check_key).
    Key {
        /// The given text.
        key: String,
        /// The fault of the text.
        why: String,
    },
    /// The state is larger than [`state_bytes_max`](super::Store::state_bytes_max).
    TooLarge {
        /// The key of the state.
        key: String,
        /// The size of the state.
        bytes: usize,
        /// The largest size that the store accepts.
        max: usize,
    },
    /// The storage has failed. The store has the former or the new state, so load it again before going on.
    Io {
        /// The key of the state.
        key: String,
        /// The error of the storage, with its place.
        error: io::Error,
    },
}

impl StoreError {
    /// Returns the key that the error is about.
    pub fn key(&self) -> &str {
        match self {
            StoreError::Conflict { key, .. }
            | StoreError::Damaged { key, .. }
            | StoreError::Key { key, .. }
            | StoreError::TooLarge { key, .. }
            | StoreError::Io { key, .. } => key,
        }
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoreError::Conflict { key, expected: 0, found } => {
                write!(f, "{key:?} exists already with revision {found}: load it first")
            }
            StoreError::Conflict { key, expected, found: 0 } => {
                write!(f, "{key:?} does not exist, but revision {expected} was expected: it was removed, load it again")
            }
            StoreError::Conflict { key, expected, found } => write!(
                f,
                "{key:?} has revision {found}, but revision {expected} was expected: somebody else has saved it, load it again"
            ),
            StoreError::Damaged { key, what } => {
                write!(f, "the stored state of {key:?} is damaged: {what}: restore it from a copy")
            }
            StoreError::Key { key, why } => write!(
                f,
                "{key:?} cannot be a key, because {why}: 1 to {KEY_BYTES_MAX} bytes without control characters are allowed"
            ),
            StoreError::TooLarge { key, bytes, max } => {
                write!(f, "the state of {key:?} has {bytes} bytes: at most {max} can be saved under one key")
            }
            StoreError::Io { key, error } => write!(f, "the storage has failed for {key:?}: {error}"),
        }
    }
}

impl std::error::Error for StoreError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            StoreError::Io { error, .. } => Some(error),
            _ => None,
        }
    }
}
