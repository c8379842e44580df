//! `playhouse scenario`: what is built in.

use std::path::Path;
use std::process::ExitCode;

use playhouse_bench::chatapp::{BUILT_IN, BuiltIn, Scenario};

use crate::output::{BAD_INPUT, fail, print};

/// Arguments of `playhouse scenario`.
#[derive(clap::Args)]
pub struct Args {
    /// The scenario to print as TOML; all are listed without
    name: Option<String>,
}

/// Lists the built-in scenarios, or prints one.
pub fn run(args: &Args) -> ExitCode {
    let Some(name) = &args.name else {
        let width = BUILT_IN.iter().map(|scenario| scenario.name.len()).max().unwrap_or(0);
        for scenario in BUILT_IN {
            print(&format!("{:<width$}  {}", scenario.name, scenario.title()));
        }
        return ExitCode::SUCCESS;
    };
    match BuiltIn::find(name) {
        Some(scenario) => {
            print(scenario.text.trim_end());
            ExitCode::SUCCESS
        }
        None => fail(BAD_INPUT, &format!("no built-in scenario is called \"{name}\"; there are: {}", names())),
    }
}

/// Finds what `--scenario` means: a built-in name, or else a file.
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
    Scenario::load(path).map_err(|error| error.to_string())
}

fn names() -> String {
    BUILT_IN.iter().map(|scenario| scenario.name).collect::<Vec<_>>().join(", ")
}
