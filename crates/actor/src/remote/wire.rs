//! Wire forms: the bytes of messages, answers and actors outside of a process.
//!
//! The compiler knows whether a message has a wire form ([`Message::WIRE`]). The binary has a list of the actors and
//! the messages that they take over the wire ([`Handles`], [`Spawns`]). `#[actor(remote)]` or
//! [`remote!`](crate::remote!) adds the entries.

use std::any::TypeId;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, OnceLock, Weak};

use playhouse_executor::{Control, Lane, SystemCore, Undelivered};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::actor::reference::{ActorRef, ToRecipient};
use crate::actor::spawn::{SpawnOptions, spawn};
use crate::actor::{Actor, ActorId, ActorState, Notify, ReleaseStub, Watch, Watcher};
use crate::ask::AskError;
use crate::ask::reply_to::ReplyTo;
use crate::message::{HandledBy, Message};
use crate::migration;
pub use crate::migration::gather::{Freeze, OnFrozen};
pub use crate::migration::{
    ActorMetadata, AnyTimer, Arrival, ArrivalRoute, Install, MigrationHost, MigrationVTable, Mobile, New, Offer,
    PackedTimer, PreparedActor, ReadTimer,
};
use crate::remote::nesting::Nested;
use crate::remote::recall::TakesBack;
use crate::remote::route::Rerouted;
pub use crate::remote::route::{Reroute, Settle, Settled, Settling, StubContent};
pub use crate::supervise::remote::SupervisorLink;
use crate::supervise::remote::{About, Decision, decide, start_child};

/// The codec of values on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Codec {
    /// Fields in their order, without names: for 2 sides with the same types (postcard).
    Positional,
    /// Fields by name (MessagePack). Unknown fields are ignored. Missing fields get their defaults, if the type has
    /// some.
    Named,
}

/// The error of a value without a wire form, or of bytes that are not the wire form of the type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WireError(String);

impl WireError {
    /// Returns an error with the text `text`.
    pub fn new(text: impl Into<String>) -> WireError {
        WireError(text.into())
    }
}

impl fmt::Display for WireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for WireError {}

impl Codec {
    /// Appends `value` to `out`. After an error, the appended bytes are no complete value.
    ///
    /// # Errors
    /// Returns the error of the type's `Serialize`, or an error if more than 256 options, lists, maps and enums lie in
    /// one another.
    pub fn write<T: Serialize>(self, value: &T, out: &mut Vec<u8>) -> Result<(), WireError> {
        match self {
            Codec::Positional => {
                let mut serializer = postcard::Serializer { output: Append(out) };
                value.serialize(Nested::new(&mut serializer)).map_err(|error| {
                    // This codec drops the text of the type's error, but the other codec keeps it.
                    write_named(value, std::io::sink()).err().unwrap_or_else(|| WireError(error.to_string()))
                })
            }
            Codec::Named => write_named(value, out),
        }
    }

    /// Reads a value from all of `bytes`.
    ///
    /// # Errors
    /// Returns an error if the bytes are not the value's wire form, or if bytes follow it. Also returns an error if
    /// more than 256 options, lists, maps and enums lie in one another.
    pub fn read<T: DeserializeOwned>(self, bytes: &[u8]) -> Result<T, WireError> {
        let rest = match self {
            Codec::Positional => {
                take_unreadable();
                let mut deserializer = postcard::Deserializer::from_bytes(bytes);
                let read = T::deserialize(Nested::new(&mut deserializer));
                let read = read.and_then(|value| Ok((value, deserializer.finalize()?)));
                read.map_err(not_positional)
            }
            Codec::Named => {
                let mut rest = bytes;
                let mut deserializer = rmp_serde::Deserializer::new(&mut rest);
                // Its own limit counts structs, too, and does not count enums.
                deserializer.set_max_depth(usize::MAX);
                let value = T::deserialize(Nested::new(&mut deserializer));
                value.map(|value| (value, rest)).map_err(not_named)
            }
        };
        match rest? {
            (value, []) => Ok(value),
            (_, rest) => Err(left_behind(rest)),
        }
    }
}

// Each type that can be read calls these functions. They are not inlined, so that their code is compiled once.

#[cold]
#[inline(never)]
fn not_positional(error: postcard::Error) -> WireError {
    WireError(take_unreadable().unwrap_or_else(|| error.to_string()))
}

