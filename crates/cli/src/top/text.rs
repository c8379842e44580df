//! Everything that was seen, as plain text for pipes.

use std::fmt::Write;

use playhouse::Snapshot;

use super::attached::Seen;
use super::table::{Pane, Table, counter, long_time, theaters, thousands, workers};

/// The rows of a table, at most.
const ROWS_MAX: usize = 20;

/// Describes the theaters.
pub fn describe(seen: &[Seen]) -> String {
    let mut text = table("Theaters", &theaters(seen));
    for seen in seen {
        if let Ok(snapshot) = &seen.state {
            let _ = write!(text, "\n{}\n  ", headline(&seen.address, snapshot).join(", "));
            text += &totals(snapshot).join(", ");
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

/// Returns the parts of the line that names a theater, the most important first.
pub fn headline(address: &str, snapshot: &Snapshot) -> Vec<String> {
    let mut parts = vec![format!("Theater {address}")];
    if !snapshot.cluster.is_empty() {
        parts.push(format!("cluster {:?}", snapshot.cluster));
    }
    parts.extend([format!("process {}", snapshot.process), format!("up {}", long_time(snapshot.uptime))]);
    parts
}

/// Returns the parts of the line with the counts that the table of theaters does not have, the most important first.
pub fn totals(snapshot: &Snapshot) -> Vec<String> {
    let mut parts: Vec<_> = ["dead letters", "crashes", "restarts", "steals"]
        .map(|name| format!("{name} {}", thousands(counter(snapshot, &name.replace(' ', "_")))))
        .into();
    let (came, left) = snapshot.migrations;
    parts.push(format!("migrations {came} in {left} out"));
    parts
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
        text += "  nothing in the time of this look\n";
    }
    let more = table.rows.len().saturating_sub(ROWS_MAX);
    if more > 0 {
        let _ = writeln!(text, "  {more} more");
    }
    format!("{title}\n{text}")
}
