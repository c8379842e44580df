//! Why a value was not loaded or saved.

use std::fmt;

use super::store::StoreError;
use crate::resource::JobError;

/// Why a value was not loaded or saved.
#[derive(Debug)]
#[non_exhaustive]
pub enum DurableError {
    /// What the store says.
    Store(StoreError),
    /// What is there cannot be read as a value of the type, or the value cannot be written.
    Form {
        /// Whose.
        key: String,
        /// Which type, and why not.
        why: String,
    },
    /// The resource pool has not done it. If it has panicked in the middle, the value may be saved or not.
    Pool {
        /// Whose.
        key: String,
        /// Why not.
        error: JobError,
    },
    /// The save before this one is not done yet. Nothing was done.
    Busy {
        /// Whose.
        key: String,
    },
}

impl DurableError {
    /// Whether somebody else has saved or removed the value, so that what is here is out of date; or an earlier save was done after
    /// all, of which it was not known.
    pub fn is_conflict(&self) -> bool {
        matches!(self, DurableError::Store(StoreError::Conflict { .. }))
    }
}

impl fmt::Display for DurableError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DurableError::Store(error) => error.fmt(f),
            DurableError::Form { key, why } => write!(f, "{key:?}: {why}"),
            DurableError::Pool { key, error } => write!(f, "{key:?} was not loaded or saved: {error}"),
            DurableError::Busy { key } => {
                write!(f, "{key:?} is being saved: another save can begin when this one is done")
            }
        }
    }
}

impl std::error::Error for DurableError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            DurableError::Store(error) => Some(error),
            DurableError::Pool { error, .. } => Some(error),
            DurableError::Form { .. } | DurableError::Busy { .. } => None,
        }
    }
}
