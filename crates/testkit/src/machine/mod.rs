//! State machines, declared as data.

mod flaw;

use std::collections::BTreeSet;
use std::fmt::{self, Write};

pub use self::flaw::{Flaw, Flaws};
use crate::drawing::{Escaped, svg_head};

/// A declared state machine: its states, the initial and the final ones, and the effect of each event in each state.
/// The machine runs nothing. It is verified ([`Machine::verify`]) and drawn ([`Machine::dot`], [`Machine::svg`]).
///
/// # Examples
///
/// ```
/// use playhouse_testkit::{Flaw, Machine};
///
/// let door = Machine::new("door")
///     .initial("closed")
///     .state("open")
///     .last("removed")
///     .on("closed", "push", "open")
///     .on("open", "pull", "closed")
///     .on("closed", "unhinge", "removed")
///     .ignores("open", "push")
///     .ignores("closed", "pull");
/// let flaws = door.verify().unwrap_err();
/// assert_eq!(flaws.list(), [Flaw::Missing { state: "open".to_owned(), event: "unhinge".to_owned() }]);
/// assert!(door.ignores("open", "unhinge").verify().is_ok());
/// ```
#[doc(alias = "gen_statem")]
#[doc(alias = "FSM")]
#[doc(alias = "become")]
#[doc(alias = "unbecome")]
#[derive(Clone, Debug)]
#[must_use]
pub struct Machine {
    name: String,
    states: Vec<String>,
    initial: Vec<String>,
    finals: Vec<String>,
    transitions: Vec<Transition>,
    ignored: Vec<(String, String)>,
}

#[derive(Clone, Debug)]
struct Transition {
    from: String,
    event: String,
    to: String,
}

impl Machine {
    /// Creates a machine without states.
    pub fn new(name: impl Into<String>) -> Machine {
        Machine {
            name: name.into(),
            states: Vec::new(),
            initial: Vec::new(),
            finals: Vec::new(),
            transitions: Vec::new(),
            ignored: Vec::new(),
        }
    }

    /// Declares a state.
    pub fn state(mut self, name: impl Into<String>) -> Self {
        let name = name.into();
        if !self.states.contains(&name) {
            self.states.push(name);
        }
        self
    }

    /// Declares the initial state.
    pub fn initial(mut self, name: impl Into<String>) -> Self {
        let name = name.into();
        self.initial.push(name.clone());
        self.state(name)
    }

    /// Declares a final state. A machine without final states is meant to run forever.
    pub fn last(mut self, name: impl Into<String>) -> Self {
        let name = name.into();
        self.finals.push(name.clone());
        self.state(name)
    }

    /// Declares that `event` leads from the state `from` to `to`, which may be the same state.
    pub fn on(mut self, from: impl Into<String>, event: impl Into<String>, to: impl Into<String>) -> Self {
        self.transitions.push(Transition { from: from.into(), event: event.into(), to: to.into() });
        self
    }

    /// Declares that `event` does nothing in the state `state`, on purpose.
    pub fn ignores(mut self, state: impl Into<String>, event: impl Into<String>) -> Self {
        self.ignored.push((state.into(), event.into()));
        self
    }

    /// Searches for all flaws of the machine.
    ///
    /// # Errors
    /// The machine has flaws.
    pub fn verify(&self) -> Result<(), Flaws> {
        let mut flaws = Vec::new();
        if self.initial.len() != 1 {
            flaws.push(Flaw::Initial(self.initial.clone()));
        }
        self.find_unknown(&mut flaws);
        self.find_wrong_events(&mut flaws);
        let reached = self.closure(&self.initial, |transition| (&transition.from, &transition.to));
        let ending = self.closure(&self.finals, |transition| (&transition.to, &transition.from));
        for state in &self.states {
            if !reached.contains(state.as_str()) && self.initial.len() == 1 {
                flaws.push(Flaw::Unreachable(state.clone()));
            } else if !ending.contains(state.as_str()) && !self.finals.is_empty() {
                flaws.push(Flaw::NoWayToFinal(state.clone()));
            }
        }
        flaws.sort();
        flaws.dedup();
        if flaws.is_empty() { Ok(()) } else { Err(Flaws { machine: self.name.clone(), list: flaws }) }
    }

