//! The wire form of references: the names of actors between theaters, and the codec that makes and reads them.

use std::any::{TypeId, type_name};
use std::cell::RefCell;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::ThreadId;

use playhouse_executor::SystemCore;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::actor::ActorId;
use crate::actor::group::GroupName;
use crate::actor::reference::ActorRef;
use crate::ask::recipient::Recipient;
use crate::codec::crossing::{Crossing, crossing, during};
use crate::codec::{Codec, WireError, unreadable};
use crate::lock::lock;
use crate::message::Message;
use crate::message::forward::Forwarder;
use crate::remote::any::{ActorType, AnyActor};
use crate::remote::registry::{Remote, handles_named, handles_of};
use crate::remote::stub::{StubPlacement, spawn_stub};

/// The form of a reference on its way from one theater to another.
///
/// The codec that writes names writes the fields as `life` and `seal`, because peers of other builds read these names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum RefName {
    /// An actor of the sender.
    Mine {
        /// Its slot.
        slot: u64,
        /// The incarnation of the slot.
        #[serde(rename = "life")]
        incarnation: u64,
        /// Proves that the sender has made this name.
        #[serde(rename = "seal")]
        capability: u64,
    },
    /// An actor of the receiver, by the number that the sender has given it.
    Yours(u32),
    /// An actor that was born in one theater and has migrated to another.
    Moved {
        /// The location that it was born in. Without the address, that is its name.
        born: ActorLocation,
        /// Its location, or that of a theater that knows the route.
        at: ActorLocation,
    },
    /// An actor of another theater.
    Other {
        /// The theater, with its incarnation.
        theater: u64,
        /// The address at which it accepts connections.
        address: SocketAddr,
        /// The actor's slot in that theater.
        slot: u64,
        /// The incarnation of the slot.
        #[serde(rename = "life")]
        incarnation: u64,
        /// Proves that the theater has made this name.
        #[serde(rename = "seal")]
        capability: u64,
    },
    /// A mobile actor of a group.
    Member {
        /// The group.
        group: GroupName,
        /// The location that it was born in. Without the address, that is its name.
        born: ActorLocation,
        /// Its location, or that of a theater that knows the route. `None` if it was born in the sender, and has never
        /// migrated.
        at: Option<ActorLocation>,
    },
}

/// The location of an actor: a slot of a theater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename = "Seat")]
pub struct ActorLocation {
    /// The theater.
    pub theater: u64,
    /// The address at which the theater accepts connections, if it does.
    pub address: Option<SocketAddr>,
    /// The slot in that theater.
    pub slot: u64,
    /// The incarnation of the slot.
    #[serde(rename = "life")]
    pub incarnation: u64,
    /// Proves that the theater has made this name.
    #[serde(rename = "seal")]
    pub capability: u64,
}

/// Makes a stub.
pub type MakeStub<'a> = &'a dyn Fn(&SystemCore, StubPlacement, Arc<dyn Forwarder>) -> ActorId;

/// The codec of references between this theater and another: it translates actors to names and back.
pub trait RefCodec: Send + Sync {
    /// Returns the name of an actor for the other theater.
    ///
    /// # Errors
    /// The actor has no name for that theater.
    fn name_of(&self, id: ActorId) -> Result<RefName, WireError>;

    /// Returns the actor of a name from the other theater. `stub` makes a stub for it if there is none yet.
    ///
    /// # Errors
    /// There is no such actor.
    fn meet(&self, name: RefName, stub: MakeStub<'_>) -> Result<ActorId, WireError>;
}

thread_local! {
    static REF_CODEC: RefCell<Option<Arc<dyn RefCodec>>> = const { RefCell::new(None) };
}

/// The reference codecs of threads whose [`REF_CODEC`] is destroyed: values may be written in the destructors of other
/// thread-locals.
static LATE_REF_CODECS: Mutex<Vec<(ThreadId, Arc<dyn RefCodec>)>> = Mutex::new(Vec::new());

fn late_ref_codecs() -> MutexGuard<'static, Vec<(ThreadId, Arc<dyn RefCodec>)>> {
    lock(&LATE_REF_CODECS)
}

/// Calls `f`, which writes or reads values that cross `ref_codec`.
pub fn at_ref_codec<R>(ref_codec: &Arc<dyn RefCodec>, f: impl FnOnce() -> R) -> R {
    struct Back(Option<Arc<dyn RefCodec>>);
    impl Drop for Back {
        fn drop(&mut self) {
            if let Some(ref_codec) = self.0.take() {
                REF_CODEC.set(Some(ref_codec));
            }
        }
    }
    // The last codec stays in place, because the next one is the same in most cases.
    let known = REF_CODEC.try_with(|known| match &mut *known.borrow_mut() {
        Some(known) if Arc::ptr_eq(known, ref_codec) => Back(None),
        known => Back(known.replace(Arc::clone(ref_codec))),
    });
    match known {
        Ok(_back) => during(Crossing::Theaters, f),
        Err(_) => at_ref_codec_late(ref_codec, f),
    }
}

