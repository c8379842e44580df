//! The reasons for which an actor does not migrate.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The reason for which an actor did not migrate, as far as this theater knows.
///
/// The actor continues in its source theater, with 3 exceptions: it has stopped, it is lost with the target, or it has
/// left for a target that does not confirm its beginning.
///
/// # Examples
///
/// ```
/// # use playhouse_actor::{wire::WireForm, *};
/// # use serde::{Deserialize, Serialize};
/// # #[derive(Serialize, Deserialize)]
/// # struct Ring;
/// # impl Message for Ring { type Reply = (); const WIRE: Option<WireForm<Self>> = Some(WireForm::of()); }
/// # #[derive(Serialize, Deserialize)]
/// # struct Bell;
/// # impl Handler<Ring> for Bell { fn handle(&mut self, _: Ring, _: &mut Context<Self>) {} }
/// impl Actor for Bell {
///     fn migration_failed(&mut self, why: MigrateError, _: &mut Context<Self>) {
///         match why {
///             MigrateError::Unreachable(why) => eprintln!("the target is unreachable: {why}"),
///             other => eprintln!("stays: {other}"),
///         }
///     }
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum MigrateError {
    /// The actor has stopped.
    Stopped,
    /// The actor is not in this theater: only the theater of an actor can send it to another one.
    Elsewhere,
    /// The actor's state, or the message of one of its timers, cannot be written. Holds the reason.
    Unwritable(String),
    /// The target theater does not take the actor. Holds the reason.
    Refused(String),
    /// The target theater cannot be reached, or a theater did not answer within 3 × `lost_after`. Holds the reason. If
    /// the actor had left by then, it may be alive in the target.
    Unreachable(String),
    /// The target theater was lost before it confirmed the actor's beginning. Either the actor continues in the source
    /// and is notified ([`migration_failed`](crate::Actor::migration_failed)), or it had left and is lost with the target.
    TheaterLost,
    /// Actors of its type are not mobile: see [`Mobile`](crate::Mobile).
    Immobile,
    /// The actor was awaiting something at every attempt to freeze its group.
    Busy,
    /// A member of a group cannot migrate, so no member does.
    Member {
        /// The member, as it is shown in reports.
        who: String,
        /// The reason for which it cannot migrate.
        why: Box<MigrateError>,
    },
    /// The value is no group, only a stage: [`Context::group`](crate::Context::group) made it in an actor without a group, or it belongs to
    /// another system.
    NoGroup,
    /// The actor crashed in its hook [`migrating`](crate::Actor::migrating). It has ended by that, unless its
    /// supervisor resumes or restarts it.
    Crashed,
}

impl fmt::Display for MigrateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MigrateError::Stopped => f.write_str("the actor has stopped"),
            MigrateError::Crashed => f.write_str("the actor crashed in its hook `migrating`"),
            MigrateError::Elsewhere => {
                f.write_str("the actor is in another theater: only that theater can migrate it")
            }
            MigrateError::Unwritable(why) => write!(f, "the actor cannot be written: {why}"),
            MigrateError::Refused(why) => write!(f, "the other theater does not take the actor: {why}"),
            MigrateError::Unreachable(why) => write!(f, "the other theater cannot be reached: {why}"),
            MigrateError::TheaterLost => {
                f.write_str("the target theater was lost before it confirmed that the actor has begun")
            }
            MigrateError::Immobile => f.write_str("actors of its type are not mobile: see `#[actor(mobile)]`"),
            MigrateError::Busy => {
                f.write_str("it awaited something at every attempt to freeze its group")
            }
            MigrateError::Member { who, why } => write!(f, "{who}, of the group, cannot migrate: {why}"),
            MigrateError::NoGroup => f.write_str(
                "it is only a stage, and no group that can migrate: make a group with `Group::new` in the system of a theater",
            ),
        }
    }
}

impl std::error::Error for MigrateError {}
