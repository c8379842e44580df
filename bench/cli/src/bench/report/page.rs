//! The page of a report: one file that needs no other, no network and no script.

use std::fmt::Write;

use playhouse_bench::harness::runner::Measured;
use playhouse_bench::peers::peer::Row;
use playhouse_bench::registry;
use playhouse_bench::report::bootstrap::{Estimate, RESAMPLES, RUNS_MIN, most_sure};
use playhouse_bench::report::figure;
use playhouse_bench::scaling::measured::unrest;

use super::origin;
use super::plot::svg::{self, escaped};
use super::plots::{Plot, mebibytes, plain_figure, ratio, times};
use super::{Report, origin::utc, patterns};

/// The profile of published figures, which optimises the program as a whole.
const PUBLISHED: &str = "published";
const STYLE: &str = include_str!("page.css");

/// Returns the page.
pub fn of(report: &Report, plots: &[Plot]) -> String {
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n<title>Playhouse: benchmarks of {}</title>\n\
         <style>\n{}{STYLE}</style>\n</head>\n<body>\n",
        utc(report.began),
        svg::style()
    );
    head(&mut page, report);
    notices(&mut page, report);
    for Plot { name, drawing, caption } in plots {
        // Writing to a string never fails. The same holds for each `write!` of this file.
        let _ = write!(
            page,
            "<h2 id=\"{name}\">{}</h2>\n<p>{}</p>\n<div class=\"plot\">\n{}</div>\n\
             <p class=\"files\"><a href=\"{name}.svg\">{name}.svg</a> <a href=\"{name}.png\">{name}.png</a></p>\n",
            escaped(&drawing.title),
            escaped(caption),
            svg::inline(drawing)
        );
    }
    if !report.rows.is_empty() || !report.measured.is_empty() {
        page += if report.rows.is_empty() { beside_baselines(&report.measured) } else { beside_peers(&report.rows) }
            .as_str();
        page += &over_workers(report);
    }
    page += &patterns::table(&report.patterns);
    page += &origins(report);
    page + "</body>\n</html>\n"
}

fn head(page: &mut String, report: &Report) {
    let options = report.options;
    let plural = |count: usize, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
    let mut names: Vec<&str> = report.measured.iter().map(|measured| &*measured.report.bench).collect();
    names.extend(report.rows.iter().map(|row| &*row.bench));
    names.extend(report.patterns.iter().map(|measured| measured.pattern.name));
    names.dedup();
    let _ = write!(
        page,
        "<h1>Playhouse: benchmarks</h1>\n<p>{} UTC. {}, {} of each, {}, size {}. On {}, {}.</p>\n",
        utc(report.began),
        plural(names.len(), "benchmark"),
        plural(options.runs, "run"),
        plural(options.workers, "worker"),
        options.size.name(),
        escaped(report.machine.cpu.as_deref().unwrap_or("an unknown processor")),
        report.machine.topology.describe(),
    );
}

/// Writes the notices about circumstances that make the figures less certain.
fn notices(page: &mut String, report: &Report) {
    let mut notices: Vec<String> = report.failures.iter().map(|failure| format!("Failed: {failure}")).collect();
    notices.extend(report.machine.unrest().map(|unrest| format!("Not quiet: {unrest}.")));
    if origin::OPT_LEVEL == "0" {
        notices
            .push("The program was built without optimisation: the figures are not those of its releases.".to_owned());
    } else if origin::PROFILE != PUBLISHED {
        notices.push(format!(
            "The program was built with the profile \"{}\": published figures are measured with the profile \"{PUBLISHED}\".",
            origin::PROFILE
        ));
    }
    let runs = report.options.runs;
    if runs == 1 {
        notices.push("One run of each: there are no confidence intervals.".to_owned());
    } else if runs < RUNS_MIN {
        let most = 100.0 * most_sure(runs);
        notices.push(format!(
            "With {runs} runs, even the fastest and the slowest enclose the true median with {most:.1} % only: the intervals are too narrow. \
             --runs {RUNS_MIN} or more bear 95 %."
        ));
    }
    notices
        .extend(report.measured.iter().filter_map(|measured| Some(format!("Spread: {}.", measured.report.unrest()?))));
    notices.extend(unrest(&report.patterns).into_iter().map(|unrest| format!("Not quiet: {unrest}.")));
    if !notices.is_empty() {
        let items: String = notices.iter().map(|notice| format!("<li>{}</li>\n", escaped(notice))).collect();
        let _ = write!(page, "<ul class=\"notices\">\n{items}</ul>\n");
    }
}

