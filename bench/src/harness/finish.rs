//! The end of a workload: the actor that reaches the final state takes the time at once.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::outcome::{Failure, Size};

/// Held by the actor that will reach the final state.
pub(crate) struct Finish<T>(Arc<Shared<T>>);

/// Held by the thread that waits for the final state.
pub(crate) struct Finished<T> {
    shared: Arc<Shared<T>>,
    deadline: Duration,
}

/// The state shared by the two. The channel of the standard library would do, but it takes three times 64 KiB of mapped code.
struct Shared<T> {
    state: Mutex<State<T>>,
    changed: Condvar,
}

enum State<T> {
    Pending,
    /// The final state was reached at this time, or is out of reach.
    Ended(Instant, Result<T, Failure>),
    /// The actor was dropped without a result.
    Dropped,
}

/// Creates the two ends.
pub(crate) fn finish<T>(size: Size) -> (Finish<T>, Finished<T>) {
    let shared = Arc::new(Shared { state: Mutex::new(State::Pending), changed: Condvar::new() });
    (Finish(Arc::clone(&shared)), Finished { shared, deadline: size.deadline() })
}

impl<T> Finish<T> {
    /// Reports that the final state is reached now, with this result.
    pub(crate) fn reached(&self, result: T) {
        self.set(State::Ended(Instant::now(), Ok(result)));
    }

    /// Reports that the final state is out of reach.
    pub(crate) fn missed(&self, why: impl Into<String>) {
        self.set(State::Ended(Instant::now(), Err(Failure::new(why))));
    }

    /// Sets the state, if it is pending.
    fn set(&self, new: State<T>) {
        let mut state = self.0.state.lock().unwrap_or_else(PoisonError::into_inner);
        if matches!(*state, State::Pending) {
            *state = new;
            self.0.changed.notify_one();
        }
    }
}

impl<T> Drop for Finish<T> {
    fn drop(&mut self) {
        self.set(State::Dropped);
    }
}

impl<T> Finished<T> {
    /// Calls `start`, waits for the final state, and returns the time between the two and the result.
    pub(crate) fn time(self, start: impl FnOnce()) -> Result<(Duration, T), Failure> {
        let started = Instant::now();
        start();
        let state = self.shared.state.lock().unwrap_or_else(PoisonError::into_inner);
        let waited =
            self.shared.changed.wait_timeout_while(state, self.deadline, |state| matches!(state, State::Pending));
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        match std::mem::replace(&mut *state, State::Dropped) {
            State::Ended(ended, result) => Ok((ended - started, result?)),
            State::Pending => {
                Err(Failure::new(format!("stalled: the final state was not reached within {:?}", self.deadline)))
            }
            State::Dropped => Err(Failure::new("the actor that should reach the final state ended before it did")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_result_arrives_with_its_time() {
        let (finish, finished) = finish(Size::Smoke);
        let (elapsed, result) = finished.time(|| finish.reached(7)).unwrap();
        assert_eq!(result, 7);
        assert!(elapsed < Size::Smoke.deadline());
    }

    #[test]
    fn an_actor_that_ends_early_is_a_failure() {
        let (finish, finished) = finish::<()>(Size::Smoke);
        drop(finish);
        assert!(finished.time(|| ()).unwrap_err().to_string().contains("ended before"));
    }

    #[test]
    fn a_pending_finish_is_waited_for_until_the_deadline() {
        let (_finish, finished) = finish::<()>(Size::Smoke);
        let finished = Finished { deadline: Duration::from_millis(1), ..finished };
        assert!(finished.time(|| ()).unwrap_err().to_string().contains("not reached within 1ms"));
    }

    #[test]
    fn the_first_state_counts() {
        let (finish, finished) = finish(Size::Smoke);
        let state = finished.time(|| {
            finish.reached(7);
            finish.missed("later");
            drop(finish);
        });
        assert_eq!(state.unwrap().1, 7);
    }

    #[test]
    fn a_missed_final_state_is_a_failure() {
        let (finish, finished) = finish::<()>(Size::Smoke);
        assert_eq!(finished.time(|| finish.missed("no answer")).unwrap_err().to_string(), "no answer");
    }
}
