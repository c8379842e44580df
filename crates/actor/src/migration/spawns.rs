//! The actors of a binary that other theaters can start, or send to this theater.

use std::any::TypeId;
use std::sync::Arc;

use playhouse_executor::SystemCore;
use serde::{Deserialize, Serialize};

use crate::actor::spawn::{SpawnOptions, spawn};
use crate::actor::{ActorId, ActorState};
use crate::codec::{Codec, WireError, schema_of};
use crate::message::decision::{About, Decision};
use crate::message::forward::Forwarder;
use crate::migration::steps::MigrationVTable;
use crate::remote::any::ActorType;
use crate::remote::registry::{Controls, Mobile, Remote};
use crate::remote::stub::{StubPlacement, spawn_stub};
use crate::supervise::remote::{decide, start_child};

/// Reads the state of an actor and starts it.
pub type SpawnFrom = fn(&Arc<SystemCore>, &[u8], Codec) -> Result<ActorId, WireError>;

/// Gives an actor the decision of its supervisor.
pub type Decide = fn(ActorId, About, Decision<(&[u8], Codec)>) -> Result<(), WireError>;

/// An entry of the binary's list: an actor that other theaters can start with a state that they send.
pub struct Spawns {
    /// The actor's type.
    pub actor: fn() -> TypeId,
    /// The type by which the executor knows the actor.
    pub resident: fn() -> TypeId,
    /// The wire name of the actor's type.
    pub actor_name: fn() -> &'static str,
    /// The fingerprint of its state. `None` if it is unknown, so that field names must be written.
    pub schema: fn() -> Option<u64>,
    /// Reads the state and starts the actor.
    pub spawn: SpawnFrom,
    /// Reads the link to the remote supervisor and the state, and starts the actor as a child.
    pub spawn_child: SpawnFrom,
    /// Gives the actor the decision of its supervisor. A new state is read from bytes.
    pub decide: Decide,
    /// The migration steps, if the actor is mobile.
    pub moves: Option<MigrationVTable>,
    /// Makes a stub for such an actor: see [`crate::remote::stub::spawn_stub`].
    pub stub: fn(&SystemCore, StubPlacement, Arc<dyn Forwarder>) -> ActorId,
    /// The operations on the actor that need no message type.
    pub controls: Controls,
}

inventory::collect!(Spawns);

impl Spawns {
    /// Returns the entry for `A`.
    pub const fn of<A: Remote + Serialize + for<'de> Deserialize<'de>>() -> Spawns {
        Spawns {
            actor: TypeId::of::<A>,
            resident: TypeId::of::<ActorState<A>>,
            actor_name: A::wire_name,
            schema: schema_of::<A>,
            spawn: |system, bytes, codec| {
                let actor: A = codec.read(bytes)?;
                let spawned =
                    spawn(system, SpawnOptions::new(), actor).map_err(|error| WireError::new(error.to_string()))?;
                Ok(spawned.id())
            },
            spawn_child: start_child::<A>,
            decide: decide::<A>,
            moves: None,
            stub: |system, stub_placement, forwarder| spawn_stub::<A>(system, stub_placement, forwarder).id(),
            controls: Controls::of::<A>(),
        }
    }

    /// Returns the entry for a mobile `A`.
    pub const fn mobile<A: Mobile>() -> Spawns {
        Spawns { moves: Some(MigrationVTable::of::<A>()), ..Spawns::of::<A>() }
    }
}

/// Returns all entries of the binary.
pub fn spawns() -> impl Iterator<Item = &'static Spawns> {
    inventory::iter::<Spawns>.into_iter()
}

/// Returns the actor types of all entries.
pub(crate) fn actor_types() -> Vec<ActorType> {
    let known = |of: &'static Spawns| {
        ActorType::new((of.actor_name)(), (of.resident)(), of.stub, &of.controls, of.moves.is_some())
    };
    spawns().map(known).collect()
}
