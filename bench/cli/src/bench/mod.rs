//! `playhouse bench`: the benchmarks, each beside its baseline.

mod chosen;
mod measure;
mod peers;
mod report;
mod scaling;
mod sweep;

use std::ffi::OsString;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use clap::builder::{PossibleValuesParser, TypedValueParser};
use playhouse_bench::harness::benchmark::Family;
use playhouse_bench::harness::process::PARENT;
use playhouse_bench::harness::remote_peer;
use playhouse_bench::harness::runner::{self, Options, answer_parent};
use playhouse_bench::harness::sweep::STAGES_PER_WORKER;
use playhouse_bench::harness::topology::Topology;
use playhouse_bench::peers::peer::{Folder, become_peer};
use playhouse_bench::registry;
use playhouse_bench::scaling::pattern::{GROUP, Pattern};
use playhouse_bench::{Failure, Size, Steps};

use self::chosen::Chosen;
use crate::output::{BAD_INPUT, CLEAR, FAILED, fail, print, write_error};
use crate::signals;

/// Arguments of `playhouse bench`.
#[derive(clap::Args)]
pub struct Args {
    /// The benchmarks to run (see --list), or `local`, `remote`, `savina`, `scaling` for all of a family; without names, all
    #[arg(value_name = "NAME", value_parser = names(), hide_possible_values = true)]
    names: Vec<String>,
    /// List the benchmarks instead of running them
    #[arg(long)]
    list: bool,
    /// Worker threads, from 1 to 1024 [default: 2, or 1 on a machine with one core]. The patterns of `scaling` run on 1 and N workers
    /// [default: the numbers of workers of --sweep-workers]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    workers: Option<u16>,
    /// Stages per worker, up to 65,536 over all workers; the runtime chooses without
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=65_536))]
    stages: Option<u32>,
    /// How often each benchmark and its baseline run, in turns, from 1 to 1000
    #[arg(long, value_name = "K", default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=1000))]
    runs: u16,
    /// How much they do: smoke (a moment), default, or paper (what the papers have)
    #[arg(long, default_value = "default", value_parser = sizes(), hide_possible_values = true)]
    size: Size,
    /// Steps of busy work with each message, about a nanosecond each; for the programs of `savina`
    #[arg(long, value_name = "STEPS", default_value_t = 0)]
    work: u32,
    #[command(flatten)]
    scaling: scaling::Args,
    /// Print one JSON object per benchmark, also with --list
    #[arg(long)]
    json: bool,
    /// Print the executor's counters of the last run below each row
    #[arg(long, conflicts_with = "json")]
    stats: bool,
    /// Run with 1, 2, 4, … 512 stages per worker, without the baselines
    #[arg(long, conflicts_with_all = ["stats", "stages"])]
    sweep_stages: bool,
    /// Run on 1, 2, 4, … workers, the cores of a NUMA node, all cores and all hardware threads, without the baselines
    #[arg(long, conflicts_with_all = ["stats", "workers", "sweep_stages", "report"])]
    sweep_workers: bool,
    /// Write a page with plots and all figures into this folder, new or empty; runs on ever more workers too, as --sweep-workers does
    #[arg(long, value_name = "DIR", conflicts_with_all = ["json", "sweep_stages", "list"])]
    report: Option<PathBuf>,
    #[command(flatten)]
    peers: peers::Args,
    /// Measure in this process and answer the parent
    #[arg(long, hide = true)]
    child: bool,
    /// Be the other process of a remote benchmark
    #[arg(long, hide = true)]
    partner: bool,
    /// Become the program of a peer, which ends with the process that started this one
    #[arg(long, hide = true, value_name = "PROGRAM", num_args = 1.., allow_hyphen_values = true)]
    become_peer: Vec<OsString>,
}

fn names() -> PossibleValuesParser {
    let benchmarks = registry::all().iter().map(|benchmark| benchmark.name).chain(Family::ALL.map(Family::name));
    PossibleValuesParser::new(benchmarks.chain(Pattern::all().iter().map(|pattern| pattern.name)).chain([GROUP]))
}

fn sizes() -> impl TypedValueParser<Value = Size> {
    PossibleValuesParser::new(Size::ALL.map(Size::name)).try_map(|name| name.parse::<Size>())
}

