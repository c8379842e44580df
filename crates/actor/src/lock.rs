//! The lock of this crate's mutexes.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks the mutex. A thread that has panicked under the lock does not stop the others.
#[inline]
pub(crate) fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
