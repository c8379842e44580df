//! The targets of Playhouse in the group `scaling`.

use serde::Serialize;

/// The targets of one row: a speed-up, and a time below that of tokio.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Target {
    /// The least speed-up against one worker. `null` if none is set.
    pub speedup: Option<f64>,
    /// The bound of the ratio to tokio's time. The ratio must be below it.
    pub tokio_ratio: f64,
}

impl Target {
    /// Returns the targets with this work on this number of workers. Only 2 workers have a target for the speed-up.
    pub fn of(work_ns: u32, workers: usize) -> Self {
        let speedup = match work_ns {
            1_000.. => 1.8,
            100..1_000 => 1.3,
            0..100 => 0.95,
        };
        Self { speedup: (workers == 2).then_some(speedup), tokio_ratio: 1.0 }
    }

    /// Names the reached targets: `yes` for all, `no` for none, or the name of the only one. A missing figure reaches no target.
    pub fn verdict(&self, speedup: Option<f64>, tokio_ratio: Option<f64>) -> &'static str {
        let fast = self.speedup.map(|least| speedup.is_some_and(|speedup| speedup >= least));
        let ahead = tokio_ratio.is_some_and(|ratio| ratio < self.tokio_ratio);
        match (fast, ahead) {
            (None | Some(true), true) => "yes",
            (Some(true), false) => "speed-up",
            (Some(false), true) => "tokio",
            (None | Some(false), false) => "no",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_workers_have_a_target_for_the_speedup_by_work() {
        let speedups = [0, 99, 100, 999, 1_000, 100_000].map(|work_ns| Target::of(work_ns, 2).speedup);
        assert_eq!(speedups, [0.95, 0.95, 1.3, 1.3, 1.8, 1.8].map(Some));
        assert_eq!([1, 4].map(|workers| Target::of(1_000, workers).speedup), [None, None]);
    }

    #[test]
    fn a_verdict_says_which_target_is_reached() {
        let two = Target::of(1_000, 2);
        assert_eq!(two.verdict(Some(1.8), Some(0.99)), "yes");
        assert_eq!(two.verdict(Some(1.8), Some(1.0)), "speed-up");
        assert_eq!(two.verdict(Some(1.79), Some(0.99)), "tokio");
        assert_eq!(two.verdict(Some(1.79), Some(1.0)), "no");
        assert_eq!((two.verdict(None, Some(0.5)), two.verdict(Some(2.0), None)), ("tokio", "speed-up"));
        let one = Target::of(1_000, 1);
        assert_eq!([Some(0.9), Some(1.1), None].map(|ratio| one.verdict(Some(1.0), ratio)), ["yes", "no", "no"]);
    }
}
