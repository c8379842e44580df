//! The report of a run.

use std::collections::BTreeMap;
use std::time::Duration;

use playhouse::prelude::*;
use serde::Serialize;

use super::counts::{Delivery, Graphs, Growth, Messages, Moves, Totals};
use super::growth::Memory;
use super::scenario::Scenario;
use super::world::Outcome;
use crate::harness::memory::peak_rss_mb;
use crate::harness::random::mix64;
use crate::report::latency::Latency;

/// The result of a run. All but the times and the memory is the same for every run of the scenario.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The scenario's name.
    pub scenario: String,
    /// Its seed.
    pub seed: u32,
    /// Turns that were played to their end.
    pub turns: u32,
    /// Workers of the system.
    pub workers: usize,
    /// Stages of the system.
    pub stages: usize,
    /// All messages, from the creation of the clients to the last one's logout.
    pub messages: u64,
    /// The messages of the turns.
    pub messages_in_turns: u64,
    /// Messages of the turns, per second of the turns.
    pub messages_per_second: f64,
    /// The time from the start of a turn to its end.
    pub turn_latency: Latency,
    /// Time until the clients existed and had made friends.
    pub set_up_seconds: f64,
    /// Time of the turns.
    pub turns_seconds: f64,
    /// Time of the logout.
    pub settling_seconds: f64,
    /// Time of everything but the system's shutdown; where the world is driven from outside, also that in which it waited.
    pub wall_seconds: f64,
    /// The most memory that the process has had, in MiB, where the operating system says.
    pub peak_rss_mb: Option<f64>,
    /// The memory of the process over the run; of the leading one where there are several.
    pub memory: Memory,
    /// Actors created, by kind.
    pub actors: Actors,
    /// Moves by outcome.
    pub moves: Moves,
    /// Chats, friendships, memberships.
    pub growth: Growth,
    /// Messages by kind.
    pub messages_by_kind: Messages,
    /// The delivery of posts, in numbers.
    pub delivery: DeliveryCounts,
    /// The objects of the posts: the expected visits of members, and the actual ones.
    pub graphs: Graphs,
    /// A hash of all counts, of all deliveries, and of the final state of every client.
    pub checksum: String,
    /// The result of the check.
    pub check: Check,
    /// The counters of the executor, by name.
    pub statistics: BTreeMap<&'static str, u64>,
    #[serde(skip)]
    totals: Totals,
}

/// Actors created, by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Actors {
    /// The driver.
    pub world: u64,
    /// Directories.
    pub directories: u64,
    /// Clients.
    pub clients: u64,
    /// Chats, including closed ones.
    pub chats: u64,
}

impl Actors {
    /// Returns the number of all actors.
    pub fn total(&self) -> u64 {
        self.world + self.directories + self.clients + self.chats
    }
}

/// The numbers of the delivery check.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct DeliveryCounts {
    /// Posts.
    pub posts: u64,
    /// Posts times members: the expected deliveries.
    pub expected: u64,
    /// The posts that the clients received.
    pub received: u64,
    /// The acknowledgements that the chats received.
    pub acknowledged: u64,
}

/// Whether the check passed.
#[derive(Clone, Debug, Serialize)]
pub struct Check {
    /// Every post reached every member of its chat exactly once, and all accounts agree.
    pub passed: bool,
    /// The error otherwise, with the numbers.
    pub problems: Vec<String>,
}

impl Check {
    pub(super) fn fail(&mut self, problem: String) {
        self.passed = false;
        self.problems.push(problem);
    }
}

impl Report {
    pub(super) fn new(
        scenario: &Scenario,
        mut outcome: Outcome,
        wall: Duration,
        system: &System,
        dead_letters: u64,
    ) -> Report {
        let totals = outcome.totals;
        let turns_ns: u64 = outcome.turns_ns.iter().sum();
        let turns_seconds = turns_ns as f64 / 1e9;
        let turns = outcome.turns;
        let messages = totals.messages.total();
        let Delivery { posts, expected, received, acknowledged, .. } = totals.delivery;

        let mut check = Check { passed: true, problems: Vec::new() };
        if let Some(stalled) = outcome.stalled.take() {
            check.fail(stalled);
        }
        if let Err(problem) = totals.delivery.verdict() {
            check.fail(format!("not every post was delivered to every member exactly once: {problem}"));
        } else if outcome.account != messages {
            check.fail(format!(
                "the turns account for {} messages, and the senders counted {messages}",
                outcome.account
            ));
        }
        if let Err(problem) = totals.graphs.verdict() {
            check.fail(format!("not every member came by every object of what was posted: {problem}"));
        }
        if dead_letters > 0 {
            check.fail(format!("{dead_letters} messages went to actors that had ended"));
        }

        outcome.memory.conclude(scenario.clients);
        Report {
            scenario: scenario.name.clone(),
            seed: scenario.seed,
            turns,
            workers: system.workers(),
            stages: system.stages(),
            messages,
            messages_in_turns: outcome.messages_in_turns,
            messages_per_second: if turns_ns > 0 { outcome.messages_in_turns as f64 / turns_seconds } else { 0.0 },
            turn_latency: Latency::of(&mut outcome.turns_ns),
            set_up_seconds: outcome.set_up.as_secs_f64(),
            turns_seconds,
            settling_seconds: outcome.settling.as_secs_f64(),
            wall_seconds: wall.as_secs_f64(),
            peak_rss_mb: peak_rss_mb(),
            memory: outcome.memory,
            actors: Actors {
                world: 1,
                directories: u64::from(scenario.directories),
                clients: u64::from(scenario.clients),
                chats: totals.growth.chats_started,
            },
            moves: totals.moves,
            growth: totals.growth,
            messages_by_kind: totals.messages,
            delivery: DeliveryCounts { posts, expected, received, acknowledged },
            graphs: totals.graphs,
            checksum: format!("{:#018x}", checksum(&totals)),
            check,
            statistics: system.stats().total.pairs().into_iter().collect(),
            totals,
        }
    }

    /// Returns all figures that are the same in every run of the scenario.
    pub fn counts(&self) -> Totals {
        self.totals
    }

    /// The report as a JSON object.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("INVARIANT: a report is numbers and strings under string keys")
    }
}

/// Returns one number for all counts.
fn checksum(totals: &Totals) -> u64 {
    let Totals { messages, moves, delivery, growth, graphs, state_sum, order: _ } = totals;
    // Posts without objects keep the checksum of the versions without objects.
    let graphs = graphs.named().filter(|(_, objects)| *objects > 0);
    let counters = messages.named().chain(moves.named()).chain(delivery.named()).chain(growth.named()).chain(graphs);
    counters.fold(mix64(*state_sum), |sum, (_, count)| mix64(sum ^ count))
}