/// Writes a table below a heading. The first `words` columns are text.
pub fn table(name: &str, heading: &str, words: usize, heads: &[String], rows: &[Vec<String>]) -> String {
    let cells = |tag: &str, cells: &[String]| {
        let cell = |(at, cell): (usize, &String)| {
            let class = if at < words { "" } else { " class=\"number\"" };
            format!("<{tag}{class}>{}</{tag}>", escaped(cell))
        };
        cells.iter().enumerate().map(cell).collect::<String>()
    };
    let body: String = rows.iter().map(|row| format!("<tr>{}</tr>\n", cells("td", row))).collect();
    format!(
        "<h2 id=\"{name}\">{heading}</h2>\n<div class=\"table\"><table>\n<thead><tr>{}</tr></thead>\n<tbody>\n{body}</tbody>\n\
         </table></div>\n",
        cells("th", heads)
    )
}

fn interval(estimate: Option<Estimate>, unit: fn(f64) -> String) -> String {
    let interval = estimate.and_then(|estimate| estimate.interval);
    interval.map_or_else(|| "–".to_owned(), |(low, high)| format!("{} – {}", unit(low), unit(high)))
}

pub fn or_dash<T>(value: Option<T>, text: impl Fn(T) -> String) -> String {
    value.map_or_else(|| "–".to_owned(), text)
}

pub fn heads(heads: &[&str]) -> Vec<String> {
    heads.iter().map(|&head| head.to_owned()).collect()
}

fn beside_baselines(measured: &[Measured]) -> String {
    let row = |Measured { report, runs, .. }: &Measured| {
        let (ours, baseline) = times(runs);
        let ratio = ratio(runs);
        let target = report.target.map(|target| {
            let bounds = [target.ratio.map(|most| format!("{} ×", figure(most))), target.ns_per_op.map(plain_figure)];
            bounds.into_iter().flatten().collect::<Vec<_>>().join(", ")
        });
        vec![
            report.bench.clone(),
            report.op.clone(),
            plain_figure(report.ns_per_op),
            interval(Estimate::of(&ours), plain_figure),
            or_dash(report.baseline_ns_per_op, plain_figure),
            interval(Estimate::of(&baseline), plain_figure),
            or_dash(ratio, |ratio| figure(ratio.median)),
            interval(ratio, figure),
            or_dash(target, |target| target),
            or_dash(report.reached.clone(), |reached| reached),
            or_dash(report.peak_rss_mb, mebibytes),
        ]
    };
    let heads = heads(&[
        "benchmark",
        "operation",
        "median",
        "95 %",
        "baseline",
        "95 %",
        "× baseline",
        "95 %",
        "target",
        "reached",
        "peak memory",
    ]);
    let sources: String = measured
        .iter()
        .filter_map(|measured| registry::find(&measured.report.bench).ok())
        .map(|known| {
            let summary = escaped(known.summary);
            format!(
                "<dt>{}</dt><dd>{summary} <span class=\"source\">[{}]</span></dd>\n",
                known.name,
                escaped(known.source)
            )
        })
        .collect();
    let rows: Vec<_> = measured.iter().map(row).collect();
    table("figures", "Figures", 2, &heads, &rows)
        + &format!("<details><summary>What the benchmarks do</summary>\n<dl>\n{sources}</dl>\n</details>\n")
}

