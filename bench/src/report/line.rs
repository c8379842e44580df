//! Lines through points.

/// A line through some points.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Line {
    pub(crate) intercept: f64,
    pub(crate) slope: f64,
    /// The coefficient of correlation; NaN where all points are equally high.
    pub(crate) r: f64,
}

impl Line {
    /// Returns the least squares through these points. `None` for fewer than three, which any line fits, and for points with
    /// equal x.
    pub(crate) fn through(points: &[(f64, f64)]) -> Option<Self> {
        if points.len() < 3 {
            return None;
        }
        let count = points.len() as f64;
        let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / count;
        let (mean_x, mean_y) = (mean(|point| point.0), mean(|point| point.1));
        let [mut xx, mut xy, mut yy] = [0.0; 3];
        for (x, y) in points {
            let (x, y) = (x - mean_x, y - mean_y);
            xx += x * x;
            xy += x * y;
            yy += y * y;
        }
        let slope = xy / xx;
        (xx > 0.0).then(|| Self { intercept: mean_y - slope * mean_x, slope, r: xy / (xx * yy).sqrt() })
    }
}
