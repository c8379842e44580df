//! Actors that live elsewhere: how their mail leaves, and how references cross.
//!
//! The place of such an actor is a cell without a state (see `stub.rs` of the executor). What is known of the actor's
//! whereabouts is a [`Carrier`] in its extra part. Envelopes that are to be sent on become [`Parcel`]s here: values that
//! can be written, without their types. What carriers do with them is the business of `playhouse-theater`.

use std::any::{TypeId, type_name};
use std::cell::{Cell, RefCell};
use std::fmt;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::ThreadId;

use playhouse_executor::{AwayCx, Lane, RawAddress, SystemCore, Undelivered, contained};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::actor::any::{ActorType, AnyActor};
use crate::actor::group::GroupName;
use crate::actor::reference::{ActorRef, Recipient};
use crate::actor::{Actor, ActorId, ActorState, Extra, Notify, Tell, Watcher, dead_letter};
use crate::ask::AskError;
use crate::ask::reply_to::ReplyTo;
use crate::message::Message;
pub use crate::remote::recall::{ForCycle, Recall, RequestLocation, TakesBack, TooLate};
use crate::remote::wire::{Codec, Remote, WireError, handles_named, handles_of};
pub use crate::supervise::remote::{About, Decision, Found, Host};

/// Writes a value.
pub type Write<'a> = &'a dyn Fn(Codec, &mut Vec<u8>) -> Result<(), WireError>;

/// Takes the answer to a request; if it is dropped, the asker is told that the receiver has stopped.
pub type TakeAnswer = Box<dyn FnOnce(Result<(Codec, &[u8]), AskError>) + Send>;

/// What can be sent to where an actor lives.
pub enum ForwardedMessage<'a> {
    /// A message.
    Tell {
        /// The type of the actor.
        actor: TypeId,
        /// Its type.
        message: TypeId,
        /// What that is called in reports.
        name: &'static str,
        /// In which lane.
        lane: Lane,
        /// Writes it.
        write: Write<'a>,
    },
    /// A message whose answer is waited for.
    Request {
        /// The type of the actor.
        actor: TypeId,
        /// Its type.
        message: TypeId,
        /// What that is called in reports.
        name: &'static str,
        /// Writes it.
        write: Write<'a>,
        /// The recall of the request, if its asker may take it back.
        recall: Option<Arc<Recall>>,
        /// Where the answer goes.
        answer: TakeAnswer,
    },
    /// The actor is to stop: now, or behind what was sent before.
    Stop {
        /// Behind what was sent before.
        drain: bool,
    },
    /// The actor is to be ended without its hook.
    Kill,
    /// Its supervisor has decided.
    Verdict {
        /// The type of the actor.
        actor: TypeId,
        /// What that is called in reports.
        name: &'static str,
        /// Which decision it is.
        about: About,
        /// What is to become of it.
        verdict: Decision<Write<'a>>,
    },
    /// Somebody wants to know of its end.
    Watch {
        /// Who.
        watcher: Watcher,
        /// Tells.
        notify: Tell,
    },
    /// Somebody does not any more.
    Unwatch {
        /// Who.
        watcher: Watcher,
    },
    /// A theater wants to know where the actor is, behind all that it has sent to it so far.
    Marker(Marker),
}

/// The origin of a [`Marker`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// The theater of the place.
    pub theater: u64,
    /// The place there.
    pub slot: u64,
    /// Its life there.
    pub incarnation: u64,
    /// The number of the turn of this place that it is for.
    pub reroute: u64,
    /// Shows the theater that the marker is its own.
    pub capability: u64,
}

/// Goes the way of an actor's mail, from a place where that way is to change: when it has come to where the actor lives, all
/// that was sent before it has come there too.
pub struct Marker {
    /// The place, and which of its turns it is for.
    pub origin: Origin,
    /// Links that it has come over.
    pub hops: u16,
    /// Says that it has come to this actor, by the answer.
    pub here: Box<dyn FnOnce(ActorId, TakeAnswer) + Send>,
    /// Told where that is.
    pub answer: TakeAnswer,
}

