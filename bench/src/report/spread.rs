//! Median and extremes of runs.

/// Median and extremes of some runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// The middle one, or the mean of the middle two.
    pub median: f64,
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
}

impl Spread {
    /// Takes these runs.
    ///
    /// # Panics
    ///
    /// If there are none.
    pub fn of(runs: &[f64]) -> Self {
        assert!(!runs.is_empty(), "no run, no median");
        let mut runs = runs.to_vec();
        runs.sort_by(f64::total_cmp);
        let (low, high) = (runs[(runs.len() - 1) / 2], runs[runs.len() / 2]);
        Self { median: f64::midpoint(low, high), min: runs[0], max: runs[runs.len() - 1] }
    }
}

/// Rounds to the thousandth.
pub(crate) fn rounded(value: f64) -> f64 {
    (value * 1_000.0).round() / 1_000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle() {
        assert_eq!(Spread::of(&[3.0, 1.0, 2.0]), Spread { median: 2.0, min: 1.0, max: 3.0 });
        assert_eq!(Spread::of(&[4.0, 1.0, 2.0, 3.0]).median, 2.5);
        assert_eq!(Spread::of(&[7.0]), Spread { median: 7.0, min: 7.0, max: 7.0 });
    }
}
