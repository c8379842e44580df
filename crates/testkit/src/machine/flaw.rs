//! What is wrong with a state machine.

use std::fmt;

/// What is wrong with a state machine.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Flaw {
    /// It has none, or more than one: these.
    Initial(Vec<String>),
    /// A transition, or an event that is ignored, names a state that is not declared.
    Unknown {
        /// The state that is not there.
        state: String,
        /// The event of the transition.
        event: String,
    },
    /// An event leads from one state to different ones, or is ignored there as well.
    Ambiguous {
        /// From where.
        state: String,
        /// Which event.
        event: String,
    },
    /// No events lead from the initial state to this one.
    Unreachable(String),
    /// From this state, no events lead to a final one.
    NoWayToFinal(String),
    /// An event leads out of a final state.
    LeavesFinal {
        /// From where.
        state: String,
        /// Which event.
        event: String,
    },
    /// It is not said what an event does in a state.
    Missing {
        /// In which state.
        state: String,
        /// Which event.
        event: String,
    },
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Flaw::Initial(none) if none.is_empty() => {
                f.write_str("no state is the initial one: say which by `initial`")
            }
            Flaw::Initial(several) => write!(f, "only one state can be the initial one, not {}", several.join(", ")),
            Flaw::Unknown { state, event } => {
                write!(f, "{event:?} names the state {state:?}, which is not declared: say so by `state` or `last`")
            }
            Flaw::Ambiguous { state, event } => write!(f, "in {state:?}, {event:?} is to do different things"),
            Flaw::Unreachable(state) => write!(f, "{state:?} is never reached"),
            Flaw::NoWayToFinal(state) => write!(f, "from {state:?}, no final state is ever reached"),
            Flaw::LeavesFinal { state, event } => write!(f, "{event:?} leads out of {state:?}, which is final"),
            Flaw::Missing { state, event } => {
                write!(
                    f,
                    "in {state:?}, nothing is said of {event:?}: say what it does by `on`, or that it does nothing by `ignores`"
                )
            }
        }
    }
}

/// All that is wrong with a state machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flaws {
    pub(super) machine: String,
    pub(super) list: Vec<Flaw>,
}

impl Flaws {
    /// One after the other.
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
