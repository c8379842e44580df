//! Locking of mutexes and waiting for condition variables, also of poisoned ones.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Duration;

/// Locks the mutex. A poisoned one holds no broken state: user code that panics under a lock (see `user_code`) has
/// changed nothing of the data that the lock guards.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // ThreadSanitizer does not see the order that the standard library makes when a thread waits.
    while cfg!(tsan) {
        if let Some(guard) = try_lock(mutex) {
            return guard;
        }
        std::thread::yield_now();
    }
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Does the same as [`lock`], if no thread holds the lock.
pub(crate) fn try_lock<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    match mutex.try_lock() {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

/// Waits for a notice of `condvar`; a wait may also end without one.
pub(crate) fn wait<'a, T>(condvar: &Condvar, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
    condvar.wait(guard).unwrap_or_else(PoisonError::into_inner)
}

/// Does the same as [`wait`], for `time` at most.
pub(crate) fn wait_for<'a, T>(condvar: &Condvar, guard: MutexGuard<'a, T>, time: Duration) -> MutexGuard<'a, T> {
    condvar.wait_timeout(guard, time).unwrap_or_else(PoisonError::into_inner).0
}