/// Takes parcels to where an actor lives.
pub trait Forwarder: Send + Sync + 'static {
    /// Takes one. On an error it was not sent, and who waits for an answer was told.
    ///
    /// # Errors
    /// It has no form on the wire, or the way is closed.
    fn carry(&self, forwarded: ForwardedMessage<'_>) -> Result<(), WireError>;

    /// It is the way from the place `id` from now on. In the stage of that.
    fn is_route_from(&self, _id: ActorId) {}

    /// The actor has come to the place that this was the carrier of: who watched it over there watches it here.
    fn take_watchers(&self) -> Vec<(Watcher, Notify)> {
        Vec::new()
    }

    /// For looking at who it is.
    fn as_any(&self) -> &dyn std::any::Any;
}

impl<A: Actor> Extra<A> {
    pub(crate) fn of(forwarder: Arc<dyn Forwarder>) -> Extra<A> {
        Extra { away: Some(forwarder), ..Extra::default() }
    }

    pub(crate) fn forwarder(&self) -> Result<&dyn Forwarder, WireError> {
        self.away.as_deref().ok_or_else(|| WireError::new("nobody knows where the actor is"))
    }
}

/// The stage of a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StubPlacement {
    /// This one of a link; any, if its actor may come to live here.
    Link(u16),
    /// This one, of the actor's group.
    Group(u16),
}

/// Makes a place for an `A` that lives elsewhere.
pub fn spawn_stub<A: Remote>(
    system: &SystemCore,
    stub_placement: StubPlacement,
    forwarder: Arc<dyn Forwarder>,
) -> ActorRef<A> {
    let stage = match stub_placement {
        StubPlacement::Link(_) if A::MOBILE => system.next_stage(),
        StubPlacement::Link(stage) | StubPlacement::Group(stage) => stage,
    };
    ActorRef::new(system.spawn_away(stage, Extra::of(forwarder), None))
}

/// Writing is the user's code: where it panics, that is an error like any other.
pub(crate) fn guarded(
    write: impl Fn(Codec, &mut Vec<u8>) -> Result<(), WireError>,
) -> impl Fn(Codec, &mut Vec<u8>) -> Result<(), WireError> {
    move |codec, out| contained(|| write(codec, out)).unwrap_or_else(|| Err(WireError::new("its `Serialize` panicked")))
}

pub(crate) fn writer<M: Message>(message: &M) -> impl Fn(Codec, &mut Vec<u8>) -> Result<(), WireError> {
    guarded(move |codec, out| match const { &M::WIRE } {
        Some(form) => form.write(message, codec, out),
        None => Err(WireError::new(format!("the message {} has no wire form", type_name::<M>()))),
    })
}

/// Sends a message on.
pub(crate) fn send_on<A: Actor, M: Message>(message: &M, cx: &mut AwayCx<ActorState<A>>) {
    let (lane, write) = (cx.lane(), &writer(message));
    let forwarded = ForwardedMessage::Tell {
        actor: TypeId::of::<A>(),
        message: TypeId::of::<M>(),
        name: type_name::<M>(),
        lane,
        write,
    };
    if carried_by(cx.extra().forwarder(), forwarded).is_err() {
        dead_letter::<A, M>(Undelivered::Unreachable);
    }
}

#[inline(never)]
fn carried_by(forwarder: Result<&dyn Forwarder, WireError>, forwarded: ForwardedMessage<'_>) -> Result<(), WireError> {
    forwarder?.carry(forwarded)
}

