//! Plots of how benchmarks scale: a small plot for each, all with the same axes.

use playhouse_bench::harness::topology::Count;
use playhouse_bench::harness::worker_sweep::WorkerSweep;
use playhouse_bench::report::figure;

use super::axis::Axis;
use super::dots::with_interval;
use super::drawing::{Anchor, Drawing, Tone};
use super::glyphs;

const WIDTH: f64 = 960.0;
const COLUMNS: usize = 4;
const CELL: (f64, f64) = (232.0, 186.0);
const MARGIN: f64 = 16.0;

/// Draws the plots; `counts` are the numbers of workers.
pub fn draw(scalings: &[WorkerSweep], counts: &[Count]) -> Drawing {
    let mut drawing = Drawing::new("Speed over workers", WIDTH);
    drawing.text(
        (MARGIN, 52.0),
        Anchor::Start,
        Tone::Text,
        "Times as fast as with the fewest workers (up is faster), over workers; both axes are logarithmic.",
    );
    drawing.dashed(&[(MARGIN, 68.0), (MARGIN + 24.0, 68.0)], Tone::Muted, 1.5);
    drawing.text((MARGIN + 32.0, 72.0), Anchor::Start, Tone::Text, "as many times as there are workers");
    drawing.line(&[(MARGIN + 290.0, 61.0), (MARGIN + 290.0, 75.0)], Tone::Ours, 1.5);
    drawing.dot((MARGIN + 290.0, 68.0), 3.5, Tone::Ours, false, "");
    drawing.text((MARGIN + 302.0, 72.0), Anchor::Start, Tone::Text, "median, and its 95 % confidence interval");
    let special = counts.iter().filter(|count| !count.names.is_empty());
    let special: Vec<_> =
        special.map(|count| format!("{} workers: {}", count.workers, count.names.join(", "))).collect();
    drawing.text((MARGIN, 92.0), Anchor::Start, Tone::Muted, &special.join(" · "));

    let most = counts.iter().map(|count| count.workers).max().unwrap_or(1) as f64;
    let bounds = scalings.iter().flat_map(WorkerSweep::speedups).flatten().flat_map(|speedup| {
        let (low, high) = speedup.interval.unwrap_or((speedup.median, speedup.median));
        [low, high]
    });
    let (low, high) = bounds.fold((1.0, most), |(low, high): (f64, f64), bound| (low.min(bound), high.max(bound)));
    for (number, scaling) in scalings.iter().enumerate() {
        let place = (MARGIN + CELL.0 * (number % COLUMNS) as f64, 112.0 + CELL.1 * (number / COLUMNS) as f64);
        cell(&mut drawing, scaling, place, most, (low, high));
    }
    drawing.height = 112.0 + CELL.1 * scalings.len().div_ceil(COLUMNS) as f64 + 8.0;
    drawing
}

fn cell(drawing: &mut Drawing, scaling: &WorkerSweep, (left, top): (f64, f64), most: f64, (low, high): (f64, f64)) {
    let (left, right, top, bottom) = (left + 36.0, left + CELL.0 - 20.0, top + 24.0, top + CELL.1 - 34.0);
    let across = Axis::of_twos(1.0, most, (left + 8.0, right - 8.0));
    let up = Axis::of_twos(low, high, (bottom, top));
    drawing.text_of_size(13.0, (left, top - 9.0), Anchor::Start, Tone::Text, &scaling.bench);
    for &tick in up.ticks() {
        let y = up.at(tick);
        drawing.line(&[(left, y), (right, y)], Tone::Grid, 1.0);
        // With many counts, every other tick has a label.
        if up.ticks().len() <= 6 || tick.log2() % 2.0 == 0.0 {
            drawing.text_of_size(10.5, (left - 5.0, y + 4.0), Anchor::End, Tone::Muted, &format!("{tick} ×"));
        }
    }
    let mut labelled = f64::NEG_INFINITY;
    for &workers in &scaling.workers {
        let (x, label) = (across.at(workers as f64), workers.to_string());
        let half = glyphs::width(&label, 10.5) / 2.0;
        drawing.line(&[(x, bottom), (x, bottom + 4.0)], Tone::Muted, 1.0);
        if x - half > labelled + 3.0 {
            drawing.text_of_size(10.5, (x, bottom + 16.0), Anchor::Middle, Tone::Muted, &label);
            labelled = x + half;
        }
    }
    let Some(base) = scaling.base() else {
        drawing.text((left + 8.0, top + 20.0), Anchor::Start, Tone::Muted, "no figures");
        return;
    };
    let ideal: Vec<_> = [base as f64, most].map(|workers| (across.at(workers), up.at(workers / base as f64))).into();
    drawing.dashed(&ideal, Tone::Muted, 1.5);
    let speedups = scaling.workers.iter().zip(scaling.speedups());
    let speedups: Vec<_> = speedups.filter_map(|(&workers, speedup)| Some((workers, speedup?))).collect();
    let curve = speedups.iter().map(|(workers, speedup)| (across.at(*workers as f64), up.at(speedup.median)));
    drawing.line(&curve.collect::<Vec<_>>(), Tone::Ours, 2.0);
    for (workers, speedup) in &speedups {
        let x = across.at(*workers as f64);
        if let Some((low, high)) = speedup.interval {
            drawing.line(&[(x, up.at(low)), (x, up.at(high))], Tone::Ours, 1.5);
        }
        let tip = format!("{}, {workers} workers: {} times as fast", scaling.bench, with_interval(speedup, figure));
        drawing.dot((x, up.at(speedup.median)), 3.5, Tone::Ours, false, &tip);
    }
    if let Some((_, last)) = speedups.last() {
        drawing.text_of_size(13.0, (right, top - 9.0), Anchor::End, Tone::Ours, &format!("{} ×", figure(last.median)));
    }
}
