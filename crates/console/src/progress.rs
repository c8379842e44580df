//! The progress bar, and the status line.

use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use playhouse_bench::chatapp::{Census, MigrationCounts, Progress, thousands};

use crate::output::{note, set_status};

/// The progress of a world: an actor writes it after each turn, and the main thread reads it. All accesses are `Relaxed`, because each value stands for
/// itself.
#[derive(Default)]
pub struct Shared {
    turn: AtomicU32,
    messages: AtomicU64,
    messages_in_turns: AtomicU64,
    in_turns_ns: AtomicU64,
    clients: AtomicU64,
}

impl Shared {
    /// Takes a report; a few stores, because it is called in the time that is measured.
    pub fn take(&self, progress: &Progress) {
        self.turn.store(progress.turn, Relaxed);
        self.messages.store(progress.messages, Relaxed);
        self.messages_in_turns.store(progress.messages_in_turns, Relaxed);
        self.in_turns_ns.store(progress.in_turns.as_nanos() as u64, Relaxed);
    }

    /// Takes a turn that has ended.
    pub fn take_turn(&self, turn: u32) {
        self.turn.store(turn, Relaxed);
    }

    /// Sets the number of clients, which never changes.
    pub fn set_clients(&self, clients: u64) {
        self.clients.store(clients, Relaxed);
    }

    /// Returns the number of clients.
    pub fn clients(&self) -> u64 {
        self.clients.load(Relaxed)
    }

    /// Turns that have ended, and messages so far.
    pub fn reached(&self) -> (u32, u64) {
        (self.turn.load(Relaxed), self.messages.load(Relaxed))
    }
}

/// A progress bar on standard error; hidden where that is no terminal.
pub struct Bar {
    bar: ProgressBar,
    shared: Arc<Shared>,
}