/// Sends a request on.
pub(crate) fn ask_on<A: Actor, M: Message>(message: &M, reply: ReplyTo<M::Reply>, cx: &mut AwayCx<ActorState<A>>) {
    let Some(recall) = reply.leave() else { return };
    let answer = move |answer: Result<(Codec, &[u8]), AskError>| {
        let read = |(codec, bytes)| match const { &M::WIRE } {
            Some(form) => form.read_answer(bytes, codec).map_err(|error| AskError::Unreachable(error.to_string())),
            None => Err(AskError::Unreachable("the message has no wire form".to_owned())),
        };
        reply.send(answer.and_then(read));
    };
    let write = writer(message);
    let forwarded = ForwardedMessage::Request {
        actor: TypeId::of::<A>(),
        message: TypeId::of::<M>(),
        name: type_name::<M>(),
        write: &write,
        recall,
        answer: Box::new(answer),
    };
    // On an error, the answer says it.
    let _ = carried_by(cx.extra().forwarder(), forwarded);
}

/// Sends something on that is neither.
pub(crate) fn carry<A: Actor>(
    forwarded: ForwardedMessage<'_>,
    cx: &mut AwayCx<ActorState<A>>,
) -> Result<(), WireError> {
    carried_by(cx.extra().forwarder(), forwarded)
}

// -- references ---------------------------------------------------------------------------------------------------------

/// The form of a reference on its way from one theater to another.
///
/// The codec that writes names writes the fields as `life` and `seal`: peers of other builds read these names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum RefName {
    /// An actor of the sender.
    Mine {
        /// Its place.
        slot: u64,
        /// Its life there.
        #[serde(rename = "life")]
        incarnation: u64,
        /// That the sender has made this name.
        #[serde(rename = "seal")]
        capability: u64,
    },
    /// An actor of the receiver, by the number that the sender has given it.
    Yours(u32),
    /// An actor that was born in one theater and lives in another.
    Moved {
        /// The place that it was born in. Without the address, that is its name.
        born: ActorLocation,
        /// Where it is, or somebody who knows the way.
        at: ActorLocation,
    },
    /// An actor of another theater.
    Other {
        /// That theater, in which of its lives.
        theater: u64,
        /// Where it can be called.
        address: SocketAddr,
        /// The actor's place there.
        slot: u64,
        /// Its life there.
        #[serde(rename = "life")]
        incarnation: u64,
        /// That the theater has made this name.
        #[serde(rename = "seal")]
        capability: u64,
    },
    /// A mobile actor of a group.
    Member {
        /// Which.
        group: GroupName,
        /// The place that it was born in. Without the address, that is its name.
        born: ActorLocation,
        /// Where it is, or somebody who knows the way; nothing where it was born in the sender, and has never moved.
        at: Option<ActorLocation>,
    },
}

/// The place of an actor in some theater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ActorLocation {
    /// The theater.
    pub theater: u64,
    /// Where that can be called, if it can.
    pub address: Option<SocketAddr>,
    /// The place there.
    pub slot: u64,
    /// Whose life it is.
    #[serde(rename = "life")]
    pub incarnation: u64,
    /// That the theater has made this name.
    #[serde(rename = "seal")]
    pub capability: u64,
}

/// Makes a place.
pub type MakeStub<'a> = &'a dyn Fn(&SystemCore, StubPlacement, Arc<dyn Forwarder>) -> ActorId;

/// The border between this theater and another: what references look like on the other side.
pub trait RefCodec: Send + Sync {
    /// The name of an actor for the other side.
    ///
    /// # Errors
    /// It has none.
    fn name_of(&self, id: ActorId) -> Result<RefName, WireError>;

