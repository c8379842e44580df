//! `playhouse bench --peers`: other actor runtimes beside this one, in turns.

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::PossibleValuesParser;
use playhouse_bench::Benchmark;
use playhouse_bench::harness::runner::Options;
use playhouse_bench::peers::peer::{
    self, Contender, Folder, Row, WEB, check_played, plays, program_of, rows, table_head, table_row,
};
use playhouse_bench::registry;

use super::Progress;
use super::measure::{child, this_program};
use crate::output::{note, print};

/// The arguments of `playhouse bench` that are about peers.
#[derive(clap::Args)]
#[group(skip)]
pub struct Args {
    /// Run other actor runtimes beside this one, in turns: all, or those named, by commas; on the benchmarks that they play
    #[arg(
        id = "peers", long = "peers", value_name = "NAMES", value_delimiter = ',', num_args = 0..=1, default_missing_values = peer::ALL,
        value_parser = PossibleValuesParser::new(peer::ALL), conflicts_with_all = ["stats", "sweep_stages", "sweep_workers", "list", "work"],
    )]
    names: Vec<String>,
    /// The folder of the peers and of the server of `web`; without it, `bench/peers` of the checkout
    #[arg(long, value_name = "DIR")]
    pub peers_dir: Option<PathBuf>,
    /// End a run of a peer after this time, and report that it took longer
    #[arg(long, value_name = "SECONDS", default_value_t = 300, requires = "peers", value_parser = clap::value_parser!(u32).range(1..))]
    peer_limit: u32,
    /// Print a line of comma-separated values per run
    #[arg(long, requires = "peers", conflicts_with_all = ["json", "report"])]
    csv: bool,
}

impl Args {
    /// Returns whether the command line asks for peers.
    pub fn asked(&self) -> bool {
        !self.names.is_empty()
    }
}

/// Returns the benchmarks called `names`, or all that peers play.
pub fn choose(names: &[&str], options: &Options) -> Result<Vec<&'static Benchmark>, playhouse_bench::Failure> {
    let named: Vec<&str> = if names.is_empty() { peer::workloads().collect() } else { names.to_vec() };
    let mut chosen: Vec<&Benchmark> = Vec::new();
    for name in named {
        let found = registry::find_all(name)?;
        let played: Vec<_> = found.iter().filter(|benchmark| check_played(benchmark, options.size).is_ok()).collect();
        // Of a family, peers play some benchmarks. If they play none, the reason is the error.
        if let (true, Some(first)) = (played.is_empty(), found.first()) {
            check_played(first, options.size)?;
        }
        for benchmark in played {
            if !chosen.iter().any(|known| known.name == benchmark.name) {
                chosen.push(benchmark);
            }
        }
    }
    Ok(chosen)
}

/// Runs each benchmark on Playhouse and on each installed peer, in turns. Adds failed runs to `failures`.
pub fn compare(
    benchmarks: &[&Benchmark],
    options: &Options,
    args: &super::Args,
    failures: &mut Vec<String>,
) -> Result<Vec<Row>, playhouse_bench::Failure> {
    let Args { names, peer_limit, csv, .. } = &args.peers;
    let folder = Folder::find()?;
    let peers: Vec<_> = peer::ALL.into_iter().filter(|peer| names.iter().any(|name| name == peer)).collect();
    // A peer may have a program for some benchmarks, and lack the one for others.
    let mut programs: Vec<(&str, Option<PathBuf>)> = Vec::new();
    let pairs = peers.iter().flat_map(|peer| benchmarks.iter().map(|benchmark| (*peer, benchmark.name)));
    let theirs = pairs.filter(|(peer, name)| plays(peer, name)).map(|(peer, name)| program_of(peer, name));
    let ours = benchmarks.iter().map(|benchmark| benchmark.name).filter(|name| *name == WEB);
    for name in theirs.chain(ours) {
        if !programs.iter().any(|(known, _)| *known == name) {
            let program = folder.program(name).inspect_err(|absent| note(&format!("note: {absent}")));
            programs.push((name, program.ok()));
        }
    }
    let program = |peer, benchmark: &Benchmark| {
        let name = program_of(peer, benchmark.name);
        programs.iter().find(|(known, _)| *known == name).and_then(|(_, program)| program.clone())
    };
    let are_chosen = peers.len() < peer::ALL.len();
    for peer in &peers {
        let is_there =
            benchmarks.iter().any(|benchmark| plays(peer, benchmark.name) && program(peer, benchmark).is_some());
        let plays_none = !benchmarks.iter().any(|benchmark| plays(peer, benchmark.name));
        if !(is_there || plays_none && are_chosen) {
            continue;
        }
        let not: Vec<_> = benchmarks.iter().map(|benchmark| benchmark.name).filter(|name| !plays(peer, name)).collect();
        if !not.is_empty() {
            note(&format!("note: {peer} does not play {}: bench/peers/README.md says why", not.join(", ")));
        }
    }
    let limit = Duration::from_secs(u64::from(*peer_limit));
    match (args.json, csv) {
        (false, false) => print(&table_head()),
        (false, true) => print(Row::CSV),
        (true, _) => {}
    }
    let mut all = Vec::new();
    let mut versions: Vec<String> = Vec::new();
    for (number, benchmark) in benchmarks.iter().enumerate() {
        let server = (benchmark.name == WEB).then(|| program(peer::OURS, benchmark));
        if server == Some(None) {
            continue;
        }
        let playing = peers.iter().filter(|name| plays(name, benchmark.name));
        let theirs = playing.filter_map(|name| Some(Contender::peer(name, program(name, benchmark)?)));
        let mut contenders: Vec<_> = [Contender::ours()].into_iter().chain(theirs).collect();
        for _ in 0..options.runs {
            for contender in contenders.iter_mut().filter(|contender| contender.plays()) {
                let label = format!("{}: {}", benchmark.name, contender.name());
                let progress = Progress::say(number, benchmarks.len(), &label);
                let command = match contender.program().or(server.as_ref().and_then(Option::as_deref)) {
                    Some(program) => {
                        let mut command = this_program()?;
                        command.args(["bench", "--become-peer"]).arg(program);
                        command
                    }
                    None => child(benchmark, &Options { runs: 1, ..*options }, args)?,
                };
                contender.play(benchmark, options, limit, command);
                progress.clear();
            }
        }
        for row in rows(benchmark, options, limit, &mut contenders) {
            print(&match (args.json, csv) {
                (true, _) => row.to_json(),
                (false, true) => row.to_csv(),
                (false, false) => table_row(&row),
            });
            if let Some(version) = &row.version {
                let version = format!("{} {version}", row.who);
                if !versions.contains(&version) {
                    versions.push(version);
                }
            }
            all.push(row);
        }
        let failed = contenders.iter().filter_map(|contender| contender.failure().map(|text| (contender.name(), text)));
        failures.extend(failed.map(|(name, text)| format!("{}: {name}: {text}", benchmark.name)));
    }
    if !args.json && !csv {
        print(&format!("\n{}; {} workers, {} runs, in turns", versions.join(", "), options.workers, options.runs));
    }
    Ok(all)
}
