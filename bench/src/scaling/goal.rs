//! The end of a measured section: the time at which its last part is done.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::harness::outcome::Failure;

/// A count of parts that are not done. All implementations of a pattern use it, at the same cost.
#[derive(Clone)]
pub(crate) struct Goal(Arc<State>);

struct State {
    left: AtomicU64,
    ended: Mutex<Option<Instant>>,
    reached: Condvar,
}

impl Goal {
    /// Creates a goal without parts. [`Goal::set`] gives it parts.
    pub(crate) fn new() -> Self {
        Self(Arc::new(State { left: AtomicU64::new(0), ended: Mutex::new(None), reached: Condvar::new() }))
    }

    /// Begins a section of `parts` parts.
    pub(crate) fn set(&self, parts: u64) {
        *self.0.ended.lock().unwrap_or_else(PoisonError::into_inner) = None;
        self.0.left.store(parts, Ordering::Release);
    }

    /// Notes that one part is done. The last part ends the section.
    pub(crate) fn part_done(&self) {
        if self.0.left.fetch_sub(1, Ordering::AcqRel) == 1 {
            *self.0.ended.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
            self.0.reached.notify_one();
        }
    }

    /// Waits until all parts are done, and returns the time at which the last one was done.
    ///
    /// # Errors
    ///
    /// Fails if that takes longer than `deadline`.
    pub(crate) fn wait(&self, deadline: Duration) -> Result<Instant, Failure> {
        let ended = self.0.ended.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.0.reached.wait_timeout_while(ended, deadline, |ended| ended.is_none());
        let (ended, _) = waited.unwrap_or_else(PoisonError::into_inner);
        ended.ok_or_else(|| {
            let left = self.0.left.load(Ordering::Acquire);
            Failure::new(format!("stalled: {left} parts of the run were not done within {deadline:?}"))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_part_ends_the_section() {
        let goal = Goal::new();
        for parts in [2, 1] {
            goal.set(parts);
            (1..parts).for_each(|_| goal.part_done());
            let failure = goal.wait(Duration::ZERO).unwrap_err().to_string();
            assert_eq!(failure, "stalled: 1 parts of the run were not done within 0ns");
            let before = Instant::now();
            goal.part_done();
            assert!(goal.wait(Duration::ZERO).unwrap() >= before);
        }
    }
}
