//! The tables of a theater.

use std::cmp::Ordering;
use std::time::Duration;

use playhouse::{LinkState, Snapshot, StageStats};

use super::attached::Seen;

/// A cell of a table, with the key that it is sorted by.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    pub text: String,
    /// A number, or NaN in a cell that is sorted by its text.
    key: f64,
}

/// Columns with headings, and rows.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    pub headings: &'static [&'static str],
    pub rows: Vec<Vec<Cell>>,
}

/// The tables that the keys choose from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pane {
    Actors,
    Messages,
    Stages,
    Links,
}

impl Pane {
    pub const ALL: [Pane; 4] = [Pane::Actors, Pane::Messages, Pane::Stages, Pane::Links];

    pub fn name(self) -> &'static str {
        match self {
            Pane::Actors => "Actors",
            Pane::Messages => "Messages",
            Pane::Stages => "Stages",
            Pane::Links => "Links",
        }
    }

    /// The column that it is sorted by when nothing else is asked for.
    pub fn first_sort(self) -> usize {
        match self {
            Pane::Actors => 2,
            Pane::Messages => 3,
            Pane::Stages => 2,
            Pane::Links => 0,
        }
    }

    pub fn table(self, snapshot: &Snapshot, sort: usize) -> Table {
        let mut table = match self {
            Pane::Actors => actors(snapshot),
            Pane::Messages => messages(snapshot),
            Pane::Stages => stages(snapshot),
            Pane::Links => links(snapshot),
        };
        table.sort(sort);
        table
    }
}

impl Table {
    /// Numbers from the highest, texts from the first; equal ones by what stands in front.
    fn sort(&mut self, column: usize) {
        let names = |row: &[Cell]| {
            row.iter().filter(|cell| cell.key.is_nan()).map(|cell| cell.text.clone()).collect::<Vec<_>>()
        };
        self.rows.sort_by(|one, other| {
            let order = match (&one[column], &other[column]) {
                (one, other) if one.key.is_nan() => one.text.cmp(&other.text),
                (one, other) => other.key.partial_cmp(&one.key).unwrap_or(Ordering::Equal),
            };
            order.then_with(|| names(one).cmp(&names(other)))
        });
    }

    /// Leaves the rows that have the text in one of their cells, in letters of either case.
    pub fn filter(&mut self, text: &str) {
        let text = text.to_lowercase();
        self.rows.retain(|row| row.iter().any(|cell| cell.text.to_lowercase().contains(&text)));
    }

    /// Returns whether the column holds numbers, which are aligned to the right.
    pub fn is_number(&self, column: usize) -> bool {
        self.whole_rows().next().is_some_and(|row| !row[column].key.is_nan())
    }

    /// The rows without those that end early, with a remark.
    fn whole_rows(&self) -> impl Iterator<Item = &Vec<Cell>> {
        self.rows.iter().filter(|row| row.len() == self.headings.len())
    }

    /// Returns the width that each column needs.
    pub fn widths(&self) -> Vec<usize> {
        let widest = |(column, heading): (usize, &&str)| {
            let cells = self.whole_rows().map(|row| row[column].text.chars().count());
            // The first cell of a row with a remark names its subject.
            let remarked = self.rows.iter().filter(|_| column == 0).map(|row| row[0].text.chars().count());
            cells.chain(remarked).max().unwrap_or(0).max(heading.chars().count())
        };
        self.headings.iter().enumerate().map(widest).collect()
    }

    /// Returns whether the cell is a remark, which takes the room of all columns behind it.
    pub fn is_remark(&self, row: &[Cell], column: usize) -> bool {
        row.len() < self.headings.len() && column + 1 == row.len()
    }
}

fn text(text: impl Into<String>) -> Cell {
    Cell { text: text.into(), key: f64::NAN }
}

fn count(count: u64) -> Cell {
    Cell { text: thousands(count), key: count as f64 }
}

/// A number of stages, workers and the like is no amount: it is sorted from the lowest.
fn number(number: u64) -> Cell {
    Cell { text: number.to_string(), key: -(number as f64) }
}

fn rate(count: u64, window: Duration) -> Cell {
    let rate = per_second(count, window);
    Cell { text: show_rate(rate), key: rate }
}

fn share(share: f64) -> Cell {
    Cell { text: format!("{:.1}%", 100.0 * share), key: share }
}

fn time(time: Duration) -> Cell {
    Cell { text: format!("{time:.1?}"), key: time.as_secs_f64() }
}

pub fn per_second(count: u64, window: Duration) -> f64 {
    if window.is_zero() { 0.0 } else { count as f64 / window.as_secs_f64() }
}

/// With one decimal place where there is little.
pub fn show_rate(rate: f64) -> String {
    if rate > 0.0 && rate < 10.0 { format!("{rate:.1}") } else { thousands(rate.round() as u64) }
}

/// `1,234,567`.
pub fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `2d 3h`, `3h 12m`, `3m 12s`, `12s`.
pub fn long_time(time: Duration) -> String {
    let seconds = time.as_secs();
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds}s"),
        (0, 0, _) => format!("{minutes}m {}s", seconds % 60),
        (0, _, _) => format!("{hours}h {}m", minutes % 60),
        _ => format!("{days}d {}h", hours % 24),
    }
}

