//! Migration of actors between theaters while they run.
//!
//! This module has the requests to one cell when an actor leaves or arrives. `playhouse-theater` decides when they are
//! sent (see its `migration/host.rs`).

pub(crate) mod gather;
mod hooks;
pub(crate) mod offer;
mod requests;
pub(crate) mod steps;

use std::net::SocketAddr;

use playhouse_executor::Address;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::actor::context::Context;
use crate::actor::migrate_error::MigrateError;
use crate::actor::migration_host::migration_host;
use crate::actor::{Actor, ActorId, ActorState};
use crate::migration::hooks::MigrationFailedHook;
use crate::remote::wire::Remote;

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

impl<A: Actor> Context<A> {
    /// Requests a migration of this actor to the theater at `theater`.
    ///
    /// The actor leaves between two messages, soon after this one. Until then it handles its mail in this theater;
    /// later mail follows it, in order. A queued request is forgotten if the actor leaves by another request first.
    ///
    /// All actors of its [group](crate::Group) in this theater migrate with it, once each is between two messages.
    ///
    /// After success, [`migrated`](Actor::migrated) is called in the target. After a failure,
    /// [`migration_failed`](Actor::migration_failed) is called in the source, and the actor continues unchanged.
    /// Neither is called if the actor is in the target already, or if the request is forgotten.
    pub fn migrate_to(&mut self, theater: std::net::SocketAddr)
    where
        A: Mobile,
    {
        migrate(self.cx.address(), theater);
    }
}

/// Requests the migration of the running actor.
fn migrate<A: Mobile>(address: Address<ActorState<A>>, to: SocketAddr) {
    let failed = Box::new(move |why| address.send(MigrationFailedHook(why)));
    match migration_host() {
        Some(migration_host) => migration_host.migrate(ActorId(address.raw()), to, failed),
        None => failed(MigrateError::Unreachable("this system is not that of a theater".to_owned())),
    }
}
