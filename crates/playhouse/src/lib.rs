//! Playhouse: an actor runtime that is fast on one machine and keeps every standard actor semantic.
//!
//! An **actor** is a plain struct, and a **message** is a value that is moved to it. Actors share no state and need no
//! locks. A [`System`] runs all actors on one worker thread per core.
//!
//! - [`System::spawn`] starts an actor and returns its [`ActorRef`], a copyable address.
//! - [`tell`](ActorRef::tell) sends a message without an answer; [`ask`](ActorRef::ask) sends one with an answer.
//! - A [`Supervisor`] restarts actors that crash; [`Context::watch`] notifies of an actor's end.
//! - [`Context`] gives a handler its timers, its asks and its own reference.
//!
//! The examples of this reference assume `use playhouse::prelude::*;`, and the actors that they name.
//!
//! The [guide](https://github.com/playhouse-rs/playhouse/blob/main/guide/src/introduction.md) teaches all of this step by
//! step, compares the words of Akka, Erlang, actix and kameo, and lists each error text with its remedy.
//!
//! ```
//! use playhouse::prelude::*;
//!
//! #[derive(Default)]
//! struct Counter {
//!     n: u64,
//! }
//!
//! #[actor]
//! impl Counter {
//!     #[message]
//!     fn add(&mut self, by: u64) {
//!         self.n += by;
//!     }
//!
//!     #[message]
//!     fn get(&self) -> u64 {
//!         self.n
//!     }
//! }
//!
//! fn main() -> playhouse::Result<()> {
//!     let system = System::start()?;
//!     let counter = system.spawn(Counter::default());
//!     counter.tell(Add(5));
//!     assert_eq!(counter.ask(Get).wait()?, 5);
//!     system.shutdown()?;
//!     Ok(())
//! }
//! ```
//!
//! # Theaters
//!
//! A `Theater` is a system that other theaters reach, in most cases one per process; the feature `theaters` adds it. A
//! remote actor is used like a local one. Its messages arrive in order and once, even if the connection breaks and is made
//! again. `#[actor(remote)]` lists the messages that may cross in the binary. Both programs must know the types, and need
//! not be the same program.
//!
//! The example has both theaters in one process. They talk over the loopback, on which the processes of one user
//! authenticate each other by a cookie (`TheaterBuilder::cookie`). On other networks theaters need certificates
//! (`TheaterBuilder::tls`), unless plain links are allowed (`TheaterBuilder::plaintext`).
//!
//! ```
//! use playhouse::prelude::*;
//! use playhouse::serde::{Deserialize, Serialize};
//!
//! #[derive(Default, Serialize, Deserialize)]
//! #[serde(crate = "playhouse::serde")] // not needed if serde is in your Cargo.toml
//! struct Counter {
//!     n: u64,
//! }
//!
//! #[actor(remote, spawn)]
//! impl Counter {
//!     #[message]
//!     fn add(&mut self, by: u64) {
//!         self.n += by;
//!     }
//!
//!     #[message]
//!     fn get(&self) -> u64 {
//!         self.n
//!     }
//! }
//!
//! # #[cfg(feature = "theaters")]
//! fn main() -> playhouse::Result<()> {
//!     let server = Theater::builder().listen("127.0.0.1:0").start()?; // any free port
//!     server.publish("counter", server.system().spawn(Counter { n: 1 }))?;
//!     let address = server.address().expect("it listens").to_string();
//!
//!     let client = Theater::builder().start()?;
//!     let found = client.find::<Counter>(&format!("playhouse://{address}/counter")).wait()?;
//!     found.tell(Add(5));
//!     assert_eq!(found.ask(Get).wait()?, 6);
//!
//!     let started = client.spawn_at(&client.connect(&address)?, &Counter { n: 10 })?; // sends the state
//!     assert_eq!(started.ask(Get).wait()?, 10);
//!
//!     client.shutdown()?; // the server has received all messages by then
//!     server.shutdown()?;
//!     Ok(())
//! }
//! # #[cfg(not(feature = "theaters"))]
//! # fn main() {}
//! ```
//!
//! # The toolbox
//!
//! | module | content |
//! |---|---|
//! | [`router`] | routers and pools of actors |
//! | [`asks`] | asks to many actors, and repeated asks |
//! | [`topic`], [`remote_topic`] | publish and subscribe |
//! | [`receptionist`] | discovery of actors by a key |
//! | [`resource`] | actors for blocking work |
//! | [`durable`] | state that is saved |
//! | [`shutdown`] | shutdown in phases |
//! | [`stdout`] | output whose lines do not mix |
//!
//! # Features
//!
//! | feature | additions |
//! |---|---|
//! | `theaters` | `Theater`, name servers, simulations, transports, TLS; its dependencies are in part compiled from C |
//! | `metrics` | `System::record_metrics` and `Theater::record_metrics`: figures for the `metrics` crate |
//! | `tracing` | `SystemBuilder::tracing`: spans for the `tracing` crate |
//! | `tokio` | `SystemBuilder::tokio`: actors in the context of a tokio runtime |
//!
//! `theaters` needs a Unix system or Windows. The whole crate needs a 64-bit target.
//!
//! No feature is on by default: a program of one process is then smaller, and builds sooner. `#[actor(remote)]` and
//! `#[actor(mobile)]` compile without `theaters`, too, so a library of actors leaves the choice to its users.

