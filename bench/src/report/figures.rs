//! The report of one benchmark, as a JSON object.

use serde::{Deserialize, Serialize};

use super::latency::Latency;
use super::target::Target;

/// The figures of one benchmark.
///
/// Its JSON form has these keys, in this order; the last four are left out where they have no value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// The benchmark's name.
    pub bench: String,
    /// The unit of one operation.
    pub op: String,
    /// Operations per run.
    pub ops: u64,
    /// Nanoseconds per operation: the median of the runs.
    pub ns_per_op: f64,
    /// The fastest run, in nanoseconds per operation.
    pub min: f64,
    /// The slowest run, in nanoseconds per operation.
    pub max: f64,
    /// Nanoseconds per operation of the baseline: the median of its runs, between those of the workload; `null` without one.
    #[serde(rename = "limit_ns_per_op")]
    pub baseline_ns_per_op: Option<f64>,
    /// `ns_per_op` over that of the baseline.
    pub ratio: Option<f64>,
    /// Peak memory in MiB; `null` where the operating system does not say.
    pub peak_rss_mb: Option<f64>,
    /// Workers of the system.
    pub workers: usize,
    /// Stages of the system, of all workers together.
    pub stages: usize,
    /// The waiting times of the asks beside the workload, in the last run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency: Option<Latency>,
    /// Nanoseconds of the server's processor time per operation in the last run, if another process did the work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_ns_per_op: Option<f64>,
    /// The bounds that the benchmark should keep on this machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<Target>,
    /// The verdict on the target, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reached: Option<String>,
}

impl Report {
    /// Compares with the target on a machine that takes `scale` times as long as the one of the target.
    pub fn judge(&mut self, target: Option<Target>, scale: f64) {
        self.target = target.map(|target| target.scaled(scale));
        self.reached = self.target.map(|target| target.verdict(self).to_owned());
    }

    /// Returns a warning if the figure is unreliable.
    pub fn unrest(&self) -> Option<String> {
        (self.max > 2.0 * self.min).then(|| format!("the runs of {} differ by more than 2 x", self.bench))
    }

    /// Returns one line of JSON.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("numbers and strings have a JSON form")
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn report(ns_per_op: f64, baseline: Option<f64>) -> Report {
        Report {
            bench: "count".to_owned(),
            op: "message".to_owned(),
            ops: 10,
            ns_per_op,
            min: ns_per_op,
            max: ns_per_op,
            baseline_ns_per_op: baseline,
            ratio: baseline.map(|baseline| ns_per_op / baseline),
            peak_rss_mb: None,
            workers: 2,
            stages: 8,
            latency: None,
            cpu_ns_per_op: None,
            target: None,
            reached: None,
        }
    }

    #[test]
    fn json_reads_back() {
        let mut report = report(8.0, None);
        assert_eq!(serde_json::from_str::<Report>(&report.to_json()).unwrap(), report);
        report.judge(Target::new(2.0, 9.0), 1.5);
        report.latency = Some(Latency { p50_ns: 1, p90_ns: 2, p99_ns: 3, max_ns: 4 });
        assert_eq!(serde_json::from_str::<Report>(&report.to_json()).unwrap(), report);
    }
}
