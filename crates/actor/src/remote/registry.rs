//! The actors of a binary that other theaters reach.
//!
//! The compiler knows whether a message has a wire form ([`Message::WIRE`]). The binary has a list of the actors and
//! the messages that they take over the wire ([`Handles`], and `Spawns` in `migration/spawns.rs`). `#[actor(remote)]` or
//! [`remote!`](crate::remote!) adds the entries.

use std::any::TypeId;
use std::collections::HashMap;
use std::sync::{Arc, OnceLock, Weak};

use playhouse_executor::{Control, Lane, SystemCore, Undelivered};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::actor::reference::ActorRef;
use crate::actor::{Actor, ActorId, ActorState, Notify, ReleaseStub, Watcher};
use crate::answer::error::AskError;
use crate::answer::recall::TakesBack;
use crate::answer::reply_to::ReplyTo;
use crate::ask::recipient::ToRecipient;
use crate::codec::{Codec, WireError, Written};
use crate::message::forward::Forwarder;
use crate::message::wire_form::WireForm;
use crate::message::{HandledBy, Message};
use crate::remote::route::{Reroute, Rerouted, StubContent};
use crate::remote::stub::{StubPlacement, spawn_stub};
use crate::remote::timers::{AnyTimer, timer};
use crate::watch::Watch;

/// An actor that takes messages from other theaters.
///
/// Implemented by `#[actor(remote)]` or [`remote!`](crate::remote!).
///
/// # Examples
///
/// ```
/// # use playhouse_actor::*;
/// # use playhouse_actor::wire::{Remote, WireForm};
/// # use serde::{Deserialize, Serialize};
/// # struct Counter(u64);
/// # impl Actor for Counter {}
/// # #[derive(Serialize, Deserialize)]
/// # struct Add(u64);
/// # impl Message for Add {
/// #     type Reply = ();
/// #     const WIRE: Option<WireForm<Self>> = Some(WireForm::of());
/// # }
/// # impl Handler<Add> for Counter {
/// #     fn handle(&mut self, Add(by): Add, _: &mut Context<Self>) { self.0 += by; }
/// # }
/// // `#[actor(remote)]` writes this, too.
/// remote!(Counter: Add);
///
/// fn is_remote<A: Remote>() {}
/// is_remote::<Counter>();
/// ```
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
    pub stub: fn(&SystemCore, StubPlacement, Arc<dyn Forwarder>) -> ActorId,
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
                let message = form::<M>().read(bytes, codec)?;
                match lane {
                    Lane::Normal => message.post_unwaiting(to),
                    Lane::Urgent | Lane::System => message.post_urgent(to),
                }
                Ok(())
            },
            ask: |to, bytes, codec, answer| {
                let read = address::<A>(to).and_then(|to| Ok((to, form::<M>().read(bytes, codec)?)));
                let (to, message) = match read {
                    Ok(read) => read,
                    Err(error) => return Err((error, answer)),
                };
                let (reply, held) = ReplyTo::held(Box::new(move |result: Result<M::Reply, AskError>| match result {
                    Ok(value) => answer(Ok(&|codec, out| form::<M>().write_answer(&value, codec, out))),
                    Err(error) => answer(Err(error)),
                }));
                message.post_ask(to, reply, None);
                Ok(held)
            },
            stub: |system, stub_placement, forwarder| spawn_stub::<A>(system, stub_placement, forwarder).id(),
            recipient: |id| Some(Box::new(ActorRef::<A>::of_id(id)?.recipient::<M>())),
            // Timers of immobile actors are never sent. Their code is not in the binary.
            timer: if A::MOBILE {
                |bytes, codec| Ok(timer::<A, M, Mode>(form::<M>().read(bytes, codec)?))
            } else {
                |_, _| Err(WireError::new("it is no mobile actor".to_owned()))
            },
            controls: Controls::of::<A>(),
        }
    }
}

const fn form<M: Message>() -> &'static WireForm<M> {
    const { &M::WIRE }.as_ref().expect("a remote message has a wire form")
}

fn address<A: Actor>(id: ActorId) -> Result<playhouse_executor::Address<ActorState<A>>, WireError> {
    id.0.of_type::<ActorState<A>>().ok_or_else(|| WireError::new(format!("{id} is no {}", std::any::type_name::<A>())))
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
