//! A report as people read it.

use std::fmt::{self, Write};

use super::growth::{Memory, Slope};
use super::report::Report;
use crate::report::latency::duration;

const LABEL_CHARS: usize = 16;
const NUMBER_CHARS: usize = 16;

/// The parts of a table: a label, and its text.
struct Table<'a, 'b> {
    f: &'a mut fmt::Formatter<'b>,
}

impl Table<'_, '_> {
    fn line(&mut self, label: &str, text: &str) -> fmt::Result {
        writeln!(self.f, "{label:<LABEL_CHARS$}{text}")
    }

    fn number(&mut self, label: &str, number: u64, remark: &str) -> fmt::Result {
        let line = format!("{:>NUMBER_CHARS$}   {remark}", thousands(number));
        self.line(label, line.trim_end())
    }
}

/// An aligned table, without colours.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut t = Table { f };
        t.line("scenario", &format!("{}, seed {}", self.scenario, self.seed))?;
        t.line(
            "system",
            &format!("{}, {}", plural(self.workers as u64, "worker"), plural(self.stages as u64, "stage")),
        )?;
        writeln!(t.f)?;

        let rate = thousands(self.messages_per_second.round() as u64);
        t.number("messages", self.messages, &format!("{rate} messages/s in the turns"))?;
        for (kind, count) in self.messages_by_kind.named().filter(|(_, count)| *count > 0) {
            let share = count as f64 * 100.0 / self.messages as f64;
            t.number(&format!("  {}", kind.replace('_', " ")), count, &format!("{share:5.1} %"))?;
        }
        t.number("turns", u64::from(self.turns), "")?;
        let moves: Vec<String> =
            self.moves.named().map(|(outcome, n)| format!("{} {}", thousands(n), outcome.replace('_', " "))).collect();
        t.line("  moves", &format!("{:NUMBER_CHARS$}   {}", "", moves.join(", ")))?;
        let latency = self.turn_latency;
        let percentiles =
            [("p50", latency.p50_ns), ("p90", latency.p90_ns), ("p99", latency.p99_ns), ("max", latency.max_ns)];
        for (name, ns) in percentiles {
            t.line(&format!("  {name}"), &format!("{:>NUMBER_CHARS$}", duration(ns as f64)))?;
        }
        t.number("actors", self.actors.total(), "")?;
        t.number("  directories", self.actors.directories, "")?;
        t.number("  clients", self.actors.clients, &plural(self.growth.friendships, "friendship"))?;
        let closed = format!(
            "{} closed, {} joins, {} leaves",
            thousands(self.growth.chats_closed),
            thousands(self.growth.joins),
            thousands(self.growth.leaves)
        );
        t.number("  chats", self.actors.chats, &closed)?;

        let mut time = String::new();
        write!(time, "{:>NUMBER_CHARS$}   ", duration(self.wall_seconds * 1e9))?;
        let parts = [("set-up", self.set_up_seconds), ("turns", self.turns_seconds), ("logout", self.settling_seconds)];
        let parts: Vec<String> =
            parts.iter().map(|(name, seconds)| format!("{name} {}", duration(seconds * 1e9))).collect();
        write!(time, "{}", parts.join(", "))?;
        t.line("time", &time)?;
        let memory = self.peak_rss_mb.map_or("unknown".to_owned(), |mib| format!("{mib:.1} MiB"));
        t.line("peak memory", &format!("{memory:>NUMBER_CHARS$}"))?;
        for (label, bytes) in self.memory.stations() {
            t.line(label, &format!("{:>NUMBER_CHARS$}", mebibytes(bytes)))?;
        }
        if let Some(bytes) = self.memory.bytes_per_client {
            let bytes = format!("{} B", thousands(bytes.round() as u64));
            t.line("  per client", &format!("{bytes:>NUMBER_CHARS$}   until the first turn"))?;
        }
        if let Some(growth) = self.memory.growth {
            t.line("  per turn", &growth.to_string())?;
        }
        t.line("checksum", &self.checksum)?;

        let delivery = self.delivery;
        let verdict = match (self.check.passed, delivery.posts) {
            (false, _) => "FAILED".to_owned(),
            (true, 0) => "passed: nothing was posted".to_owned(),
            (true, posts) => {
                let walked = match self.graphs.walked {
                    0 => String::new(),
                    objects => format!(", {} walked", plural(objects, "object")),
                };
                format!(
                    "passed: {} reached every member of their chats exactly once ({}{walked})",
                    plural(posts, "post"),
                    plural(delivery.received, "delivery")
                )
            }
        };
        write!(t.f, "{:<LABEL_CHARS$}{verdict}", "delivery check")
    }
}

impl Memory {
    /// The figures of the run, with their labels.
    fn stations(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let all =
            [("  at the start", self.start_bytes), ("  set up", self.set_up_bytes), ("  at the end", self.end_bytes)];
        all.into_iter().filter_map(|(label, bytes)| Some((label, bytes?)))
    }
}

impl fmt::Display for Slope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of = |bytes: f64| {
            let sign = if bytes < -0.5 { "-" } else { "" };
            format!("{sign}{} B", thousands(bytes.abs().round() as u64))
        };
        write!(f, "{:>NUMBER_CHARS$}   ± {}", of(self.bytes_per_turn), of(self.standard_error))?;
        if self.is_noise {
            write!(f, ", which is noise")
        } else {
            write!(f, ", {:.1} B per client", self.bytes_per_turn_and_client)
        }
    }
}

fn mebibytes(bytes: u64) -> String {
    format!("{:.1} MiB", bytes as f64 / 1024.0 / 1024.0)
}

/// `1234567` as `1,234,567`.
pub fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3 + 1);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `1 post`, `1,234 posts`, `0 deliveries`.
pub fn plural(number: u64, noun: &str) -> String {
    let number_of = thousands(number);
    match noun.strip_suffix('y') {
        _ if number == 1 => format!("{number_of} {noun}"),
        Some(stem) => format!("{number_of} {stem}ies"),
        None => format!("{number_of} {noun}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped() {
        assert_eq!([0, 999, 1000, 1234567].map(thousands), ["0", "999", "1,000", "1,234,567"]);
    }

    #[test]
    fn nouns_follow_their_numbers() {
        assert_eq!(
            [plural(1, "post"), plural(0, "post"), plural(2, "delivery")],
            ["1 post", "0 posts", "2 deliveries"]
        );
    }
}
