//! The confidence interval of a median, by percentile bootstrapping (Efron & Tibshirani, *An Introduction to the Bootstrap*,
//! 1993, §13).
//!
//! Each of [`RESAMPLES`] resamples draws as many runs as there were, with replacement; the middle 95 % of their medians are the
//! interval. The same runs always give the same interval.
//!
//! No library replaces it: statrs, the maintained one, has no bootstrap of a paired ratio, and another generator would move the published
//! intervals.

use super::spread::Spread;

/// The number of resamples.
pub const RESAMPLES: usize = 10_000;

/// The fewest runs whose extremes enclose the true median with 95 %; see [`most_sure`].
pub const RUNS_MIN: usize = 6;

/// A median, and between which bounds the true one is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The median of the runs, or the ratio of two medians.
    pub median: f64,
    /// The bounds of its 95 % confidence interval; `None` of a single run, which says nothing about others.
    pub interval: Option<(f64, f64)>,
}

impl Estimate {
    /// Estimates the median of these runs; `None` if there are none.
    pub fn of(runs: &[f64]) -> Option<Self> {
        Self::bootstrap(runs.len(), |draw| median(draw.iter().map(|&run| runs[run])))
    }

    /// Estimates the ratio of the median of `runs` to that of `others`. Runs of one turn are drawn together, because a slow
    /// minute affects both. `None` if there are none.
    ///
    /// # Panics
    ///
    /// If they are not as many.
    pub fn of_ratio(runs: &[f64], others: &[f64]) -> Option<Self> {
        assert_eq!(runs.len(), others.len(), "runs are taken in turns");
        let of = |draw: &[usize], runs: &[f64]| median(draw.iter().map(|&run| runs[run]));
        Self::bootstrap(runs.len(), |draw| of(draw, runs) / of(draw, others))
    }

    fn bootstrap(runs: usize, statistic: impl Fn(&[usize]) -> f64) -> Option<Self> {
        let mut draw: Vec<_> = (0..runs).collect();
        if runs < 2 {
            return (runs == 1).then(|| Self { median: statistic(&draw), interval: None });
        }
        let median = statistic(&draw);
        let mut state = 0;
        let mut resampled: Vec<_> = (0..RESAMPLES)
            .map(|_| {
                draw.fill_with(|| pick(&mut state, runs));
                statistic(&draw)
            })
            .collect();
        resampled.sort_by(f64::total_cmp);
        let cut = RESAMPLES / 40;
        Some(Self { median, interval: Some((resampled[cut], resampled[RESAMPLES - 1 - cut])) })
    }
}

/// Returns the probability that the true median is between the extremes of this number of runs. No interval of theirs has a
/// higher one.
pub fn most_sure(runs: usize) -> f64 {
    1.0 - 0.5_f64.powi(runs.saturating_sub(1).min(1_000) as i32)
}

fn median(runs: impl Iterator<Item = f64>) -> f64 {
    Spread::of(&runs.collect::<Vec<_>>()).median
}

/// A number below `below`, drawn by SplitMix64 (Steele, Lea & Flood, OOPSLA 2014).
fn pick(state: &mut u64, below: usize) -> usize {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mixed = (*state ^ (*state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    ((u128::from(mixed ^ (mixed >> 31)) * below as u128) >> 64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_run_claims_no_interval() {
        assert_eq!(Estimate::of(&[7.0]), Some(Estimate { median: 7.0, interval: None }));
        assert_eq!(Estimate::of_ratio(&[6.0], &[3.0]), Some(Estimate { median: 2.0, interval: None }));
        assert_eq!((Estimate::of(&[]), Estimate::of_ratio(&[], &[])), (None, None));
    }

    /// A draw of nine from 1, 2, .. 9 has a median of at most k if five of it are at most k: with a probability of 0.1 % for
    /// 1 and of 3.0 % for 2. The 2.5th percentile is therefore 2, and by symmetry the 97.5th is 8.
    #[test]
    fn the_interval_is_that_of_the_exact_distribution() {
        let runs: Vec<f64> = (1..=9).map(f64::from).collect();
        assert_eq!(Estimate::of(&runs), Some(Estimate { median: 5.0, interval: Some((2.0, 8.0)) }));
        // The order of the runs does not matter.
        let reversed: Vec<f64> = runs.iter().rev().copied().collect();
        assert_eq!(Estimate::of(&reversed).unwrap().interval, Some((2.0, 8.0)));
    }

    /// Intervals of nine draws from a known distribution hold its median about as often as they claim.
    #[test]
    fn nineteen_of_twenty_intervals_hold_the_true_median() {
        let mut state = 1;
        let held = (0..200).filter(|_| {
            let runs: Vec<f64> = (0..9).map(|_| pick(&mut state, 1_000) as f64).collect();
            let (low, high) = Estimate::of(&runs).unwrap().interval.unwrap();
            low <= 499.5 && 499.5 <= high
        });
        let held = held.count();
        assert!((184..200).contains(&held), "{held} of 200");
    }

    /// Both are twice as slow in some turns: their ratio has the same interval.
    #[test]
    fn ratios_are_of_the_same_turns() {
        let runs = [4.0, 8.0, 4.0, 8.0, 8.0, 4.0, 4.0];
        let others = runs.map(|run| run / 2.0);
        assert_eq!(Estimate::of_ratio(&runs, &others), Some(Estimate { median: 2.0, interval: Some((2.0, 2.0)) }));
        assert_eq!(Estimate::of(&runs).unwrap().interval, Some((4.0, 8.0)));
    }

    #[test]
    fn few_runs_are_never_sure() {
        assert_eq!([1, 2, 5].map(most_sure), [0.0, 0.5, 0.9375]);
        assert!(most_sure(RUNS_MIN) > 0.95 && most_sure(RUNS_MIN - 1) < 0.95);
    }
}