/// Runs benchmarks and prints what was measured.
pub fn run(args: &Args) -> ExitCode {
    if let Some(program) = args.become_peer.first() {
        let error = become_peer(&args.become_peer);
        return fail(FAILED, &format!("{} cannot be run: {error}", program.display()));
    }
    let options = Options {
        workers: args.workers.map_or(Options::default().workers, usize::from),
        stages_per_worker: args.stages.map(|stages| stages as usize),
        runs: usize::from(args.runs),
        size: args.size,
        work: Steps(args.work),
    };
    if args.partner {
        runner::end_with_parent();
        signals::ignore_interrupt();
        return match remote_peer::host(options.workers) {
            Ok(()) => ExitCode::SUCCESS,
            Err(failure) => fail(FAILED, &failure.to_string()),
        };
    }
    if let Some(folder) = &args.peers.peers_dir {
        Folder::set(folder.clone());
    }
    let with_peers = args.peers.asked();
    let chosen = match Chosen::of(args, &options) {
        Ok(chosen) => chosen,
        Err(failure) => return fail(BAD_INPUT, &failure.to_string()),
    };
    if args.list {
        if args.json {
            chosen.list_json()
        } else {
            chosen.list()
        }
        return ExitCode::SUCCESS;
    }
    let topology = Topology::detect();
    let workers = if args.sweep_workers || args.report.is_some() || !chosen.patterns.is_empty() {
        topology.usable().max(options.workers)
    } else {
        options.workers
    };
    let stages = if args.sweep_stages { STAGES_PER_WORKER.last().copied() } else { options.stages_per_worker };
    if let Err(failure) = check_stages(stages, workers) {
        return fail(BAD_INPUT, &failure.to_string());
    }
    remote_peer::set_program(|workers| {
        let mut command = Command::new(std::env::current_exe().unwrap_or_else(|_| "playhouse-bench".into()));
        command.args(["bench", "--partner", "--workers"]).arg(workers.to_string());
        command.env(PARENT, std::process::id().to_string());
        command
    });
    if args.child {
        runner::end_with_parent();
        // A terminal interrupts the parent and this child. The parent reports that, and its end ends this child.
        signals::ignore_interrupt();
        for benchmark in &chosen.benchmarks {
            print(&answer_parent(benchmark, &options));
        }
        return ExitCode::SUCCESS;
    }
    signals::start();
    if args.report.is_none() {
        signals::exit_when_unread();
    }
    let mut failures = Vec::new();
    let benchmarks = &chosen.benchmarks;
    if let Some(folder) = &args.report {
        return match report::run(folder, &chosen, &options, args, &mut failures) {
            Ok(()) => end(&failures),
            Err((code, failure)) => fail(code, &failure.to_string()),
        };
    }
    if with_peers {
        return match peers::compare(benchmarks, &options, args, &mut failures) {
            Ok(_) => end(&failures),
            Err(failure) => fail(BAD_INPUT, &failure.to_string()),
        };
    }
    if args.sweep_stages {
        failures = sweep::stages(benchmarks, &options, args.json);
    } else if args.sweep_workers {
        sweep::workers(benchmarks, &options, &topology.counts(), args.json, &mut failures);
    } else {
        if !benchmarks.is_empty() {
            measure::measure(benchmarks, &options, args, &mut failures);
        }
        scaling::measure(&chosen, &options, args, &mut failures);
    }
    end(&failures)
}

fn end(failures: &[String]) -> ExitCode {
    if failures.is_empty() { ExitCode::SUCCESS } else { fail(FAILED, &failures.join("\n")) }
}

/// Checks that a system may have this number of stages.
fn check_stages(per_worker: Option<usize>, workers: usize) -> Result<(), Failure> {
    const STAGES_MAX: usize = 65_536;
    match per_worker {
        Some(stages) if stages * workers > STAGES_MAX => Err(Failure::new(format!(
            "{stages} stages per worker are too many for {workers} workers: at most {} are allowed, {STAGES_MAX} over all",
            STAGES_MAX / workers
        ))),
        _ => Ok(()),
    }
}

/// Shows a line on standard error about the running benchmark until it ends. Shows it only on a terminal.
struct Progress {
    terminal: bool,
}

impl Progress {
    fn say(number: usize, of: usize, what: &str) -> Self {
        let terminal = std::io::stderr().is_terminal();
        if terminal {
            write_error(&format!("{CLEAR}[{}/{of}] {what}", number + 1));
        }
        Self { terminal }
    }

    fn clear(self) {
        if self.terminal {
            write_error(CLEAR);
        }
    }
}
