//! `playhouse bench scaling`: patterns with work per message, beside tokio and threads.

use playhouse_bench::harness::runner::Options;
use playhouse_bench::harness::topology::Topology;
use playhouse_bench::scaling::measured::{self, Measured, unrest};
use playhouse_bench::scaling::row::Row;
use playhouse_bench::scaling::table::ScalingTable;
use playhouse_bench::scaling::work::Work;

use super::Progress;
use super::chosen::Chosen;
use crate::output::{note, print};

/// The arguments of `playhouse bench` for the patterns of `scaling`.
#[derive(clap::Args)]
#[group(skip)]
pub struct Args {
    /// Nanoseconds of work with each message, for the patterns of `scaling`: one or more amounts up to 1000000, separated by commas
    /// [default: 0,100,1000,10000,100000]
    #[arg(
        long = "work-ns", value_name = "NS", value_delimiter = ',',
        value_parser = clap::value_parser!(u32).range(..=i64::from(Work::MAX_NS)),
    )]
    work_ns: Vec<u32>,
}

impl Args {
    /// Returns whether the command line gives amounts of work.
    pub fn is_asked(&self) -> bool {
        !self.work_ns.is_empty()
    }

    /// Returns the amounts of work, each once, from small to large.
    fn amounts(&self) -> Vec<u32> {
        let mut amounts = if self.is_asked() { self.work_ns.clone() } else { Work::DEFAULT_NS.to_vec() };
        amounts.sort_unstable();
        amounts.dedup();
        amounts
    }
}

/// Runs each pattern with each amount of work. Prints the figures as soon as they are known, and adds failed runs to `failures`.
pub fn measure(chosen: &Chosen, options: &Options, args: &super::Args, failures: &mut Vec<String>) -> Vec<Measured> {
    let patterns = &chosen.patterns;
    if patterns.is_empty() {
        return Vec::new();
    }
    let counts = || Topology::detect().counts().into_iter().map(|count| count.workers).collect();
    let with = measured::Options {
        workers: args.workers.map_or_else(counts, |workers| measured::Options::one_and(workers.into())),
        stages_per_worker: options.stages_per_worker,
        runs: options.runs,
        size: options.size,
    };
    let table = ScalingTable::of(patterns.iter().map(|pattern| pattern.name));
    if !args.json {
        let above = if chosen.benchmarks.is_empty() { "" } else { "\n" };
        print(&format!("{above}{}", table.head()));
    }
    let mut all = Vec::new();
    for (number, pattern) in patterns.iter().enumerate() {
        let first = all.len();
        for work_ns in args.scaling.amounts() {
            let mut progress: Option<Progress> = None;
            let measured = Measured::measure(pattern, work_ns, &with, |run| {
                progress = Some(Progress::say(number, patterns.len(), run));
            });
            if let Some(progress) = progress {
                progress.clear();
            }
            for row in Row::all(&measured) {
                print(&if args.json { row.to_json() } else { table.row(&row) });
            }
            failures.extend(measured.failures.iter().cloned());
            all.push(measured);
        }
        for unrest in unrest(&all[first..]) {
            note(&format!("note: {unrest}"));
        }
    }
    if !args.json {
        print(&format!("\nmedians; runs: {}, in turns\n{}", options.runs, ScalingTable::legend()));
    }
    all
}