#[cold]
#[inline(never)]
fn not_named(error: rmp_serde::decode::Error) -> WireError {
    WireError(error.to_string())
}

#[cold]
#[inline(never)]
fn left_behind(rest: &[u8]) -> WireError {
    WireError(format!("{} bytes are left behind the value", rest.len()))
}

#[cold]
#[inline(never)]
fn unreadable(part: &str, message: &str, error: &WireError) -> WireError {
    WireError(format!("{part} `{message}` cannot be read: {error}"))
}

fn write_named<T: Serialize>(value: &T, out: impl std::io::Write) -> Written {
    let mut serializer = rmp_serde::Serializer::new(out).with_struct_map();
    value.serialize(Nested::new(&mut serializer)).map_err(|error| WireError(error.to_string()))
}

/// Appends the output of the positional codec, in most cases the few bytes of a number.
struct Append<'a>(&'a mut Vec<u8>);

impl postcard::ser_flavors::Flavor for Append<'_> {
    type Output = ();

    fn try_push(&mut self, byte: u8) -> postcard::Result<()> {
        self.0.push(byte);
        Ok(())
    }

    fn try_extend(&mut self, bytes: &[u8]) -> postcard::Result<()> {
        /// Up to this length, single pushes cost less than a call of `memcpy`.
        const FEW: usize = 4;
        if bytes.len() <= FEW {
            bytes.iter().for_each(|byte| self.0.push(*byte));
        } else {
            self.0.extend_from_slice(bytes);
        }
        Ok(())
    }

    fn finalize(self) -> postcard::Result<()> {
        Ok(())
    }
}

thread_local! {
    /// The error text of a type of this crate that could not be read, because the positional codec drops the text.
    static UNREADABLE: std::cell::Cell<Option<String>> = const { std::cell::Cell::new(None) };
}

/// Returns the error of a `Deserialize`.
pub(crate) fn unreadable<E: serde::de::Error>(why: impl fmt::Display) -> E {
    let error = E::custom(&why);
    // In the destructors of a thread's thread-locals it may be destroyed. The codec's own text is then the error.
    let _ = UNREADABLE.try_with(|unreadable| unreadable.set(Some(why.to_string())));
    error
}

fn take_unreadable() -> Option<String> {
    UNREADABLE.try_with(std::cell::Cell::take).ok().flatten()
}

/// The wire form of a message and of its answer.
pub struct WireForm<M: Message> {
    name: Option<&'static str>,
    write: fn(&M, Codec, &mut Vec<u8>) -> Written,
    read: fn(&[u8], Codec) -> Result<M, WireError>,
    write_answer: fn(&M::Reply, Codec, &mut Vec<u8>) -> Written,
    read_answer: fn(&[u8], Codec) -> Result<M::Reply, WireError>,
    schema: fn() -> Option<u64>,
}

impl<M: Message> fmt::Debug for WireForm<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WireForm({:?})", self.name())
    }
}

/// A value with a wire form: its type has serde's `Serialize` and `Deserialize`.
#[diagnostic::on_unimplemented(
    message = "a `{Self}` cannot be sent to other theaters",
    label = "it has no wire form",
    note = "write `#[derive(Serialize, Deserialize)]` at the type. If serde is no dependency of the program: `use playhouse::serde::{{Deserialize, Serialize}};`, and `#[serde(crate = \"playhouse::serde\")]` below the derive",
    note = "`#[message(local)]` is for messages that are sent within a theater only"
)]
pub trait Transferable: Serialize + for<'de> Deserialize<'de> {}

#[diagnostic::do_not_recommend]
impl<T: Serialize + for<'de> Deserialize<'de>> Transferable for T {}

/// Compiles if `T` has a wire form: for the arguments of messages.
#[doc(hidden)]
pub const fn transferable<T: Transferable>() {}

impl<M> WireForm<M>
where
    M: Message<Reply: Transferable> + Transferable,
{
    /// Returns serde's form of the message, with the path of its type as the wire name.
    pub const fn of() -> WireForm<M> {
        WireForm {
            name: None,
            write: |message, codec, out| codec.write(message, out),
            read: |bytes, codec| codec.read(bytes),
            write_answer: |answer, codec, out| codec.write(answer, out),
            read_answer: |bytes, codec| codec.read(bytes),
            schema: || Some(schema_of::<M>()? ^ schema_of::<M::Reply>()?.rotate_left(1)),
        }
    }

    /// Returns the same form as [`WireForm::of`], with the wire name `name`: the type may be renamed or moved later.
    pub const fn named(name: &'static str) -> WireForm<M> {
        WireForm { name: Some(name), ..WireForm::of() }
    }
}

