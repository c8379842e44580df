//! The list of patterns.

use playhouse::prelude::*;
use tokio::runtime::Runtime;

use super::load::Load;
use super::patterns::{bursty, clients, gossip, independent, pipeline, scatter, skewed, tree};
use super::stopwatch::Stopwatch;
use crate::harness::outcome::Failure;

/// The name of all patterns together.
pub const GROUP: &str = "scaling";

/// A pattern of concurrent programs, with 3 implementations.
///
/// A call of an implementation runs the program once, checks its result, and returns its number of operations.
pub struct Pattern {
    /// The name used on the command line and in reports; unique.
    pub name: &'static str,
    /// The unit of the operations.
    pub op: &'static str,
    /// A description of the program, in one line.
    pub summary: &'static str,
    /// The pattern as actors, on a freshly started system.
    pub(crate) playhouse: fn(&System, &mut Stopwatch, &Load) -> Result<u64, Failure>,
    /// The pattern as tokio tasks with channels, on a fresh runtime.
    pub(crate) tokio: fn(&Runtime, &mut Stopwatch, &Load) -> Result<u64, Failure>,
    /// The pattern as hand-written threads, on this number of them.
    pub(crate) threads: fn(usize, &mut Stopwatch, &Load) -> Result<u64, Failure>,
}

/// Every pattern, in the order of the reports.
static PATTERNS: [Pattern; 9] = [
    gossip::GOSSIP_10000,
    gossip::GOSSIP_100,
    scatter::SCATTER,
    tree::TREE,
    pipeline::PIPELINE,
    clients::CLIENTS,
    independent::INDEPENDENT,
    skewed::SKEWED,
    bursty::BURSTY,
];

impl Pattern {
    /// Returns the pattern called `name`, or all patterns for the name of the group. Returns nothing for other names.
    pub fn find(name: &str) -> Vec<&'static Pattern> {
        PATTERNS.iter().filter(|pattern| name == GROUP || pattern.name == name).collect()
    }

    /// Returns all patterns.
    pub fn all() -> &'static [Pattern] {
        &PATTERNS
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::registry;

    #[test]
    fn names_are_unique_and_found() {
        let names: HashSet<_> = Pattern::all().iter().map(|pattern| pattern.name).collect();
        assert_eq!(names.len(), Pattern::all().len());
        assert_eq!(Pattern::find(GROUP).len(), Pattern::all().len());
        for pattern in Pattern::all() {
            assert_eq!(Pattern::find(pattern.name).len(), 1);
            assert!(pattern.name.starts_with("scaling-"), "{}", pattern.name);
            assert!(registry::find(pattern.name).is_err(), "{}", pattern.name);
        }
        assert!(Pattern::find("gossip").is_empty() && registry::find_all(GROUP).is_err());
    }
}
