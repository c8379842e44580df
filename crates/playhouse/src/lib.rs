//! Playhouse: an actor runtime that is fast on one machine and keeps every standard actor semantic.
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
//! A `Theater` is a system that others reach, most often one per process; the feature `theaters` adds it. An actor of the other one is used like any
//! other: what is sent to it crosses in order and once, also where the connection breaks and is made again. What crosses
//! is listed in the binary by `#[actor(remote)]`; both programs must know the types, and need not be the same program.
//!
//! Here both are in one process, and talk over the loopback, where the processes of one user recognise each other by a
//! cookie (`TheaterBuilder::cookie`). For other networks, theaters need certificates (`TheaterBuilder::tls`), unless plain
//! links are allowed there (`TheaterBuilder::plaintext`).
//!
//! ```
//! use playhouse::prelude::*;
//! use playhouse::serde::{Deserialize, Serialize};
//!
//! #[derive(Default, Serialize, Deserialize)]
//! #[serde(crate = "playhouse::serde")] // not where serde is in your Cargo.toml
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
//!     let there = Theater::builder().listen("127.0.0.1:0").start()?; // any port that is free
//!     there.publish("counter", there.system().spawn(Counter { n: 1 }))?;
//!     let address = there.address().expect("it listens").to_string();
//!
//!     let here = Theater::builder().start()?;
//!     let found = here.find::<Counter>(&format!("playhouse://{address}/counter")).wait()?;
//!     found.tell(Add(5));
//!     assert_eq!(found.ask(Get).wait()?, 6);
//!
//!     let started = here.spawn_at(&here.connect(&address)?, &Counter { n: 10 })?; // its state goes there
//!     assert_eq!(started.ask(Get).wait()?, 10);
//!
//!     here.shutdown()?; // the other one has all that was sent to it
//!     there.shutdown()?;
//!     Ok(())
//! }
//! # #[cfg(not(feature = "theaters"))]
//! # fn main() {}
//! ```
//!
//! # The toolbox
//!
//! What many programs need is built already: [`router`] (routers and pools of actors), [`asks`] (to many, and again),
//! [`topic`] (publish and subscribe), [`receptionist`] (who is there), [`resource`] (blocking work), [`durable`]
//! (state that is saved), [`shutdown`] (in phases)
//! and [`stdout`] (lines that do not mix).
//!
//! # Features
//!
//! | feature | what it adds |
//! |---|---|
//! | `theaters` | `Theater`, name servers, simulations, transports, TLS; its dependencies are in part compiled from C |
//! | `metrics` | `System::record_metrics` and `Theater::record_metrics`: figures for the `metrics` crate |
//! | `tracing` | `SystemBuilder::tracing`: spans for the `tracing` crate |
//! | `tokio` | `SystemBuilder::tokio`: actors in the context of a tokio runtime |
//!
//! `theaters` needs a Unix system or Windows, and everything needs a 64-bit target.
//!
//! None is on by default: a program whose actors are all in one process is smaller, and built sooner. `#[actor(remote)]` and
//! `#[actor(mobile)]` compile without `theaters` too, so a library of actors leaves it to its users.

#![cfg_attr(docsrs, feature(doc_cfg))]
// Each method of a theater would repeat the platforms that the text above names.
#![cfg_attr(docsrs, doc(auto_cfg(hide(unix, windows))))]

#[cfg(all(feature = "theaters", not(any(unix, windows))))]
compile_error!(
    "the feature `theaters` of Playhouse needs a Unix system (Linux, macOS, a BSD) or Windows: its links wait for sockets as those have \
     them. Remove `theaters` from the features of the dependency `playhouse`; systems of one process need no sockets."
);

pub use playhouse_actor::*;
pub use playhouse_macros::{Message, actor, main, message, test, warn_needless_clones};
#[cfg(all(feature = "theaters", any(unix, windows)))]
#[cfg_attr(docsrs, doc(cfg(feature = "theaters")))]
pub use playhouse_theater::{
    ActorStats, COOKIE_FILE, Cookie, CountNames, EvacuationReport, Find, FindError, GetName, INSPECTOR, Inspect,
    Inspector, LinkState, LinkStats, MessageStats, Migration, NameAsk, NameError, NameServer, NameServerClient,
    NetworkStats, Peer, PeerState, PublishError, PutName, Rebalance, RebalanceGuard, RemoveName, Simulation, Snapshot,
    StageStats, Theater, TheaterBuilder, TheaterError, Tls, UpdateName, WorkerStats, transport,
};
#[doc(hidden)]
pub use playhouse_toolbox::entry;
pub use playhouse_toolbox::{asks, durable, receptionist, remote_topic, resource, router, shutdown, stdout, topic};
/// What messages that go to other theaters implement: where serde is no dependency of your own, derive it from here, with
/// `#[serde(crate = "playhouse::serde")]`.
///
/// It is not in the [`prelude`], where the trait's `serialize` could be taken for another one's.
pub use serde;

/// Any error of this crate, for `main` functions.
pub type Error = Box<dyn std::error::Error + Send + Sync>;
/// A result with any error of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What a program with actors needs.
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
