//! The steps of a migration, by the type of the actor: a table of functions, each of which sends a request to a cell.

use std::sync::Arc;

use playhouse_executor::{Address, Control, StubRoute, SystemCore, Undelivered};

use crate::actor::migrate_error::MigrateError;
use crate::actor::{Actor, ActorId, ActorState};
use crate::codec::{Codec, WireError};
use crate::message::forward::{Forwarder, Marker, forwarding};
use crate::migration::arrive::{install, read};
use crate::migration::depart::{Abort, Commit, Prepare};
use crate::migration::gather::{FreezeTogether, OnFrozen, PrepareFrozen, Then};
use crate::migration::hooks::MigrationFailedHook;
use crate::migration::offer::{ActorMetadata, Offer};
use crate::remote::registry::Mobile;
use crate::remote::route::{BeginReroute, Begins, EndReroute, Pass, Settled, Settling};
use crate::supervise::remote::{SupervisorLink, read_child};

/// Installs an actor that was read, at its stub in this theater, which [fits](MigrationVTable::fits). Returns the
/// arrival if the stub has just ended.
pub type Install = Box<dyn FnOnce(ActorId, Arrival) -> Option<Arrival> + Send>;

/// An actor that is about to start.
pub struct New {
    /// Installs and starts it.
    pub install: Install,
    /// Its link to its supervisor, if it is a child.
    pub supervisor_link: Option<SupervisorLink>,
}

/// The conditions under which an actor arrives at its stub in this theater.
pub struct Arrival {
    /// Holds the actor's watchers until its cell records them. They are notified of its end even if it ends in its hook
    /// `migrated`.
    pub settling: Settling,
    /// The mail that comes before the actor begins.
    pub route: ArrivalRoute,
}

/// The mail that comes before an actor begins at its stub in this theater.
pub enum ArrivalRoute {
    /// Mail that the stub has forwarded may still be under way, and comes before the mail that waits at the stub. Holds
    /// a marker for its route, unless the stub is rerouting already. The actor begins when it is
    /// [settled](MigrationVTable::settle).
    Behind(Option<Marker>),
    /// The stub has forwarded no mail.
    Freely {
        /// `true` if the actor begins when it is settled, because an arrival buffer exists.
        is_settled: bool,
    },
}

/// The steps of the migration of a mobile actor's type.
///
/// Each step is a request to the actor's cell, and does nothing if the actor has ended. All steps except `prepare`, and
/// the result of `read`, queue behind earlier sends of the same worker to the cell and to its arrival buffer, because
/// none of these may come later.
#[derive(Clone, Copy)]
pub struct MigrationVTable {
    /// Freezes the actor between two messages and offers it.
    pub prepare: fn(ActorId, Offer),
    /// Calls back when the actor is between two messages: it may then be frozen with others.
    pub when_freezable: fn(ActorId, OnFrozen),
    /// Offers the actor, which was frozen with others.
    pub prepare_frozen: fn(ActorId, Offer),
    /// Aborts the migration: the actor continues in the source.
    pub abort: fn(ActorId, MigrateError),
    /// Commits the migration: the actor has left, and its mail follows by this forwarder, as long as the route is open.
    pub commit: fn(ActorId, Arc<dyn Forwarder>, Arc<StubRoute>),
    /// Reads an incoming actor, with its metadata.
    pub read: fn(&[u8], Codec, ActorMetadata) -> Result<Install, WireError>,
    /// Reads an actor that starts, and its link to its supervisor if it is a child. On an error, that supervisor was
    /// notified.
    pub read_new: fn(&[u8], Codec, bool) -> Result<New, WireError>,
    /// Makes a stub on this stage for a remote actor. The stub forwards mail by this forwarder, as long as the route is
    /// open.
    pub make_stub: fn(&SystemCore, u16, Arc<dyn Forwarder>, Arc<StubRoute>) -> ActorId,
    /// Returns whether the stub is one of an actor of this type.
    pub fits: fn(ActorId) -> bool,
    /// Makes an arrival buffer for the actor.
    pub arrival_buffer: fn(&SystemCore, ActorId) -> Option<ActorId>,
    /// Begins the reroute of this number: new mail waits, and the marker takes the old route.
    pub begin_reroute: fn(ActorId, u64, Marker),
    /// Passes a marker on, behind the mail.
    pub pass_marker: fn(ActorId, Marker),
    /// Lets the waiting mail continue.
    pub settle: fn(ActorId, Settled, Settling),
    /// Calls the hook of a failed migration.
    pub failed: fn(ActorId, MigrateError),
    /// Calls back behind earlier requests to the cell.
    pub then: fn(ActorId, Box<dyn FnOnce() + Send>),
}