#[cold]
fn at_ref_codec_late<R>(ref_codec: &Arc<dyn RefCodec>, f: impl FnOnce() -> R) -> R {
    struct Back(ThreadId);
    impl Drop for Back {
        fn drop(&mut self) {
            let mut ref_codecs = late_ref_codecs();
            let _ref_codec =
                ref_codecs.iter().rposition(|(thread, _)| *thread == self.0).map(|at| ref_codecs.remove(at));
            drop(ref_codecs);
        }
    }
    let this = std::thread::current().id();
    late_ref_codecs().push((this, Arc::clone(ref_codec)));
    let _back = Back(this);
    during(Crossing::Theaters, f)
}

#[cold]
fn late_ref_codec() -> Option<Arc<dyn RefCodec>> {
    let this = std::thread::current().id();
    late_ref_codecs().iter().rfind(|(thread, _)| *thread == this).map(|(_, ref_codec)| Arc::clone(ref_codec))
}

fn ref_codec() -> Result<Arc<dyn RefCodec>, WireError> {
    let crossing = crossing() == Crossing::Theaters;
    crossing
        .then(|| REF_CODEC.try_with(|ref_codec| ref_codec.borrow().clone()).unwrap_or_else(|_| late_ref_codec()))
        .flatten()
        .ok_or_else(|| WireError::new("a reference to an actor can be written only in a message to another theater"))
}

impl<A: Remote> Serialize for ActorRef<A> {
    /// Writes the reference as part of a message or an answer to another theater.
    ///
    /// # Errors
    /// In any other context.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let name = ref_codec().and_then(|ref_codec| ref_codec.name_of(self.id())).map_err(serde::ser::Error::custom)?;
        name.serialize(serializer)
    }
}

impl<'de, A: Remote> Deserialize<'de> for ActorRef<A> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = RefName::deserialize(deserializer)?;
        if crossing() == Crossing::Shape {
            return Ok(ActorRef::nowhere());
        }
        let stub =
            |system: &SystemCore, stub_placement, forwarder| spawn_stub::<A>(system, stub_placement, forwarder).id();
        let met = ref_codec().and_then(|ref_codec| ref_codec.meet(name, &stub)).map_err(unreadable)?;
        // The actor may have ended since. Messages to it become dead letters, and the reference still equals others to
        // it.
        match ActorRef::of_id_or_ended(met) {
            Some(actor) => Ok(actor),
            None => Err(unreadable(format!("{met} is no {}", type_name::<A>()))),
        }
    }
}

impl<M: Message> Serialize for Recipient<M> {
    /// Writes the recipient as part of a message or an answer to another theater.
    ///
    /// # Errors
    /// In any other context, and if the actor takes no such message from other theaters.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let named = ref_codec().and_then(|ref_codec| {
            let entry = self.id().0.resident_type().and_then(|actor| handles_of(actor, TypeId::of::<M>()));
            // The name of an actor that has ended is not needed.
            let actor = entry.map_or("", |entry| (entry.actor_name)());
            if entry.is_none() && !self.id().0.is_stale() {
                let (id, name) = (self.id(), type_name::<M>());
                return Err(WireError::new(format!(
                    "{id} takes no {name} from other theaters: see `#[actor(remote)]`, and `#[actor(more, remote)]` for a further block"
                )));
            }
            Ok((ref_codec.name_of(self.id())?, actor))
        });
        named.map_err(serde::ser::Error::custom)?.serialize(serializer)
    }
}

impl<'de, M: Message> Deserialize<'de> for Recipient<M> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (name, actor) = <(RefName, String)>::deserialize(deserializer)?;
        if crossing() == Crossing::Shape || actor.is_empty() {
            return Ok(Recipient::nowhere());
        }
        let met = ref_codec().and_then(|ref_codec| {
            let entry = handles_named(&actor, TypeId::of::<M>());
            let unknown = || WireError::new(format!("this program knows no {actor} that takes a {}", type_name::<M>()));
            let entry = entry.ok_or_else(unknown)?;
            Ok((ref_codec.meet(name, &entry.stub)?, entry))
        });
        let (id, entry) = met.map_err(unreadable)?;
        match (entry.recipient)(id).and_then(|recipient| recipient.downcast::<Recipient<M>>().ok()) {
            Some(recipient) => Ok(*recipient),
            // The actor may have ended since: messages to it become dead letters.
            None if id.0.is_stale() => Ok(Recipient::nowhere()),
            None => Err(unreadable(format!("{id} is no {actor}"))),
        }
    }
}

