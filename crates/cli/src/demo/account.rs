//! The results of a world that was played in several theaters.

use std::fmt;

use playhouse_bench::chatapp::{MigrationCounts, Report, plural, thousands};
use playhouse_bench::report::latency::duration;
use serde::Serialize;

use super::director::{Done, THEATERS};

/// The results.
#[derive(Serialize)]
pub struct Account {
    /// Theaters, each a process.
    theaters: usize,
    /// Workers of each.
    workers_per_theater: usize,
    /// Theaters that were drained, ended and started again meanwhile.
    restarts: u64,
    migrations: Migrations,
    /// Posts that reached a member before older posts of the same chat.
    out_of_order: u64,
    /// The same where the chat has moved to another theater in between, for which no order is promised.
    overtaken_in_a_move: u64,
    /// Messages that reached no actor.
    dead_letters: u64,
    problems: Vec<String>,
    #[serde(flatten)]
    report: Report,
}

/// Actors that moved from one theater to another.
#[derive(Serialize)]
struct Migrations {
    total: u64,
    sent: u64,
    /// Out of drained theaters.
    drained: u64,
    /// Actors that could not move.
    failed: u64,
}

impl Account {
    pub fn new(mut report: Report, workers: usize, trips: &MigrationCounts, done: &Done, dead_letters: u64) -> Account {
        let order = report.counts().order;
        let out_of_order = order.wrong;
        let migrations = Migrations {
            total: trips.arrived + done.drained,
            sent: trips.arrived,
            drained: done.drained,
            failed: trips.stayed,
        };
        let mut problems = std::mem::take(&mut report.check.problems);
        if out_of_order > 0 {
            problems.push(format!("{} came out of order", plural(out_of_order, "delivery")));
        }
        if dead_letters > 0 {
            problems.push(format!("{} went to actors that were not there", plural(dead_letters, "message")));
        }
        if trips.under_way > 0 {
            problems.push(format!("{} never arrived at another theater", plural(trips.under_way, "actor")));
        }
        if migrations.failed > 0 {
            let why = trips.why.as_deref().unwrap_or("see above");
            problems.push(format!("{} could not go to another theater: {why}", plural(migrations.failed, "actor")));
        }
        report.check.passed = problems.is_empty();
        report.check.problems.clone_from(&problems);
        let restarts = done.restarts;
        Account {
            theaters: THEATERS,
            workers_per_theater: workers,
            restarts,
            migrations,
            out_of_order,
            overtaken_in_a_move: order.over_a_move,
            dead_letters,
            problems,
            report,
        }
    }

    pub fn passed(&self) -> bool {
        self.problems.is_empty()
    }

    pub fn problems(&self) -> &[String] {
        &self.problems
    }

    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("an account is numbers and strings under string keys")
    }

    /// The last line.
    pub fn verdict(&self) -> String {
        let delivery = &self.report.delivery;
        let verdict = match (self.passed(), delivery.posts) {
            (false, _) => "FAILED".to_owned(),
            (true, 0) => "passed: nothing was posted".to_owned(),
            (true, posts) => {
                format!("passed: {} reached every member of their chats exactly once, in order", plural(posts, "post"))
            }
        };
        format!("{:<16}{verdict}", "delivery check")
    }
}

/// An aligned table, without the verdict.
impl fmt::Display for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let report = &self.report;
        let mut line = |label: &str, number: String, remark: String| {
            writeln!(f, "{}", format!("{label:<16}{number:>14}   {remark}").trim_end())
        };
        let number = |number: u64| thousands(number);
        line(
            "theaters",
            number(self.theaters as u64),
            format!(
                "a process each with {}; {} drained, ended and started again",
                plural(self.workers_per_theater as u64, "worker"),
                self.restarts
            ),
        )?;
        line("scenario", String::new(), format!("{}, seed {}", report.scenario, report.seed))?;
        let latency = report.turn_latency;
        let [p50, p90, p99, max] =
            [latency.p50_ns, latency.p90_ns, latency.p99_ns, latency.max_ns].map(|ns| duration(ns as f64));
        line("turns", number(report.turns.into()), format!("p50 {p50}, p90 {p90}, p99 {p99}, max {max}"))?;
        let rate = thousands(report.messages_per_second.round() as u64);
        line("messages", number(report.messages), format!("{rate} per second in the turns"))?;
        let delivery = &report.delivery;
        line("  posts", number(delivery.posts), String::new())?;
        line("  for members", number(delivery.expected), "posts times members of their chats".to_owned())?;
        line("  delivered", number(delivery.received), String::new())?;
        let overtaken = match self.overtaken_in_a_move {
            0 => String::new(),
            some => format!("besides {} around moves of the chat itself", thousands(some)),
        };
        line("  out of order", number(self.out_of_order), overtaken)?;
        line("  dead letters", number(self.dead_letters), String::new())?;
        line(
            "actors",
            number(report.actors.total()),
            format!("{}, {}", plural(report.actors.clients, "client"), plural(report.actors.chats, "chat")),
        )?;
        let Migrations { total, sent, drained, failed } = self.migrations;
        line(
            "migrations",
            number(total),
            format!(
                "{} one by one, {} out of drained theaters, {} failed",
                thousands(sent),
                thousands(drained),
                thousands(failed)
            ),
        )?;
        let time = duration(report.wall_seconds * 1e9);
        line("time", time, format!("checksum {}", report.checksum))
    }
}
