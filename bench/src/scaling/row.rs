//! The figures of one pattern with one amount of work on one number of workers.

use serde::Serialize;

use super::activity::Activity;
use super::implementation::{Implementation, Run};
use super::measured::Measured;
use super::target::Target;
use crate::report::bootstrap::Estimate;
use crate::report::{Spread, rounded};

/// The figures of one row. Its JSON form has these keys, in this order. A missing figure is `null`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// The pattern's name.
    pub bench: String,
    /// The unit of the operations.
    pub op: String,
    /// The nanoseconds of work with each operation.
    pub work_ns: u32,
    /// The number of workers or threads.
    pub workers: usize,
    /// The number of operations per run.
    pub ops: Option<u64>,
    /// The nanoseconds per operation: the median of the runs.
    pub ns_per_op: Option<f64>,
    /// The fastest run, in nanoseconds per operation.
    pub min: Option<f64>,
    /// The slowest run, in nanoseconds per operation.
    pub max: Option<f64>,
    /// The speed-up against one worker.
    pub speedup: Option<f64>,
    /// The share of the workers' time in which they were parked: the median of the runs.
    pub parked: Option<f64>,
    /// The mutes per run: the median of the runs.
    pub mutes: Option<f64>,
    /// The wake-ups per run: the median of the runs.
    pub wake_ups: Option<f64>,
    /// The successful steals per run: the median of the runs.
    pub steals: Option<f64>,
    /// The nanoseconds per operation of the tokio tasks.
    pub tokio_ns_per_op: Option<f64>,
    /// The speed-up of the tokio tasks against one worker.
    pub tokio_speedup: Option<f64>,
    /// `ns_per_op` divided by `tokio_ns_per_op`.
    pub tokio_ratio: Option<f64>,
    /// The nanoseconds per operation of the hand-written threads.
    pub threads_ns_per_op: Option<f64>,
    /// The speed-up of the hand-written threads against one thread.
    pub threads_speedup: Option<f64>,
    /// The share of the CPU time that other programs took during the runs.
    pub others_cpu: Option<f64>,
    /// The targets of Playhouse.
    pub target: Target,
    /// The targets that Playhouse reaches, as [`Target::verdict`] names them.
    pub reached: &'static str,
}

impl Row {
    /// Returns the rows of a measurement, one for each number of workers.
    pub fn all(measured: &Measured) -> Vec<Self> {
        measured.workers().into_iter().map(|workers| Self::of(measured, workers)).collect()
    }

    fn of(measured: &Measured, workers: usize) -> Self {
        let spread = |implementation| Some(measured.runs(implementation, workers)).and_then(spread);
        let rounded_median = |estimate: Option<Estimate>| estimate.map(|estimate| rounded(estimate.median));
        let speedup = |implementation| rounded_median(measured.speedup(implementation, workers));
        let ours = measured.runs(Implementation::Playhouse, workers);
        let (times, target) = (spread(Implementation::Playhouse), Target::of(measured.work_ns, workers));
        let median_time = |implementation| spread(implementation).map(|spread| rounded(spread.median));
        let (own_speedup, tokio_ratio) =
            (measured.speedup(Implementation::Playhouse, workers), measured.tokio_ratio(workers));
        Self {
            bench: measured.pattern.name.to_owned(),
            op: measured.pattern.op.to_owned(),
            work_ns: measured.work_ns,
            workers,
            ops: ours.first().map(|run| run.ops),
            ns_per_op: times.map(|times| rounded(times.median)),
            min: times.map(|times| rounded(times.min)),
            max: times.map(|times| rounded(times.max)),
            speedup: rounded_median(own_speedup),
            parked: median(ours, |activity| activity.parked),
            mutes: median(ours, |activity| activity.mutes as f64),
            wake_ups: median(ours, |activity| activity.wake_ups as f64),
            steals: median(ours, |activity| activity.steals as f64),
            tokio_ns_per_op: median_time(Implementation::Tokio),
            tokio_speedup: speedup(Implementation::Tokio),
            tokio_ratio: rounded_median(tokio_ratio),
            threads_ns_per_op: median_time(Implementation::Threads),
            threads_speedup: speedup(Implementation::Threads),
            others_cpu: measured.others.share().map(rounded),
            target,
            reached: target.verdict(own_speedup.map(|of| of.median), tokio_ratio.map(|of| of.median)),
        }
    }