impl Serialize for AnyActor {
    /// Writes the reference as part of a message or an answer to another theater.
    ///
    /// # Errors
    /// In any other context.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let name = ref_codec().and_then(|ref_codec| ref_codec.name_of(self.id)).map_err(serde::ser::Error::custom)?;
        (name, self.name).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for AnyActor {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (name, actor) = <(RefName, String)>::deserialize(deserializer)?;
        if crossing() == Crossing::Shape {
            return Ok(ActorType::nobody());
        }
        let met = ref_codec().and_then(|ref_codec| {
            let unknown = || {
                WireError::new(format!(
                    "the program of this theater has no actors called {actor} that others may send to: see `#[actor(remote)]`"
                ))
            };
            let known = ActorType::named(&actor).ok_or_else(unknown)?;
            let id = ref_codec.meet(name, &known.stub)?;
            known.reference(id).ok_or_else(|| WireError::new(format!("{id} is no {actor}")))
        });
        met.map_err(unreadable)
    }
}

/// A reference to an actor that a migrating actor watches. It is `None` in the target, if it has no name for the
/// target.
#[derive(Clone, Debug)]
pub struct Watched(pub Option<AnyActor>);

impl Serialize for Watched {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let name = |watched: AnyActor| Some((ref_codec().ok()?.name_of(watched.id()).ok()?, watched.type_name()));
        self.0.and_then(name).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Watched {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let named = Option::<(RefName, String)>::deserialize(deserializer)?;
        let meet = |(name, actor): (RefName, String)| {
            let known = ActorType::named(&actor)?;
            known.reference(ref_codec().ok()?.meet(name, &known.stub).ok()?)
        };
        Ok(Watched(named.and_then(meet)))
    }
}

/// Returns a copy of `message`, made by its wire form.
pub(crate) fn copy_of<M: Message>(message: &M) -> Result<M, WireError> {
    /// The reference codec of a theater to itself.
    struct OwnRefCodec;
    impl RefCodec for OwnRefCodec {
        fn name_of(&self, id: ActorId) -> Result<RefName, WireError> {
            Ok(RefName::Mine { slot: id.0.slot(), incarnation: id.0.incarnation(), capability: 0 })
        }

        fn meet(&self, name: RefName, _: MakeStub<'_>) -> Result<ActorId, WireError> {
            let RefName::Mine { slot, incarnation, .. } = name else {
                return Err(WireError::new("no name of a mirror's"));
            };
            let find = |system: &Arc<SystemCore>| {
                system.find(slot, incarnation).or_else(|| system.find_ended(slot, incarnation))
            };
            let found = playhouse_executor::with_current_system(|system| system.and_then(find));
            found.map(ActorId::of).ok_or_else(|| WireError::new("an actor of another system"))
        }
    }
    let ref_codec: Arc<dyn RefCodec> = Arc::new(OwnRefCodec);
    at_ref_codec(&ref_codec, || {
        let form = const { &M::WIRE }.as_ref().ok_or_else(|| WireError::new("it has no wire form"))?;
        let mut bytes = Vec::new();
        form.write(message, Codec::Positional, &mut bytes)?;
        form.read(&bytes, Codec::Positional)
    })
}

#[cfg(test)]
mod tests {
    use super::{ActorLocation, RefName};
    use crate::codec::Codec;

    /// Peers of other builds read these names.
    #[test]
    fn the_fields_of_a_reference_keep_their_names_on_the_wire() {
        let born = ActorLocation { theater: 1, address: None, slot: 2, incarnation: 3, capability: 4 };
        let mine = RefName::Mine { slot: 2, incarnation: 3, capability: 4 };
        let other = RefName::Other {
            theater: 1,
            address: "127.0.0.1:9".parse().expect("the address is one"),
            slot: 2,
            incarnation: 3,
            capability: 4,
        };
        for name in [mine, other, RefName::Moved { born, at: born }] {
            let mut bytes = Vec::new();
            Codec::Named.write(&name, &mut bytes).expect("a name can be written");
            let has = |key: &str| {
                bytes.windows(key.len() + 1).any(|at| at[0] == 0xa0 | key.len() as u8 && &at[1..] == key.as_bytes())
            };
            assert!(has("slot") && has("life") && has("seal"), "{name:?} is written as {bytes:?}");
            assert!(!has("incarnation") && !has("capability"), "{name:?} is written as {bytes:?}");
            assert_eq!(Codec::Named.read::<RefName>(&bytes), Ok(name));
        }
    }
}
