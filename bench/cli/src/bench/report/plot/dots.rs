//! A line for each benchmark: dots on a logarithmic axis and, beside them, bars from 1 for a ratio. All have their
//! intervals.

use playhouse_bench::report::bootstrap::Estimate;
use playhouse_bench::report::figure;

use super::axis::Axis;
use super::drawing::{Anchor, Drawing, Tone};
use super::glyphs;

/// One line.
#[derive(Clone, Debug)]
pub struct Line {
    /// The benchmark. It is not repeated if the line before has the same one.
    pub group: String,
    /// The runtime of this line, if a group has several lines.
    pub who: Option<String>,
    /// The dots: whether a dot is Playhouse's, and its value.
    pub dots: Vec<(bool, Estimate)>,
    /// The ratio of Playhouse to the other, or of the other to Playhouse.
    pub ratio: Option<Estimate>,
}

/// The texts of a plot.
pub struct About<'a> {
    pub title: &'a str,
    /// The quantity that the dots show.
    pub measure: &'a str,
    /// Formats a value of a dot with its unit.
    pub unit: fn(f64) -> String,
    /// The owner of the hollow dots, if there are any.
    pub others: Option<&'a str>,
    /// The quantity that the bars show.
    pub ratio: &'a str,
}

const WIDTH: f64 = 960.0;
const ROW: f64 = 22.0;
const MARGIN: f64 = 16.0;
/// The room for a value in figures.
const FIGURE: f64 = 74.0;

/// Draws the lines.
pub fn draw(about: &About, lines: &[Line]) -> Drawing {
    let mut drawing = Drawing::new(about.title, WIDTH);
    let mut top = 52.0;
    let sure = lines.iter().flat_map(|line| &line.dots).any(|dot| dot.1.interval.is_some());
    legend(&mut drawing, about, top, sure);
    top += 40.0;

    let widest =
        |text: &dyn Fn(&Line) -> &str| lines.iter().map(|line| glyphs::width(text(line), 12.0)).fold(0.0, f64::max);
    let groups = widest(&|line| &line.group);
    let names = widest(&|line| line.who.as_deref().unwrap_or_default());
    let who_at = MARGIN + groups + if names > 0.0 { 12.0 } else { 0.0 };
    let left = who_at + names + 24.0;
    let has_ratio = lines.iter().any(|line| line.ratio.is_some());
    let middle = if has_ratio { left + (WIDTH - left) * 0.6 } else { WIDTH };
    let axis = Axis::new(
        lines.iter().flat_map(|line| line.dots.iter().flat_map(|dot| bounds(&dot.1))),
        (left, middle - FIGURE - 24.0),
    );
    let ratios = Axis::new(
        lines.iter().filter_map(|line| line.ratio).flat_map(|ratio| bounds(&ratio)).chain([0.9, 1.1]),
        (middle + 14.0, WIDTH - MARGIN - FIGURE + 20.0),
    );

    let bottom = top + ROW * lines.len() as f64;
    scale(&mut drawing, &axis, about.unit, (top, bottom), about.measure, left);
    if has_ratio {
        scale(&mut drawing, &ratios, times, (top, bottom), about.ratio, middle + 14.0);
        drawing.line(&[(ratios.at(1.0), top), (ratios.at(1.0), bottom)], Tone::Muted, 1.5);
    }
    let mut group = "";
    for (number, line) in lines.iter().enumerate() {
        let y = top + ROW * (number as f64 + 0.5);
        if line.group != group {
            group = &line.group;
            drawing.text((MARGIN, y + 4.0), Anchor::Start, Tone::Text, group);
            let above = y - ROW / 2.0;
            drawing.line(&[(MARGIN, above), (WIDTH - MARGIN, above)], Tone::Grid, 1.0);
        }
        if let Some(who) = &line.who {
            let tone = if line.dots.iter().any(|dot| dot.0) { Tone::Ours } else { Tone::Text };
            drawing.text((who_at, y + 4.0), Anchor::Start, tone, who);
        }
        draw_dots(&mut drawing, about, line, &axis, y);
        if let Some((_, shown)) = line.dots.iter().find(|dot| dot.0).or(line.dots.first()) {
            let figure = (about.unit)(shown.median);
            drawing.text((middle - 16.0, y + 4.0), Anchor::End, Tone::Text, &figure);
        }
        if let Some(ratio) = &line.ratio {
            draw_ratio(&mut drawing, about, line, ratio, &ratios, y);
        }
    }
    drawing.height = bottom + 28.0;
    drawing
}

