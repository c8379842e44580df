//! The state of the screen, and the keys that change it.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::attached::Seen;
use super::table::Pane;

/// The reaction to a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reaction {
    /// The screen is drawn again.
    Stay,
    /// The program ends.
    Quit,
    /// The program ends as after the signal: the key was Ctrl-C.
    Interrupt,
}

/// The state of the screen.
pub struct View {
    pub seen: Vec<Seen>,
    /// The theater that was named.
    first: String,
    /// The address of the theater that is shown.
    pub chosen: String,
    pub pane: Pane,
    /// The column that each pane is sorted by, in the order of [`Pane::ALL`].
    sorts: [usize; Pane::ALL.len()],
    /// Each pane shows its rows from the last to the first.
    reversed: [bool; Pane::ALL.len()],
    /// A pane shows only the rows that have this text in them, in letters of either case.
    pub filter: String,
    /// The user is typing the filter.
    pub is_typing: bool,
    /// Newer looks are not shown.
    pub is_paused: bool,
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
            reversed: [false; Pane::ALL.len()],
            filter: String::new(),
            is_typing: false,
            is_paused: false,
            help: false,
        }
    }

    /// Takes a newer look.
    pub fn see(&mut self, seen: Vec<Seen>) {
        if self.is_paused {
            return;
        }
        self.seen = seen;
        if !self.seen.iter().any(|seen| seen.address == self.chosen) {
            self.chosen.clone_from(&self.first);
        }
    }

    pub fn sort(&self) -> usize {
        self.sorts[self.pane as usize]
    }

    pub fn is_reversed(&self) -> bool {
        self.reversed[self.pane as usize]
    }

    /// The theater that is shown.
    pub fn shown(&self) -> Option<&Seen> {
        self.seen.iter().find(|seen| seen.address == self.chosen)
    }

    pub fn press(&mut self, key: KeyEvent) -> Reaction {
        if key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL) {
            return Reaction::Interrupt;
        }
        // A letter with Ctrl or Alt is another key.
        if matches!(key.code, KeyCode::Char(_)) && key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT) {
            return Reaction::Stay;
        }
        if self.is_typing {
            self.type_filter(key.code);
            return Reaction::Stay;
        }
        if key.code == KeyCode::Char('q') {
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
            KeyCode::Char('/') => self.is_typing = true,
            KeyCode::Char('r') => self.reversed[self.pane as usize] ^= true,
            KeyCode::Char('p') => self.is_paused ^= true,
            KeyCode::Esc => self.filter.clear(),
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

    fn type_filter(&mut self, key: KeyCode) {
        match key {
            KeyCode::Char(letter) => self.filter.push(letter),
            KeyCode::Backspace => drop(self.filter.pop()),
            KeyCode::Esc => {
                self.filter.clear();
                self.is_typing = false;
            }
            KeyCode::Enter => self.is_typing = false,
            _ => {}
        }
    }

    fn choose(&mut self, by: usize) {
        let at = self.seen.iter().position(|seen| seen.address == self.chosen).unwrap_or(0);
        if let Some(seen) = self.seen.get((at + by) % self.seen.len().max(1)) {
            self.chosen.clone_from(&seen.address);
        }
    }
}
