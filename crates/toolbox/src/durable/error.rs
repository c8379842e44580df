//! The errors of loading and saving a value.

use std::fmt;

use super::store::StoreError;
use crate::resource::JobError;

/// An error of loading or saving a [`Durable`](super::Durable).
///
/// # Examples
///
/// ```
/// use playhouse::durable::{Durable, DurableError, MemoryStore};
/// use playhouse::prelude::*;
/// use playhouse::resource::ResourcePool;
///
/// let system = System::start()?;
/// let pool = ResourcePool::start(&system, 1, 10)?;
/// let store = MemoryStore::new();
/// Durable::open(&pool, store.clone(), "key", 0_u64).wait()?.save(7).wait()?;
/// match Durable::open(&pool, store, "key", String::new()).wait() {
///     Err(DurableError::Form { key, .. }) => assert_eq!(key, "key"), // a number is no text
///     other => panic!("{other:?}"),
/// }
/// # system.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum DurableError {
    /// The store has failed.
    Store(StoreError),
    /// The stored state cannot be read as a value of the type, or the value cannot be written.
    Form {
        /// The key of the value.
        key: String,
        /// The type, and the cause.
        why: String,
    },
    /// The resource pool has not done the work. If the work has panicked, the value may be saved or not.
    Pool {
        /// The key of the value.
        key: String,
        /// The error of the pool.
        error: JobError,
    },
    /// An earlier save is still running. Nothing was done.
    Busy {
        /// The key of the value.
        key: String,
    },
}

impl DurableError {
    /// Returns whether the local value is out of date, because somebody else has saved or removed it. An earlier save
    /// of this value with an unknown outcome counts as somebody else.
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
                write!(f, "{key:?} is being saved: wait until that save is done")
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
