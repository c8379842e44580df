//! The parts of a migrating actor: as the source offers them, and as the target has read them.

use std::any::TypeId;
use std::time::Duration;

use crate::actor::migrate_error::MigrateError;
use crate::message::clock::Pace;
use crate::message::forward::Write;
use crate::remote::any::AnyActor;
use crate::remote::timers::AnyTimer;
use crate::supervise::remote::SupervisorLink;

/// A frozen actor, ready to be written.
pub struct PreparedActor<'a> {
    /// Writes its state.
    pub state: Write<'a>,
    /// Its name in reports.
    pub name: Option<&'a str>,
    /// Its link to its supervisor, if it has one.
    pub supervisor_link: Option<SupervisorLink>,
    /// The actors that it watches.
    pub watching: &'a [AnyActor],
    /// The number of its last timer.
    pub last_timer: u64,
    /// Its timers.
    pub timers: &'a [PackedTimer<'a>],
    /// Its receive timeout, if it has one.
    pub receive_timeout: Option<Duration>,
}

/// A timer, ready to be written.
pub struct PackedTimer<'a> {
    /// Its number.
    pub id: u64,
    /// The time until it fires next.
    pub left: Duration,
    /// Its repetition.
    pub pace: Pace,
    /// `true` if it continues after a restart.
    pub kept: bool,
    /// The type of its message.
    pub message: TypeId,
    /// The name of that type in reports.
    pub name: &'static str,
    /// Writes the message.
    pub write: Write<'a>,
}

/// Receives a prepared actor, or the error that prevented it. If the function returns an error, the actor continues in
/// the source, and its hook is called.
pub type Offer = Box<dyn FnOnce(Result<PreparedActor<'_>, MigrateError>) -> Result<(), MigrateError> + Send>;

/// The parts of an actor besides its state, as they were read.
#[derive(Default)]
pub struct ActorMetadata {
    /// Its name in reports.
    pub name: Option<String>,
    /// Its link to its supervisor, if it has one.
    pub supervisor_link: Option<SupervisorLink>,
    /// The actors that it watches.
    pub watching: Vec<AnyActor>,
    /// The number of its last timer.
    pub last_timer: u64,
    /// Its timers.
    pub timers: Vec<ReadTimer>,
    /// Its receive timeout, if it has one.
    pub receive_timeout: Option<Duration>,
    /// `true` if the actor is new: it starts, and has not migrated.
    pub is_new: bool,
}

/// A timer, as it was read.
pub struct ReadTimer {
    /// Its number.
    pub id: u64,
    /// The time until it fires next.
    pub left: Duration,
    /// Its repetition.
    pub pace: Pace,
    /// `true` if it continues after a restart.
    pub kept: bool,
    /// The request that starts it.
    pub start: AnyTimer,
}
