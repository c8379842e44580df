//! Migration of actors between theaters while they run.
//!
//! This module has the requests to one cell when an actor leaves or arrives. `playhouse-theater` decides when they are
//! sent (see its `moves`).

pub(crate) mod gather;

use std::any::{Any, TypeId};
use std::fmt;
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::time::Duration;

use playhouse_executor::{
    Address, AwayCx, Control, ControlCx, Cx, Envelope, MailKind, StubRoute, SystemCore, Undelivered,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::actor::any::AnyActor;
use crate::actor::context::Context;
use crate::actor::group::GroupName;
use crate::actor::names::Name;
use crate::actor::reference::ActorRef;
use crate::actor::spawn::{Placement, spawn_at, take_name};
use crate::actor::{Actor, ActorId, ActorState, Extra, Watch, Watcher};
use crate::ask::AskError;
use crate::message::HandledBy;
use crate::message::mail::Start;
use crate::migration::gather::{FreezeTogether, OnFrozen, PrepareFrozen, Then};
use crate::remote::route::{BeginReroute, Begins, EndReroute, Pass, Settled, Settling, send_marker};
use crate::remote::stub::{ForwardedMessage, Forwarder, Marker, Write, copy_of};
use crate::remote::wire::{Codec, Remote, WireError};
use crate::supervise::Child;
use crate::supervise::remote::{SupervisedRemotely, SupervisorLink, read_child};
use crate::system::services::migration_host_of;
use crate::timer::receive_timeout::Idle;
use crate::timer::timers::{Pace, Timer, Timers, cancel_all};

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
/// Release them in [`migrating`](Actor::migrating), and acquire them anew in [`migrated`](Actor::migrated).
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

/// The reason for which an actor did not migrate, as far as this theater knows.
///
/// The actor continues in its source theater, with 3 exceptions: it has stopped, it is lost with the target, or it has
/// left for a target that does not confirm its beginning.
///
/// # Examples
///
/// ```
/// # use playhouse_actor::{wire::WireForm, *};
/// # use serde::{Deserialize, Serialize};
/// # #[derive(Serialize, Deserialize)]
/// # struct Ring;
/// # impl Message for Ring { type Reply = (); const WIRE: Option<WireForm<Self>> = Some(WireForm::of()); }
/// # #[derive(Serialize, Deserialize)]
/// # struct Bell;
/// # impl Handler<Ring> for Bell { fn handle(&mut self, _: Ring, _: &mut Context<Self>) {} }
/// impl Actor for Bell {
///     fn migration_failed(&mut self, why: MigrateError, _: &mut Context<Self>) {
///         match why {
///             MigrateError::Unreachable(why) => eprintln!("the target is unreachable: {why}"),
///             other => eprintln!("stays: {other}"),
///         }
///     }
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum MigrateError {
    /// The actor has stopped.
    Stopped,
    /// The actor is not in this theater: only the theater of an actor can send it to another one.
    Elsewhere,
    /// The actor's state, or the message of one of its timers, cannot be written. Holds the reason.
    Unwritable(String),
    /// The target theater does not take the actor. Holds the reason.
    Refused(String),
    /// The target theater cannot be reached, or a theater did not answer within 3 × `lost_after`. Holds the reason. If
    /// the actor had left by then, it may be alive in the target.
    Unreachable(String),
    /// The target theater was lost before it confirmed the actor's beginning. Either the actor continues in the source
    /// and is notified ([`migration_failed`](Actor::migration_failed)), or it had left and is lost with the target.
    TheaterLost,
    /// Actors of its type are not mobile: see [`Mobile`].
    Immobile,
    /// The actor was awaiting something at every attempt to freeze its group.
    Busy,
    /// A member of a group cannot migrate, so no member does.
    Member {
        /// The member, as it is shown in reports.
        who: String,
        /// The reason for which it cannot migrate.
        why: Box<MigrateError>,
    },
    /// The value is no group, only a stage: [`Context::group`] made it in an actor without a group, or it belongs to
    /// another system.
    NoGroup,
    /// The actor crashed in its hook [`migrating`](crate::Actor::migrating). It has ended by that, unless its
    /// supervisor resumes or restarts it.
    Crashed,
}

impl fmt::Display for MigrateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MigrateError::Stopped => f.write_str("the actor has stopped"),
            MigrateError::Crashed => f.write_str("the actor crashed in its hook `migrating`"),
            MigrateError::Elsewhere => {
                f.write_str("the actor is in another theater: only that theater can migrate it")
            }
            MigrateError::Unwritable(why) => write!(f, "the actor cannot be written: {why}"),
            MigrateError::Refused(why) => write!(f, "the other theater does not take the actor: {why}"),
            MigrateError::Unreachable(why) => write!(f, "the other theater cannot be reached: {why}"),
            MigrateError::TheaterLost => {
                f.write_str("the target theater was lost before it confirmed that the actor has begun")
            }
            MigrateError::Immobile => f.write_str("actors of its type are not mobile: see `#[actor(mobile)]`"),
            MigrateError::Busy => {
                f.write_str("it awaited something at every attempt to freeze its group")
            }
            MigrateError::Member { who, why } => write!(f, "{who}, of the group, cannot migrate: {why}"),
            MigrateError::NoGroup => f.write_str(
                "it is only a stage, and no group that can migrate: make a group with `Group::new` in the system of a theater",
            ),
        }
    }
}

