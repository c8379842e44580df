//! Failures of a run.

use std::fmt;

use crate::run::{DELIVERIES_MAX, FinishedRun, Schedule, Sent, sent};

/// A violation that the checker can find.
///
/// # Examples
///
/// ```
/// use playhouse::prelude::*;
/// use playhouse_testkit::{Checker, Violation};
///
/// let report = Checker::new().run(|_: &System| panic!("always"));
/// let failure = report.failure().expect("it fails");
/// assert!(matches!(&failure.violation, Violation::Panic(why) if why.starts_with("always")));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Violation {
    /// The program panicked: the message and the place of the panic.
    Panic(String),
    /// An actor crashed.
    Crash {
        /// The name of the actor.
        actor: String,
        /// The message and the place of the panic.
        why: String,
    },
    /// A message reached no actor.
    DeadLetter(String),
    /// Nothing is left to do, and the handlers of these actors wait.
    Deadlock(Vec<String>),
    /// The program returned another result than under another order.
    OtherResult {
        /// The result under this order.
        this: String,
        /// The result under the order that was tried first.
        first: String,
    },
    /// More messages wait after 10,000 deliveries.
    Endless,
    /// The program did not repeat itself, though the same messages had been delivered.
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
                write!(f, "the result depends on the order: {this} in this order, {first} in the order of sending")
            }
            Violation::Endless => write!(f, "the run never ends: {DELIVERIES_MAX} deliveries, and more messages wait"),
            Violation::NotRepeatable => f.write_str(
                "the program does not repeat itself: after the same deliveries, other messages waited than before. \
                 It must not draw numbers, look at a clock or at memory addresses, or keep something from one run to the next",
            ),
        }
    }
}

/// A violation, and the deliveries that lead to it.
///
/// # Examples
///
/// ```
/// use playhouse::prelude::*;
/// use playhouse_testkit::{Checker, Failure};
///
/// let program = |_: &System| assert!(1 + 1 == 3);
/// let report = Checker::new().run(program);
/// let failure: &Failure = report.failure().expect("it fails");
/// let again = Checker::new().replay(&failure.schedule, program).expect("it fails again");
/// assert_eq!(again.violation, failure.violation);
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Failure {
    /// The violation.
    pub violation: Violation,
    /// The order to repeat it: [`Checker::replay`](super::Checker::replay).
    pub schedule: Schedule,
    /// The deliveries up to the violation.
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
        /// The number of deliveries that are shown at the beginning and at the end of a long list.
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