impl Bar {
    /// Shows the bar of `turns` turns, or nothing if it should be quiet.
    pub fn new(turns: u32, quiet: bool, shared: Arc<Shared>) -> Bar {
        let target = if quiet { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
        let bar = ProgressBar::with_draw_target(Some(u64::from(turns)), target);
        let template = "{bar:32} turn {pos}/{len}  {msg}";
        bar.set_style(ProgressStyle::with_template(template).expect("INVARIANT: the template is well-formed"));
        bar.set_message("setting up");
        set_status(&bar);
        Bar { bar, shared }
    }

    /// Says what is going on.
    pub fn say(&self, what: &'static str) {
        self.bar.set_message(what);
    }

    /// Draws what has been reached.
    pub fn update(&self) {
        let ns = self.shared.in_turns_ns.load(Relaxed);
        if ns > 0 {
            let rate = self.shared.messages_in_turns.load(Relaxed) as f64 * 1e3 / ns as f64;
            self.bar.set_message(format!("{rate:.1} M messages/s"));
        }
        self.bar.set_position(u64::from(self.shared.turn.load(Relaxed)));
        self.bar.tick();
    }

    /// Wipes the bar away.
    pub fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

/// A line on standard error that is drawn again and again; hidden where that is no terminal. Messages appear above it.
pub struct StatusLine {
    bar: ProgressBar,
    /// Columns that the bar in front of the text takes.
    bar_width: usize,
}

impl StatusLine {
    /// Shows an empty line, behind a bar where there are `steps` to come; or nothing if it should be hidden.
    pub fn new(steps: Option<u64>, hidden: bool) -> StatusLine {
        let target = if hidden { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
        let bar = ProgressBar::with_draw_target(steps, target);
        let (template, bar_width) = if steps.is_some() { ("{bar:10} {wide_msg}", 11) } else { ("{wide_msg}", 0) };
        bar.set_style(ProgressStyle::with_template(template).expect("INVARIANT: the template is well-formed"));
        set_status(&bar);
        StatusLine { bar, bar_width }
    }

    /// Shows as many of the parts as fit into the width of the terminal, the first ones.
    pub fn show(&self, parts: &[String]) {
        self.bar.set_message(fit(parts, " | ", width().saturating_sub(self.bar_width)));
        self.bar.tick();
    }

    /// Moves the bar to this step.
    pub fn set_step(&self, step: u64) {
        self.bar.set_position(step);
    }

    /// Wipes the line away.
    pub fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

/// Returns the width of the terminal at standard error, in columns.
fn width() -> usize {
    /// The width where the terminal does not tell it.
    const DEFAULT: usize = 80;
    #[cfg(unix)]
    if let Ok(size) = rustix::termios::tcgetwinsize(rustix::stdio::stderr())
        && size.ws_col > 0
    {
        return size.ws_col.into();
    }
    DEFAULT
}

/// Joins the parts as far as they fit into `width` columns. The first part is cut where it alone is too wide.
#[must_use]
pub fn fit(parts: &[String], separator: &str, width: usize) -> String {
    let mut line = String::new();
    for part in parts {
        let separator = if line.is_empty() { "" } else { separator };
        let columns = line.chars().count() + separator.chars().count() + part.chars().count();
        if columns > width {
            if line.is_empty() {
                line = part.chars().take(width.saturating_sub(1)).chain(['\u{2026}']).take(width).collect();
            }
            break;
        }
        line.push_str(separator);
        line.push_str(part);
    }
    line
}

/// The status of a world in several theaters: a status line on a terminal, or else a plain line every 2 seconds.
pub struct Status {
    line: StatusLine,
    plain: bool,
    written: Instant,
    /// The activity of the plain line before.
    activity: String,
    turns: Option<u32>,
    shared: Arc<Shared>,
}

/// The time between two plain lines.
const PLAIN_EVERY: Duration = Duration::from_secs(2);

impl Status {
    /// Shows the status of a world of `turns` turns, or without an end; or nothing if it should be quiet.
    pub fn new(turns: Option<u32>, quiet: bool, shared: Arc<Shared>) -> Status {
        let plain = !quiet && !std::io::stderr().is_terminal();
        let line = StatusLine::new(turns.map(u64::from), quiet);
        Status { line, plain, written: Instant::now(), activity: String::new(), turns, shared }
    }

    /// Shows one text until the next update.
    pub fn say(&mut self, text: &str) {
        self.line.show(&[text.to_owned()]);
    }

    /// Shows the state of the world.
    pub fn update(&mut self, activity: &str, trips: &MigrationCounts, present: &[Option<Census>]) {
        let (turn, messages) = self.shared.reached();
        let of = self.turns.map_or(String::new(), |turns| format!("/{}", thousands(turns.into())));
        let actors = present.iter().map(|census| census.map_or("?".to_owned(), |census| census.actors.to_string()));
        let parts = [
            format!("turn {}{of}", thousands(turn.into())),
            activity.to_owned(),
            format!("{} messages", thousands(messages)),
            format!("{} migrations", thousands(trips.arrived)),
            format!(
                "{} theaters up, actors {}",
                present.iter().flatten().count(),
                actors.collect::<Vec<_>>().join(" ")
            ),
        ];
        if self.plain && (self.written.elapsed() > PLAIN_EVERY || self.activity != activity) {
            self.written = Instant::now();
            note(&parts.join(" | "));
        }
        activity.clone_into(&mut self.activity);
        self.line.set_step(turn.into());
        self.line.show(&parts);
    }

    /// Wipes the line away.
    pub fn clear(&self) {
        self.line.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_fits_the_width_by_leaving_out_its_last_parts() {
        let parts = ["turn 12/600", "draining 127.0.0.1:4711", "1,234 messages"].map(str::to_owned);
        assert_eq!(fit(&parts, " | ", 200), "turn 12/600 | draining 127.0.0.1:4711 | 1,234 messages");
        assert_eq!(fit(&parts, " | ", 54), "turn 12/600 | draining 127.0.0.1:4711 | 1,234 messages");
        assert_eq!(fit(&parts, " | ", 53), "turn 12/600 | draining 127.0.0.1:4711");
        assert_eq!(fit(&parts, " | ", 30), "turn 12/600");
        assert_eq!(fit(&parts, " | ", 6), "turn \u{2026}");
        for width in 0..60 {
            assert!(fit(&parts, " | ", width).chars().count() <= width, "{width}");
        }
    }
}