impl std::error::Error for MigrateError {}

/// The migration service of a theater for its actors: sends them to other theaters, and records their groups.
pub trait MigrationHost: Send + Sync + 'static {
    /// Returns the name of a new group, or `None` if the theater is closing.
    fn new_group(&self) -> Option<GroupName>;
    /// Returns the stage of a group in this theater. It is `own` if this theater made the group.
    fn stage_of(&self, group: GroupName, own: u16) -> u16;
    /// Records that `actor`, of the type `kind`, was started in a group.
    fn join(&self, group: GroupName, actor: ActorId, kind: &'static str);
    /// Returns the group that the actor is a member of.
    fn group_of(&self, actor: ActorId) -> Option<GroupName>;
    /// Begins the migration of `actor` to the theater at `to`. `failed` is called if it fails early.
    fn migrate(&self, actor: ActorId, to: SocketAddr, failed: Box<dyn FnOnce(MigrateError) + Send>);
    /// Ends a watch on `actor` that the actor's stub has not recorded.
    fn forget_watch(&self, actor: ActorId, watcher: Watcher);
}

fn migration_host() -> Option<Arc<dyn MigrationHost>> {
    playhouse_executor::with_current_system(|system| {
        migration_host_of(system.expect("a handler runs on a worker")).cloned()
    })
}

/// Ends a watch on this actor. The actor's stub may have been about to record it.
pub(crate) fn forget_watch(actor: ActorId, watcher: Watcher) {
    if let Some(migration_host) = migration_host() {
        migration_host.forget_watch(actor, watcher);
    }
}

/// Requests the migration of the running actor.
pub(crate) fn migrate<A: Mobile>(address: Address<ActorState<A>>, to: SocketAddr) {
    let failed = Box::new(move |why| address.send(MigrationFailedHook(why)));
    match migration_host() {
        Some(migration_host) => migration_host.migrate(ActorId(address.raw()), to, failed),
        None => failed(MigrateError::Unreachable("this system is not that of a theater".to_owned())),
    }
}

// -- preparing --------------------------------------------------------------------------------------------------------

/// A frozen actor, ready to be written.
pub struct PreparedActor<'a> {
    /// Writes its state.
    pub state: Write<'a>,
    /// Its name in reports.
    pub name: Option<&'a str>,
    /// Its link to its supervisor, if it has one.
    pub supervisor_link: Option<SupervisorLink>,
    /// The actors that it watches.
    pub watching: &'a [AnyActor],
    /// The number of its last timer.
    pub last_timer: u64,
    /// Its timers.
    pub timers: &'a [PackedTimer<'a>],
    /// Its receive timeout, if it has one.
    pub receive_timeout: Option<Duration>,
}

/// A timer, ready to be written.
pub struct PackedTimer<'a> {
    /// Its number.
    pub id: u64,
    /// The time until it fires next.
    pub left: Duration,
    /// Its repetition.
    pub pace: Pace,
    /// `true` if it continues after a restart.
    pub kept: bool,
    /// The type of its message.
    pub message: TypeId,
    /// The name of that type in reports.
    pub name: &'static str,
    /// Writes the message.
    pub write: Write<'a>,
}

