//! The progress bar, and the status line.

use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use playhouse_bench::chatapp::{Census, Progress, Trips, thousands};

/// How far the world has come: written by an actor after each turn, read by the main thread. Each value stands for itself,
/// so all accesses are `Relaxed`.
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

    /// How many clients there are, which never changes.
    pub fn set_clients(&self, clients: u64) {
        self.clients.store(clients, Relaxed);
    }

    /// How many clients there are.
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

/// The status of a world in several theaters: a line on standard error that is drawn again and again, or where that is no
/// terminal, a line now and then.
pub struct Status {
    bar: ProgressBar,
    plain: bool,
    written: Instant,
    /// What was going on when something was last said of it.
    scene: String,
    turns: Option<u32>,
    shared: Arc<Shared>,
}

/// How often a plain line is written.
const PLAIN_EVERY: Duration = Duration::from_secs(2);

impl Status {
    /// Shows the status of a world of `turns` turns, or without an end; or nothing if it should be quiet.
    pub fn new(turns: Option<u32>, quiet: bool, shared: Arc<Shared>) -> Status {
        let target = if quiet { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
        let bar = ProgressBar::with_draw_target(turns.map(u64::from), target);
        let template = if turns.is_some() { "{bar:16} {wide_msg}" } else { "{spinner} {wide_msg}" };
        bar.set_style(ProgressStyle::with_template(template).expect("INVARIANT: the template is well-formed"));
        let plain = !quiet && !std::io::stderr().is_terminal();
        Status { bar, plain, written: Instant::now(), scene: String::new(), turns, shared }
    }

    /// Says one thing, until there is more to say.
    pub fn say(&mut self, what: &str) {
        self.bar.set_message(what.to_owned());
        self.bar.tick();
    }

    /// Says something that stays.
    pub fn note(&mut self, what: &str) {
        self.bar.suspend(|| eprintln!("{what}"));
    }

    /// Says how things are.
    pub fn update(&mut self, scene: &str, trips: &Trips, present: &[Option<Census>]) {
        let (turn, messages) = self.shared.reached();
        let of = self.turns.map_or(String::new(), |turns| format!("/{}", thousands(turns.into())));
        let here = present.iter().map(|census| census.map_or("?".to_owned(), |census| census.actors.to_string()));
        let line = format!(
            "turn {}{of} | {} messages | {} moves | {} theaters up, actors {} | {scene}",
            thousands(turn.into()),
            thousands(messages),
            thousands(trips.arrived),
            present.iter().flatten().count(),
            here.collect::<Vec<_>>().join(" "),
        );
        if self.plain && (self.written.elapsed() > PLAIN_EVERY || self.scene != scene) {
            self.written = Instant::now();
            eprintln!("{line}");
        }
        scene.clone_into(&mut self.scene);
        self.bar.set_position(turn.into());
        self.bar.set_message(line);
        self.bar.tick();
    }

    /// Wipes the line away.
    pub fn clear(&self) {
        self.bar.finish_and_clear();
    }
}
