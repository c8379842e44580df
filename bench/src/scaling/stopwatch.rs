//! The time of a run's measured sections, and the counters of the system around them.

use std::time::{Duration, Instant};

use playhouse::Stats;
use playhouse::prelude::*;

use super::goal::Goal;
use crate::harness::outcome::{Failure, Size};

/// Times one or more sections of a run. A run with pauses between its sections has several.
pub(crate) struct Stopwatch<'a> {
    /// The system whose counters the stopwatch reads. `None` for tokio and for threads.
    system: Option<&'a System>,
    deadline: Duration,
    /// The start of the run, and the counters at that time.
    prepared: Option<(Instant, Stats)>,
    times: Option<Times>,
}

/// The times of all sections of a run.
pub(crate) struct Times {
    /// The start of the first section, or of the pause before it.
    started: Instant,
    /// The time at which the stopwatch read the counters after the last section.
    pub(crate) read: Instant,
    /// The time of all sections.
    pub(crate) elapsed: Duration,
    /// The counters at the start.
    pub(crate) before: Stats,
    /// The counters after the last section.
    pub(crate) after: Stats,
}

impl Times {
    /// Returns the time of all pauses.
    pub(crate) fn paused(&self) -> Duration {
        (self.read - self.started).saturating_sub(self.elapsed)
    }
}

impl<'a> Stopwatch<'a> {
    /// Creates a stopwatch for a run of `size`. It reads the counters of `system`.
    pub(crate) fn new(size: Size, system: Option<&'a System>) -> Self {
        Self { system, deadline: size.deadline(), prepared: None, times: None }
    }

    fn stats(&self) -> Stats {
        self.system.map(System::stats).unwrap_or_default()
    }

    /// Reads the counters before a pause that precedes the first section.
    pub(crate) fn prepare(&mut self) {
        self.prepared = Some((Instant::now(), self.stats()));
    }

    /// Times one section: calls `start`, and waits until `parts` parts of the `goal` are done.
    ///
    /// # Errors
    ///
    /// Fails if they are not done within the size's deadline.
    pub(crate) fn time(&mut self, goal: &Goal, parts: u64, start: impl FnOnce()) -> Result<(), Failure> {
        goal.set(parts);
        if self.times.is_none() && self.prepared.is_none() {
            self.prepare();
        }
        let started = Instant::now();
        start();
        let elapsed = goal.wait(self.deadline)? - started;
        let (after, read) = (self.stats(), Instant::now());
        match &mut self.times {
            Some(times) => {
                times.elapsed += elapsed;
                (times.after, times.read) = (after, read);
            }
            None => {
                let (started, before) = self.prepared.take().unwrap_or((started, Stats::default()));
                self.times = Some(Times { started, read, elapsed, before, after });
            }
        }
        Ok(())
    }

    /// Returns the times.
    ///
    /// # Errors
    ///
    /// Fails if no section was timed.
    pub(crate) fn times(self) -> Result<Times, Failure> {
        self.times.ok_or_else(|| Failure::new("the run has no measured section"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_add_up_and_pauses_are_left_out() {
        let (goal, mut watch) = (Goal::new(), Stopwatch::new(Size::Smoke, None));
        let started = Instant::now();
        watch.prepare();
        let mut sections = Duration::ZERO;
        for _ in 0..2 {
            let section = Instant::now();
            watch.time(&goal, 1, || goal.part_done()).unwrap();
            sections += section.elapsed();
        }
        let whole = started.elapsed();
        let times = watch.times().unwrap();
        assert!(times.elapsed <= sections && times.elapsed + times.paused() <= whole);
        assert!(Stopwatch::new(Size::Smoke, None).times().is_err());
    }

    #[test]
    fn a_pause_before_the_first_section_is_a_pause() {
        let (goal, mut watch) = (Goal::new(), Stopwatch::new(Size::Smoke, None));
        watch.prepare();
        let (prepared, _) = watch.prepared.clone().unwrap();
        let pause = Instant::now() - prepared;
        watch.time(&goal, 1, || goal.part_done()).unwrap();
        let times = watch.times().unwrap();
        assert!(times.started == prepared && times.paused() >= pause, "{:?}", times.paused());
    }
}
