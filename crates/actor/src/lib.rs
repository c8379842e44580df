//! Typed actors on the Playhouse executor: actors, messages, asks, supervision, systems.
//!
//! Programs use `playhouse`, which re-exports the public part of this with its macros. This crate has no unsafe code:
//! `playhouse-executor` has it.

#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]

mod actor;
mod answer;
mod ask;
mod cell;
mod codec;
mod lock;
mod message;
mod migration;
mod observe;
mod remote;
mod supervise;
mod system;
mod timer;
mod watch;

pub use actor::context::{Context, CrashCause};
pub use actor::group::Group;
#[doc(hidden)]
pub use actor::group::GroupName;
pub use actor::migrate_error::MigrateError;
#[doc(hidden)]
pub use actor::names::{ShortType, name_of};
#[doc(hidden)]
pub use actor::outside::assert_outside;
pub use actor::reference::{ActorRef, TrySendError};
pub use actor::spawn::{Placement, SpawnError, SpawnOptions};
pub use actor::{Actor, ActorId, StopReason, Terminated};
#[doc(hidden)]
pub use actor::{Ended, Notify, Tell, Watcher};
pub use answer::error::{AskError, AskPhase};
#[doc(hidden)]
pub use answer::wait_graph as waiting;
pub use ask::Ask;
pub use ask::context::ContextAsk;
pub use ask::recipient::{AskTarget, Recipient, ToRecipient};
#[doc(hidden)]
pub use ask::reentrant::{Await, Waiter};
pub use ask::reply::{DeferredHandler, DeferredMode, Reply};
#[doc(hidden)]
pub use message::clock::Pace;
#[doc(hidden)]
pub use message::clones;
pub use message::send::OwnedActor;
pub use message::stream::StreamKey;
pub use message::{AsyncHandler, AsyncMode, Guard, HandledBy, Handler, Message, Repeated, SyncMode};
#[doc(hidden)]
pub use observe::{ActivityCounter, ActivityCounts};
pub use observe::{HandlerTimes, SlowHandler, TimedHandlers};
pub use playhouse_executor::{Counters, Mailbox, OnFull, Stealing, Undelivered, limits};
pub use remote::any::{AnyActor, WrongType};
pub use remote::registry::Mobile;
pub use remote::watch::Watchable;
pub use supervise::Supervisor;
pub use supervise::child_spec::{ChildSpec, FindChild};
pub use supervise::crash_report::{AfterCrash, CrashReport, CrashedIn, DecisionReport};
pub use supervise::policy::{Directive, SupervisionFailed, SupervisionPolicy};
pub use supervise::remote::TheaterLost;
pub use system::System;
#[doc(hidden)]
pub use system::Uncounted;
#[doc(hidden)]
pub use system::builder::OnStart;
pub use system::builder::{BuildError, SystemBuilder};
pub use system::ending::Ending;
pub use system::report::{DeadLetter, DeferredMessages, ShutdownError, ShutdownReport, Stats};
pub use timer::context::TimerKey;
pub use timer::sleep::Sleep;
pub use watch::ended::UntilEnded;

/// Stubs of actors in other theaters, the mail that they forward, and the wire form of references.
pub mod away {
    pub use crate::answer::recall::{ForCycle, Recall, RequestLocation, TakesBack, TooLate};
    pub use crate::message::decision::{About, Decision};
    pub use crate::message::forward::{ForwardedMessage, Forwarder, Marker, Origin, TakeAnswer, Write};
    pub use crate::remote::reference_wire::{ActorLocation, MakeStub, RefCodec, RefName, Watched, at_ref_codec};
    pub use crate::remote::stub::{StubPlacement, spawn_stub};
    pub use crate::supervise::remote::{Found, Host};
}

/// Messages that come back if their receiver does not handle them.
#[doc(hidden)]
pub mod returning {
    pub use crate::message::returning::{Posting, Returned, Returning, ReturningMail, ReturningMode, TakeBack};
}

/// Wire forms: the bytes of messages, answers and actors outside of a process, and the steps of a migration.
pub mod wire {
    pub use crate::actor::migration_host::MigrationHost;
    pub use crate::codec::{Codec, WireError, Written};
    pub use crate::message::wire_form::{Transferable, WireForm, transferable};
    pub use crate::migration::gather::{Freeze, OnFrozen};
    pub use crate::migration::offer::{ActorMetadata, Offer, PackedTimer, PreparedActor, ReadTimer};
    pub use crate::migration::spawns::{Decide, SpawnFrom, Spawns, spawns};
    pub use crate::migration::steps::{Arrival, ArrivalRoute, Install, MigrationVTable, New};
    pub use crate::remote::registry::{Answer, AskFrom, Controls, Handles, Mobile, Remote, handles, submit};
    pub use crate::remote::route::{Reroute, Settle, Settled, Settling, StubContent};
    pub use crate::remote::timers::AnyTimer;
    pub use crate::supervise::remote::SupervisorLink;
}
