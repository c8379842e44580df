//! Logarithmic axes.

/// A logarithmic axis: its range in values and in pixels.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    values: (f64, f64),
    pixels: (f64, f64),
    ticks: Vec<f64>,
}

impl Axis {
    /// Returns an axis that contains all these values, and that begins and ends at a tick. The ticks are 1, 2, 5, 10, …, or the
    /// powers of ten over three decades and more.
    pub fn new(values: impl IntoIterator<Item = f64>, pixels: (f64, f64)) -> Self {
        let positive = values.into_iter().filter(|value| value.is_finite() && *value > 0.0);
        let (low, high) = positive.fold((f64::INFINITY, 0.0_f64), |(low, high), v| (low.min(v), high.max(v)));
        let (low, high) = if low <= high { (low, high) } else { (1.0, 10.0) };
        let steps: &[f64] = if (high / low).log10() > 2.5 { &[1.0] } else { &[1.0, 2.0, 5.0] };
        let decades = low.log10().floor() as i32..=high.log10().floor() as i32 + 1;
        let all: Vec<f64> =
            decades.flat_map(|decade| steps.iter().map(move |step| step * 10_f64.powi(decade))).collect();
        let first = all.iter().rposition(|&tick| tick <= low * 1.000_001).unwrap_or(0);
        let mut last = all.iter().position(|&tick| tick >= high * 0.999_999).unwrap_or(all.len() - 1);
        if last == first {
            last += 1;
        }
        let ticks = all[first..=last].to_vec();
        Self { values: (ticks[0], ticks[ticks.len() - 1]), pixels, ticks }
    }

    /// Returns an axis from `low` to `high` with powers of two as ticks.
    pub fn of_twos(low: f64, high: f64, pixels: (f64, f64)) -> Self {
        let (first, last) = (low.log2().floor() as i32, high.log2().ceil() as i32);
        let last = last.max(first + 1);
        let ticks = (first..=last).map(|power| 2_f64.powi(power)).collect();
        Self { values: (2_f64.powi(first), 2_f64.powi(last)), pixels, ticks }
    }

    /// Returns the position of a value. A value off the axis is at the nearer end.
    pub fn at(&self, value: f64) -> f64 {
        let (low, high) = self.values;
        let part = (value.clamp(low, high) / low).ln() / (high / low).ln();
        self.pixels.0 + part * (self.pixels.1 - self.pixels.0)
    }

    pub fn ticks(&self) -> &[f64] {
        &self.ticks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_axis_begins_and_ends_at_ticks_around_its_values() {
        let axis = Axis::new([3.0, 40.0], (100.0, 200.0));
        assert_eq!(axis.ticks(), [2.0, 5.0, 10.0, 20.0, 50.0]);
        assert_eq!((axis.at(2.0), axis.at(10.0).round(), axis.at(50.0)), (100.0, 150.0, 200.0));
        assert_eq!((axis.at(1.0), axis.at(99.0)), (100.0, 200.0));
        assert_eq!(Axis::new([3.0, 4_000.0], (0.0, 1.0)).ticks(), [1.0, 10.0, 100.0, 1_000.0, 10_000.0]);
        assert_eq!(Axis::new([0.5, 2.0], (0.0, 1.0)).ticks(), [0.5, 1.0, 2.0]);
    }

    #[test]
    fn a_single_value_and_none_have_an_axis_too() {
        assert_eq!(Axis::new([5.0], (0.0, 1.0)).ticks(), [5.0, 10.0]);
        assert_eq!(Axis::new([7.0, 0.0, f64::NAN], (0.0, 1.0)).ticks(), [5.0, 10.0]);
        assert_eq!(Axis::new([], (0.0, 1.0)).ticks(), [1.0, 2.0, 5.0, 10.0]);
    }

    #[test]
    fn twos() {
        let axis = Axis::of_twos(0.7, 6.0, (100.0, 0.0));
        assert_eq!(axis.ticks(), [0.5, 1.0, 2.0, 4.0, 8.0]);
        assert_eq!((axis.at(0.5), axis.at(2.0), axis.at(8.0)), (100.0, 50.0, 0.0));
        assert_eq!(Axis::of_twos(1.0, 1.0, (0.0, 1.0)).ticks(), [1.0, 2.0]);
    }
}
