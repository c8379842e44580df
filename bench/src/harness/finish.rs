//! The end of a workload: the actor that reaches the final state takes the time at once.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::outcome::{Failure, Size};

/// Held by the actor that will reach the final state.
pub(crate) struct Finish<T>(Arc<Line<T>>);

/// Held by the thread that waits for the final state.
pub(crate) struct Finished<T> {
    line: Arc<Line<T>>,
    deadline: Duration,
}

/// The state shared by the two. The channel of the standard library would do, but it takes three times 64 KiB of mapped code.
struct Line<T> {
    said: Mutex<Said<T>>,
    told: Condvar,
}

enum Said<T> {
    Nothing,
    /// The final state was reached at this time, or is out of reach.
    Ended(Instant, Result<T, Failure>),
    /// The actor is gone, and has not said anything.
    Gone,
}

/// The two ends.
pub(crate) fn finish<T>(size: Size) -> (Finish<T>, Finished<T>) {
    let line = Arc::new(Line { said: Mutex::new(Said::Nothing), told: Condvar::new() });
    (Finish(Arc::clone(&line)), Finished { line, deadline: size.deadline() })
}

impl<T> Finish<T> {
    /// The final state is reached now, with this result.
    pub(crate) fn reached(&self, result: T) {
        self.say(Said::Ended(Instant::now(), Ok(result)));
    }

    /// The final state cannot be reached any more.
    pub(crate) fn missed(&self, why: impl Into<String>) {
        self.say(Said::Ended(Instant::now(), Err(Failure::new(why))));
    }

    /// The first word counts.
    fn say(&self, word: Said<T>) {
        let mut said = self.0.said.lock().unwrap_or_else(PoisonError::into_inner);
        if matches!(*said, Said::Nothing) {
            *said = word;
            self.0.told.notify_one();
        }
    }
}

impl<T> Drop for Finish<T> {
    fn drop(&mut self) {
        self.say(Said::Gone);
    }
}

impl<T> Finished<T> {
    /// Calls `start`, waits for the final state, and returns the time between the two and the result.
    pub(crate) fn time(self, start: impl FnOnce()) -> Result<(Duration, T), Failure> {
        let started = Instant::now();
        start();
        let said = self.line.said.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.line.told.wait_timeout_while(said, self.deadline, |said| matches!(said, Said::Nothing));
        let (mut said, _) = waited.unwrap_or_else(PoisonError::into_inner);
        match std::mem::replace(&mut *said, Said::Gone) {
            Said::Ended(ended, result) => Ok((ended - started, result?)),
            Said::Nothing => {
                Err(Failure::new(format!("stalled: the final state was not reached within {:?}", self.deadline)))
            }
            Said::Gone => Err(Failure::new("the actor that should reach the final state ended before it did")),
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
    fn who_says_nothing_is_waited_for_until_the_deadline() {
        let (_finish, finished) = finish::<()>(Size::Smoke);
        let finished = Finished { deadline: Duration::from_millis(1), ..finished };
        assert!(finished.time(|| ()).unwrap_err().to_string().contains("not reached within 1ms"));
    }

    #[test]
    fn the_first_word_counts() {
        let (finish, finished) = finish(Size::Smoke);
        let said = finished.time(|| {
            finish.reached(7);
            finish.missed("later");
            drop(finish);
        });
        assert_eq!(said.unwrap().1, 7);
    }

    #[test]
    fn a_missed_final_state_is_a_failure() {
        let (finish, finished) = finish::<()>(Size::Smoke);
        assert_eq!(finished.time(|| finish.missed("no answer")).unwrap_err().to_string(), "no answer");
    }
}
