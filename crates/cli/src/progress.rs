//! The progress bar.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use playhouse_bench::chatapp::Progress;

/// How far the world has come: written by an actor after each turn, read by the main thread. Each value stands for itself,
/// so all accesses are `Relaxed`.
#[derive(Default)]
pub struct Shared {
    turn: AtomicU32,
    messages: AtomicU64,
    messages_in_turns: AtomicU64,
    in_turns_ns: AtomicU64,
}

impl Shared {
    /// Takes a report; a few stores, because it is called in the time that is measured.
    pub fn take(&self, progress: &Progress) {
        self.turn.store(progress.turn, Relaxed);
        self.messages.store(progress.messages, Relaxed);
        self.messages_in_turns.store(progress.messages_in_turns, Relaxed);
        self.in_turns_ns.store(progress.in_turns.as_nanos() as u64, Relaxed);
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
