//! Why a store has not done something.

use std::fmt;
use std::io;

use super::{KEY_BYTES_MAX, STATE_BYTES_MAX};

/// Why a store has not done something.
#[derive(Debug)]
#[non_exhaustive]
pub enum StoreError {
    /// Another revision is there than was expected: somebody else has saved or removed. Nothing was changed.
    Conflict {
        /// Whose.
        key: String,
        /// The revision that was said to be there; 0: none.
        expected: u64,
        /// The revision that is; 0: none.
        found: u64,
    },
    /// What is there is not what was saved.
    Damaged {
        /// Whose.
        key: String,
        /// What is wrong, and where.
        what: String,
    },
    /// This cannot be a key: see [`check_key`].
    Key {
        /// What was given.
        key: String,
        /// What is wrong with it.
        why: String,
    },
    /// The state is larger than [`STATE_BYTES_MAX`].
    TooLarge {
        /// Whose.
        key: String,
        /// How large it is.
        bytes: usize,
    },
    /// The storage has failed. The former or the new state is there: who goes on loads it again.
    Io {
        /// Whose.
        key: String,
        /// What has failed, and where.
        error: io::Error,
    },
}

impl StoreError {
    /// The key that it is about.
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
                write!(f, "{key:?} is there already, with revision {found}: load it first")
            }
            StoreError::Conflict { key, expected, found: 0 } => {
                write!(f, "{key:?} is not there, though revision {expected} was expected: it was removed")
            }
            StoreError::Conflict { key, expected, found } => write!(
                f,
                "{key:?} has revision {found}, not {expected}, as was expected: somebody else has saved it, load it again"
            ),
            StoreError::Damaged { key, what } => {
                write!(f, "what is kept for {key:?} is damaged: {what}: restore it from a copy")
            }
            StoreError::Key { key, why } => write!(
                f,
                "{key:?} cannot be a key: {why}: 1 to {KEY_BYTES_MAX} bytes without control characters are allowed"
            ),
            StoreError::TooLarge { key, bytes } => {
                write!(
                    f,
                    "the state of {key:?} has {bytes} bytes: at most {STATE_BYTES_MAX} can be saved under one key"
                )
            }
            StoreError::Io { key, error } => write!(f, "the store has failed at {key:?}: {error}"),
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
