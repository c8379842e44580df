//! `playhouse scenario`: what is built in.

use std::process::ExitCode;

use playhouse_bench::chatapp::{BUILT_IN, BuiltIn};
use playhouse_console::world::names;
pub use playhouse_console::world::resolve;

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
