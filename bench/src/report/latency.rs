//! Distributions of waiting times, and durations in readable units.
//!
//! No library replaces the nearest ranks: hdrhistogram rounds to buckets, and all times of a run fit into memory.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Percentiles (nearest rank), in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Latency {
    /// Half of the times were no longer.
    pub p50_ns: u64,
    /// Nine of ten times were no longer.
    pub p90_ns: u64,
    /// 99 of 100 times were no longer.
    pub p99_ns: u64,
    /// No time was longer.
    pub max_ns: u64,
}

impl Latency {
    /// Takes these times, and sorts them; zeros if there are none.
    pub(crate) fn of(times_ns: &mut [u64]) -> Self {
        times_ns.sort_unstable();
        let percentile = |percent: usize| match times_ns.len() {
            0 => 0,
            times => times_ns[(times * percent).div_ceil(100) - 1],
        };
        Self { p50_ns: percentile(50), p90_ns: percentile(90), p99_ns: percentile(99), max_ns: percentile(100) }
    }
}

/// The per mille of the times that a [`Cdf`] has.
pub const PER_MILLE: [u32; 24] = [
    0, 10, 50, 100, 200, 300, 400, 500, 600, 700, 750, 800, 850, 900, 920, 940, 950, 960, 970, 980, 990, 995, 999,
    1_000,
];

/// The distribution of some times: for each of [`PER_MILLE`], the nearest rank in nanoseconds. The first is the shortest time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cdf(pub [u64; 24]);

impl Cdf {
    /// Takes these times, and sorts them; `None` if there are none.
    pub(crate) fn of(times_ns: &mut [u64]) -> Option<Self> {
        times_ns.sort_unstable();
        let last = times_ns.len().checked_sub(1)?;
        let rank = |per_mille: u32| (times_ns.len() * per_mille as usize).div_ceil(1_000).saturating_sub(1);
        Some(Self(PER_MILLE.map(|per_mille| times_ns[rank(per_mille).min(last)])))
    }
}

impl fmt::Display for Latency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [p50, p90, p99, max] = [self.p50_ns, self.p90_ns, self.p99_ns, self.max_ns].map(|ns| duration(ns as f64));
        write!(f, "median {p50}, p90 {p90}, p99 {p99}, max {max}")
    }
}

/// Formats a duration in the unit in which it has one to three digits before the point.
pub fn duration(ns: f64) -> String {
    match ns {
        ns if ns < 1e3 => format!("{ns:.0} ns"),
        ns if ns < 1e6 => format!("{:.2} µs", ns / 1e3),
        ns if ns < 1e9 => format!("{:.2} ms", ns / 1e6),
        ns => format!("{:.2} s", ns / 1e9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_nearest_ranks() {
        let mut times: Vec<u64> = (1..=200).rev().collect();
        let latency = Latency::of(&mut times);
        assert_eq!(latency, Latency { p50_ns: 100, p90_ns: 180, p99_ns: 198, max_ns: 200 });
        assert_eq!(latency.to_string(), "median 100 ns, p90 180 ns, p99 198 ns, max 200 ns");
        assert_eq!(Latency::of(&mut [7]), Latency { p50_ns: 7, p90_ns: 7, p99_ns: 7, max_ns: 7 });
        assert_eq!(Latency::of(&mut []), Latency::default());
    }

    #[test]
    fn a_distribution_goes_from_the_shortest_to_the_longest() {
        let Cdf(ns) = Cdf::of(&mut (1..=2_000).rev().collect::<Vec<_>>()).unwrap();
        assert_eq!((ns[0], ns[1], ns[7], ns[20], ns[22], ns[23]), (1, 20, 1_000, 1_980, 1_998, 2_000));
        // Half of three is two of them.
        assert_eq!(Cdf::of(&mut [3, 2, 1]).unwrap().0[7], 2);
        assert_eq!(Cdf::of(&mut [7]), Some(Cdf([7; 24])));
        assert_eq!(Cdf::of(&mut []), None);
    }

    #[test]
    fn durations_have_units() {
        assert_eq!([0.0, 1500.0, 2.5e6, 3.25e9].map(duration), ["0 ns", "1.50 µs", "2.50 ms", "3.25 s"]);
    }
}
