//! Chat worlds: scenarios by their names, and the results of a run.

use std::path::Path;
use std::process::ExitCode;

use playhouse_bench::chatapp::{BUILT_IN, BuiltIn, Report, Scenario};

use crate::files;
use crate::output::{FAILED, coloured, fail, print};

/// Returns the scenario that the command line names: a built-in one, or else a file.
///
/// # Errors
///
/// Says why there is none, or what is wrong with it.
pub fn resolve(name_or_file: &str) -> Result<Scenario, String> {
    if let Some(scenario) = BuiltIn::find(name_or_file) {
        return scenario.scenario().map_err(|error| error.to_string());
    }
    let path = Path::new(name_or_file);
    if let Ok(false) = path.try_exists() {
        return Err(format!(
            "no scenario file \"{name_or_file}\", and none of that name is built in; there are: {}",
            names()
        ));
    }
    let text = files::read_text(path).map_err(|error| format!("{error}; a scenario is a TOML file"))?;
    Scenario::from_toml(name_or_file, &text).map_err(|error| error.to_string())
}

/// Returns the names of the built-in scenarios, separated by commas.
pub fn names() -> String {
    BUILT_IN.iter().map(|scenario| scenario.name).collect::<Vec<_>>().join(", ")
}

/// Prints the results of a run. Returns the code to exit with, which is a failure if the delivery check failed.
pub fn show(report: &Report, json: bool, stats: bool) -> ExitCode {
    if json {
        print(&report.to_json());
    } else {
        let table = report.to_string();
        let (numbers, verdict) = table.rsplit_once('\n').unwrap_or(("", &table));
        print(numbers);
        if stats {
            report.statistics.iter().for_each(|(name, count)| print(&format!("  {name:<22}{count:>20}")));
        }
        print(&coloured(verdict, report.check.passed));
    }
    if report.check.passed { ExitCode::SUCCESS } else { fail(FAILED, &report.check.problems.join("\n")) }
}
