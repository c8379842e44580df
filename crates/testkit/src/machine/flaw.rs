//! Flaws of state machines.

use std::fmt;

/// A flaw of a state machine.
///
/// # Examples
///
/// ```
/// use playhouse_testkit::{Flaw, Machine};
///
/// let lamp = Machine::new("lamp").initial("off").state("on").state("broken").on("off", "press", "on").on("on", "press", "off");
/// let flaws = lamp.ignores("broken", "press").verify().unwrap_err();
/// assert_eq!(flaws.list(), [Flaw::Unreachable("broken".to_owned())]);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Flaw {
    /// The machine has no initial state, or these several ones.
    Initial(Vec<String>),
    /// A transition or an ignored event names an undeclared state.
    Unknown {
        /// The undeclared state.
        state: String,
        /// The event of the transition.
        event: String,
    },
    /// An event leads from one state to several ones, or is ignored there as well.
    Ambiguous {
        /// The state.
        state: String,
        /// The event.
        event: String,
    },
    /// No events lead from the initial state to this state.
    Unreachable(String),
    /// No events lead from this state to a final one.
    NoWayToFinal(String),
    /// An event leads out of a final state.
    LeavesFinal {
        /// The final state.
        state: String,
        /// The event.
        event: String,
    },
    /// The machine does not say what an event does in a state.
    Missing {
        /// The state.
        state: String,
        /// The event.
        event: String,
    },
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Flaw::Initial(none) if none.is_empty() => {
                f.write_str("no state is the initial one: declare it with `initial`")
            }
            Flaw::Initial(several) => write!(f, "only one state can be the initial one, not {}", several.join(", ")),
            Flaw::Unknown { state, event } => {
                write!(
                    f,
                    "{event:?} names the state {state:?}, which is not declared: declare it with `state` or `last`"
                )
            }
            Flaw::Ambiguous { state, event } => write!(f, "in {state:?}, {event:?} has several effects: keep one"),
            Flaw::Unreachable(state) => write!(f, "{state:?} is never reached"),
            Flaw::NoWayToFinal(state) => write!(f, "from {state:?}, no final state is ever reached"),
            Flaw::LeavesFinal { state, event } => write!(f, "{event:?} leads out of {state:?}, which is final"),
            Flaw::Missing { state, event } => {
                write!(
                    f,
                    "in {state:?}, the effect of {event:?} is missing: declare it with `on`, or declare with `ignores` that it has none"
                )
            }
        }
    }
}

/// An error with all flaws of a state machine.
///
/// # Examples
///
/// ```
/// use playhouse_testkit::{Flaws, Machine};
///
/// let flaws: Flaws = Machine::new("empty").verify().unwrap_err();
/// assert_eq!(flaws.list().len(), 1); // it has no initial state
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flaws {
    pub(super) machine: String,
    pub(super) list: Vec<Flaw>,
}

impl Flaws {
    /// Returns the flaws.
    pub fn list(&self) -> &[Flaw] {
        &self.list
    }
}

impl fmt::Display for Flaws {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the state machine {:?} has flaws:", self.machine)?;
        for flaw in &self.list {
            write!(f, "\n- {flaw}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Flaws {}
