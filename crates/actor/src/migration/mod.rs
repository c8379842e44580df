//! Migration of actors between theaters while they run.
//!
//! This module has the requests to one cell when an actor leaves or arrives. `playhouse-theater` decides when they are
//! sent (see its `migration/host.rs`).

mod arrive;
mod depart;
pub(crate) mod gather;
mod hooks;
pub(crate) mod offer;
pub(crate) mod spawns;
pub(crate) mod steps;

use std::net::SocketAddr;

use playhouse_executor::Address;

use crate::actor::context::Context;
use crate::actor::migrate_error::MigrateError;
use crate::actor::migration_host::migration_host;
use crate::actor::{Actor, ActorId, ActorState};
use crate::migration::hooks::MigrationFailedHook;
use crate::remote::registry::Mobile;

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