    fn find_unknown(&self, flaws: &mut Vec<Flaw>) {
        let named = self.transitions.iter().flat_map(|t| [(&t.from, &t.event), (&t.to, &t.event)]);
        for (state, event) in named.chain(self.ignored.iter().map(|(state, event)| (state, event))) {
            if !self.states.contains(state) {
                flaws.push(Flaw::Unknown { state: state.clone(), event: event.clone() });
            }
        }
    }

    fn find_wrong_events(&self, flaws: &mut Vec<Flaw>) {
        let events: BTreeSet<&String> = self.transitions.iter().map(|t| &t.event).collect();
        for state in &self.states {
            for event in &events {
                let mut to: Vec<&String> =
                    self.transitions.iter().filter(|t| t.from == *state && t.event == **event).map(|t| &t.to).collect();
                to.sort();
                to.dedup();
                let is_ignored = self.ignored.iter().any(|(s, e)| s == state && e == *event);
                let (state, event) = (state.clone(), (*event).clone());
                if self.finals.contains(&state) {
                    if !to.is_empty() {
                        flaws.push(Flaw::LeavesFinal { state, event });
                    }
                } else if to.len() + usize::from(is_ignored) > 1 {
                    flaws.push(Flaw::Ambiguous { state, event });
                } else if to.is_empty() && !is_ignored {
                    flaws.push(Flaw::Missing { state, event });
                }
            }
        }
    }

