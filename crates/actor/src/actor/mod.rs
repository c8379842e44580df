//! Actors: their hooks, their identities, and their ends.

pub(crate) mod context;
pub(crate) mod group;
pub(crate) mod migrate_error;
pub(crate) mod migration_host;
pub(crate) mod names;
pub(crate) mod of_system;
pub(crate) mod outside;
pub(crate) mod reference;
pub(crate) mod spawn;
pub(crate) mod watcher;

use std::any::type_name;
use std::fmt;
use std::sync::Arc;

use playhouse_executor::{AwayCx, Control, ControlCx, RawAddress, SystemCore, Undelivered};
use serde::{Deserialize, Serialize};

use crate::actor::context::Context;
use crate::actor::migrate_error::MigrateError;
use crate::actor::names::Name;
pub use crate::actor::watcher::{Ended, Notify, Tell, Watcher};

/// A unit of state that is reached only through messages, one at a time.
///
/// Plain Rust types become actors by `impl Actor for T {}`, or by `#[actor]` on their `impl` block.
///
/// The hooks below run on the actor's worker, between two messages. A panic in a hook is a crash of the actor.
///
/// # Examples
///
/// ```
/// # use playhouse_actor::*;
/// struct Greeter {
///     greetings: u32,
/// }
///
/// impl Actor for Greeter {
///     fn started(&mut self, _: &mut Context<Self>) {
///         self.greetings = 0;
///     }
/// }
/// # let system = System::start()?;
/// let greeter = system.spawn(Greeter { greetings: 7 });
/// # let _ = greeter;
/// # system.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(alias("GenServer", "gen_server", "AbstractBehavior"))]
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an actor",
    label = "not an actor",
    note = "put `#[actor]` on the `impl {Self} {{ .. }}` with its `#[message]` methods, or write `impl Actor for {Self} {{}}`"
)]
pub trait Actor: Sized + Send + 'static {
    /// Called once before the first message, and again after each restart.
    fn started(&mut self, _ctx: &mut Context<Self>) {}

    /// Called once after the actor has stopped by [`Context::stop`], [`ActorRef::stop`](crate::ActorRef::stop), [`ActorRef::drain`](crate::ActorRef::drain), or the
    /// end of its system.
    ///
    /// The hook is not called after a kill or a crash, and not when the actor is stopped while its restart is pending.
    fn stopped(&mut self, _ctx: &mut Context<Self>) {}

    /// Called when an actor that this one [watches](Context::watch) has ended.
    fn terminated(&mut self, _down: Terminated, _ctx: &mut Context<Self>) {}

    /// Called when the actor has handled no message for the time given to [`Context::set_receive_timeout`].
    ///
    /// The call repeats after each such time, until the timeout is [cancelled](Context::cancel_receive_timeout).
    fn receive_timeout(&mut self, _ctx: &mut Context<Self>) {}

    /// Called before the actor migrates to another theater: between two messages, before its state is written and
    /// offered to the target.
    ///
    /// If the target does not take the actor, [`migration_failed`](Actor::migration_failed) is called afterwards. See
    /// [`Mobile`](crate::Mobile).
    fn migrating(&mut self, _ctx: &mut Context<Self>) {}

    /// Called in the target theater after a migration, before any other handler or hook, and instead of `started`.
    fn migrated(&mut self, _ctx: &mut Context<Self>) {}

    /// Called in the source theater when a migration has failed. The actor stays in the source.
    fn migration_failed(&mut self, _why: MigrateError, _ctx: &mut Context<Self>) {}
}

/// The identity of an actor, without its type. An identity is never given to another actor again.
///
/// # Examples
///
/// ```
/// # use playhouse_actor::*;
/// # #[derive(Default)]
/// # struct Counter(u64);
/// # impl Actor for Counter {}
/// # #[derive(Clone)]
/// # struct Add(u64);
/// # impl Message for Add { type Reply = (); }
/// # impl Handler<Add> for Counter {
/// #     fn handle(&mut self, Add(by): Add, _: &mut Context<Self>) { self.0 += by; }
/// # }
/// # struct Get;
/// # impl Message for Get { type Reply = u64; }
/// # impl Handler<Get> for Counter {
/// #     fn handle(&mut self, _: Get, _: &mut Context<Self>) -> u64 { self.0 }
/// # }
/// # let system = System::start()?;
/// let counter = system.spawn(Counter::default());
/// let other = system.spawn(Counter::default());
/// assert_eq!(counter.id(), counter.id());
/// assert_ne!(counter.id(), other.id());
/// # system.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ActorId(pub(crate) RawAddress);

impl ActorId {
    /// Returns the identity of the actor at `address`.
    #[doc(hidden)]
    pub fn of(address: RawAddress) -> ActorId {
        ActorId(address)
    }

    /// Returns the identity of an actor that has ended.
    #[doc(hidden)]
    pub fn nobody() -> ActorId {
        struct Nobody;
        impl Actor for Nobody {}
        ActorId(RawAddress::nowhere::<ActorState<Nobody>>().raw())
    }

    /// Returns the address of the actor.
    #[doc(hidden)]
    pub fn address(self) -> RawAddress {
        self.0
    }
}

impl fmt::Debug for ActorId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{:?}", self.0)
    }
}

