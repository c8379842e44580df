//! How a workload says that it is done: the actor that reaches the final state takes the time there and then.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use crate::outcome::{Failure, Size};

/// Held by the actor that will reach the final state.
pub(crate) struct Finish<T> {
    report: Sender<(Instant, Result<T, Failure>)>,
}

/// Held by the thread that waits for the final state.
pub(crate) struct Finished<T> {
    reports: Receiver<(Instant, Result<T, Failure>)>,
    deadline: Duration,
}

/// The two ends.
pub(crate) fn finish<T>(size: Size) -> (Finish<T>, Finished<T>) {
    let (report, reports) = channel();
    (Finish { report }, Finished { reports, deadline: size.deadline() })
}

impl<T> Finish<T> {
    /// The final state is reached now, with this result.
    pub(crate) fn reached(&self, result: T) {
        self.end(Ok(result));
    }

    /// The final state cannot be reached any more.
    pub(crate) fn missed(&self, why: impl Into<String>) {
        self.end(Err(Failure::new(why)));
    }

    fn end(&self, result: Result<T, Failure>) {
        // Nobody listens any more only after the deadline has passed, and then the run has failed already.
        let _ = self.report.send((Instant::now(), result));
    }
}

impl<T> Finished<T> {
    /// Calls `start`, waits for the final state, and returns the time between the two and the result.
    pub(crate) fn time(self, start: impl FnOnce()) -> Result<(Duration, T), Failure> {
        let started = Instant::now();
        start();
        match self.reports.recv_timeout(self.deadline) {
            Ok((ended, result)) => Ok((ended - started, result?)),
            Err(RecvTimeoutError::Timeout) => {
                Err(Failure::new(format!("stalled: the final state was not reached within {:?}", self.deadline)))
            }
            Err(RecvTimeoutError::Disconnected) => {
                Err(Failure::new("the actor that should reach the final state ended before it did"))
            }
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
    fn a_missed_final_state_is_a_failure() {
        let (finish, finished) = finish::<()>(Size::Smoke);
        assert_eq!(finished.time(|| finish.missed("no answer")).unwrap_err().to_string(), "no answer");
    }
}
