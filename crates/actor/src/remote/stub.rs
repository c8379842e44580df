//! Stubs of remote actors: their outgoing mail, and the wire form of references.
//!
//! A stub is a cell without a state (see `stub.rs` of the executor). Its extra part holds a [`Forwarder`], which knows
//! the actor's location. Envelopes to be forwarded become [`ForwardedMessage`]s: values that can be written, without
//! their types. The forwarders themselves are part of `playhouse-theater`.

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

/// Takes the answer to a request. If it is dropped, the asker gets the error that the receiver has stopped.
pub type TakeAnswer = Box<dyn FnOnce(Result<(Codec, &[u8]), AskError>) + Send>;

/// An item that can be forwarded to a remote actor.
pub enum ForwardedMessage<'a> {
    /// A message.
    Tell {
        /// The type of the actor.
        actor: TypeId,
        /// The type of the message.
        message: TypeId,
        /// The name of the message's type in reports.
        name: &'static str,
        /// The lane of the message.
        lane: Lane,
        /// Writes the message.
        write: Write<'a>,
    },
    /// A message whose answer is awaited.
    Request {
        /// The type of the actor.
        actor: TypeId,
        /// The type of the message.
        message: TypeId,
        /// The name of the message's type in reports.
        name: &'static str,
        /// Writes the message.
        write: Write<'a>,
        /// The recall of the request, if its asker may take it back.
        recall: Option<Arc<Recall>>,
        /// Takes the answer.
        answer: TakeAnswer,
    },
    /// A stop of the actor: now, or behind earlier mail.
    Stop {
        /// `true` if the stop queues behind earlier mail.
        drain: bool,
    },
    /// A kill of the actor, without its hook.
    Kill,
    /// A decision of the actor's supervisor.
    Verdict {
        /// The type of the actor.
        actor: TypeId,
        /// The name of the actor's type in reports.
        name: &'static str,
        /// The numbers of the decision and its crash.
        about: About,
        /// The decision.
        verdict: Decision<Write<'a>>,
    },
    /// The beginning of a watch on the actor.
    Watch {
        /// The watcher.
        watcher: Watcher,
        /// Notifies the watcher.
        notify: Tell,
    },
    /// The end of a watch on the actor.
    Unwatch {
        /// The watcher.
        watcher: Watcher,
    },
    /// A question of a theater for the actor's location, behind all mail that the theater has sent to the actor.
    Marker(Marker),
}

/// The origin of a [`Marker`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// The theater of the stub.
    pub theater: u64,
    /// The stub's slot in that theater.
    pub slot: u64,
    /// The incarnation of the slot.
    pub incarnation: u64,
    /// The number of the stub's reroute that the marker belongs to.
    pub reroute: u64,
    /// Proves to the theater that the marker is its own.
    pub capability: u64,
}

/// A marker takes the route of an actor's mail, from a stub whose route is going to change. When it reaches the actor,
/// all mail sent before it has reached the actor, too.
pub struct Marker {
    /// The stub, and the reroute that the marker belongs to.
    pub origin: Origin,
    /// The number of links that it has come over.
    pub hops: u16,
    /// Reports that the marker has reached this actor, through the answer.
    pub here: Box<dyn FnOnce(ActorId, TakeAnswer) + Send>,
    /// Takes the actor's location.
    pub answer: TakeAnswer,
}

/// Forwards mail to a remote actor.
pub trait Forwarder: Send + Sync + 'static {
    /// Forwards one item. On an error it was not sent, and an asker that waits for an answer was notified.
    ///
    /// # Errors
    /// The item has no wire form, or the route is closed.
    fn carry(&self, forwarded: ForwardedMessage<'_>) -> Result<(), WireError>;

    /// Notes that this forwarder is the route of the stub `id` from now on. Called on the stage of the stub.
    fn is_route_from(&self, _id: ActorId) {}

    /// Returns the watchers in the other theater, because the actor has arrived at the stub of this forwarder: they
    /// watch it in this theater now.
    fn take_watchers(&self) -> Vec<(Watcher, Notify)> {
        Vec::new()
    }

    /// Returns the forwarder itself, to find out its type.
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

/// The stage of a stub.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StubPlacement {
    /// A stage of a link. It may be any stage, if the actor can migrate into this theater.
    Link(u16),
    /// The stage of the actor's group.
    Group(u16),
}

