//! The engine under Playhouse actors: workers, stages, envelopes and cells.
//!
//! This crate knows cells and envelopes; it does not know that messages have types, replies or supervisors: that is
//! `playhouse-actor`. Nearly all unsafe code of Playhouse is here. Programs use neither crate but `playhouse`.
//!
//! The interface is safe for any caller: an [`Envelope`] is lent its [`Cx`] for its run, and [`wrap_cx`] gives the layer above a type of its
//! own for it.
//!
//! Where things are: [`Address`] and `worker` (the message path), `boundary` (what happens between gulps, and the proof
//! that order is kept), `rest`, `theft`, `muting`, `knot`, `monitor` (stuck handlers), `office` (what others
//! see), `delivery`, `segment`, `record`, `cell`,
//! `slab` (memory), `suspend` (async handlers), `timers`, `threads`, `user_code` (the rule for what a program has written),
//! `simulated`, `driving`, `deliveries` (one message at a time),
//! `observed` (who looks on).

#[cfg(not(target_pointer_width = "64"))]
compile_error!(
    "Playhouse needs a target with pointers of 64 bits, such as x86_64 or aarch64: the records of messages are laid out for them. \
     32-bit targets and WebAssembly (wasm32) are not supported."
);

mod address;
mod away;
mod backpressure;
mod barrier;
mod boundary;
mod cell;
mod census;
mod config;
mod core;
mod dead_letters;
mod deferred;
mod deliveries;
mod delivery;
mod driving;
mod fullness;
#[doc(hidden)]
pub mod jitter;
mod knot;
mod lent;
mod locks;
mod mailbox;
mod monitor;
mod moving;
mod muting;
mod nested;
mod observed;
mod office;
mod outsiders;
mod pinning;
mod placed;
mod queue;
mod quiescence;
mod reactor;
mod record;
mod resident;
mod rest;
mod route;
mod run;
mod sampling;
mod scheduler;
mod segment;
mod send;
mod signal;
mod simulated;
mod slab;
mod starts;
mod stats;
mod stuck;
mod suspend;
mod sync;
mod system;
mod tenure;
mod theft;
mod threads;
mod timers;
mod user_code;
mod worker;

pub use address::{Address, Lane, MaySend, Port, RawAddress, RequestPort, Requests, Sends, Spread};
pub use away::{AwayCx, Gate, Way, pause_stage};
pub use census::{Census, WorkerState};
pub use config::{Around, Config, StageChoice, Stealing, limits};
pub use dead_letters::DeadLetterHook;
pub use deliveries::{Deliveries, Delivery};
pub use driving::{Drive, DriverLock, Turn};
pub use lent::Borrowing;
pub use mailbox::{Mailbox, OnFull};
pub use observed::{Came, Handling, Observer};
pub use outsiders::{WaitOutside, WaitsOutside};
pub use quiescence::Waited;
pub use reactor::{Reactor, flush_soon};
pub use record::{INLINE_BYTES_MAX, record_bytes};
pub use resident::{
    Admission, AsyncEnvelope, Control, ControlCx, Crash, Cx, Decided, Ending, Envelope, MailKind, Resident, Undelivered,
};
pub use sampling::Sampler;
pub use simulated::{Choices, Driver, Steps, nanoseconds};
pub use slab::STATE_BYTES_MAX;
pub use stats::Counters;
pub use stuck::actor_at_work;
pub use suspend::Sleeper;
pub use system::SystemCore;
pub use timers::{TimerKey, TimerTask};
pub use user_code::{Failure, Origin, Payload, contained, discard, during};

/// The system whose actor this thread is running, if it is.
pub fn current_system() -> Option<std::sync::Arc<SystemCore>> {
    worker::current_system()
}

/// Calls `f` with the system whose actor this thread is running, if it is.
pub fn with_current_system<R>(f: impl FnOnce(Option<&std::sync::Arc<SystemCore>>) -> R) -> R {
    f(worker::current().map(|worker| &worker.system))
}

/// Spawns on a stage of the running worker, starting the actor at once; gives both back on a thread that runs no actor.
///
/// # Errors
/// What was given, where this thread runs no worker with stages for children.
#[inline]
pub fn spawn_near<S: Resident, E: Envelope<S>>(state: S, start: E) -> Result<Address<S>, (S, E)> {
    nested::spawn_near(state, start)
}

/// Bytes in front of an actor's state in memory.
pub const CELL_HEADER_BYTES: usize = cell::CELL_HEADER_BYTES;