    /// The actor with a name from the other side. Where there is no place for it yet, `stub` makes one.
    ///
    /// # Errors
    /// There is no such actor.
    fn meet(&self, name: RefName, stub: MakeStub<'_>) -> Result<ActorId, WireError>;
}

thread_local! {
    static REF_CODEC: RefCell<Option<Arc<dyn RefCodec>>> = const { RefCell::new(None) };
    static CROSSING: Cell<Crossing> = const { Cell::new(Crossing::Nowhere) };
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Crossing {
    /// Nothing is written or read.
    Nowhere,
    /// Something crosses the border.
    Border,
    /// The shape of a type is looked at.
    Shape,
}

fn during<R>(crossing: Crossing, f: impl FnOnce() -> R) -> R {
    struct Back(Crossing);
    impl Drop for Back {
        fn drop(&mut self) {
            CROSSING.set(self.0);
        }
    }
    let _back = Back(CROSSING.replace(crossing));
    f()
}

/// The borders at which threads are whose [`REF_CODEC`] is gone: values may be written in the destructors of other thread-locals.
static LATE_BORDERS: Mutex<Vec<(ThreadId, Arc<dyn RefCodec>)>> = Mutex::new(Vec::new());

fn late_borders() -> MutexGuard<'static, Vec<(ThreadId, Arc<dyn RefCodec>)>> {
    LATE_BORDERS.lock().unwrap_or_else(PoisonError::into_inner)
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
    // The last border stays known here: most often the next one is the same.
    let known = REF_CODEC.try_with(|known| match &mut *known.borrow_mut() {
        Some(known) if Arc::ptr_eq(known, ref_codec) => Back(None),
        known => Back(known.replace(Arc::clone(ref_codec))),
    });
    match known {
        Ok(_back) => during(Crossing::Border, f),
        Err(_) => at_ref_codec_late(ref_codec, f),
    }
}

#[cold]
fn at_ref_codec_late<R>(ref_codec: &Arc<dyn RefCodec>, f: impl FnOnce() -> R) -> R {
    struct Back(ThreadId);
    impl Drop for Back {
        fn drop(&mut self) {
            let mut borders = late_borders();
            let _ref_codec = borders.iter().rposition(|(thread, _)| *thread == self.0).map(|at| borders.remove(at));
            drop(borders);
        }
    }
    let this = std::thread::current().id();
    late_borders().push((this, Arc::clone(ref_codec)));
    let _back = Back(this);
    during(Crossing::Border, f)
}

/// Calls `f`, which looks at the shapes of types.
pub(crate) fn looking_at_shapes<R>(f: impl FnOnce() -> R) -> R {
    during(Crossing::Shape, f)
}

#[cold]
fn late_ref_codec() -> Option<Arc<dyn RefCodec>> {
    let this = std::thread::current().id();
    late_borders().iter().rfind(|(thread, _)| *thread == this).map(|(_, ref_codec)| Arc::clone(ref_codec))
}

fn ref_codec() -> Result<Arc<dyn RefCodec>, WireError> {
    let crossing = CROSSING.get() == Crossing::Border;
    crossing
        .then(|| REF_CODEC.try_with(|ref_codec| ref_codec.borrow().clone()).unwrap_or_else(|_| late_ref_codec()))
        .flatten()
        .ok_or_else(|| WireError::new("a reference to an actor can be written only in a message to another theater"))
}

impl<A: Remote> Serialize for ActorRef<A> {
    /// As part of a message or an answer that goes to another theater.
    ///
    /// # Errors
    /// Anywhere else.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let name = ref_codec().and_then(|ref_codec| ref_codec.name_of(self.id())).map_err(serde::ser::Error::custom)?;
        name.serialize(serializer)
    }
}

impl<'de, A: Remote> Deserialize<'de> for ActorRef<A> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = RefName::deserialize(deserializer)?;
        if CROSSING.get() == Crossing::Shape {
            return Ok(ActorRef::nowhere());
        }
        let stub =
            |system: &SystemCore, stub_placement, forwarder| spawn_stub::<A>(system, stub_placement, forwarder).id();
        let met =
            ref_codec().and_then(|ref_codec| ref_codec.meet(name, &stub)).map_err(crate::remote::wire::unreadable)?;
        // It may have ended meanwhile: then nobody hears what is sent to it, and the reference is still equal to others to it.
        match ActorRef::of_id_or_ended(met) {
            Some(actor) => Ok(actor),
            None => Err(crate::remote::wire::unreadable(format!("{met} is no {}", type_name::<A>()))),
        }
    }
}

