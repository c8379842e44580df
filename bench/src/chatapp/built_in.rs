//! The scenarios that come with the program.

use super::reader::ScenarioError;
use super::scenario::Scenario;

/// A scenario that comes with the program.
#[derive(Clone, Copy, Debug)]
pub struct BuiltIn {
    /// Its name.
    pub name: &'static str,
    /// Its TOML, to run or to copy.
    pub text: &'static str,
}

macro_rules! built_in {
    ($($name:literal),* $(,)?) => {
        &[$(BuiltIn { name: $name, text: include_str!(concat!("../../../scenarios/", $name, ".toml")) }),*]
    };
}

/// The scenarios that come with the program, the default first.
pub const BUILT_IN: &[BuiltIn] = built_in![
    "default",
    "four-theaters",
    "small",
    "sequential",
    "constant",
    "master-worker",
    "divide-and-conquer",
    "many-idle",
    "growing",
    "graphs"
];

impl BuiltIn {
    /// The built-in scenario of this name.
    pub fn find(name: &str) -> Option<&'static BuiltIn> {
        BUILT_IN.iter().find(|scenario| scenario.name == name)
    }

    /// The description of the scenario: the first line of its file.
    pub fn title(&self) -> &'static str {
        self.text.lines().next().unwrap_or_default().trim_start_matches(['#', ' '])
    }

    /// Reads it.
    ///
    /// # Errors
    /// None, as the tests see to.
    pub fn scenario(&self) -> Result<Scenario, ScenarioError> {
        Scenario::from_toml(self.name, self.text)
    }
}
