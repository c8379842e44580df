//! What the user looks at, and what the keys change about it.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::attached::Seen;
use super::table::Pane;

/// What a key has asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reaction {
    /// Show it.
    Stay,
    /// The user has seen enough.
    Quit,
}

/// What is shown.
pub struct View {
    pub seen: Vec<Seen>,
    /// The theater that was named.
    first: String,
    /// The address of the theater that is shown.
    pub chosen: String,
    pub pane: Pane,
    /// By which column each pane is sorted, in the order of [`Pane::ALL`].
    sorts: [usize; Pane::ALL.len()],
    pub help: bool,
}

impl View {
    pub fn new(first: &str) -> View {
        View {
            seen: Vec::new(),
            first: first.to_owned(),
            chosen: first.to_owned(),
            pane: Pane::Actors,
            sorts: Pane::ALL.map(Pane::first_sort),
            help: false,
        }
    }

    /// Something newer was seen.
    pub fn see(&mut self, seen: Vec<Seen>) {
        self.seen = seen;
        if !self.seen.iter().any(|seen| seen.address == self.chosen) {
            self.chosen.clone_from(&self.first);
        }
    }

    pub fn sort(&self) -> usize {
        self.sorts[self.pane as usize]
    }

    /// The theater that is shown.
    pub fn shown(&self) -> Option<&Seen> {
        self.seen.iter().find(|seen| seen.address == self.chosen)
    }

    pub fn press(&mut self, key: KeyEvent) -> Reaction {
        let is_interrupt = key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL);
        if is_interrupt || key.code == KeyCode::Char('q') {
            return Reaction::Quit;
        }
        // Any other key closes it.
        if std::mem::take(&mut self.help) {
            return Reaction::Stay;
        }
        let panes = Pane::ALL.len();
        let columns = self.pane.table(&playhouse::Snapshot::default(), 0).headings.len();
        let turn = |at: usize, by: usize, of: usize| (at + by) % of;
        match key.code {
            KeyCode::Char('?' | 'h') => self.help = true,
            KeyCode::Tab => self.pane = Pane::ALL[turn(self.pane as usize, 1, panes)],
            KeyCode::BackTab => self.pane = Pane::ALL[turn(self.pane as usize, panes - 1, panes)],
            KeyCode::Char(digit @ '1'..='4') => self.pane = Pane::ALL[digit as usize - '1' as usize],
            KeyCode::Right => self.sorts[self.pane as usize] = turn(self.sort(), 1, columns),
            KeyCode::Left => self.sorts[self.pane as usize] = turn(self.sort(), columns - 1, columns),
            KeyCode::Down => self.choose(1),
            KeyCode::Up => self.choose(self.seen.len().saturating_sub(1)),
            _ => {}
        }
        Reaction::Stay
    }

    fn choose(&mut self, by: usize) {
        let at = self.seen.iter().position(|seen| seen.address == self.chosen).unwrap_or(0);
        if let Some(seen) = self.seen.get((at + by) % self.seen.len().max(1)) {
            self.chosen.clone_from(&seen.address);
        }
    }
}
