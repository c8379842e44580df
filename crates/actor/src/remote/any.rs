//! References to actors whose type is known only by its name.

use std::any::TypeId;
use std::collections::HashMap;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, OnceLock};

use playhouse_executor::SystemCore;

use crate::actor::reference::ActorRef;
use crate::actor::{Actor, ActorId, ActorState, Notify, Watcher};
use crate::message::forward::Forwarder;
use crate::remote::registry::{Controls, Remote, handles};
use crate::remote::stub::StubPlacement;

/// A reference to a remotely reachable actor of any type. It is `Copy`, keeps no actor alive, and stays valid wherever
/// the actor migrates.
///
/// It takes no messages; [`downcast`](AnyActor::downcast) gives back the typed reference that does.
///
/// It may be part of a message, an answer or a state that goes to another theater. The program of that theater must
/// know the actor's type. If it does not, the message (or the answer) cannot be read, and the error names the type.
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
/// # impl Actor for Bell {}
/// # impl Handler<Ring> for Bell { fn handle(&mut self, _: Ring, _: &mut Context<Self>) {} }
/// # struct Door;
/// # impl Actor for Door {}
/// # impl Handler<Ring> for Door { fn handle(&mut self, _: Ring, _: &mut Context<Self>) {} }
/// # remote!(Bell: Ring);
/// # remote!(Door: Ring);
/// # let system = System::start()?;
/// let bell = system.spawn(Bell); // an actor that other theaters may send to
/// let any: AnyActor = bell.into();
/// assert_eq!(any.id(), bell.id());
/// assert_eq!(any.downcast::<Bell>()?, bell);
/// # system.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy)]
pub struct AnyActor {
    pub(crate) id: ActorId,
    pub(crate) name: &'static str,
    controls: &'static Controls,
}

/// The error of a reference whose actor has another type than the requested one.
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
/// # impl Actor for Bell {}
/// # impl Handler<Ring> for Bell { fn handle(&mut self, _: Ring, _: &mut Context<Self>) {} }
/// # struct Door;
/// # impl Actor for Door {}
/// # impl Handler<Ring> for Door { fn handle(&mut self, _: Ring, _: &mut Context<Self>) {} }
/// # remote!(Bell: Ring);
/// # remote!(Door: Ring);
/// # let system = System::start()?;
/// let any: AnyActor = system.spawn(Bell).into();
/// let error: WrongType = any.downcast::<Door>().unwrap_err();
/// assert!(error.found.ends_with("Bell") && error.expected.ends_with("Door"));
/// # system.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WrongType {
    /// The requested type, by its name on the wire.
    pub expected: &'static str,
    /// The type of the actor, by its name on the wire.
    pub found: &'static str,
}

impl fmt::Display for WrongType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the actor is a {}, but a {} was requested", self.found, self.expected)
    }
}

impl std::error::Error for WrongType {}

impl<A: Remote> From<ActorRef<A>> for AnyActor {
    fn from(actor: ActorRef<A>) -> AnyActor {
        AnyActor { id: actor.id(), name: A::wire_name(), controls: const { &Controls::of::<A>() } }
    }
}

impl AnyActor {
    /// Returns the reference with its type.
    ///
    /// # Errors
    /// [`WrongType`] if the actor is no `A`: it names the actor's type.
    pub fn downcast<A: Remote>(self) -> Result<ActorRef<A>, WrongType> {
        match ActorRef::of_id(self.id) {
            Some(actor) => Ok(actor),
            // The actor has ended, so messages to it become dead letters in any case.
            None if A::wire_name() == self.name => {
                Ok(ActorRef::of_id_or_ended(self.id).unwrap_or_else(ActorRef::nowhere))
            }
            None => Err(WrongType { expected: A::wire_name(), found: self.name }),
        }
    }

    /// Returns the wire name of the actor's type.
    pub fn type_name(self) -> &'static str {
        self.name
    }

    /// Returns the identity of the actor.
    pub fn id(self) -> ActorId {
        self.id
    }

    /// Returns whether the actor is known to have ended. A `false` may be out of date at once.
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

/// A type of remotely reachable actors, registered in this program.
pub(crate) struct ActorType {
    name: &'static str,
    resident: TypeId,
    pub(crate) stub: fn(&SystemCore, StubPlacement, Arc<dyn Forwarder>) -> ActorId,
    controls: &'static Controls,
    /// Actors of this type can migrate to other theaters.
    is_mobile: bool,
}

/// Returns the types of the binary's actors that can be started from outside. It is set when the first system starts.
static STARTABLE: OnceLock<fn() -> Vec<ActorType>> = OnceLock::new();

impl ActorType {
    pub(crate) fn new(
        name: &'static str,
        resident: TypeId,
        stub: fn(&SystemCore, StubPlacement, Arc<dyn Forwarder>) -> ActorId,
        controls: &'static Controls,
        is_mobile: bool,
    ) -> ActorType {
        ActorType { name, resident, stub, controls, is_mobile }
    }

    /// Sets the function that returns the types that can be started from outside.
    pub(crate) fn set_startable(types: fn() -> Vec<ActorType>) {
        let _former = STARTABLE.set(types);
    }

    fn startable() -> Vec<ActorType> {
        STARTABLE.get().map_or_else(Vec::new, |types| types())
    }

    /// Returns the type with the wire name `name`.
    pub(crate) fn named(name: &str) -> Option<&'static ActorType> {
        static ALL: OnceLock<HashMap<&'static str, ActorType>> = OnceLock::new();
        let all = ALL.get_or_init(|| {
            let of_messages =
                handles().map(|of| ActorType::new((of.actor_name)(), (of.resident)(), of.stub, &of.controls, false));
            // The types that can be started come last, because they know whether the type is mobile.
            let all = of_messages.chain(ActorType::startable());
            all.map(|known| (known.name, known)).collect()
        });
        all.get(name)
    }

    /// Returns the entry of type `A`, if other theaters may send to its actors.
    pub(crate) fn of<A: Actor>() -> Option<&'static ActorType> {
        static ALL: OnceLock<HashMap<TypeId, &'static str>> = OnceLock::new();
        let all = ALL.get_or_init(|| {
            let of_messages = handles().map(|of| ((of.resident)(), (of.actor_name)()));
            of_messages.chain(ActorType::startable().into_iter().map(|known| (known.resident, known.name))).collect()
        });
        ActorType::named(all.get(&TypeId::of::<ActorState<A>>())?)
    }

    /// Returns whether actors of type `A` can migrate to other theaters.
    pub(crate) fn moves<A: Actor>() -> bool {
        ActorType::of::<A>().is_some_and(|known| known.is_mobile)
    }

    /// Returns a reference to `id`, which is an actor of this type, or was one.
    pub(crate) fn actor(&self, id: ActorId) -> AnyActor {
        AnyActor { id, name: self.name, controls: self.controls }
    }

    /// Returns a reference to `id`, if it is an actor of this type, or has ended.
    pub(crate) fn reference(&self, id: ActorId) -> Option<AnyActor> {
        let is_other = id.0.resident_type().is_some_and(|resident| resident != self.resident);
        (!is_other).then(|| self.actor(id))
    }

    /// Returns a reference to an actor that has ended.
    pub(crate) fn nobody() -> AnyActor {
        struct Nobody;
        impl crate::actor::Actor for Nobody {}
        let id = ActorId(playhouse_executor::RawAddress::nowhere::<ActorState<Nobody>>().raw());
        AnyActor { id, name: "", controls: const { &Controls::of::<Nobody>() } }
    }
}