/// `512 B`, `1.5 KiB`, `4.0 MiB`.
fn bytes(bytes: u64) -> Cell {
    let text = match bytes {
        0..1024 => format!("{bytes} B"),
        1024..0x10_0000 => format!("{:.1} KiB", bytes as f64 / 1024.0),
        _ => format!("{:.1} MiB", bytes as f64 / 1_048_576.0),
    };
    Cell { text, key: bytes as f64 }
}

fn of_window(time: Duration, window: Duration) -> f64 {
    if window.is_zero() { 0.0 } else { time.as_secs_f64() / window.as_secs_f64() }
}

fn actors(snapshot: &Snapshot) -> Table {
    let rows = snapshot.actors.iter().map(|line| {
        vec![
            text(&line.actor),
            text(&line.name),
            share(of_window(line.busy, snapshot.window)),
            rate(line.handled, snapshot.window),
            count(line.queued),
            number(u64::from(line.stage)),
        ]
    });
    Table { headings: &["ACTOR", "NAME", "BUSY", "MSG/S", "QUEUED", "STAGE"], rows: rows.collect() }
}

fn messages(snapshot: &Snapshot) -> Table {
    let rows = snapshot.messages.iter().map(|line| {
        vec![
            text(&line.message),
            text(&line.actor),
            rate(line.handled, snapshot.window),
            share(of_window(line.busy, snapshot.window)),
            time(line.median),
            time(line.p99),
            time(line.max),
            count(line.total),
        ]
    });
    let headings = &["MESSAGE", "ACTOR", "MSG/S", "BUSY", "MEDIAN", "P99", "LONGEST", "COUNTED"];
    Table { headings, rows: rows.collect() }
}

fn stages(snapshot: &Snapshot) -> Table {
    let rows = snapshot.stages.iter().map(|line| {
        let StageStats { stage, worker, handled, queued, .. } = line;
        vec![number(u64::from(*stage)), number(*worker), rate(*handled, snapshot.window), count(*queued)]
    });
    Table { headings: &["STAGE", "WORKER", "MSG/S", "QUEUED"], rows: rows.collect() }
}

fn links(snapshot: &Snapshot) -> Table {
    let rows = snapshot.links.iter().map(|line| {
        let state = match line.state {
            LinkState::Linked => "linked",
            LinkState::Broken => "broken",
            LinkState::CallingAgain => "calling again",
            LinkState::Lost => "lost",
            _ => "?",
        };
        vec![
            // A theater that does not listen, such as this program.
            text(line.address.map_or_else(|| "(does not listen)".to_owned(), |address| address.to_string())),
            text(state),
            Cell { text: long_time(line.for_so_long), key: line.for_so_long.as_secs_f64() },
            count(line.packets),
            bytes(line.bytes),
            count(line.unanswered),
        ]
    });
    Table { headings: &["THEATER", "LINK", "FOR", "PACKETS", "UNDER WAY", "UNANSWERED"], rows: rows.collect() }
}

/// The workers of a theater, in their order.
pub fn workers(snapshot: &Snapshot) -> Table {
    let rows = snapshot.workers.iter().enumerate().map(|(worker, line)| {
        let state = match line {
            line if line.overloaded => "overloaded",
            line if line.muted > 0 => "slowed",
            line if line.parked => "asleep",
            _ => "awake",
        };
        vec![
            number(worker as u64),
            text(state),
            share(line.busy),
            rate(line.handled, snapshot.window),
            count(line.queued),
            count(line.stages),
            count(line.muted),
            rate(line.steals, snapshot.window),
            rate(line.parks, snapshot.window),
            count(line.takeovers),
        ]
    });
    let headings = &["#", "STATE", "BUSY", "MSG/S", "QUEUED", "STAGES", "MUTED", "STEALS", "PARKS", "STUCK"];
    Table { headings, rows: rows.collect() }
}

/// Messages of a second, over all workers.
pub fn messages_per_second(snapshot: &Snapshot) -> f64 {
    per_second(snapshot.workers.iter().map(|line| line.handled).sum(), snapshot.window)
}

/// A line for each theater.
pub fn theaters(seen: &[Seen]) -> Table {
    let rows = seen.iter().map(|seen| match &seen.state {
        Ok(snapshot) => {
            let busy: f64 = snapshot.workers.iter().map(|line| line.busy).sum();
            let (came, left) = snapshot.migrations;
            vec![
                text(&seen.address),
                Cell { text: show_rate(messages_per_second(snapshot)), key: 0.0 },
                share(busy / snapshot.workers.len().max(1) as f64),
                count(snapshot.workers.iter().map(|line| line.queued).sum()),
                count(snapshot.actors_alive),
                count(counter(snapshot, "dead_letters")),
                Cell { text: format!("{came}/{left}"), key: 0.0 },
                count(snapshot.links.len() as u64),
            ]
        }
        // Most reasons begin with the address, which the first column has.
        Err(why) => {
            let why = why.strip_prefix(&*seen.address).and_then(|rest| rest.strip_prefix(": ")).unwrap_or(why);
            vec![text(&seen.address), text(why)]
        }
    });
    let headings = &["THEATER", "MSG/S", "BUSY", "QUEUED", "ACTORS", "DEAD", "CAME/LEFT", "LINKS"];
    Table { headings, rows: rows.collect() }
}

/// Returns one of the executor's counters.
pub fn counter(snapshot: &Snapshot, name: &str) -> u64 {
    snapshot.counters.get(name).copied().unwrap_or(0)
}
