//! `playhouse scenario`: the built-in scenarios.

use std::process::ExitCode;

use playhouse_bench::chatapp::{BUILT_IN, BuiltIn};
use playhouse_console::world::names;
pub use playhouse_console::world::resolve;

use playhouse_console::output::{BAD_INPUT, fail, print};
use serde_json::json;

/// Arguments of `playhouse scenario`.
#[derive(clap::Args)]
pub struct Args {
    /// The scenario to print as TOML; all are listed without
    name: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Lists the built-in scenarios, or prints one.
pub fn run(args: &Args) -> ExitCode {
    let described = |scenario: &BuiltIn| json!({ "name": scenario.name, "title": scenario.title() });
    let Some(name) = &args.name else {
        if args.json {
            print(&json!(BUILT_IN.iter().map(described).collect::<Vec<_>>()).to_string());
            return ExitCode::SUCCESS;
        }
        let width = BUILT_IN.iter().map(|scenario| scenario.name.len()).max().unwrap_or(0);
        for scenario in BUILT_IN {
            print(&format!("{:<width$}  {}", scenario.name, scenario.title()));
        }
        return ExitCode::SUCCESS;
    };
    match BuiltIn::find(name) {
        Some(scenario) if args.json => {
            let mut described = described(scenario);
            described["toml"] = scenario.text.into();
            print(&described.to_string());
            ExitCode::SUCCESS
        }
        Some(scenario) => {
            print(scenario.text.trim_end());
            ExitCode::SUCCESS
        }
        None => fail(BAD_INPUT, &format!("no built-in scenario is called \"{name}\"; there are: {}", names())),
    }
}