pub(super) fn to<A: Actor>(id: ActorId) -> Option<Address<ActorState<A>>> {
    id.0.of_type()
}

/// Sends a request to the cell. It bounces if the actor has ended.
fn request_now<A: Actor>(id: ActorId, request: impl Control<ActorState<A>>) {
    match to::<A>(id) {
        Some(address) => address.send_control(request),
        None => request.bounce(Undelivered::Stopped),
    }
}

/// Sends a request to the cell, behind earlier sends of the same worker. It bounces if the actor has ended.
fn request_behind<A: Actor>(id: ActorId, request: impl Control<ActorState<A>>) {
    match to::<A>(id) {
        Some(address) => address.send_control_behind(request),
        None => request.bounce(Undelivered::Stopped),
    }
}

impl MigrationVTable {
    pub(crate) const fn of<A: Mobile>() -> MigrationVTable {
        MigrationVTable {
            prepare: |id, offer| request_now::<A>(id, Prepare { offer, asks_again: true }),
            when_freezable: |id, on_frozen| request_now::<A>(id, FreezeTogether { on_frozen, asks_again: true }),
            prepare_frozen: |id, offer| request_now::<A>(id, PrepareFrozen(offer)),
            abort: |id, why| request_behind::<A>(id, Abort(why)),
            commit: |id, forwarder, route| request_behind::<A>(id, Commit(forwarder, route)),
            read: read::<A>,
            read_new: |bytes, codec, is_child| {
                let is_new = ActorMetadata { is_new: true, ..ActorMetadata::default() };
                if !is_child {
                    return Ok(New { install: install::<A>(codec.read(bytes)?, is_new), supervisor_link: None });
                }
                let (supervisor_link, name, actor) = read_child::<A>(bytes, codec)?;
                let metadata = ActorMetadata { name: Some(name), supervisor_link: Some(supervisor_link), ..is_new };
                Ok(New { install: install(actor, metadata), supervisor_link: Some(supervisor_link) })
            },
            make_stub: |system, stage, forwarder, route| {
                let address = system.spawn_away::<ActorState<A>>(stage, forwarding(forwarder), Some(route));
                ActorId(address.raw())
            },
            fits: |id| to::<A>(id).is_some(),
            arrival_buffer: |system, id| {
                let address = system.arrival_buffer(to::<A>(id)?);
                Some(ActorId(address.raw()))
            },
            begin_reroute: |id, number, marker| request_behind::<A>(id, BeginReroute { number, marker }),
            // The marker passes a waiting handler, or an undecided crash. Mail that came before the marker waits in its
            // order, and the supervisor that decides about the crash may be waiting for the answer.
            pass_marker: |id, marker| request_behind::<A>(id, Pass::new(marker)),
            settle: |id, settled, settling| match settled {
                Settled::Begins { arrival_buffer } => {
                    request_behind::<A>(id, Begins::<A>::new(arrival_buffer.and_then(to::<A>), settling));
                }
                Settled::Turned { number, forwarder } => {
                    request_behind::<A>(id, EndReroute { number, forwarder, settling });
                }
            },
            failed: |id, why| {
                if let Some(address) = to::<A>(id) {
                    address.send(MigrationFailedHook(why));
                }
            },
            then: |id, call| request_behind::<A>(id, Then(call)),
        }
    }
}
