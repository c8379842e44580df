//! The engine under Playhouse actors: workers, stages, envelopes and cells.
//!
//! This crate knows cells and envelopes. `playhouse-actor` knows that messages have types, replies and supervisors.
//! Nearly all unsafe code of Playhouse is in this crate. Programs use neither crate but `playhouse`.
//!
//! The interface is safe for any caller: an [`Envelope`] is lent its [`Cx`] for its run, and [`wrap_cx`] gives the
//! layer above a type of its own for it.
//!
//! The folders, from the lowest to the highest. Each uses only folders before it.
//!
//! - `sync`, `user_code`, `memory` and `message`: locks, calls of user code, records and cells, addresses and
//!   envelopes.
//! - `policy`, `load` and `observe`: decisions, measures and figures, which know no workers.
//! - `worker`: workers and their system. `worker::message_queue` has the queue, `worker::run` the run loop, and
//!   `worker::exchange` the proof that order is kept.
//! - `dispatch`: sending messages, and the functions that run them.
//! - `scheduler`, `backpressure`, `migration`, `driver` and `system`: the steps of workers that these are named after.

#[cfg(not(target_pointer_width = "64"))]
compile_error!(
    "Playhouse needs a target with pointers of 64 bits, such as x86_64 or aarch64: the records of messages are laid out for them. \
     32-bit targets and WebAssembly (wasm32) are not supported."
);

mod backpressure;
mod dispatch;
mod driver;
mod load;
mod memory;
mod message;
mod migration;
mod observe;
mod policy;
mod scheduler;
mod sync;
mod system;
mod user_code;
mod worker;

pub use dispatch::async_handler::Sleeper;
pub use driver::deliveries::{Deliveries, Delivery};
pub use driver::simulated::{Steps, nanoseconds};
pub use memory::raw_address::{Lane, RawAddress, Spread};
pub use memory::record::{INLINE_BYTES_MAX, Undelivered, record_bytes};
pub use memory::slab::STATE_BYTES_MAX;
pub use memory::stub_route::StubRoute;
pub use message::address::{Address, MaySend, Port, RequestPort, Requests, Sends};
pub use message::away::AwayCx;
pub use message::dead_letters::DeadLetterHook;
pub use message::envelope::{Admission, AsyncEnvelope, Control, ControlCx, Cx, Decided, Envelope, Resident};
pub use message::mailbox_bound::{Mailbox, OnFull};
pub use migration::stub::pause_stage;
pub use observe::census::{Census, WorkerState};
pub use observe::observer::{HandlerOutcome, Handling, Observer};
pub use observe::sampling::Sampler;
pub use observe::stats::Counters;
pub use policy::choices::Choices;
pub use policy::config::{Around, Config, StageChoice, Stealing, limits};
pub use scheduler::actors_at_work::actor_at_work;
pub use scheduler::poll::flush_soon;
#[doc(hidden)]
pub use sync::jitter;
pub use sync::turns::{Drive, DriverLock, Turn};
pub use system::quiescence::Waited;
pub use user_code::crash::{Crash, Ending, Failure, Origin, Payload};
pub use user_code::mail_kind::MailKind;
pub use user_code::{contained, discard, during};
pub use worker::gate::Gate;
pub use worker::outsiders::{WaitOutside, WaitsOutside};
pub use worker::reactor::Reactor;
pub use worker::run_by_askers::Borrowing;
pub use worker::simulation::Driver;
pub use worker::system_core::SystemCore;
pub use worker::timer_wheel::{TimerKey, TimerTask};

/// Returns the system whose actor this thread is running, if any.
pub fn current_system() -> Option<std::sync::Arc<SystemCore>> {
    worker::current_system()
}

/// Calls `f` with the system whose actor this thread is running, if any.
pub fn with_current_system<R>(f: impl FnOnce(Option<&std::sync::Arc<SystemCore>>) -> R) -> R {
    f(worker::current().map(|worker| &worker.system))
}

/// Spawns on a stage of the running worker, starting the actor at once; gives both back on a thread that runs no actor.
///
/// # Errors
/// Both arguments, if this thread runs no worker with stages for children.
#[inline]
pub fn spawn_near<S: Resident, E: Envelope<S>>(state: S, start: E) -> Result<Address<S>, (S, E)> {
    dispatch::inline_call::spawn_near(state, start)
}

/// Bytes in front of an actor's state in memory.
pub const CELL_HEADER_BYTES: usize = memory::cell::CELL_HEADER_BYTES;