impl<M: Message> WireForm<M> {
    pub(crate) fn write(&self, message: &M, codec: Codec, out: &mut Vec<u8>) -> Result<(), WireError> {
        (self.write)(message, codec, out)
    }

    pub(crate) fn read(&self, bytes: &[u8], codec: Codec) -> Result<M, WireError> {
        (self.read)(bytes, codec).map_err(|error| unreadable("the message", self.name(), &error))
    }

    pub(crate) fn read_answer(&self, bytes: &[u8], codec: Codec) -> Result<M::Reply, WireError> {
        (self.read_answer)(bytes, codec).map_err(|error| unreadable("the answer to", self.name(), &error))
    }

    /// Returns the wire name of the message.
    pub fn name(&self) -> &'static str {
        self.name.unwrap_or_else(std::any::type_name::<M>)
    }
}

fn schema_of<T: DeserializeOwned>() -> Option<u64> {
    crate::remote::stub::looking_at_shapes(crate::remote::shape::fingerprint::<T>)
}

/// An actor that takes messages from other theaters.
///
/// Implemented by `#[actor(remote)]` or [`remote!`](crate::remote!).
#[diagnostic::on_unimplemented(
    message = "the actor `{Self}` takes no messages from other theaters",
    label = "`{Self}` is not remote",
    note = "write `#[actor(remote)]` at the block that makes it an actor, or `#[actor(mobile)]` if it is to move"
)]
pub trait Remote: Actor {
    /// Returns the wire name of the actor's type.
    fn wire_name() -> &'static str;

    /// `true` if actors of this type are [`Mobile`].
    #[doc(hidden)]
    const MOBILE: bool = false;
}

/// The result of writing a value.
pub type Written = Result<(), WireError>;

/// Takes the answer to a request from another theater.
pub type Answer = Box<dyn FnOnce(Result<&dyn Fn(Codec, &mut Vec<u8>) -> Written, AskError>) + Send>;

/// An entry of the binary's list: an actor that takes a message from other theaters.
pub struct Handles {
    /// The actor's type.
    pub actor: fn() -> TypeId,
    /// The type by which the executor knows the actor.
    pub resident: fn() -> TypeId,
    /// The wire name of the actor's type.
    pub actor_name: fn() -> &'static str,
    /// The message's type.
    pub message: fn() -> TypeId,
    /// The wire name of the message.
    pub message_name: fn() -> &'static str,
    /// The fingerprint of the message and its answer. `None` if it is unknown, so that field names must be written.
    pub schema: fn() -> Option<u64>,
    /// Reads the message and sends it.
    pub tell: fn(ActorId, Lane, &[u8], Codec) -> Result<(), WireError>,
    /// Reads the message and sends it as a request.
    pub ask: AskFrom,
    /// Reads the message of a repeating timer of the actor.
    pub timer: fn(&[u8], Codec) -> Result<AnyTimer, WireError>,
    /// Makes a stub for such an actor: see [`crate::remote::stub::spawn_stub`].
    pub stub: fn(&SystemCore, crate::remote::stub::StubPlacement, Arc<dyn crate::remote::stub::Forwarder>) -> ActorId,
    /// Returns the `Recipient` of the message for this actor.
    pub recipient: fn(ActorId) -> Option<Box<dyn std::any::Any>>,
    /// The operations on the actor that need no message type.
    pub controls: Controls,
}

/// Reads a message and sends it as a request. Returns the request in its mailbox, which takes itself back under any
/// number. An error returns the answer's callback uncalled.
pub type AskFrom = fn(ActorId, &[u8], Codec, Answer) -> Result<Weak<dyn TakesBack>, (WireError, Answer)>;

/// The operations on an actor that do not depend on its messages.
#[derive(Clone, Copy)]
pub struct Controls {
    /// Stops the actor: at once, or (`true`) behind earlier mail.
    pub stop: fn(ActorId, bool),
    /// Ends the actor without its hook.
    pub kill: fn(ActorId),
    /// Begins a watch on the actor.
    pub watch: fn(ActorId, Watcher, Notify),
    /// Ends a watch on the actor.
    pub unwatch: fn(ActorId, Watcher),
    /// Releases the stub of a remote actor.
    pub forget: fn(ActorId),
    /// Applies this change to the route of the actor's mail.
    pub reroute: fn(ActorId, Reroute),
}

