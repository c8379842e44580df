//! The bounds that a benchmark should keep.

use serde::{Deserialize, Serialize};

use super::figures::Report;

/// The time of the baseline of `count` per message on the machine of the targets in nanoseconds.
pub const COUNT_BASELINE_NS: f64 = 4.7;

/// The bounds that a benchmark should keep on two workers.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Target {
    /// The largest ratio to the baseline measured in the same run.
    pub ratio: Option<f64>,
    /// The most nanoseconds per operation; in the registry on a machine where the baseline of `count` takes
    /// [`COUNT_BASELINE_NS`].
    pub ns_per_op: Option<f64>,
    /// Whether the time is for a machine where the baseline of `count` takes [`COUNT_BASELINE_NS`]; otherwise for any
    /// machine.
    pub scales: bool,
}

impl Target {
    /// A bound on the ratio to the baseline and one on the time.
    pub(crate) const fn new(ratio: f64, ns_per_op: f64) -> Option<Self> {
        Some(Self { ratio: Some(ratio), ns_per_op: Some(ns_per_op), scales: true })
    }

    /// A bound on the time only.
    pub(crate) const fn ns(ns_per_op: f64) -> Option<Self> {
        Some(Self { ratio: None, ns_per_op: Some(ns_per_op), scales: true })
    }

    /// A bound on the ratio only.
    pub(crate) const fn ratio(ratio: f64) -> Option<Self> {
        Some(Self { ratio: Some(ratio), ns_per_op: None, scales: false })
    }

    /// Is like `new` or `ns`, for any machine: the times of system calls do not scale with those of messages.
    pub(crate) const fn any_machine(ratio: Option<f64>, ns_per_op: f64) -> Option<Self> {
        Some(Self { ratio, ns_per_op: Some(ns_per_op), scales: false })
    }

    /// Returns the target for a machine that takes `scale` times as long.
    pub(crate) fn scaled(self, scale: f64) -> Self {
        Self { ns_per_op: self.ns_per_op.map(|ns| if self.scales { ns * scale } else { ns }), ..self }
    }

    /// Returns the verdict on a report, in words.
    pub(crate) fn verdict(&self, report: &Report) -> &'static str {
        let time = self.ns_per_op.map(|most| report.ns_per_op <= most);
        let ratio = self.ratio.map(|most| report.ratio.is_some_and(|ratio| ratio <= most));
        match (ratio, time) {
            (None | Some(true), None | Some(true)) => "yes",
            (Some(true), Some(false)) => "ratio only",
            (Some(false), Some(true)) => "ns only",
            _ => "no",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::figures::tests::report;
    use super::*;

    fn reached(target: Target, scale: f64, ns_per_op: f64, baseline: Option<f64>) -> String {
        let mut report = report(ns_per_op, baseline);
        report.judge(Some(target), scale);
        report.reached.unwrap()
    }

    #[test]
    fn a_verdict_says_which_bound_holds() {
        let target = Target { ratio: Some(2.0), ns_per_op: Some(9.0), scales: true };
        assert_eq!(reached(target, 1.0, 8.0, Some(4.0)), "yes");
        assert_eq!(reached(target, 1.0, 8.0, Some(3.0)), "ns only");
        assert_eq!(reached(target, 1.0, 10.0, Some(5.0)), "ratio only");
        assert_eq!(reached(target, 1.0, 10.0, Some(4.0)), "no");
        assert_eq!(reached(target, 1.0, 8.0, None), "ns only");
        let target = Target { ratio: None, ns_per_op: Some(9.0), scales: true };
        assert_eq!(reached(target, 1.0, 9.0, Some(1.0)), "yes");
        assert_eq!(reached(target, 1.0, 9.1, None), "no");
        let target = Target { ratio: Some(2.0), ns_per_op: None, scales: false };
        assert_eq!(reached(target, 1.5, 8.0, Some(4.0)), "yes");
        assert_eq!(reached(target, 1.5, 8.0, Some(3.0)), "no");
    }

    #[test]
    fn targets_in_ns_are_those_of_this_machine() {
        let target = Target { ratio: Some(2.0), ns_per_op: Some(9.0), scales: true };
        assert_eq!(reached(target, 1.5, 13.5, Some(6.0)), "ns only");
        assert_eq!(reached(target, 0.5, 4.6, Some(2.4)), "ratio only");
        let mut report = report(13.5, Some(7.0));
        report.judge(Some(target), 1.5);
        assert_eq!(report.target, Some(Target { ratio: Some(2.0), ns_per_op: Some(13.5), scales: true }));
        report.judge(None, 1.5);
        assert_eq!((report.target, report.reached), (None, None));
    }
}
