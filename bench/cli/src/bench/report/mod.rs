//! `playhouse bench --report`: a folder with a page, plots, and all figures.

mod csv;
mod folder;
mod origin;
mod page;
mod patterns;
mod plot;
mod plots;

use std::path::Path;
use std::time::SystemTime;

use playhouse_bench::Failure;
use playhouse_bench::harness::benchmark::Family;
use playhouse_bench::harness::machine::Machine;
use playhouse_bench::harness::runner::{Measured, Options};
use playhouse_bench::harness::worker_sweep::WorkerSweep;
use playhouse_bench::peers::peer::Row;
use playhouse_bench::scaling;

use self::folder::Folder;
use self::plots::Plot;
use super::chosen::Chosen;
use super::{Args, measure, peers, sweep};
use crate::output::{BAD_INPUT, note, print};

/// The contents of a report.
struct Report<'a> {
    options: &'a Options,
    machine: Machine,
    /// The time at which the measurements began.
    began: SystemTime,
    /// Benchmarks beside their baselines. Empty if the report compares peers.
    measured: Vec<Measured>,
    /// Benchmarks beside peers. Empty if the report compares baselines.
    rows: Vec<Row>,
    sweeps: Vec<WorkerSweep>,
    /// The runs of the patterns of `scaling`.
    patterns: Vec<scaling::measured::Measured>,
    failures: Vec<String>,
}

/// Runs the benchmarks, beside their baselines or beside peers, and on more and more workers. Runs the patterns of `scaling`. Writes a
/// report of all runs into `folder`, and adds failed runs to `failures`.
///
/// # Errors
///
/// The exit code, and the reason: `folder` cannot take a report, or the peers are not found. No benchmark has run then.
pub fn run(
    folder: &Path,
    chosen: &Chosen,
    options: &Options,
    args: &Args,
    failures: &mut Vec<String>,
) -> Result<(), (u8, Failure)> {
    let folder = Folder::check(folder)?;
    let (machine, began) = (Machine::look(), SystemTime::now());
    let benchmarks = &chosen.benchmarks;
    let (measured, rows) = if benchmarks.is_empty() {
        (Vec::new(), Vec::new())
    } else if args.peers.asked() {
        (Vec::new(), peers::compare(benchmarks, options, args, failures).map_err(|failure| (BAD_INPUT, failure))?)
    } else {
        (measure::measure(benchmarks, options, args, failures), Vec::new())
    };
    if let Some(unrest) = machine.unrest() {
        note(&format!("note: {unrest}"));
    }
    let local: Vec<_> = benchmarks.iter().copied().filter(|benchmark| benchmark.family != Family::Remote).collect();
    let sweeps = if local.is_empty() {
        Vec::new()
    } else {
        print("");
        sweep::workers(&local, options, &machine.topology.counts(), false, failures)
    };
    let patterns = super::scaling::measure(chosen, options, args, failures);
    let no_patterns = patterns.iter().all(|of| of.contenders.iter().all(|contender| contender.runs.is_empty()));
    if measured.is_empty() && rows.iter().all(|row| row.ns_per_op.is_none()) && no_patterns {
        failures.push("there are no figures: no report was written".to_owned());
        return Ok(());
    }
    let report = Report { options, machine, began, measured, rows, sweeps, patterns, failures: failures.clone() };
    match report.files().and_then(|files| folder.write(&files)) {
        Ok(()) => print(&format!("\nthe report: {}", folder.path().join("index.html").display())),
        Err(failure) => failures.push(failure.to_string()),
    }
    Ok(())
}

impl Report<'_> {
    /// Returns the files, each with its name; the page last.
    fn files(&self) -> Result<Vec<(String, Vec<u8>)>, Failure> {
        let mut files = Vec::new();
        let mut text = |name: &str, text: String| files.push((name.to_owned(), text.into_bytes()));
        if !self.rows.is_empty() {
            text("raw.csv", csv::peers(&self.rows));
        } else if !self.measured.is_empty() {
            text("raw.csv", csv::runs(&self.measured, self.options));
        }
        if !self.sweeps.is_empty() {
            text("scaling.csv", csv::sweeps(&self.sweeps, self.options));
        }
        if !self.patterns.is_empty() {
            text(patterns::CSV, csv::patterns(&self.patterns, self.options));
        }
        let plots = plots::of(self);
        if plots.iter().any(|plot| plot.name == plots::LATENCY) {
            text("latency.csv", csv::latency(&self.measured));
        }
        for Plot { name, drawing, .. } in &plots {
            let png = plot::png::file(drawing)
                .map_err(|error| Failure::new(format!("{name}.png cannot be drawn: {error}")))?;
            files.push((format!("{name}.svg"), plot::svg::file(drawing).into_bytes()));
            files.push((format!("{name}.png"), png));
        }
        files.push(("index.html".to_owned(), page::of(self, &plots).into_bytes()));
        Ok(files)
    }
}