fn beside_peers(rows: &[Row]) -> String {
    let row = |row: &Row| {
        let times: Vec<_> = row.runs.iter().map(|run| run.0).collect();
        vec![
            row.bench.clone(),
            row.op.clone(),
            row.who.clone(),
            row.version.clone().unwrap_or_default(),
            or_dash(row.ns_per_op, plain_figure),
            interval(Estimate::of(&times), plain_figure),
            or_dash(row.ratio, figure),
            or_dash(row.peak_rss_mb, mebibytes),
            row.remark.clone().unwrap_or_default(),
        ]
    };
    let heads =
        heads(&["benchmark", "operation", "who", "version", "median", "95 %", "× Playhouse", "peak memory", "remark"]);
    table("figures", "Figures", 4, &heads, &rows.iter().map(row).collect::<Vec<_>>())
}

fn over_workers(report: &Report) -> String {
    let Some(first) = report.sweeps.first() else {
        return "<p>None of these benchmarks is of one process, so none was run on other numbers of workers.</p>\n"
            .to_owned();
    };
    let workers =
        first.workers.iter().map(|workers| format!("{workers} worker{}", if *workers == 1 { "" } else { "s" }));
    let heads: Vec<_> = ["benchmark".to_owned()].into_iter().chain(workers).collect();
    let rows = report.sweeps.iter().map(|sweep| {
        let times = sweep.ns_per_op.iter().map(|&ns| or_dash(ns, plain_figure));
        [sweep.bench.clone()].into_iter().chain(times).collect()
    });
    table("workers", "Time per operation over workers", 1, &heads, &rows.collect::<Vec<_>>())
}

fn origins(report: &Report) -> String {
    let machine = &report.machine;
    let unknown = || "unknown".to_owned();
    let kind = if machine.virtual_machine { ", in a virtual machine" } else { "" };
    let build = format!("{}, profile {}, optimisation level {}", origin::TARGET, origin::PROFILE, origin::OPT_LEVEL);
    let mut facts = vec![
        ("Command", origin::command()),
        ("Playhouse", format!("{}, revision {}", env!("CARGO_PKG_VERSION"), origin::REVISION)),
        ("Compiler", format!("{}, for {build}", origin::RUSTC)),
        ("Processor", format!("{}{kind}", machine.cpu.clone().unwrap_or_else(unknown))),
        ("Cores", machine.topology.describe()),
        ("Clock governor", machine.governor.clone().unwrap_or_else(unknown)),
        ("Memory", machine.memory_gib.map_or_else(unknown, |gib| format!("{gib:.1} GiB"))),
        ("System", machine.system.clone()),
        ("Load before", machine.load.map_or_else(unknown, |load| format!("{load:.2} (average of a minute)"))),
    ];
    if !origin::RUSTFLAGS.is_empty() {
        facts.insert(3, ("Compiler's flags", origin::RUSTFLAGS.to_owned()));
    }
    let mut peers: Vec<_> =
        report.rows.iter().filter_map(|row| Some(format!("{} {}", row.who, row.version.as_deref()?))).collect();
    peers.sort();
    peers.dedup();
    if !peers.is_empty() {
        facts.push(("Versions", peers.join(", ")));
    }
    let facts: String =
        facts.iter().map(|(name, value)| format!("<dt>{name}</dt><dd>{}</dd>\n", escaped(value))).collect();
    let mut files = Vec::new();
    if !report.rows.is_empty() || !report.measured.is_empty() {
        files.push("<a href=\"raw.csv\">raw.csv</a>");
    }
    if !report.sweeps.is_empty() {
        files.push("<a href=\"scaling.csv\">scaling.csv</a>");
    }
    if report.measured.iter().any(|measured| measured.runs.iter().any(|run| run.cdf.is_some())) {
        files.push("<a href=\"latency.csv\">latency.csv</a>");
    }
    if !report.patterns.is_empty() {
        files.push("<a href=\"scaling-patterns.csv\">scaling-patterns.csv</a>");
    }
    format!(
        "<h2 id=\"how\">How it was measured</h2>\n\
         <p>Times are taken inside the program, from the start of a workload to its last result: starting a system and ending it do not \
         count. The figures of all runs are in {}.</p>\n\
         <p>The 95 % confidence intervals are of the median, by percentile bootstrapping: the runs are drawn again {RESAMPLES} times, with \
         replacement; those of ratios draw the turns, in which both ran.</p>\n\
         <dl class=\"facts\">\n{facts}</dl>\n",
        files.join(", ")
    )
}
