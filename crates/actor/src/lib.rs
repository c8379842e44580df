//! Typed actors on the Playhouse executor: actors, messages, asks, supervision, systems.
//!
//! Programs use `playhouse`, which re-exports all of this with its macros. This crate has no unsafe code:
//! `playhouse-executor` has it.

#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]

mod actor;
mod ask;
mod message;
mod migration;
mod observe;
mod remote;
mod supervise;
mod system;
mod timer;

pub use actor::any::{AnyActor, WrongType};
pub use actor::context::{Context, ContextAsk, TimerKey};
pub use actor::ended::UntilEnded;
pub use actor::group::Group;
#[doc(hidden)]
pub use actor::group::GroupName;
#[doc(hidden)]
pub use actor::names::{ShortType, name_of};
pub use actor::reference::{ActorRef, AskTarget, OwnedActor, Recipient, ToRecipient, TrySendError};
pub use actor::spawn::{Placement, SpawnError, SpawnOptions};
pub use actor::{Actor, ActorId, StopReason, Terminated};
#[doc(hidden)]
pub use actor::{Ended, Notify, Tell, Watcher};
#[doc(hidden)]
pub use ask::outside::assert_outside;
#[doc(hidden)]
pub use ask::reentrant::{Await, Waiter};
pub use ask::reply::{DeferredHandler, DeferredMode, Reply};
#[doc(hidden)]
pub use ask::waiting;
pub use ask::{Ask, AskError, AskPhase};
#[doc(hidden)]
pub use message::clones;
pub use message::stream::StreamKey;
pub use message::{AsyncHandler, AsyncMode, Guard, HandledBy, Handler, Message, Repeated, SyncMode};
pub use migration::{MigrateError, Mobile};
#[doc(hidden)]
pub use observe::{ActivityCounter, ActivityCounts};
pub use observe::{HandlerTimes, SlowHandler, TimedHandlers};
pub use playhouse_executor::{Counters, Mailbox, OnFull, Stealing, Undelivered, limits};
pub use remote::stub as away;
pub use remote::wire;
pub use supervise::crashes::{AfterCrash, CrashReport, CrashedIn, DecisionReport};
pub use supervise::remote::TheaterLost;
pub use supervise::{ChildSpec, Directive, FindChild, SupervisionFailed, SupervisionPolicy, Supervisor};
pub use system::ending::Ending;
pub use system::{
    BuildError, DeadLetter, DeferredMessages, ShutdownError, ShutdownReport, Stats, System, SystemBuilder,
};
#[doc(hidden)]
pub use system::{OnStart, Uncounted};
pub use timer::sleep::Sleep;
#[doc(hidden)]
pub use timer::timers::Pace;