impl<M: Message> Serialize for Recipient<M> {
    /// As part of a message or an answer that goes to another theater.
    ///
    /// # Errors
    /// Anywhere else, and where the actor behind it takes no such message from other theaters.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let named = ref_codec().and_then(|ref_codec| {
            let entry = self.id().0.resident_type().and_then(|actor| handles_of(actor, TypeId::of::<M>()));
            // Of one that has ended, nobody needs to know who it was.
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
        if CROSSING.get() == Crossing::Shape || actor.is_empty() {
            return Ok(Recipient::nowhere());
        }
        let met = ref_codec().and_then(|ref_codec| {
            let entry = handles_named(&actor, TypeId::of::<M>());
            let unknown = || WireError::new(format!("no {actor} that takes a {} is known here", type_name::<M>()));
            let entry = entry.ok_or_else(unknown)?;
            Ok((ref_codec.meet(name, &entry.stub)?, entry))
        });
        let (id, entry) = met.map_err(crate::remote::wire::unreadable)?;
        match (entry.recipient)(id).and_then(|recipient| recipient.downcast::<Recipient<M>>().ok()) {
            Some(recipient) => Ok(*recipient),
            // It may have ended meanwhile: then nobody hears what is sent to it.
            None if id.0.is_stale() => Ok(Recipient::nowhere()),
            None => Err(crate::remote::wire::unreadable(format!("{id} is no {actor}"))),
        }
    }
}

impl Serialize for AnyActor {
    /// As part of a message or an answer that goes to another theater.
    ///
    /// # Errors
    /// Anywhere else.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let name = ref_codec().and_then(|ref_codec| ref_codec.name_of(self.id)).map_err(serde::ser::Error::custom)?;
        (name, self.name).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for AnyActor {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (name, actor) = <(RefName, String)>::deserialize(deserializer)?;
        if CROSSING.get() == Crossing::Shape {
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
        met.map_err(crate::remote::wire::unreadable)
    }
}

/// One that an actor watches, which is taken to another theater. There it is none, where it cannot be named.
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

/// Another message like `message`, by its wire form.
pub(crate) fn copy_of<M: Message>(message: &M) -> Result<M, WireError> {
    /// The border of a theater to itself.
    struct Mirror;
    impl RefCodec for Mirror {
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
    let ref_codec: Arc<dyn RefCodec> = Arc::new(Mirror);
    at_ref_codec(&ref_codec, || {
        let form = const { &M::WIRE }.as_ref().ok_or_else(|| WireError::new("it has no wire form"))?;
        let mut bytes = Vec::new();
        form.write(message, Codec::Positional, &mut bytes)?;
        form.read(&bytes, Codec::Positional)
    })
}

impl<A: Actor> ActorRef<A> {
    /// A reference to an actor that has ended.
    pub(crate) fn nowhere() -> Self {
        ActorRef::new(RawAddress::nowhere())
    }
}

impl fmt::Debug for ForwardedMessage<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ForwardedMessage::Tell { name, .. } => write!(f, "Tell({name})"),
            ForwardedMessage::Request { name, .. } => write!(f, "Request({name})"),
            ForwardedMessage::Stop { drain } => write!(f, "Stop {{ drain: {drain} }}"),
            ForwardedMessage::Kill => f.write_str("Kill"),
            ForwardedMessage::Verdict { name, .. } => write!(f, "Verdict({name})"),
            ForwardedMessage::Watch { watcher, .. } => write!(f, "Watch({watcher:?})"),
            ForwardedMessage::Unwatch { watcher } => write!(f, "Unwatch({watcher:?})"),
            ForwardedMessage::Marker(marker) => write!(f, "Marker({:?})", marker.origin),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{ActorLocation, RefName};
    use crate::wire::Codec;

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
