//! The decision of a supervisor about a child, as it is sent to another theater.

use serde::{Deserialize, Serialize};

/// The numbers of a supervisor's decision. Decisions are sent as control requests. If an actor migrates, a later one
/// may arrive before an earlier one, which is outdated then.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct About {
    /// The number of the decision among those about this child.
    pub nth: u64,
    /// The number of the crash that it is about; 0 if it is about none.
    pub crash: u64,
}

/// A decision about a crashed child. `S` gives the new state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Decision<S> {
    /// The child restarts.
    Restart(S),
    /// The child resumes.
    Resume,
    /// The child ends.
    GiveUp,
    /// The child ends without a report, because it has no supervisor any more.
    Dismiss,
}

impl<S> Decision<S> {
    /// Returns the same decision, with the state given in another form.
    pub fn map<T>(self, f: impl FnOnce(S) -> T) -> Decision<T> {
        match self {
            Decision::Restart(state) => Decision::Restart(f(state)),
            Decision::Resume => Decision::Resume,
            Decision::GiveUp => Decision::GiveUp,
            Decision::Dismiss => Decision::Dismiss,
        }
    }
}
