//! The state that migrations keep in a theater.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::time::Duration;

use crate::migration::authority::{Authority, BirthTheaters};
use crate::migration::drain::MigrationDeadline;
use crate::naming::Host;
use crate::node::core::TheaterCore;

/// The state that migrations keep in a theater.
pub(crate) struct MigrationState {
    /// Knows the possible locations of mobile actors.
    pub(crate) authority: Box<dyn Authority>,
    /// Migrations with the times at which they are cancelled, in order.
    pub(super) late: Mutex<VecDeque<(Duration, MigrationDeadline)>>,
    /// Theaters that could not be called for their knowledge of actors, the latest first, and the ends of the pauses before the next call.
    pub(super) unreached: Mutex<VecDeque<(Host, Duration)>>,
}

impl Default for MigrationState {
    fn default() -> MigrationState {
        MigrationState { authority: Box::new(BirthTheaters), late: Mutex::default(), unreached: Mutex::default() }
    }
}

impl TheaterCore {
    /// Returns the state of migrations.
    pub(crate) fn migrations(&self) -> &MigrationState {
        self.migrations.get()
    }
}
