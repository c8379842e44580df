//! Work per message: a loop that takes a stated time on this machine.

use std::hint::black_box;
use std::sync::OnceLock;
use std::time::Instant;

/// Work of a stated time, calibrated against the clock once per process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Work {
    ns: u32,
    steps: u64,
}

impl Work {
    /// The amounts of work that the group `scaling` measures by default, in nanoseconds.
    pub const DEFAULT_NS: [u32; 5] = [0, 100, 1_000, 10_000, 100_000];

    /// The largest amount of work, in nanoseconds.
    pub const MAX_NS: u32 = 1_000_000;

    /// Returns work of `ns` nanoseconds.
    pub fn of_ns(ns: u32) -> Self {
        Self { ns, steps: steps(ns, ns_per_step()) }
    }

    /// Returns the stated time in nanoseconds.
    pub fn ns(self) -> u32 {
        self.ns
    }

    /// Does the work.
    #[inline]
    pub(crate) fn run(self) {
        spin(self.steps);
    }
}

/// Runs a chain of steps in which each step needs the result of the step before.
#[inline(never)]
fn spin(steps: u64) {
    let mut x = steps;
    for i in 0..steps {
        x = black_box(x.wrapping_mul(31).wrapping_add(i));
    }
}

/// Returns the number of steps that take `ns` nanoseconds.
fn steps(ns: u32, ns_per_step: f64) -> u64 {
    (f64::from(ns) / ns_per_step).round() as u64
}

/// Measures the nanoseconds per step. The fastest of several tries counts, because other programs can only slow a try down.
fn ns_per_step() -> f64 {
    const TRIES: usize = 32;
    const STEPS: u64 = 20_000;
    static NS_PER_STEP: OnceLock<f64> = OnceLock::new();
    *NS_PER_STEP.get_or_init(|| {
        let tries = (0..TRIES).map(|_| {
            let started = Instant::now();
            spin(STEPS);
            started.elapsed().as_nanos() as f64 / STEPS as f64
        });
        // A coarse clock may measure 0, but a step takes some time.
        tries.fold(f64::INFINITY, f64::min).max(0.01)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_steps_is_the_time_divided_by_that_of_one_step() {
        assert_eq!([0, 100, 1_000].map(|ns| steps(ns, 0.8)), [0, 125, 1_250]);
        assert_eq!(steps(1, 10.0), 0);
    }

    /// A run is never much faster than the calibration. Other programs can make it slower.
    #[test]
    fn work_takes_at_least_its_time() {
        let work = Work::of_ns(1_000_000);
        let started = Instant::now();
        work.run();
        let ns = started.elapsed().as_nanos();
        assert!(ns > 500_000, "{ns} ns");
        assert_eq!((work.ns(), Work::of_ns(0).steps), (1_000_000, 0));
    }
}