/// Receives a prepared actor, or the error that prevented it. If the function returns an error, the actor continues in
/// the source, and its hook is called.
pub type Offer = Box<dyn FnOnce(Result<PreparedActor<'_>, MigrateError>) -> Result<(), MigrateError> + Send>;

/// The parts of an actor besides its state, as they were read.
#[derive(Default)]
pub struct ActorMetadata {
    /// Its name in reports.
    pub name: Option<String>,
    /// Its link to its supervisor, if it has one.
    pub supervisor_link: Option<SupervisorLink>,
    /// The actors that it watches.
    pub watching: Vec<AnyActor>,
    /// The number of its last timer.
    pub last_timer: u64,
    /// Its timers.
    pub timers: Vec<ReadTimer>,
    /// Its receive timeout, if it has one.
    pub receive_timeout: Option<Duration>,
    /// `true` if the actor is new: it starts, and has not migrated.
    pub is_new: bool,
}

/// A timer, as it was read.
pub struct ReadTimer {
    /// Its number.
    pub id: u64,
    /// The time until it fires next.
    pub left: Duration,
    /// Its repetition.
    pub pace: Pace,
    /// `true` if it continues after a restart.
    pub kept: bool,
    /// The request that starts it.
    pub start: AnyTimer,
}

/// A `StartTimer` of an actor's type.
pub type AnyTimer = Box<dyn Any + Send>;

type StartTimer<A> = Box<dyn FnOnce(Address<ActorState<A>>, u64, Duration, Pace) -> Timer + Send>;

pub(crate) fn timer<A: Actor, M: HandledBy<A, Mode>, Mode>(message: M) -> AnyTimer {
    let start: StartTimer<A> = Box::new(move |address, id, left, pace| {
        let copy = (pace != Pace::Once).then_some(copy_of::<M> as fn(&M) -> Result<M, WireError>);
        Timer::start::<A, M, Mode>(address, id, (left, pace), message, copy)
    });
    Box::new(start)
}

/// Installs an actor that was read, at its stub in this theater, which [fits](MigrationVTable::fits). Returns the
/// arrival if the stub has just ended.
pub type Install = Box<dyn FnOnce(ActorId, Arrival) -> Option<Arrival> + Send>;

/// An actor that is about to start.
pub struct New {
    /// Installs and starts it.
    pub install: Install,
    /// Its link to its supervisor, if it is a child.
    pub supervisor_link: Option<SupervisorLink>,
}

/// The conditions under which an actor arrives at its stub in this theater.
pub struct Arrival {
    /// Holds the actor's watchers until its cell records them. They are notified of its end even if it ends in its hook
    /// `migrated`.
    pub settling: Settling,
    /// The mail that comes before the actor begins.
    pub route: ArrivalRoute,
}

/// The mail that comes before an actor begins at its stub in this theater.
pub enum ArrivalRoute {
    /// Mail that the stub has forwarded may still be under way, and comes before the mail that waits at the stub. Holds
    /// a marker for its route, unless the stub is rerouting already. The actor begins when it is
    /// [settled](MigrationVTable::settle).
    Behind(Option<Marker>),
    /// The stub has forwarded no mail.
    Freely {
        /// `true` if the actor begins when it is settled, because an arrival buffer exists.
        is_settled: bool,
    },
}

/// The steps of the migration of a mobile actor's type.
///
/// Each step is a request to the actor's cell, and does nothing if the actor has ended. All steps except `prepare`, and
/// the result of `read`, queue behind earlier sends of the same worker to the cell and to its arrival buffer, because
/// none of these may come later.
#[derive(Clone, Copy)]
pub struct MigrationVTable {
    /// Freezes the actor between two messages and offers it.
    pub prepare: fn(ActorId, Offer),
    /// Calls back when the actor is between two messages: it may then be frozen with others.
    pub when_freezable: fn(ActorId, OnFrozen),
    /// Offers the actor, which was frozen with others.
    pub prepare_frozen: fn(ActorId, Offer),
    /// Aborts the migration: the actor continues in the source.
    pub abort: fn(ActorId, MigrateError),
    /// Commits the migration: the actor has left, and its mail follows by this forwarder, as long as the route is open.
    pub commit: fn(ActorId, Arc<dyn Forwarder>, Arc<StubRoute>),
    /// Reads an incoming actor, with its metadata.
    pub read: fn(&[u8], Codec, ActorMetadata) -> Result<Install, WireError>,
    /// Reads an actor that starts, and its link to its supervisor if it is a child. On an error, that supervisor was
    /// notified.
    pub read_new: fn(&[u8], Codec, bool) -> Result<New, WireError>,
    /// Makes a stub on this stage for a remote actor. The stub forwards mail by this forwarder, as long as the route is
    /// open.
    pub make_stub: fn(&SystemCore, u16, Arc<dyn Forwarder>, Arc<StubRoute>) -> ActorId,
    /// Returns whether the stub is one of an actor of this type.
    pub fits: fn(ActorId) -> bool,
    /// Makes an arrival buffer for the actor.
    pub arrival_buffer: fn(&SystemCore, ActorId) -> Option<ActorId>,
    /// Begins the reroute of this number: new mail waits, and the marker takes the old route.
    pub begin_reroute: fn(ActorId, u64, Marker),
    /// Passes a marker on, behind the mail.
    pub pass_marker: fn(ActorId, Marker),
    /// Lets the waiting mail continue.
    pub settle: fn(ActorId, Settled, Settling),
    /// Calls the hook of a failed migration.
    pub failed: fn(ActorId, MigrateError),
    /// Calls back behind earlier requests to the cell.
    pub then: fn(ActorId, Box<dyn FnOnce() + Send>),
}

fn to<A: Actor>(id: ActorId) -> Option<Address<ActorState<A>>> {
    id.0.of_type()
}

impl MigrationVTable {
    pub(crate) const fn of<A: Mobile>() -> MigrationVTable {
        MigrationVTable {
            prepare: |id, offer| match to::<A>(id) {
                Some(address) => address.send_control(Prepare { offer, asks_again: true }),
                None => drop(offer(Err(MigrateError::Stopped))),
            },
            when_freezable: |id, on_frozen| match to::<A>(id) {
                Some(address) => address.send_control(FreezeTogether { on_frozen, asks_again: true }),
                None => on_frozen(Err(Undelivered::Stopped)),
            },
            prepare_frozen: |id, offer| match to::<A>(id) {
                Some(address) => address.send_control(PrepareFrozen(offer)),
                None => drop(offer(Err(MigrateError::Stopped))),
            },
            abort: |id, why| {
                if let Some(address) = to::<A>(id) {
                    address.send_control_behind(Abort(why));
                }
            },
            commit: |id, forwarder, route| {
                if let Some(address) = to::<A>(id) {
                    address.send_control_behind(Commit(forwarder, route));
                }
            },
            read: read::<A>,
            read_new: |bytes, codec, is_child| {
                let is_new = ActorMetadata { is_new: true, ..ActorMetadata::default() };
                if !is_child {
                    return Ok(New { install: install::<A>(codec.read(bytes)?, is_new), supervisor_link: None });
                }
                let (supervisor_link, name, actor) = read_child::<A>(bytes, codec)?;
                let metadata = ActorMetadata { name: Some(name), supervisor_link: Some(supervisor_link), ..is_new };
                Ok(New { install: install(actor, metadata), supervisor_link: Some(supervisor_link) })
            },
            make_stub: |system, stage, forwarder, route| {
                let address = system.spawn_away::<ActorState<A>>(stage, Extra::of(forwarder), Some(route));
                ActorId(address.raw())
            },
            fits: |id| to::<A>(id).is_some(),
            arrival_buffer: |system, id| {
                let address = system.arrival_buffer(to::<A>(id)?);
                Some(ActorId(address.raw()))
            },
            begin_reroute: |id, number, marker| match to::<A>(id) {
                Some(address) => address.send_control_behind(BeginReroute { number, marker }),
                None => (marker.answer)(Err(AskError::Stopped)),
            },
            pass_marker: |id, marker| match to::<A>(id) {
                // The marker passes a waiting handler, or an undecided crash. Mail that came before the marker waits in
                // its order, and the supervisor that decides about the crash may be waiting for the answer.
                Some(address) => address.send_control_behind(Pass::new(marker)),
                None => (marker.answer)(Err(AskError::Stopped)),
            },
            settle: |id, settled, settling| match (to::<A>(id), settled) {
                (address, Settled::Begins { arrival_buffer }) => {
                    let begins = Begins::<A>::new(arrival_buffer.and_then(to::<A>), settling);
                    match address {
                        Some(address) => address.send_control_behind(begins),
                        None => begins.forget_arrival_buffer(),
                    }
                }
                (Some(address), Settled::Turned { number, forwarder }) => {
                    address.send_control_behind(EndReroute { number, forwarder, settling });
                }
                (None, Settled::Turned { .. }) => {}
            },
            failed: |id, why| {
                if let Some(address) = to::<A>(id) {
                    address.send(MigrationFailedHook(why));
                }
            },
            then: |id, call| match to::<A>(id) {
                Some(address) => address.send_control_behind(Then(call)),
                None => call(),
            },
        }
    }
}

// -- requests to the cell ---------------------------------------------------------------------------------------------

struct Prepare {
    offer: Offer,
    /// `true` if a stub sends the request once more behind the mail, because the actor may be about to arrive.
    asks_again: bool,
}

impl<A: Mobile> Control<ActorState<A>> for Prepare {
    fn run(self, cx: &mut ControlCx<ActorState<A>>) {
        if !cx.is_calm() {
            // Queues behind the waiting handler, or the undecided crash.
            return cx.address().send_control_in_order(self);
        }
        if let Some(offer) = depart(self.offer, cx) {
            cx.freeze();
            offer_or_stay(offer, cx);
        }
    }

    fn bounce(self, _: Undelivered) {
        let _ = (self.offer)(Err(MigrateError::Stopped));
    }

    fn send_on(self, cx: &mut AwayCx<ActorState<A>>) {
        if self.asks_again {
            return cx.address().send_control_behind(Prepare { asks_again: false, ..self });
        }
        let _ = (self.offer)(Err(MigrateError::Elsewhere));
    }
}

/// Calls the hook. Returns the offer if the actor leaves. Otherwise the actor ends or crashes, and the offer receives
/// the error.
///
/// # Panics
/// If the hook panics.
pub(crate) fn depart<A: Mobile>(offer: Offer, cx: &mut ControlCx<ActorState<A>>) -> Option<Offer> {
    let panic = catch_unwind(AssertUnwindSafe(|| cx.run(MigratingHook))).err();
    let why = match panic {
        None if !cx.is_ending() => return Some(offer),
        None if !cx.has_failed() => MigrateError::Stopped,
        _ => MigrateError::Crashed,
    };
    let _ = offer(Err(why));
    if let Some(panic) = panic {
        resume_unwind(panic);
    }
    None
}

pub(crate) fn offer_or_stay<A: Mobile>(taken: Offer, cx: &mut ControlCx<ActorState<A>>) {
    if let Err(why) = offer(taken, cx) {
        forget_leave(&mut cx.extra().timers);
        cx.thaw();
        cx.run(MigrationFailedHook(why));
    }
}

fn offer<A: Mobile>(offer: Offer, cx: &mut ControlCx<ActorState<A>>) -> Result<(), MigrateError> {
    let who = ActorRef::new(cx.address());
    let extra = cx.extra();
    extra.watchers.extend(extra.child.as_mut().and_then(|child| child.begin_migration(who)));
    let supervisor_link = extra.child.as_ref().map(|child| child.supervisor_link());
    let now = playhouse_executor::with_current_system(|system| system.map_or(Duration::ZERO, |system| system.now()));
    let name = cx.extra().name.clone();
    let watching = cx.extra().watching.clone();
    let last_timer = cx.extra().next_timer;
    let mut clocks = Vec::new();
    for (id, timer) in &mut cx.extra().timers {
        let times = timer.clock.times();
        let fired = times.fired();
        if times.pace != Pace::Once || fired == 0 {
            timer.left_at = Some(fired);
            clocks.push((*id, Arc::clone(&timer.clock), timer.kept));
        }
    }
    let writers: Vec<_> =
        clocks.iter().map(|(_, clock, _)| move |codec: Codec, out: &mut Vec<u8>| clock.write(codec, out)).collect();
    let timers: Vec<_> = clocks
        .iter()
        .zip(&writers)
        .map(|((id, clock, kept), write)| {
            let (message, name) = clock.message_type();
            let times = clock.times();
            PackedTimer { id: *id, left: times.left(now), pace: times.pace, kept: *kept, message, name, write }
        })
        .collect();
    let receive_timeout = cx.extra().idle.as_ref().map(|idle| idle.after);
    let actor = &cx.state().expect("a frozen actor awaits nothing").actor;
    let state = crate::remote::stub::guarded(|codec, out| codec.write(actor, out));
    let name = name.as_ref().map(|name| &**name.text());
    offer(Ok(PreparedActor {
        state: &state,
        name,
        supervisor_link,
        watching: &watching,
        last_timer,
        timers: &timers,
        receive_timeout,
    }))
}

fn forget_leave(timers: &mut Timers) {
    for timer in timers.values_mut() {
        timer.left_at = None;
    }
}

struct Abort(MigrateError);

impl<A: Mobile> Control<ActorState<A>> for Abort {
    fn passes(&self) -> bool {
        true
    }

    fn run(self, cx: &mut ControlCx<ActorState<A>>) {
        if cx.is_frozen() {
            forget_leave(&mut cx.extra().timers);
            cx.thaw();
            cx.run(MigrationFailedHook(self.0));
        }
    }

    fn send_on(self, _: &mut AwayCx<ActorState<A>>) {}
}

struct Commit(Arc<dyn Forwarder>, Arc<StubRoute>);

impl<A: Mobile> Control<ActorState<A>> for Commit {
    fn passes(&self) -> bool {
        true
    }

    fn run(self, cx: &mut ControlCx<ActorState<A>>) {
        if !cx.is_frozen() {
            return;
        }
        let extra = cx.extra();
        extra.away = Some(Arc::clone(&self.0));
        extra.reroute = None;
        extra.waiters.let_go();
        let watchers = std::mem::take(&mut extra.watchers);
        let watching = std::mem::take(&mut extra.watching);
        if let Some(child) = extra.child.take() {
            // The actor watches its supervisor from the target theater already.
            SupervisedRemotely::unwatch(child.supervisor_link());
        }
        for timer in extra.timers.values() {
            timer.stop();
        }
        extra.idle.take().into_iter().for_each(Idle::cancel);
        let who = ActorId(cx.address().raw());
        // The actor watches them from the target theater.
        watching.into_iter().for_each(|watched| watched.unwatch(Watcher::last(who)));
        cx.depart(self.1);
        self.0.is_route_from(who);
        for (watcher, notify) in watchers {
            if watcher == Watcher::Theater {
                continue;
            }
            let notify = Watch::telling(who, notify);
            // If the watch cannot be forwarded, the forwarder notifies the watcher.
            let _ = self.0.carry(ForwardedMessage::Watch { watcher, notify });
        }
        cx.thaw();
    }

    fn send_on(self, _: &mut AwayCx<ActorState<A>>) {}
}

fn read<A: Mobile>(state: &[u8], codec: Codec, metadata: ActorMetadata) -> Result<Install, WireError> {
    Ok(install::<A>(codec.read(state)?, metadata))
}

fn install<A: Mobile>(actor: A, metadata: ActorMetadata) -> Install {
    Box::new(move |stub, coming| {
        match to::<A>(stub) {
            Some(address) => address.send_control_behind(Arrive { actor, metadata, coming }),
            None => return Some(coming),
        }
        None
    })
}

fn start<A: Mobile>(system: &Arc<SystemCore>, actor: A, metadata: ActorMetadata) -> Result<ActorRef<A>, WireError> {
    spawn_at(system, Placement::Spread, None, actor, MigratedHook(metadata)).map_err(WireError::new)
}

struct Arrive<A> {
    actor: A,
    metadata: ActorMetadata,
    coming: Arrival,
}

impl<A: Mobile> Control<ActorState<A>> for Arrive<A> {
    fn passes(&self) -> bool {
        true
    }

    fn run(self, cx: &mut ControlCx<ActorState<A>>) {
        if cx.is_frozen() {
            // The actor has left and returned before this cell has learned that it left.
            return cx.address().send_control_behind(self);
        }
        // An actor arrives once. A message of such a name is dropped, because no actor expects it.
        debug_assert!(false, "{:?} has arrived twice", cx.address().raw());
    }

    fn bounce(mut self, _: Undelivered) {
        // The stub was released in the meantime, together with the route of its mail.
        playhouse_executor::with_current_system(|system| {
            let started = system.and_then(|system| start(system, self.actor, self.metadata).ok());
            for (watcher, notify) in self.coming.settling.take_watchers() {
                let who = started.map_or_else(ActorId::nobody, ActorRef::id);
                let watch = Watch::Begin { watcher, notify, who };
                match started {
                    Some(started) => started.address.send_control(watch),
                    None => watch.refuse(),
                }
            }
        });
    }

    fn send_on(self, cx: &mut AwayCx<ActorState<A>>) {
        cx.extra().reroute = None;
        cx.arrive(ActorState { actor: self.actor });
        let Arrival { mut settling, route } = self.coming;
        let at_once = matches!(route, ArrivalRoute::Freely { is_settled: false });
        cx.address().send_control_behind(Begin { metadata: self.metadata, at_once });
        let extra = cx.extra();
        extra.watched_by(settling.take_watchers());
        match route {
            ArrivalRoute::Behind(marker) => {
                if let Some(marker) = marker {
                    send_marker(marker, extra);
                }
            }
            ArrivalRoute::Freely { .. } => {
                // The actor may have left this stub only a moment ago. Its watchers were not found then, when it was
                // admitted.
                let late = extra.away.take().map(|forwarder| forwarder.take_watchers());
                extra.watched_by(late.unwrap_or_default());
            }
        }
    }
}

/// The first request to the cell of an actor that has arrived. It is sent before the request that thaws the cell, or
/// thaws the cell itself (`at_once`).
struct Begin {
    metadata: ActorMetadata,
    at_once: bool,
}

impl<A: Mobile> Control<ActorState<A>> for Begin {
    fn passes(&self) -> bool {
        true
    }

    fn describe(&self) -> (MailKind, &'static str) {
        if self.metadata.is_new { (MailKind::Start, "start") } else { (MailKind::Control, "migrated") }
    }

    fn run(self, cx: &mut ControlCx<ActorState<A>>) {
        if self.at_once {
            cx.run(MigratedHook(self.metadata));
            cx.thaw();
        } else {
            // If the hook ends or crashes the actor, that is carried out when the mail before the waiting mail has
            // come.
            let decided = cx.run_ahead(MigratedHook(self.metadata));
            cx.extra().decided = decided;
        }
    }
}

// -- hooks ------------------------------------------------------------------------------------------------------------

struct MigratingHook;

impl<A: Actor> Envelope<ActorState<A>> for MigratingHook {
    fn run(self, state: &mut ActorState<A>, cx: &mut Cx<ActorState<A>>) {
        state.actor.migrating(Context::of(cx));
        let streams = cx.with_extra_if_any(|extra| std::mem::take(&mut extra.streams));
        drop(streams);
    }

    fn describe() -> (MailKind, &'static str) {
        (MailKind::Control, "migrating")
    }

    fn bounce(self, _: Undelivered) {}
}

struct MigrationFailedHook(MigrateError);

impl<A: Actor> Envelope<ActorState<A>> for MigrationFailedHook {
    fn run(self, state: &mut ActorState<A>, cx: &mut Cx<ActorState<A>>) {
        state.actor.migration_failed(self.0, Context::of(cx));
    }

    fn describe() -> (MailKind, &'static str) {
        (MailKind::Control, "migration_failed")
    }

    fn bounce(self, _: Undelivered) {}
}

pub(crate) struct MigratedHook(pub(crate) ActorMetadata);

impl<A: Mobile> Envelope<ActorState<A>> for MigratedHook {
    fn run(self, state: &mut ActorState<A>, cx: &mut Cx<ActorState<A>>) {
        let ActorMetadata { name, supervisor_link, watching, last_timer, timers, receive_timeout, is_new } = self.0;
        if let Some(name) = name {
            take_name(cx, Name::new(name));
        }
        let address = cx.address();
        cx.with_extra(|extra| {
            extra.child = supervisor_link.map(Child::with_link);
            if let Some(supervisor_link) = supervisor_link {
                SupervisedRemotely::watch(ActorRef::new(address), supervisor_link);
            }
            // The stub has no other timers, because an actor that was in this theater before has taken its own along.
            cancel_all(std::mem::take(&mut extra.timers));
            extra.next_timer = last_timer;
            extra.incarnation += 1;
            for ReadTimer { id, left, pace, kept, start } in timers {
                if let Ok(start) = start.downcast::<StartTimer<A>>() {
                    let mut timer = start(address, id, left, pace);
                    timer.kept = kept;
                    extra.timers.insert(id, timer);
                }
            }
        });
        let ctx = Context::of(cx);
        watching.into_iter().for_each(|watched| ctx.watch_any(watched));
        if let Some(after) = receive_timeout {
            ctx.set_receive_timeout(after);
        }
        if is_new {
            return Start.run(state, cx);
        }
        state.actor.migrated(ctx);
    }

    fn describe() -> (MailKind, &'static str) {
        (MailKind::Control, "migrated")
    }

    fn bounce(self, _: Undelivered) {}
}
