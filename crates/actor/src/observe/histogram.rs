//! Histograms of times: counts in buckets whose width grows with the time.

use std::time::Duration;

/// The number of buckets per doubling: a bucket is at most a sixteenth of its times wide.
const STEPS: u64 = 16;
/// Times from 2^40 ns (18 minutes) on are one bucket.
const DOUBLINGS: usize = 37;
const BUCKETS: usize = STEPS as usize * DOUBLINGS;

/// Counts of times: exact up to 15 ns, and within 6.25 % beyond.
#[derive(Clone, Debug)]
pub(crate) struct Histogram {
    counts: Box<[u64; BUCKETS]>,
    pub(crate) count: u64,
    pub(crate) total_ns: u64,
    pub(crate) max_ns: u64,
}

fn bucket_of(ns: u64) -> usize {
    let doublings = (ns | STEPS).ilog2() - STEPS.ilog2();
    let at = u64::from(doublings) * STEPS + (ns >> doublings);
    (at as usize).min(BUCKETS - 1)
}

/// Returns the longest time of the bucket.
fn longest_in(bucket: usize) -> u64 {
    let (doublings, step) = ((bucket as u64 / STEPS).saturating_sub(1), bucket as u64 % STEPS);
    if bucket as u64 >= STEPS { ((STEPS + step + 1) << doublings) - 1 } else { step }
}

impl Histogram {
    pub(crate) fn new() -> Histogram {
        Histogram { counts: Box::new([0; BUCKETS]), count: 0, total_ns: 0, max_ns: 0 }
    }

    pub(crate) fn note(&mut self, time: Duration) {
        let ns = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.counts[bucket_of(ns)] += 1;
        self.count += 1;
        self.total_ns = self.total_ns.saturating_add(ns);
        self.max_ns = self.max_ns.max(ns);
    }

    pub(crate) fn add(&mut self, other: &Histogram) {
        for (count, more) in self.counts.iter_mut().zip(&*other.counts) {
            *count += more;
        }
        self.count += other.count;
        self.total_ns = self.total_ns.saturating_add(other.total_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
    }

    /// Returns the time that `share` of all do not exceed.
    pub(crate) fn quantile(&self, share: f64) -> Duration {
        let rank = ((share.clamp(0.0, 1.0) * self.count as f64).ceil() as u64).max(1);
        let mut seen = 0;
        for (bucket, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= rank {
                // The last bucket has no end.
                let longest = if bucket == BUCKETS - 1 { self.max_ns } else { longest_in(bucket) };
                return Duration::from_nanos(longest.min(self.max_ns));
            }
        }
        Duration::ZERO
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_time_is_in_a_bucket_that_is_at_most_a_sixteenth_wide() {
        let mut before = 0;
        for ns in (0..10_000).chain((14..40).flat_map(|power| [(1 << power) - 1, 1 << power, (1 << power) + 12_345])) {
            let bucket = bucket_of(ns);
            assert!(bucket >= before, "{ns}");
            before = bucket.min(bucket_of(ns));
            let longest = longest_in(bucket);
            assert!(longest >= ns && longest - ns <= ns / STEPS, "{ns} is in the bucket up to {longest}");
        }
        assert_eq!(bucket_of(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn quantiles_are_what_the_sorted_times_say() {
        let mut histogram = Histogram::new();
        let mut half = Histogram::new();
        for ns in 1..=1000 {
            if ns % 2 == 0 { &mut half } else { &mut histogram }.note(Duration::from_nanos(ns));
        }
        histogram.add(&half);
        assert_eq!((histogram.count, histogram.max_ns, histogram.total_ns), (1000, 1000, 500_500));
        for (share, exact) in [(0.5, 500), (0.9, 900), (0.99, 990), (1.0, 1000)] {
            let found = histogram.quantile(share).as_nanos() as u64;
            assert!(found >= exact && found <= exact + exact / STEPS, "{share}: {found}");
        }
        assert_eq!(histogram.quantile(0.0).as_nanos(), 1);
        assert_eq!(Histogram::new().quantile(0.5), Duration::ZERO);
        histogram.note(Duration::from_secs(7200));
        assert_eq!(histogram.quantile(1.0), Duration::from_secs(7200));
    }
}
