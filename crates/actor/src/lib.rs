//! Typed actors on the Playhouse executor: actors, messages, asks, supervision, systems.
//!
//! Programs use `playhouse`, which re-exports all of this with its macros. There is no unsafe code here: what needs it
//! is in `playhouse-executor`.

#![forbid(unsafe_code)]

mod abroad;
mod actor;
mod actor_ref;
mod any;
mod ask;
mod ask_error;
mod attach;
pub mod away;
#[doc(hidden)]
pub mod clones;
mod context;
mod crashes;
mod deadline;
mod ending;
mod gather;
mod group;
mod histogram;
mod idle;
mod mail;
mod message;
#[cfg(feature = "metrics")]
mod metrics;
mod mobile;
mod names;
mod nesting;
mod observe;
mod outside;
mod recall;
mod reentrant;
mod reply;
mod reply_to;
mod services;
mod shape;
mod sleep;
#[cfg(feature = "tracing")]
mod spans;
mod spawn;
mod supervise;
mod system;
mod timers;
mod until_ended;
#[doc(hidden)]
pub mod waiting;
mod ways;
pub mod wire;

pub use abroad::TheaterLost;
pub use actor::{Actor, ActorId, Down, StopReason};
#[doc(hidden)]
pub use actor::{Ended, Notify, Tell, Watcher};
pub use actor_ref::{ActorRef, AskTarget, Owned, Recipient, ToRecipient, TrySendError};
pub use any::{AnyActor, WrongType};
pub use ask::{Ask, AskError, Phase};
pub use attach::StreamKey;
pub use context::{Context, ContextAsk, TimerKey};
pub use crashes::{AfterCrash, CrashReport, CrashedIn, DecisionReport};
pub use ending::Ending;
pub use group::Group;
#[doc(hidden)]
pub use group::GroupName;
pub use message::{AsyncHandler, AsyncMode, Guard, HandledBy, Handler, Message, Repeated, SyncMode};
pub use mobile::{MigrateError, Mobile};
#[doc(hidden)]
pub use names::{ShortType, name_of};
#[doc(hidden)]
pub use observe::{Doings, Look};
pub use observe::{HandlerTimes, SlowHandler, TimedHandlers};
#[doc(hidden)]
pub use outside::assert_outside;
pub use playhouse_executor::{Counters, Mailbox, OnFull, Stealing, Undelivered, limits};
#[doc(hidden)]
pub use reentrant::{Await, Waiter};
pub use reply::{DeferredHandler, DeferredMode, Reply};
pub use sleep::Sleep;
pub use spawn::{Placement, SpawnError, SpawnOptions};
pub use supervise::{Directive, FindChild, GaveUp, Supervise, Supervised, Supervisor};
pub use system::{
    BuildError, DeadLetter, DeferredMessages, ShutdownError, ShutdownReport, Stats, System, SystemBuilder,
};
#[doc(hidden)]
pub use system::{OnStart, Uncounted};
#[doc(hidden)]
pub use timers::Pace;
pub use until_ended::UntilEnded;
