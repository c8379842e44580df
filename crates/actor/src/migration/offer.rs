//! The parts of a migrating actor: as the source offers them, and as the target has read them.

use std::any::{Any, TypeId};
use std::time::Duration;

use playhouse_executor::Address;

use crate::actor::any::AnyActor;
use crate::actor::migrate_error::MigrateError;
use crate::actor::{Actor, ActorState};
use crate::message::HandledBy;
use crate::message::clock::Pace;
use crate::remote::reference_wire::copy_of;
use crate::remote::stub::Write;
use crate::remote::wire::WireError;
use crate::supervise::remote::SupervisorLink;
use crate::timer::timers::Timer;

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

/// A `StartTimer` of an actor's type.
pub type AnyTimer = Box<dyn Any + Send>;

pub(super) type StartTimer<A> = Box<dyn FnOnce(Address<ActorState<A>>, u64, Duration, Pace) -> Timer + Send>;

pub(crate) fn timer<A: Actor, M: HandledBy<A, Mode>, Mode>(message: M) -> AnyTimer {
    let start: StartTimer<A> = Box::new(move |address, id, left, pace| {
        let copy = (pace != Pace::Once).then_some(copy_of::<M> as fn(&M) -> Result<M, WireError>);
        Timer::start::<A, M, Mode>(address, id, (left, pace), message, copy)
    });
    Box::new(start)
}
