//! Locks of the crate.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks the mutex. A panic with the lock held does not poison it: no code of the crate leaves a half-changed state behind when user code panics.
pub(crate) fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
