//! How locks are taken.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Takes the lock. No user code runs under a lock of the runtime, so a poisoned one holds no broken state.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
