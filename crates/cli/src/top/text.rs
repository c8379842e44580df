//! What is seen, as plain text: for pipes, and for tests.

use std::fmt::Write;

use playhouse::Snapshot;

use super::attached::Seen;
use super::table::{Pane, Table, counter, long_time, theaters, thousands, workers};

/// Of a table, so many rows.
const ROWS_MAX: usize = 20;

/// All that was seen, without what a terminal is needed for.
pub fn describe(seen: &[Seen]) -> String {
    let mut text = table("Theaters", &theaters(seen));
    for seen in seen {
        if let Ok(snapshot) = &seen.state {
            let _ = write!(text, "\n{}\n  ", headline(&seen.address, snapshot));
            text += &totals(snapshot);
            text += "\n\n";
            text += &table("Workers", &workers(snapshot));
            for pane in Pane::ALL {
                text.push('\n');
                text += &table(pane.name(), &pane.table(snapshot, pane.first_sort()));
            }
        }
    }
    text.trim_end().to_owned()
}

/// Which theater it is.
pub fn headline(address: &str, snapshot: &Snapshot) -> String {
    let cluster = if snapshot.cluster.is_empty() { String::new() } else { format!(", cluster {:?}", snapshot.cluster) };
    let (process, up) = (snapshot.process, long_time(snapshot.uptime));
    format!("Theater {address}{cluster}, process {process}, up {up}")
}

/// What has become of it so far, apart from what the table of theaters says.
pub fn totals(snapshot: &Snapshot) -> String {
    let mut totals = String::new();
    for name in ["dead letters", "crashes", "restarts", "steals"] {
        let _ = write!(totals, "{name} {}, ", thousands(counter(snapshot, &name.replace(' ', "_"))));
    }
    let (came, left) = snapshot.migrations;
    let _ = write!(totals, "migrations {came} in {left} out");
    totals
}

fn table(title: &str, table: &Table) -> String {
    let widths = table.widths();
    let mut text = String::new();
    let mut line = |cells: Vec<&str>| {
        let mut line = String::new();
        for (column, cell) in cells.into_iter().enumerate() {
            let width = widths[column];
            let _ = if table.is_number(column) {
                write!(line, "  {cell:>width$}")
            } else {
                write!(line, "  {cell:<width$}")
            };
        }
        let _ = writeln!(text, "{}", line.trim_end());
    };
    line(table.headings.to_vec());
    for row in table.rows.iter().take(ROWS_MAX) {
        line(row.iter().map(|cell| &*cell.text).collect());
    }
    if table.rows.is_empty() {
        text += "  nothing in the time that was looked at\n";
    }
    let more = table.rows.len().saturating_sub(ROWS_MAX);
    if more > 0 {
        let _ = writeln!(text, "  and {more} more");
    }
    format!("{title}\n{text}")
}
