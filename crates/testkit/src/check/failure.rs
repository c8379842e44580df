//! What went wrong in a run.

use std::fmt;

use crate::run::{DELIVERIES_MAX, FinishedRun, Schedule, Sent, sent};

/// What can go wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Violation {
    /// The program panicked: what it said, and where.
    Panic(String),
    /// An actor crashed.
    Crash {
        /// Participant.
        actor: String,
        /// What the panic said, and where.
        why: String,
    },
    /// A message reached nobody.
    DeadLetter(String),
    /// Nothing is left to do, and these wait in handlers.
    Deadlock(Vec<String>),
    /// The program returned something else than under another order.
    OtherResult {
        /// What it returned.
        this: String,
        /// What it returned under the order that was tried first.
        first: String,
    },
    /// After 10,000 deliveries there were more to be made.
    Endless,
    /// The program did not do the same again, though the same messages had been delivered.
    NotRepeatable,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Violation::Panic(why) => write!(f, "the program panicked: {why}"),
            Violation::Crash { actor, why } => write!(f, "{actor} crashed: {why}"),
            Violation::DeadLetter(what) => write!(f, "dead letter: {what}"),
            Violation::Deadlock(who) => write!(f, "deadlock: {}", who.join("; ")),
            Violation::OtherResult { this, first } => {
                write!(f, "the result depends on the order: {this} here, {first} in the order of sending")
            }
            Violation::Endless => write!(f, "it never ends: {DELIVERIES_MAX} deliveries, and more wait"),
            Violation::NotRepeatable => f.write_str(
                "the program does not repeat itself: after the same deliveries, other messages waited than before. \
                 It must not draw numbers, look at a clock or at memory addresses, or keep something from one run to the next",
            ),
        }
    }
}

/// Something that went fault, and how.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Failure {
    /// What.
    pub violation: Violation,
    /// The order to repeat it: [`Checker::replay`].
    pub schedule: Schedule,
    /// What was delivered, to the end.
    pub deliveries: Vec<Sent>,
}

impl Failure {
    pub(super) fn of<R>(ran: &FinishedRun<R>, at: usize, violation: Violation) -> Failure {
        let upto = (at + 1).min(ran.steps.len());
        let mut deliveries = sent(ran);
        deliveries.truncate(upto);
        Failure { violation, schedule: Schedule::of(&ran.steps[..upto]), deliveries }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.violation)?;
        /// Of many deliveries, the first and the last so many are shown.
        const SHOWN: usize = 50;
        let all = self.deliveries.len();
        for (nth, sent) in self.deliveries.iter().enumerate() {
            if nth < SHOWN || nth + SHOWN >= all {
                writeln!(f, "{:>5}. {sent}", nth + 1)?;
            } else if nth == SHOWN {
                writeln!(f, "       .. {} more ..", all - 2 * SHOWN)?;
            }
        }
        write!(f, "to repeat it: Checker::replay of the schedule \"{}\"", self.schedule)
    }
}
