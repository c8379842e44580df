//! Migration of actors between theaters while they run.
//!
//! This module has the requests to one cell when an actor leaves or arrives. `playhouse-theater` decides when they are
//! sent (see its `migration/host.rs`).

pub(crate) mod gather;
mod hooks;
pub(crate) mod offer;
mod requests;
pub(crate) mod steps;

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use playhouse_executor::Address;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::actor::group::GroupName;
use crate::actor::{ActorId, ActorState, Watcher};
use crate::migration::hooks::MigrationFailedHook;
use crate::remote::wire::Remote;
use crate::system::services::migration_host_of;

/// An actor that can migrate to another theater while it runs, with its state, its mail, its timers and its watchers.
/// References to it stay valid in every theater, and its mail keeps its order.
///
/// If a theater is lost, references of another theater to a mobile actor in it become invalid, unless a third theater
/// knows the actor. Asks then fail with [`Stopped`](crate::AskError::Stopped), even if the actor is still alive.
///
/// The actor continues to watch other actors, if other theaters may send to them (`#[actor(remote)]`). It is not
/// notified of the ends of local ones. An answer that arrives in the source theater does not reach
/// [`then`](crate::ContextAsk::then), and is a dead letter. The message of
/// [`pipe_to_self`](crate::ContextAsk::pipe_to_self) follows the actor.
///
/// Implemented by `#[actor(mobile)]` or `remote!(mobile ..)`.
///
/// Resources of one theater (a file, a socket) are no part of the actor's wire form: skip them with `#[serde(skip)]`.
/// Release them in [`migrating`](crate::Actor::migrating), and acquire them anew in [`migrated`](crate::Actor::migrated).
///
/// # Examples
///
/// ```
/// # use playhouse_actor::{wire::WireForm, *};
/// # use serde::{Deserialize, Serialize};
/// # #[derive(Serialize, Deserialize)]
/// # struct Ring;
/// # impl Message for Ring { type Reply = (); const WIRE: Option<WireForm<Self>> = Some(WireForm::of()); }
/// #[derive(Serialize, Deserialize)]
/// # #[derive(Default)]
/// struct Bell;
/// # impl Handler<Ring> for Bell { fn handle(&mut self, _: Ring, _: &mut Context<Self>) {} }
/// impl Actor for Bell {
///     fn migrated(&mut self, ctx: &mut Context<Self>) {
///         println!("arrived in incarnation {}", ctx.incarnation());
///     }
/// }
/// remote!(mobile Bell: Ring); // or `#[actor(mobile)]`
///
/// fn is_mobile<A: Mobile>(_: ActorRef<A>) {}
/// # let system = System::start()?;
/// is_mobile(system.spawn(Bell));
/// # system.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "the actor `{Self}` does not move between theaters",
    label = "`{Self}` is not mobile",
    note = "write `#[actor(mobile)]` at the block with its messages, and derive `Serialize` and `Deserialize` for `{Self}`: its state moves with it"
)]
pub trait Mobile: Remote + Serialize + DeserializeOwned {}

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
    /// Actors of its type are not mobile: see [`Mobile`].
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
    /// The value is no group, only a stage: [`Context::group`] made it in an actor without a group, or it belongs to
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

/// The migration service of a theater for its actors: sends them to other theaters, and records their groups.
pub trait MigrationHost: Send + Sync + 'static {
    /// Returns the name of a new group, or `None` if the theater is closing.
    fn new_group(&self) -> Option<GroupName>;
    /// Returns the stage of a group in this theater. It is `own` if this theater made the group.
    fn stage_of(&self, group: GroupName, own: u16) -> u16;
    /// Records that `actor`, of the type `kind`, was started in a group.
    fn join(&self, group: GroupName, actor: ActorId, kind: &'static str);
    /// Returns the group that the actor is a member of.
    fn group_of(&self, actor: ActorId) -> Option<GroupName>;
    /// Begins the migration of `actor` to the theater at `to`. `failed` is called if it fails early.
    fn migrate(&self, actor: ActorId, to: SocketAddr, failed: Box<dyn FnOnce(MigrateError) + Send>);
    /// Ends a watch on `actor` that the actor's stub has not recorded.
    fn forget_watch(&self, actor: ActorId, watcher: Watcher);
}

fn migration_host() -> Option<Arc<dyn MigrationHost>> {
    playhouse_executor::with_current_system(|system| {
        migration_host_of(system.expect("a handler runs on a worker")).cloned()
    })
}

/// Ends a watch on this actor. The actor's stub may have been about to record it.
pub(crate) fn forget_watch(actor: ActorId, watcher: Watcher) {
    if let Some(migration_host) = migration_host() {
        migration_host.forget_watch(actor, watcher);
    }
}

/// Requests the migration of the running actor.
pub(crate) fn migrate<A: Mobile>(address: Address<ActorState<A>>, to: SocketAddr) {
    let failed = Box::new(move |why| address.send(MigrationFailedHook(why)));
    match migration_host() {
        Some(migration_host) => migration_host.migrate(ActorId(address.raw()), to, failed),
        None => failed(MigrateError::Unreachable("this system is not that of a theater".to_owned())),
    }
}
