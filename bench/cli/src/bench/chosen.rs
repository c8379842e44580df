//! The benchmarks that the command line names.

use playhouse_bench::Failure;
use playhouse_bench::Steps;
use playhouse_bench::harness::benchmark::{Benchmark, Family};
use playhouse_bench::harness::runner::{self, Options};
use playhouse_bench::peers::peer;
use playhouse_bench::registry;
use playhouse_bench::scaling::pattern::{GROUP, Pattern};
use serde_json::json;

use super::{Args, peers};
use crate::output::{note, print};

/// The benchmarks to run, and the patterns of `scaling`.
pub struct Chosen {
    pub benchmarks: Vec<&'static Benchmark>,
    pub patterns: Vec<&'static Pattern>,
}

impl Chosen {
    /// Returns the benchmarks and patterns that `args` names. Without names, returns all that fit the options.
    ///
    /// # Errors
    ///
    /// Fails if a named benchmark or pattern does not fit the options.
    pub fn of(args: &Args, options: &Options) -> Result<Self, Failure> {
        let is_pattern = |name: &&String| !Pattern::find(name).is_empty();
        let (patterns, names): (Vec<_>, Vec<_>) = args.names.iter().partition(is_pattern);
        if let Some(name) = patterns.first() {
            check_patterns(name, args, options)?;
        }
        let names: Vec<&str> = names.into_iter().map(String::as_str).collect();
        let all_patterns = args.names.is_empty() && check_patterns(GROUP, args, options).is_ok();
        let patterns = if all_patterns { vec![GROUP] } else { patterns.into_iter().map(String::as_str).collect() };
        let benchmarks = match (names.is_empty() && !args.names.is_empty(), args.peers.asked()) {
            (true, _) => Vec::new(),
            (false, true) => peers::choose(&names, options)?,
            (false, false) => without_absent(benchmarks(&names, options)?, &names, args.list),
        };
        let chosen = Self { benchmarks, patterns: without_repeats(&patterns) };
        if chosen.patterns.is_empty() && args.scaling.is_asked() {
            return Err(Failure::new(format!("--work-ns is for the patterns of `{GROUP}`, and none of them runs")));
        }
        Ok(chosen)
    }

    /// Prints the list of the benchmarks and patterns, each as one JSON object.
    pub fn list_json(&self) {
        for &Benchmark { name, op, summary, source, family, .. } in &self.benchmarks {
            let family = family.name();
            print(
                &json!({ "name": name, "family": family, "op": op, "summary": summary, "source": source }).to_string(),
            );
        }
        for &Pattern { name, op, summary, .. } in &self.patterns {
            print(&json!({ "name": name, "family": GROUP, "op": op, "summary": summary }).to_string());
        }
    }

    /// Prints the list of the benchmarks and patterns.
    pub fn list(&self) {
        for family in Family::ALL {
            let mut head = Some(format!("{}:", family.name()));
            for Benchmark { name, op, summary, source, .. } in self.benchmarks.iter().filter(|b| b.family == family) {
                head.take().inspect(|head| print(head));
                print(&format!("{name} (operation: {op})\n    {summary}\n    [{source}]"));
            }
        }
        let mut head = Some(format!("{GROUP}:"));
        for Pattern { name, op, summary, .. } in &self.patterns {
            head.take().inspect(|head| print(head));
            print(&format!("{name} (operation: {op})\n    {summary}"));
        }
    }
}

/// Returns the benchmarks without those whose programs are not installed, and notes how to get these. A benchmark that `names` calls by
/// its own name stays, because its absence is an error. A benchmark that is only listed stays, too.
fn without_absent(benchmarks: Vec<&'static Benchmark>, names: &[&str], is_listed: bool) -> Vec<&'static Benchmark> {
    let stays = |benchmark: &&Benchmark| {
        let installed = peer::check_installed(benchmark);
        is_listed
            || names.contains(&benchmark.name)
            || installed.inspect_err(|absent| note(&format!("note: {}: {absent}", benchmark.name))).is_ok()
    };
    benchmarks.into_iter().filter(stays).collect()
}

/// Returns the patterns called `names`, each once, in the order of the names.
fn without_repeats(names: &[&str]) -> Vec<&'static Pattern> {
    let mut chosen: Vec<&Pattern> = Vec::new();
    for pattern in names.iter().flat_map(|name| Pattern::find(name)) {
        if !chosen.iter().any(|known| known.name == pattern.name) {
            chosen.push(pattern);
        }
    }
    chosen
}

/// Checks that the patterns of `scaling` can run with these arguments.
///
/// # Errors
///
/// Fails if an argument does not fit them. The error calls the patterns `name`.
fn check_patterns(name: &str, args: &Args, options: &Options) -> Result<(), Failure> {
    let refused = |why: &str| Err(Failure::new(format!("`{name}` {why}")));
    if args.peers.asked() {
        return refused("runs beside tokio and threads, not beside peers");
    }
    if args.sweep_stages || args.sweep_workers {
        return refused("chooses its workers itself, and has no sweeps");
    }
    if options.work != Steps::NONE {
        return refused("takes its work from --work-ns, not from --work");
    }
    Ok(())
}

/// Returns the benchmarks called `names`. Without names, returns all, except for those that need more workers or have no work per message.
/// `count` comes first, because the targets of the others are multiples of its baseline.
fn benchmarks(names: &[&str], options: &Options) -> Result<Vec<&'static Benchmark>, Failure> {
    if names.is_empty() {
        let fits = |b: &&Benchmark| runner::check_workers(b, options).and(runner::check_work(b, options)).is_ok();
        return Ok(registry::all().iter().filter(fits).collect());
    }
    let mut chosen: Vec<&Benchmark> = Vec::new();
    for name in names {
        for benchmark in registry::find_all(name)? {
            // A benchmark runs once, even if two names mean it.
            if !chosen.iter().any(|known| known.name == benchmark.name) {
                chosen.push(benchmark);
            }
        }
    }
    for benchmark in &chosen {
        runner::check_workers(benchmark, options)?;
        runner::check_work(benchmark, options)?;
    }
    chosen.sort_by_key(|benchmark| benchmark.name != "count");
    Ok(chosen)
}
