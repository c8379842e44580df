//! The load of a theater.

use std::time::{Duration, Instant};

/// A meter of this theater's load.
#[derive(Debug)]
pub(super) struct Meter {
    since: Instant,
    busy_ns: u64,
    load: f64,
}

impl Meter {
    pub(super) fn new() -> Meter {
        Meter { since: Instant::now(), busy_ns: 0, load: 0.0 }
    }

    /// Returns the load from 0 to 1, in the last tenth of a second or longer.
    pub(super) fn read(&mut self, system: &playhouse_actor::System) -> f64 {
        const AT_LEAST: Duration = Duration::from_millis(100);
        let elapsed = self.since.elapsed();
        if elapsed >= AT_LEAST {
            let busy_ns = system.stats().total.busy_ns;
            let all_ns = elapsed.as_nanos() as f64 * system.workers() as f64;
            self.load = ((busy_ns - self.busy_ns) as f64 / all_ns).min(1.0);
            (self.since, self.busy_ns) = (Instant::now(), busy_ns);
        }
        self.load
    }
}