    /// Returns the states that are reached from `start` along the transitions, in the direction that `ends` gives.
    fn closure<'a>(
        &'a self,
        start: &'a [String],
        ends: impl Fn(&'a Transition) -> (&'a String, &'a String),
    ) -> BTreeSet<&'a str> {
        let mut found: BTreeSet<&str> = start.iter().map(String::as_str).collect();
        loop {
            let before = found.len();
            for (from, to) in self.transitions.iter().map(&ends) {
                if found.contains(from.as_str()) {
                    found.insert(to);
                }
            }
            if found.len() == before {
                return found;
            }
        }
    }

    /// Returns the transitions, with those between the same two states merged.
    fn edges(&self) -> Vec<(&str, &str, String)> {
        let mut edges: Vec<(&str, &str, String)> = Vec::new();
        for Transition { from, event, to } in &self.transitions {
            match edges.iter_mut().find(|(f, t, _)| f == from && t == to) {
                Some((_, _, events)) => {
                    events.push_str(", ");
                    events.push_str(event);
                }
                None => edges.push((from, to, event.clone())),
            }
        }
        edges
    }

    /// Returns the machine in the language of Graphviz.
    pub fn dot(&self) -> String {
        let mut dot = format!("digraph {:?} {{\n    rankdir=LR;\n    node [shape=ellipse];\n", self.name);
        for state in &self.states {
            let shape = if self.finals.contains(state) { " [peripheries=2]" } else { "" };
            writeln!(dot, "    {state:?}{shape};").expect("a string takes what is written to it");
        }
        for (nth, state) in self.initial.iter().enumerate() {
            writeln!(dot, "    \" {nth}\" [shape=point];\n    \" {nth}\" -> {state:?};")
                .expect("a string takes what is written to it");
        }
        for (from, to, events) in self.edges() {
            writeln!(dot, "    {from:?} -> {to:?} [label={events:?}];").expect("a string takes what is written to it");
        }
        dot + "}\n"
    }

    /// Returns the states by column: the number of events from the initial state.
    fn columns(&self) -> Vec<Vec<&str>> {
        let mut columns: Vec<Vec<&str>> = vec![self.initial.iter().map(String::as_str).collect()];
        let mut placed: BTreeSet<&str> = columns[0].iter().copied().collect();
        loop {
            let last = columns.last().expect("there is a first one");
            let next: Vec<&str> = self
                .states
                .iter()
                .map(String::as_str)
                .filter(|state| !placed.contains(state))
                .filter(|state| self.transitions.iter().any(|t| t.to == *state && last.contains(&t.from.as_str())))
                .collect();
            if next.is_empty() {
                break;
            }
            placed.extend(&next);
            columns.push(next);
        }
        let rest: Vec<&str> = self.states.iter().map(String::as_str).filter(|state| !placed.contains(state)).collect();
        if !rest.is_empty() {
            columns.push(rest);
        }
        columns.retain(|column| !column.is_empty());
        columns
    }

    /// Returns the machine as an SVG document. Unreachable states are red.
    pub fn svg(&self) -> String {
        const ROW: usize = 110;
        /// The largest width of a letter. Most letters are narrower.
        const WIDTH: usize = 7;
        let letters = self.states.iter().map(|state| state.chars().count()).max().unwrap_or(0);
        let half = (letters * WIDTH / 2 + 16).max(50);
        let between = self.edges().iter().map(|(_, _, events)| events.chars().count() * WIDTH + 30).max().unwrap_or(0);
        let column_width = 2 * half + between.max(110);
        let columns = self.columns();
        let rows = columns.iter().map(Vec::len).max().unwrap_or(0);
        let (width, height) = (column_width * columns.len().max(1), ROW * rows.max(1) + 30);
        let place = |state: &str| {
            columns.iter().enumerate().find_map(|(x, column)| {
                let y = column.iter().position(|other| *other == state)?;
                Some((column_width / 2 + column_width * x, 30 + ROW / 2 + ROW * y + (rows - column.len()) * ROW / 2))
            })
        };
        let reached = self.closure(&self.initial, |transition| (&transition.from, &transition.to));
        let mut svg = svg_head(width, height);
        let mut line = |text: fmt::Arguments<'_>| {
            writeln!(svg, "{text}").expect("a string takes what is written to it");
        };
        line(format_args!(r##"<title>{}</title>"##, Escaped(&self.name)));
        for (from, to, events) in self.edges() {
            let (Some((fx, fy)), Some((tx, ty))) = (place(from), place(to)) else { continue };
            let path = if from == to {
                format!(
                    "M{} {} C{} {} {} {} {} {}",
                    fx - 15,
                    fy - 18,
                    fx - 30,
                    fy - 55,
                    fx + 30,
                    fy - 55,
                    fx + 15,
                    fy - 18
                )
            } else if tx > fx {
                format!("M{} {} Q{} {} {} {}", fx + half, fy, (fx + tx) / 2, fy.midpoint(ty) - 12, tx - half, ty)
            } else if tx < fx {
                format!("M{} {} Q{} {} {} {}", fx - half, fy, (fx + tx) / 2, fy.midpoint(ty) + 40, tx + half, ty)
            } else if ty > fy {
                format!("M{} {} Q{} {} {} {}", fx - 8, fy + 18, fx - 30, fy.midpoint(ty), tx - 8, ty - 18)
            } else {
                format!("M{} {} Q{} {} {} {}", fx + 8, fy - 18, fx + 30, fy.midpoint(ty), tx + 8, ty + 18)
            };
            let (x, y) = if from == to {
                (fx, fy - 50)
            } else if tx < fx {
                (fx.midpoint(tx), fy.midpoint(ty) + 32)
            } else if tx > fx {
                (fx.midpoint(tx), fy.midpoint(ty) - 12)
            } else {
                (if ty > fy { fx - 40 } else { fx + 40 }, fy.midpoint(ty) + 4)
            };
            line(format_args!(r##"<path d="{path}" fill="none" stroke="#336" marker-end="url(#head)"/>"##));
            line(format_args!(r##"<text x="{x}" y="{y}">{}</text>"##, Escaped(&events)));
        }
        for state in &self.states {
            let Some((x, y)) = place(state) else { continue };
            let colour = if reached.contains(state.as_str()) { "#336" } else { "#c00" };
            line(format_args!(
                r##"<rect x="{}" y="{}" width="{}" height="36" rx="18" fill="#eef" stroke="{colour}"/>"##,
                x - half,
                y - 18,
                2 * half
            ));
            if self.finals.contains(state) {
                line(format_args!(
                    r##"<rect x="{}" y="{}" width="{}" height="28" rx="14" fill="none" stroke="{colour}"/>"##,
                    x - half + 4,
                    y - 14,
                    2 * half - 8
                ));
            }
            if self.initial.contains(state) {
                line(format_args!(r##"<path d="M{} {y}h18" stroke="#336" marker-end="url(#head)"/>"##, x - half - 18));
            }
            line(format_args!(r##"<text x="{x}" y="{}">{}</text>"##, y + 4, Escaped(state)));
        }
        line(format_args!("</svg>"));
        svg
    }
}