    /// Returns one line of JSON.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("numbers and strings have a JSON form")
    }
}

/// Returns the median and the extremes of the times, or `None` without runs.
fn spread(runs: &[Run]) -> Option<Spread> {
    let times: Vec<_> = runs.iter().map(Run::ns_per_op).collect();
    (!times.is_empty()).then(|| Spread::of(&times))
}

/// Returns the median of one figure of the workers' activity, or `None` without runs.
fn median(runs: &[Run], of: impl Fn(&Activity) -> f64) -> Option<f64> {
    let values: Vec<_> = runs.iter().filter_map(|run| run.activity.as_ref()).map(of).collect();
    (!values.is_empty()).then(|| rounded(Spread::of(&values).median))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::measured::Contender;
    use super::super::others::Others;
    use super::super::pattern::Pattern;
    use super::*;

    fn measured(times: [[u64; 3]; 6]) -> Measured {
        let mut times = times.into_iter();
        let contenders = [1, 2].into_iter().flat_map(|workers| {
            Implementation::ALL.map(|implementation| {
                let activity = Activity { parked: 0.25, mutes: 7, wake_ups: 8, steals: 9 };
                let activity = (implementation == Implementation::Playhouse).then_some(activity);
                let run = |ns| Run { ops: 10, elapsed: Duration::from_nanos(10 * ns), activity };
                Contender { implementation, workers, runs: times.next().unwrap().map(run).into() }
            })
        });
        let contenders = contenders.collect();
        let pattern = Pattern::find("scaling-tree")[0];
        Measured { pattern, work_ns: 1_000, contenders, others: Others::default(), failures: Vec::new() }
    }

    #[test]
    fn figures_are_medians_and_ratios_of_medians() {
        let rows = Row::all(&measured([
            [1_000, 3_000, 2_000],
            [1_500, 1_500, 1_500],
            [900, 900, 900],
            [1_000, 1_000, 1_000],
            [1_250, 1_250, 1_250],
            [450, 450, 450],
        ]));
        let [one, two] = &rows[..] else { panic!("{rows:?}") };
        assert_eq!((one.ns_per_op, one.min, one.max), (Some(2_000.0), Some(1_000.0), Some(3_000.0)));
        assert_eq!((one.speedup, one.tokio_ratio, one.reached), (Some(1.0), Some(1.333), "no"));
        assert_eq!((two.ns_per_op, two.speedup, two.ops), (Some(1_000.0), Some(2.0), Some(10)));
        assert_eq!((two.tokio_ns_per_op, two.tokio_speedup, two.tokio_ratio), (Some(1_250.0), Some(1.2), Some(0.8)));
        assert_eq!((two.threads_ns_per_op, two.threads_speedup), (Some(450.0), Some(2.0)));
        assert_eq!((two.parked, two.mutes, two.wake_ups, two.steals), (Some(0.25), Some(7.0), Some(8.0), Some(9.0)));
        assert_eq!((two.reached, two.others_cpu), ("yes", None));
    }

    #[test]
    fn json_has_all_keys_also_where_a_figure_is_missing() {
        let mut measured = measured([[8; 3]; 6]);
        measured.contenders[3].runs.clear();
        let rows = Row::all(&measured);
        let json: serde_json::Map<_, _> = serde_json::from_str(&rows[1].to_json()).unwrap();
        assert_eq!(json.len(), 21);
        assert_eq!(
            (&json["bench"], &json["work_ns"], &json["workers"]),
            (&"scaling-tree".into(), &1_000.into(), &2.into())
        );
        assert!(json["ns_per_op"].is_null() && json["speedup"].is_null() && json["parked"].is_null(), "{json:?}");
        assert_eq!((json["target"]["speedup"].as_f64(), &json["reached"]), (Some(1.8), &"no".into()));
        assert_eq!(json["tokio_ns_per_op"].as_f64(), Some(8.0));
    }
}