#![cfg_attr(docsrs, feature(doc_cfg))]
// Each method of a theater would repeat the platforms that the text above names.
#![cfg_attr(docsrs, doc(auto_cfg(hide(unix, windows))))]

#[cfg(all(feature = "theaters", not(any(unix, windows))))]
compile_error!(
    "the feature `theaters` of Playhouse needs a Unix system (Linux, macOS, a BSD) or Windows: its links wait for sockets by an \
     interface that only these have. Remove `theaters` from the features of the dependency `playhouse`; systems of one process need no sockets."
);

pub use playhouse_actor::{
    Actor, ActorId, ActorRef, AfterCrash, AnyActor, Ask, AskError, AskPhase, AskTarget, AsyncHandler, AsyncMode,
    BuildError, ChildSpec, Context, ContextAsk, Counters, CrashCause, CrashReport, CrashedIn, DeadLetter,
    DecisionReport, DeferredHandler, DeferredMessages, DeferredMode, Directive, Ending, FindChild, Group, Guard,
    HandledBy, Handler, HandlerTimes, Mailbox, Message, MigrateError, Mobile, OnFull, OwnedActor, Placement, Recipient,
    Repeated, Reply, ShutdownError, ShutdownReport, Sleep, SlowHandler, SpawnError, SpawnOptions, Stats, Stealing,
    StopReason, StreamKey, SupervisionFailed, SupervisionPolicy, Supervisor, SyncMode, System, SystemBuilder,
    Terminated, TheaterLost, TimedHandlers, TimerKey, ToRecipient, TrySendError, Undelivered, UntilEnded, Watchable,
    WrongType, limits, remote,
};
pub use playhouse_macros::{Message, actor, main, message, test, warn_needless_clones};
#[cfg(all(feature = "theaters", any(unix, windows)))]
#[cfg_attr(docsrs, doc(cfg(feature = "theaters")))]
pub use playhouse_theater::{
    ActorStats, COOKIE_FILE, Cookie, CountNames, EvacuationReport, Find, FindError, GetName, INSPECTOR, Inspect,
    Inspector, LinkState, LinkStats, MessageStats, Migration, NameAsk, NameError, NameServer, NameServerClient,
    NetworkStats, Peer, PeerState, PublishError, PutName, Rebalance, RebalanceGuard, RemoveName, Simulation, Snapshot,
    StageStats, Theater, TheaterBuilder, TheaterError, Tls, UpdateName, WorkerStats, transport,
};
pub use playhouse_toolbox::{asks, durable, receptionist, remote_topic, resource, router, shutdown, stdout, topic};
/// The crate serde, whose traits messages to other theaters implement. A program without its own dependency on serde
/// derives them with `#[serde(crate = "playhouse::serde")]`.
///
/// It is not in the [`prelude`], because the trait's method `serialize` could be taken for another trait's.
pub use serde;

/// Any error of this crate, for `main` functions.
pub type Error = Box<dyn std::error::Error + Send + Sync>;
/// A result with any error of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Wire forms: the bytes of messages, answers and actors outside of a process.
///
/// A message has a wire form if its [`WIRE`](Message::WIRE) says so. The binary has a list of the messages that actors
/// take from other theaters, and of the actors that other theaters can start.
pub mod wire {
    pub use playhouse_actor::wire::{
        Codec, Handles, Mobile, Remote, Spawns, Transferable, WireError, WireForm, handles, spawns, submit,
    };
}

/// The names that the expansions of this crate's macros need. It is no part of the public interface.
#[doc(hidden)]
pub mod __macros {
    pub use playhouse_actor::clones;
    pub use playhouse_actor::wire::{Handles, Remote, Spawns, WireForm, submit, transferable};
    pub use playhouse_toolbox::entry;
    pub use serde;
}

/// The functions that the programs `playhouse` and `playhouse-bench` share with the library. It is no part of the public interface.
#[doc(hidden)]
#[cfg(all(feature = "theaters", any(unix, windows)))]
pub mod __programs {
    pub use playhouse_theater::files::{open, read};
}

/// The items that every program with actors uses: `use playhouse::prelude::*;`.
pub mod prelude {
    pub use crate::{
        Actor, ActorId, ActorRef, AskError, AskPhase, AsyncHandler, ChildSpec, Context, DeadLetter, DeferredHandler,
        Directive, FindChild, Group, HandledBy, Handler, Mailbox, Message, MigrateError, OnFull, OwnedActor, Placement,
        Recipient, Reply, SpawnError, SpawnOptions, Stealing, StopReason, StreamKey, SupervisionFailed,
        SupervisionPolicy, Supervisor, System, Terminated, TimerKey, ToRecipient, TrySendError, actor, message,
    };
    #[cfg(all(feature = "theaters", any(unix, windows)))]
    pub use crate::{NameError, NameServer, NameServerClient, Peer, Theater};
}
