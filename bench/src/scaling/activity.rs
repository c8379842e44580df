//! The activity of a system's workers apart from handling messages.

use std::time::{Duration, Instant};

use playhouse::Stats;
use serde::Serialize;

use super::stopwatch::Times;

/// Parks, mutes, wake-ups and steals of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Activity {
    /// The share of the workers' time in which they were parked, from 0 to 1.
    pub parked: f64,
    /// Stages that were muted.
    pub mutes: u64,
    /// Parked workers that were woken.
    pub wake_ups: u64,
    /// Successful steals.
    pub steals: u64,
}

impl Activity {
    /// The activity during the sections in `times`. The counters of the system were `last` at the moment `ended`.
    pub(crate) fn of(times: &Times, last: &Stats, ended: Instant, workers: usize) -> Self {
        let tail = ended.saturating_duration_since(times.read);
        let parked_ns = |stats: &Stats, worker: usize| stats.per_worker.get(worker).map_or(0, |of| of.parked_ns);
        let parked = (0..workers).map(|worker| {
            let parked = Parked {
                before: parked_ns(&times.before, worker),
                after: parked_ns(&times.after, worker),
                last: parked_ns(last, worker),
            };
            parked.during(times.elapsed, times.paused(), tail)
        });
        let capacity = times.elapsed.as_nanos() as f64 * workers as f64;
        let (before, after) = (times.before.total, times.after.total);
        Self {
            parked: parked.sum::<u64>() as f64 / capacity.max(1.0),
            mutes: after.mutes.saturating_sub(before.mutes),
            wake_ups: after.wake_ups.saturating_sub(before.wake_ups),
            steals: after.steals.saturating_sub(before.steals),
        }
    }
}

/// A worker's counter of parked nanoseconds, which counts a park when it ends.
struct Parked {
    before: u64,
    after: u64,
    /// The value after the shutdown, which ends every park.
    last: u64,
}

impl Parked {
    /// Parked nanoseconds in sections of `elapsed` with pauses of `paused`. The counters `after` were read `tail` before the shutdown.
    ///
    /// `last` counts a park that was open at the end of the sections up to the shutdown. The tail is therefore subtracted. During a pause,
    /// the workers count as parked, and the pause is subtracted, too.
    fn during(&self, elapsed: Duration, paused: Duration, tail: Duration) -> u64 {
        let ns = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let open = self.last.saturating_sub(self.after).saturating_sub(ns(tail));
        let counted = self.after.saturating_sub(self.before) + open;
        counted.saturating_sub(ns(paused)).min(ns(elapsed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NS: fn(u64) -> Duration = Duration::from_nanos;

    #[test]
    fn only_parks_within_the_sections_count() {
        let parked = Parked { before: 100, after: 400, last: 400 };
        assert_eq!(parked.during(NS(1_000), NS(0), NS(50)), 300);
        // The worker was parked for 200 in pauses.
        assert_eq!(parked.during(NS(1_000), NS(200), NS(50)), 100);
        assert_eq!(parked.during(NS(1_000), NS(500), NS(50)), 0);
    }

    #[test]
    fn a_park_that_is_open_at_the_end_counts_up_to_the_end() {
        // The worker was parked from 300 before the end to the shutdown, which was 50 after the end.
        assert_eq!(Parked { before: 100, after: 100, last: 450 }.during(NS(1_000), NS(0), NS(50)), 300);
        // The worker was awake at the end and parked 20 later.
        assert_eq!(Parked { before: 100, after: 100, last: 130 }.during(NS(1_000), NS(0), NS(50)), 0);
        // The worker was parked since long before the start. Its park counts as no more than the section.
        assert_eq!(Parked { before: 0, after: 0, last: 9_000 }.during(NS(1_000), NS(0), NS(50)), 1_000);
    }
}
