//! References to actors whose type is known by its name only.

use std::any::TypeId;
use std::collections::HashMap;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, OnceLock};

use playhouse_executor::SystemCore;

use crate::actor::reference::ActorRef;
use crate::actor::{Actor, ActorId, ActorState, Notify, Watcher};
use crate::remote::stub::{Forwarder, StubPlacement};
use crate::remote::wire::{Controls, Remote, handles, spawns};

/// A reference to an actor of any type that other theaters may send to: `Copy`, keeping nothing alive, and good wherever the
/// actor goes. It takes no message; [`downcast`](AnyActor::downcast) gives back the reference that does.
///
/// It may be part of a message, an answer or a state that goes to another theater. The program there must know the actor's
/// type: where it does not, the message (or the answer) cannot be read, and the error names the type.
#[derive(Clone, Copy)]
pub struct AnyActor {
    pub(crate) id: ActorId,
    pub(crate) name: &'static str,
    controls: &'static Controls,
}

/// An actor is of another type than was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WrongType {
    /// The type that was asked for, as it is called on the wire.
    pub expected: &'static str,
    /// The type of the actor.
    pub found: &'static str,
}

impl fmt::Display for WrongType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the actor is a {}, and a {} was asked for", self.found, self.expected)
    }
}

impl std::error::Error for WrongType {}

impl<A: Remote> From<ActorRef<A>> for AnyActor {
    fn from(actor: ActorRef<A>) -> AnyActor {
        AnyActor { id: actor.id(), name: A::wire_name(), controls: const { &Controls::of::<A>() } }
    }
}

impl AnyActor {
    /// The reference with its type.
    ///
    /// # Errors
    /// The actor is no `A`: which type it is of.
    pub fn downcast<A: Remote>(self) -> Result<ActorRef<A>, WrongType> {
        match ActorRef::of_id(self.id) {
            Some(actor) => Ok(actor),
            // It has ended: nobody hears what is sent to it.
            None if A::wire_name() == self.name => {
                Ok(ActorRef::of_id_or_ended(self.id).unwrap_or_else(ActorRef::nowhere))
            }
            None => Err(WrongType { expected: A::wire_name(), found: self.name }),
        }
    }

    /// What the actor's type is called on the wire.
    pub fn type_name(self) -> &'static str {
        self.name
    }

    /// The identity of the actor.
    pub fn id(self) -> ActorId {
        self.id
    }

    /// Whether the actor is known to have ended. `false` may be out of date at once.
    pub fn is_stopped(self) -> bool {
        self.id.0.is_stale()
    }

    pub(crate) fn watch(self, watcher: Watcher, notify: Notify) {
        (self.controls.watch)(self.id, watcher, notify);
    }

    pub(crate) fn unwatch(self, watcher: Watcher) {
        (self.controls.unwatch)(self.id, watcher);
    }
}

impl PartialEq for AnyActor {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}
impl Eq for AnyActor {}
impl Hash for AnyActor {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.id.hash(state);
    }
}

impl fmt::Debug for AnyActor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.name, self.id)
    }
}

/// A type of actors that other theaters may send to, as this program knows it.
pub(crate) struct ActorType {
    name: &'static str,
    resident: TypeId,
    pub(crate) stub: fn(&SystemCore, StubPlacement, Arc<dyn Forwarder>) -> ActorId,
    controls: &'static Controls,
    /// Actors of this type can be taken to other theaters.
    is_mobile: bool,
}

impl ActorType {
    /// The type that is called `name`.
    pub(crate) fn named(name: &str) -> Option<&'static ActorType> {
        static ALL: OnceLock<HashMap<&'static str, ActorType>> = OnceLock::new();
        let all = ALL.get_or_init(|| {
            let of_messages = handles().map(|of| ((of.actor_name)(), (of.resident)(), of.stub, &of.controls, false));
            let of_spawns = spawns().map(|of| {
                let is_mobile = of.moves.is_some();
                ((of.actor_name)(), (of.resident)(), of.stub, &of.controls, is_mobile)
            });
            // The entries of those that are started come last: they know whether they move.
            let all = of_messages.chain(of_spawns);
            all.map(|(name, resident, stub, controls, is_mobile)| {
                (name, ActorType { name, resident, stub, controls, is_mobile })
            })
            .collect()
        });
        all.get(name)
    }

    /// The type `A`, if other theaters may send to its actors.
    pub(crate) fn of<A: Actor>() -> Option<&'static ActorType> {
        static ALL: OnceLock<HashMap<TypeId, &'static str>> = OnceLock::new();
        let all = ALL.get_or_init(|| {
            let of_messages = handles().map(|of| ((of.resident)(), (of.actor_name)()));
            of_messages.chain(spawns().map(|of| ((of.resident)(), (of.actor_name)()))).collect()
        });
        ActorType::named(all.get(&TypeId::of::<ActorState<A>>())?)
    }

    /// Whether actors of the type `A` can be taken to other theaters.
    pub(crate) fn moves<A: Actor>() -> bool {
        ActorType::of::<A>().is_some_and(|known| known.is_mobile)
    }

    /// `id`, which is one of these, or was.
    pub(crate) fn actor(&self, id: ActorId) -> AnyActor {
        AnyActor { id, name: self.name, controls: self.controls }
    }

    /// `id`, if it is one of these, or has ended.
    pub(crate) fn reference(&self, id: ActorId) -> Option<AnyActor> {
        let is_other = id.0.resident_type().is_some_and(|resident| resident != self.resident);
        (!is_other).then(|| self.actor(id))
    }

    /// A reference to nobody.
    pub(crate) fn nobody() -> AnyActor {
        struct Nobody;
        impl crate::actor::Actor for Nobody {}
        let id = ActorId(playhouse_executor::RawAddress::nowhere::<ActorState<Nobody>>().raw());
        AnyActor { id, name: "", controls: const { &Controls::of::<Nobody>() } }
    }
}
