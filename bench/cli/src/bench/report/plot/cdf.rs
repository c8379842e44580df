//! The waiting times of asks: a curve for each run, with the share of asks that waited at most this long.

use playhouse_bench::report::latency::{Cdf, PER_MILLE, duration};

use super::axis::Axis;
use super::drawing::{Anchor, Drawing, Tone};
use super::glyphs;

const WIDTH: f64 = 960.0;
const LEFT: f64 = 76.0;
const RIGHT: f64 = WIDTH - 28.0;
const TOP: f64 = 96.0;
const BOTTOM: f64 = 452.0;

/// The tones of the curves, used in turn.
const TONES: [Tone; 3] = [Tone::Ours, Tone::Other, Tone::Third];

/// Returns the height of a share, from 0 at the bottom to 1 at the top. Each nine after the first takes as much room as the
/// one before. The longest ask is at the top.
fn height(per_mille: u32) -> f64 {
    const HIGHEST: f64 = 3.4;
    if per_mille >= 1_000 { 1.0 } else { -(1.0 - f64::from(per_mille) / 1_000.0).log10() / HIGHEST }
}

/// Draws the runs of each benchmark.
pub fn draw(benchmarks: &[(String, Vec<Cdf>)]) -> Drawing {
    let mut drawing = Drawing::new("How long asks waited", WIDTH);
    let mut x = 16.0;
    for (number, (name, runs)) in benchmarks.iter().enumerate() {
        let tone = TONES[number % TONES.len()];
        drawing.line(&[(x, 50.0), (x + 24.0, 50.0)], tone, 2.5);
        let label = format!("{name}, {} run{}", runs.len(), if runs.len() == 1 { "" } else { "s" });
        drawing.text((x + 30.0, 54.0), Anchor::Start, Tone::Text, &label);
        x += 30.0 + glyphs::width(&label, 12.0) + 26.0;
    }
    drawing.text((16.0, TOP - 16.0), Anchor::Start, Tone::Muted, "waited no longer");
    let all = benchmarks.iter().flat_map(|(_, runs)| runs).flat_map(|Cdf(ns)| ns);
    let axis = Axis::new(all.map(|&ns| ns as f64), (LEFT, RIGHT));
    let up = |per_mille| BOTTOM - height(per_mille) * (BOTTOM - TOP);
    for (per_mille, label) in
        [(0, "none"), (500, "50 %"), (900, "90 %"), (990, "99 %"), (999, "99.9 %"), (1_000, "all")]
    {
        drawing.line(&[(LEFT, up(per_mille)), (RIGHT, up(per_mille))], Tone::Grid, 1.0);
        drawing.text((LEFT - 8.0, up(per_mille) + 4.0), Anchor::End, Tone::Muted, label);
    }
    for &tick in axis.ticks() {
        drawing.line(&[(axis.at(tick), TOP), (axis.at(tick), BOTTOM)], Tone::Grid, 1.0);
        drawing.text((axis.at(tick), BOTTOM + 18.0), Anchor::Middle, Tone::Muted, &plain(tick));
    }
    for (number, (_, runs)) in benchmarks.iter().enumerate() {
        for Cdf(ns) in runs {
            let points = PER_MILLE.iter().zip(ns).map(|(&per_mille, &ns)| (axis.at(ns as f64), up(per_mille)));
            drawing.line(&points.collect::<Vec<_>>(), TONES[number % TONES.len()], 1.3);
        }
    }
    drawing.height = BOTTOM + 34.0;
    drawing
}

/// Formats a duration without digits that say nothing.
pub fn plain(ns: f64) -> String {
    let text = duration(ns);
    match text.split_once(' ') {
        Some((digits, unit)) if digits.contains('.') => {
            format!("{} {unit}", digits.trim_end_matches('0').trim_end_matches('.'))
        }
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_go_up_to_the_top() {
        let heights = PER_MILLE.map(height);
        assert_eq!((heights[0], heights[23]), (0.0, 1.0));
        assert!(heights.windows(2).all(|pair| pair[0] < pair[1]), "{heights:?}");
    }

    #[test]
    fn ticks_are_short() {
        assert_eq!([1.0, 20.0, 1e3, 2.5e3, 1e9, 1e10].map(plain), ["1 ns", "20 ns", "1 µs", "2.5 µs", "1 s", "10 s"]);
    }
}