impl Controls {
    pub(crate) const fn of<A: Actor>() -> Controls {
        Controls {
            stop: |id, drain| {
                if let Ok(address) = address::<A>(id) {
                    let to = ActorRef::new(address);
                    if drain { to.drain() } else { to.stop() }
                }
            },
            kill: |id| {
                if let Ok(address) = address::<A>(id) {
                    ActorRef::new(address).kill();
                }
            },
            watch: |who, watcher, notify| {
                let watch = Watch::Begin { watcher, notify, who };
                match address::<A>(who) {
                    Ok(address) => address.send_control(watch),
                    Err(_) => Control::<ActorState<A>>::bounce(watch, Undelivered::Stopped),
                }
            },
            unwatch: |who, watcher| {
                if let Ok(address) = address::<A>(who) {
                    address.send_control(Watch::End { watcher });
                }
            },
            forget: |id| {
                if let Ok(address) = address::<A>(id) {
                    address.send_control(ReleaseStub);
                }
            },
            reroute: |id, reroute| match address::<A>(id) {
                Ok(address) => address.send_control_behind(Rerouted(reroute)),
                Err(_) => drop(reroute(StubContent::Nobody)),
            },
        }
    }
}

inventory::collect!(Handles);

impl Handles {
    /// Returns the entry for an `A` that handles an `M`.
    pub const fn of<A: Remote, M: HandledBy<A, Mode>, Mode>() -> Handles {
        const {
            assert!(
                M::WIRE.is_some(),
                "the message has no wire form: put `remote` into its `#[message(..)]`, next to `#[derive(Message, Serialize, Deserialize)]`"
            );
        }
        Handles {
            actor: TypeId::of::<A>,
            resident: TypeId::of::<ActorState<A>>,
            actor_name: A::wire_name,
            message: TypeId::of::<M>,
            message_name: || form::<M>().name(),
            schema: || (form::<M>().schema)(),
            tell: |to, lane, bytes, codec| {
                let to = address::<A>(to)?;
                let message = (form::<M>().read)(bytes, codec)?;
                match lane {
                    Lane::Normal => message.post_unwaiting(to),
                    Lane::Urgent | Lane::System => message.post_urgent(to),
                }
                Ok(())
            },
            ask: |to, bytes, codec, answer| {
                let read = address::<A>(to).and_then(|to| Ok((to, (form::<M>().read)(bytes, codec)?)));
                let (to, message) = match read {
                    Ok(read) => read,
                    Err(error) => return Err((error, answer)),
                };
                let (reply, held) = ReplyTo::held(Box::new(move |result: Result<M::Reply, AskError>| match result {
                    Ok(value) => answer(Ok(&|codec, out| (form::<M>().write_answer)(&value, codec, out))),
                    Err(error) => answer(Err(error)),
                }));
                message.post_ask(to, reply, None);
                Ok(held)
            },
            stub: |system, stub_placement, forwarder| {
                crate::remote::stub::spawn_stub::<A>(system, stub_placement, forwarder).id()
            },
            recipient: |id| Some(Box::new(ActorRef::<A>::of_id(id)?.recipient::<M>())),
            // Timers of immobile actors are never sent. Their code is not in the binary.
            timer: if A::MOBILE {
                |bytes, codec| Ok(migration::timer::<A, M, Mode>((form::<M>().read)(bytes, codec)?))
            } else {
                |_, _| Err(WireError("it is no mobile actor".to_owned()))
            },
            controls: Controls::of::<A>(),
        }
    }
}

const fn form<M: Message>() -> &'static WireForm<M> {
    const { &M::WIRE }.as_ref().expect("a remote message has a wire form")
}