impl fmt::Display for ActorId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// The reason for which an actor ended.
///
/// # Examples
///
/// ```
/// # use playhouse_actor::*;
/// # #[derive(Default)]
/// # struct Counter(u64);
/// # impl Actor for Counter {}
/// # #[derive(Clone)]
/// # struct Add(u64);
/// # impl Message for Add { type Reply = (); }
/// # impl Handler<Add> for Counter {
/// #     fn handle(&mut self, Add(by): Add, _: &mut Context<Self>) { self.0 += by; }
/// # }
/// # struct Get;
/// # impl Message for Get { type Reply = u64; }
/// # impl Handler<Get> for Counter {
/// #     fn handle(&mut self, _: Get, _: &mut Context<Self>) -> u64 { self.0 }
/// # }
/// # let system = System::start()?;
/// let counter = system.spawn(Counter::default());
/// let ended = counter.ended();
/// counter.kill();
/// assert_eq!(ended.wait(), StopReason::Killed);
/// # system.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(alias("ExitReason", "ActorStopReason"))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum StopReason {
    /// The actor stopped itself or was stopped.
    Stopped,
    /// The actor was killed.
    Killed,
    /// A handler panicked and no supervisor restarted the actor. Holds the panic's message.
    Panicked(String),
    /// A handler called [`Context::fail`] and no supervisor restarted the actor. Holds the error's message.
    Failed(String),
    /// The system was shut down.
    Shutdown,
    /// The actor had ended before it was watched.
    NotAlive,
    /// The theater of the actor is lost, or cannot be reached.
    TheaterLost,
}

impl fmt::Display for StopReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StopReason::Stopped => f.write_str("it was stopped"),
            StopReason::Killed => f.write_str("it was killed"),
            StopReason::Panicked(message) => write!(f, "it panicked: {message}"),
            StopReason::Failed(error) => write!(f, "it failed: {error}"),
            StopReason::Shutdown => f.write_str("its system was shut down"),
            StopReason::NotAlive => f.write_str("it had ended before it was watched"),
            StopReason::TheaterLost => f.write_str("its theater is lost"),
        }
    }
}

/// The notice that a watched actor has ended: see [`Context::watch`].
///
/// # Examples
///
/// ```
/// # use playhouse_actor::*;
/// # use std::sync::mpsc;
/// struct Watching {
///     watched: ActorRef<Worker>,
///     notices: mpsc::Sender<Terminated>,
/// }
///
/// impl Actor for Watching {
///     fn started(&mut self, ctx: &mut Context<Self>) {
///         ctx.watch(self.watched);
///     }
///
///     fn terminated(&mut self, notice: Terminated, _: &mut Context<Self>) {
///         self.notices.send(notice).unwrap();
///     }
/// }
/// # struct Worker;
/// # impl Actor for Worker {}
/// # let system = System::start()?;
/// let worker = system.spawn_with(SpawnOptions::new().name("press"), Worker);
/// let (notices, received) = mpsc::channel();
/// system.spawn(Watching { watched: worker, notices });
/// # system.run_until_idle();
/// worker.stop();
///
/// let notice = received.recv()?;
/// assert_eq!(notice.reason, StopReason::Stopped);
/// assert_eq!(notice.name.as_deref(), Some("press"));
/// # system.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(alias("DOWN", "EXIT", "ActorStopped"))]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Terminated {
    /// The identity of the actor that has ended.
    pub who: ActorId,
    /// The name given to the actor, if there is one.
    ///
    /// The name is unknown, and `None`, if the actor had ended before it was watched, or if its theater is lost.
    pub name: Option<String>,
    /// The reason for its end.
    pub reason: StopReason,
}

impl fmt::Display for Terminated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Some(name) => write!(f, "{name:?} has ended: {}", self.reason),
            None => write!(f, "{} has ended: {}", self.who, self.reason),
        }
    }
}

/// The state in an actor's cell: the actor.
#[doc(hidden)]
#[repr(transparent)]
pub struct ActorState<A> {
    pub(crate) actor: A,
}

/// The name of an actor, and the number of its present state.
#[derive(Default)]
pub(crate) struct Identity {
    pub(crate) name: Option<Arc<Name>>,
    /// Counts the states that the actor has had in this theater: each new state has the next number.
    pub(crate) incarnation: u64,
}

/// The state of a cell with the actor's name.
pub(crate) trait HasIdentity {
    fn identity(&mut self) -> &mut Identity;
}

/// Counts a message that reached no actor.
pub(crate) fn dead_letter<A, M>(why: Undelivered) {
    count_dead_letter(type_name::<A>(), type_name::<M>(), why);
}

#[inline(never)]
fn count_dead_letter(actor: &'static str, message: &'static str, why: Undelivered) {
    if let Some(system) = SystemCore::of_dead_letter() {
        system.dead_letter(actor, message, why);
    }
}

/// Releases the stub of a remote actor.
pub(crate) struct ReleaseStub;

impl<A: Actor> Control<ActorState<A>> for ReleaseStub {
    fn passes(&self) -> bool {
        true
    }

    fn run(self, _: &mut ControlCx<ActorState<A>>) {}

    fn send_on(self, cx: &mut AwayCx<ActorState<A>>) {
        cx.forget();
    }
}
