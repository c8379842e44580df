//! The patterns of `scaling` in a report: a table and a plot.

use playhouse_bench::report::figure;
use playhouse_bench::scaling::implementation::Implementation;
use playhouse_bench::scaling::measured::{Measured, work_text};
use playhouse_bench::scaling::row::Row;
use playhouse_bench::scaling::table::ScalingTable;

use super::page::{self, heads, or_dash};
use super::plot::dots::{self, About, Line};
use super::plot::svg::escaped;
use super::plots::{Plot, plain_figure};

/// The file with the figures of all runs.
pub const CSV: &str = "scaling-patterns.csv";

/// Returns the table of all figures, with an explanation of its columns. Returns no text without patterns.
pub fn table(measured: &[Measured]) -> String {
    if measured.is_empty() {
        return String::new();
    }
    let count = |count: f64| format!("{count:.0}");
    let row = |row: Row| {
        vec![
            row.bench,
            work_text(row.work_ns),
            row.workers.to_string(),
            or_dash(row.ns_per_op, plain_figure),
            or_dash(row.speedup, figure),
            or_dash(row.parked, |parked| format!("{:.0} %", 100.0 * parked)),
            or_dash(row.mutes, count),
            or_dash(row.wake_ups, count),
            or_dash(row.steals, count),
            or_dash(row.tokio_ns_per_op, plain_figure),
            or_dash(row.tokio_speedup, figure),
            or_dash(row.tokio_ratio, figure),
            or_dash(row.threads_ns_per_op, plain_figure),
            or_dash(row.threads_speedup, figure),
            or_dash(row.others_cpu, |share| format!("{:.0} %", 100.0 * share)),
            row.reached.to_owned(),
        ]
    };
    let heads = heads(&[
        "pattern", "work", "workers", "median", "speed-up", "parked", "mutes", "wake-ups", "steals", "tokio",
        "speed-up", "× tokio", "threads", "speed-up", "others", "reached",
    ]);
    let rows: Vec<_> = measured.iter().flat_map(Row::all).map(row).collect();
    let legend = escaped(ScalingTable::legend());
    page::table("patterns", "Patterns with work per message", 1, &heads, &rows)
        + &format!("<p>{legend} others: the share of the CPU time that other programs took.</p>\n")
}

/// Returns the plot of the speed-ups on the largest number of workers, or `None` without figures.
pub fn plot(measured: &[Measured]) -> Option<Plot> {
    let line = |measured: &Measured| {
        let workers = measured.workers().into_iter().max()?;
        let dots = [(true, Implementation::Playhouse), (false, Implementation::Tokio)];
        let dots = dots.into_iter().filter_map(|(ours, of)| Some((ours, measured.speedup(of, workers)?)));
        Some(Line {
            group: format!("{}, {}", measured.pattern.name, work_text(measured.work_ns)),
            who: None,
            dots: dots.collect(),
            ratio: measured.tokio_ratio(workers),
        })
    };
    let lines: Vec<_> = measured.iter().filter_map(line).filter(|line| !line.dots.is_empty()).collect();
    let about = About {
        title: "Patterns with work per message, on the largest number of workers",
        measure: "times as fast as on one worker (logarithmic; right is faster)",
        unit: times,
        others: Some("tokio tasks"),
        ratio: "times tokio's time (left is faster)",
    };
    (!lines.is_empty()).then(|| Plot {
        name: "scaling-patterns",
        drawing: dots::draw(&about, &lines),
        caption: "The speed-up of each pattern with each amount of work per message, and its time per operation divided by that of the \
            same program as tokio tasks with channels. All programs run in turns.",
    })
}

fn times(speedup: f64) -> String {
    format!("{} ×", figure(speedup))
}