fn address<A: Actor>(id: ActorId) -> Result<playhouse_executor::Address<ActorState<A>>, WireError> {
    id.0.of_type::<ActorState<A>>().ok_or_else(|| WireError(format!("{id} is no {}", std::any::type_name::<A>())))
}

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
    pub stub: fn(&SystemCore, crate::remote::stub::StubPlacement, Arc<dyn crate::remote::stub::Forwarder>) -> ActorId,
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
                    spawn(system, SpawnOptions::new(), actor).map_err(|error| WireError(error.to_string()))?;
                Ok(spawned.id())
            },
            spawn_child: start_child::<A>,
            decide: decide::<A>,
            moves: None,
            stub: |system, stub_placement, forwarder| {
                crate::remote::stub::spawn_stub::<A>(system, stub_placement, forwarder).id()
            },
            controls: Controls::of::<A>(),
        }
    }

    /// Returns the entry for a mobile `A`.
    pub const fn mobile<A: Mobile>() -> Spawns {
        Spawns { moves: Some(MigrationVTable::of::<A>()), ..Spawns::of::<A>() }
    }
}

/// Returns all entries of the binary.
pub fn handles() -> impl Iterator<Item = &'static Handles> {
    inventory::iter::<Handles>.into_iter()
}

/// Returns the entry of the actor type with the executor's type `resident` that takes a `message`.
pub(crate) fn handles_of(resident: TypeId, message: TypeId) -> Option<&'static Handles> {
    static ALL: OnceLock<HashMap<(TypeId, TypeId), &'static Handles>> = OnceLock::new();
    let all = ALL.get_or_init(|| handles().map(|entry| (((entry.resident)(), (entry.message)()), entry)).collect());
    all.get(&(resident, message)).copied()
}

/// Returns the entry of the actor type with the wire name `name` that takes a `message`.
pub(crate) fn handles_named(name: &str, message: TypeId) -> Option<&'static Handles> {
    static ALL: OnceLock<HashMap<(&'static str, TypeId), &'static Handles>> = OnceLock::new();
    let all = ALL.get_or_init(|| handles().map(|entry| (((entry.actor_name)(), (entry.message)()), entry)).collect());
    all.get(&(name, message)).copied()
}

/// Returns all entries of the binary.
pub fn spawns() -> impl Iterator<Item = &'static Spawns> {
    inventory::iter::<Spawns>.into_iter()
}

/// Lets actors take messages from other theaters: `remote!(Counter: Add, Get)`.
///
/// `remote!(also Counter: Reset)` adds messages to an actor that is `Remote` already (by `#[actor(remote)]`).
///
/// Each message needs a wire form: `#[message(remote)]` beside `#[derive(Message, Serialize, Deserialize)]`.
/// - `remote!(spawn Counter: Add, Get)`: other theaters can start the actor, too. Its type needs `Serialize` and
///   `Deserialize`.
/// - `remote!(mobile Counter: Add, Get)`: the actor can migrate between theaters, too ([`Mobile`]).
///
/// An actor whose methods are under `#[actor(remote)]` gets all of this by that attribute.
#[macro_export]
macro_rules! remote {
    (mobile $actor:ty : $($message:ty),* $(,)?) => {
        impl $crate::wire::Remote for $actor {
            const MOBILE: bool = true;

            fn wire_name() -> &'static str {
                ::core::any::type_name::<$actor>()
            }
        }
        impl $crate::Mobile for $actor {}
        $crate::remote!(also $actor: $($message),*);
        $crate::wire::submit! { $crate::wire::Spawns::mobile::<$actor>() }
    };
    (spawn $actor:ty : $($message:ty),* $(,)?) => {
        $crate::remote!($actor: $($message),*);
        $crate::wire::submit! { $crate::wire::Spawns::of::<$actor>() }
    };
    (also $actor:ty : $($message:ty),* $(,)?) => {
        $($crate::wire::submit! { $crate::wire::Handles::of::<$actor, $message, _>() })*
    };
    ($actor:ty : $($message:ty),* $(,)?) => {
        impl $crate::wire::Remote for $actor {
            fn wire_name() -> &'static str {
                ::core::any::type_name::<$actor>()
            }
        }
        $crate::remote!(also $actor: $($message),*);
    };
}

/// Lists an entry in the binary: `submit! { Handles::of::<Till, Order, _>() }`.
#[cfg(feature = "remote")]
pub use inventory::submit;

/// Lists an entry in the binary: `submit! { Handles::of::<Till, Order, _>() }`. Without the feature `remote`, no code
/// reads the list. The compiler checks the entry, and its code is not in the binary.
#[cfg(not(feature = "remote"))]
#[doc(hidden)]
#[macro_export]
macro_rules! do_not_list {
    ($entry:expr) => {
        const _: () = {
            let _entry = $entry;
        };
    };
}
#[cfg(not(feature = "remote"))]
pub use do_not_list as submit;