/// Makes a stub for a remote `A`.
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

/// Wraps the user's code that writes a value: a panic in it becomes an error like any other.
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

/// Forwards a message.
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

/// Forwards a request.
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
    // On an error, the answer has been given it already.
    let _ = carried_by(cx.extra().forwarder(), forwarded);
}

/// Forwards an item that is neither a message nor a request.
pub(crate) fn carry<A: Actor>(
    forwarded: ForwardedMessage<'_>,
    cx: &mut AwayCx<ActorState<A>>,
) -> Result<(), WireError> {
    carried_by(cx.extra().forwarder(), forwarded)
}

// -- references ---------------------------------------------------------------------------------------------------------

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
    static CROSSING: Cell<Crossing> = const { Cell::new(Crossing::Nowhere) };
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Crossing {
    /// Nothing is written or read.
    Nowhere,
    /// A value for another theater is written or read.
    Theaters,
    /// The shape of a type is read.
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

/// The reference codecs of threads whose [`REF_CODEC`] is destroyed: values may be written in the destructors of other
/// thread-locals.
static LATE_REF_CODECS: Mutex<Vec<(ThreadId, Arc<dyn RefCodec>)>> = Mutex::new(Vec::new());

fn late_ref_codecs() -> MutexGuard<'static, Vec<(ThreadId, Arc<dyn RefCodec>)>> {
    LATE_REF_CODECS.lock().unwrap_or_else(PoisonError::into_inner)
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

/// Calls `f`, which reads the shapes of types.
pub(crate) fn looking_at_shapes<R>(f: impl FnOnce() -> R) -> R {
    during(Crossing::Shape, f)
}

#[cold]
fn late_ref_codec() -> Option<Arc<dyn RefCodec>> {
    let this = std::thread::current().id();
    late_ref_codecs().iter().rfind(|(thread, _)| *thread == this).map(|(_, ref_codec)| Arc::clone(ref_codec))
}

fn ref_codec() -> Result<Arc<dyn RefCodec>, WireError> {
    let crossing = CROSSING.get() == Crossing::Theaters;
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
        if CROSSING.get() == Crossing::Shape {
            return Ok(ActorRef::nowhere());
        }
        let stub =
            |system: &SystemCore, stub_placement, forwarder| spawn_stub::<A>(system, stub_placement, forwarder).id();
        let met =
            ref_codec().and_then(|ref_codec| ref_codec.meet(name, &stub)).map_err(crate::remote::wire::unreadable)?;
        // The actor may have ended since. Messages to it become dead letters, and the reference still equals others to
        // it.
        match ActorRef::of_id_or_ended(met) {
            Some(actor) => Ok(actor),
            None => Err(crate::remote::wire::unreadable(format!("{met} is no {}", type_name::<A>()))),
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
        if CROSSING.get() == Crossing::Shape || actor.is_empty() {
            return Ok(Recipient::nowhere());
        }
        let met = ref_codec().and_then(|ref_codec| {
            let entry = handles_named(&actor, TypeId::of::<M>());
            let unknown = || WireError::new(format!("this program knows no {actor} that takes a {}", type_name::<M>()));
            let entry = entry.ok_or_else(unknown)?;
            Ok((ref_codec.meet(name, &entry.stub)?, entry))
        });
        let (id, entry) = met.map_err(crate::remote::wire::unreadable)?;
        match (entry.recipient)(id).and_then(|recipient| recipient.downcast::<Recipient<M>>().ok()) {
            Some(recipient) => Ok(*recipient),
            // The actor may have ended since: messages to it become dead letters.
            None if id.0.is_stale() => Ok(Recipient::nowhere()),
            None => Err(crate::remote::wire::unreadable(format!("{id} is no {actor}"))),
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

impl<A: Actor> ActorRef<A> {
    /// Returns a reference to an actor that has ended.
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
