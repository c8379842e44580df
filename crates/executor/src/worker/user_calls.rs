//! Calls of user code from RUNTIME: see [`crate::user_code`].

use crate::user_code::contained;
use crate::worker::{Worker, current};

/// Calls user code on any thread, as the rule demands. On a worker in RUNTIME, only between two gulps.
pub(crate) fn call<R>(f: impl FnOnce() -> R) -> Option<R> {
    match current() {
        Some(worker) if !worker.ownership.is_user() => worker.call_user(f),
        _ => contained(f),
    }
}

impl Worker {
    /// Calls user code from RUNTIME, between two gulps. Returns `None` if it panics.
    pub(crate) fn call_user<R>(&self, f: impl FnOnce() -> R) -> Option<R> {
        debug_assert!(
            !self.ownership.is_user(),
            "`call_user` was called in USER: user code calls other user code directly"
        );
        // No record is claimed from this point on.
        self.ownership.begin();
        let result = contained(f);
        let kept = self.enter_runtime();
        debug_assert!(kept, "a worker that has claimed nothing was taken over");
        result
    }
}