fn bounds(estimate: &Estimate) -> [f64; 3] {
    let (low, high) = estimate.interval.unwrap_or((estimate.median, estimate.median));
    [low, estimate.median, high]
}

fn times(ratio: f64) -> String {
    let digits = if ratio < 0.1 { 2 } else { usize::from(ratio < 1.0) };
    format!("{ratio:.digits$}")
}

/// Draws the legend of dots and whiskers.
fn legend(drawing: &mut Drawing, about: &About, y: f64, sure: bool) {
    let mut x = MARGIN + 6.0;
    let mut entry = |tone, hollow, text: &str| {
        drawing.dot((x, y - 4.0), 4.5, tone, hollow, "");
        drawing.text((x + 10.0, y), Anchor::Start, Tone::Text, text);
        x += 10.0 + glyphs::width(text, 12.0) + 26.0;
    };
    entry(Tone::Ours, false, "Playhouse");
    if let Some(others) = about.others {
        entry(Tone::Other, true, others);
    }
    if sure {
        drawing.line(&[(x - 6.0, y - 4.0), (x + 18.0, y - 4.0)], Tone::Text, 1.5);
        drawing.text((x + 26.0, y), Anchor::Start, Tone::Text, "95 % confidence interval of the median");
    }
}

/// Draws the ticks, above and below, and their quantity.
fn scale(
    drawing: &mut Drawing,
    axis: &Axis,
    unit: fn(f64) -> String,
    (top, bottom): (f64, f64),
    what: &str,
    left: f64,
) {
    drawing.text((left, top - 22.0), Anchor::Start, Tone::Muted, what);
    for &tick in axis.ticks() {
        let x = axis.at(tick);
        drawing.line(&[(x, top), (x, bottom)], Tone::Grid, 1.0);
        let label = unit(tick);
        drawing.text_of_size(10.5, (x, top - 6.0), Anchor::Middle, Tone::Muted, &label);
        drawing.text_of_size(10.5, (x, bottom + 15.0), Anchor::Middle, Tone::Muted, &label);
    }
}

fn draw_dots(drawing: &mut Drawing, about: &About, line: &Line, axis: &Axis, y: f64) {
    let several = line.dots.len() > 1;
    // Playhouse's dot is drawn last, because it covers the other.
    for &(ours, ref estimate) in line.dots.iter().rev() {
        let (tone, y) = match (ours, several) {
            (true, true) => (Tone::Ours, y - 3.5),
            (false, true) => (Tone::Other, y + 3.5),
            (true, false) => (Tone::Ours, y),
            (false, false) => (Tone::Other, y),
        };
        if let Some((low, high)) = estimate.interval {
            drawing.line(&[(axis.at(low), y), (axis.at(high), y)], tone, 1.5);
        }
        let who = if ours { "Playhouse" } else { line.who.as_deref().or(about.others).unwrap_or_default() };
        let tip = format!("{}, {who}: {}", line.group, with_interval(estimate, about.unit));
        drawing.dot((axis.at(estimate.median), y), 4.0, tone, !ours, &tip);
    }
}

fn draw_ratio(drawing: &mut Drawing, about: &About, line: &Line, ratio: &Estimate, axis: &Axis, y: f64) {
    let (one, at) = (axis.at(1.0), axis.at(ratio.median));
    let tone = if line.dots.iter().any(|dot| dot.0) { Tone::Ours } else { Tone::Other };
    let tip = format!("{}: {} {}", line.group, with_interval(ratio, figure), about.ratio);
    drawing.bar((one.min(at), y - 5.0), ((at - one).abs().max(1.0), 10.0), tone, &tip);
    if let Some((low, high)) = ratio.interval {
        // A stroke in the ground's colour separates the whisker from the bar.
        drawing.line(&[(axis.at(low), y), (axis.at(high), y)], Tone::Ground, 4.0);
        drawing.line(&[(axis.at(low), y), (axis.at(high), y)], Tone::Text, 1.5);
        for end in [low, high] {
            drawing.line(&[(axis.at(end), y - 3.0), (axis.at(end), y + 3.0)], Tone::Text, 1.5);
        }
    }
    drawing.text((WIDTH - MARGIN, y + 4.0), Anchor::End, Tone::Text, &figure(ratio.median));
}

/// Formats a value with its interval.
pub fn with_interval(estimate: &Estimate, unit: fn(f64) -> String) -> String {
    match estimate.interval {
        Some((low, high)) => format!("{} ({} to {})", unit(estimate.median), unit(low), unit(high)),
        None => unit(estimate.median),
    }
}
