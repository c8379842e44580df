//! Actors that are taken from theater to theater while they live.
//!
//! What happens at a cell when an actor leaves or comes; who tells it to, and when, is the business of `playhouse-theater`
//! (see its `moves`).

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
use crate::migration::gather::{FreezeTogether, OnFrozen, PackFrozen, Then};
use crate::remote::route::{BeginReroute, Begins, EndReroute, Pass, Settled, Settling, send_marker};
use crate::remote::stub::{ForwardedMessage, Forwarder, Marker, Write, copy_of};
use crate::remote::wire::{Codec, Remote, WireError};
use crate::supervise::Child;
use crate::supervise::remote::{SupervisedRemotely, SupervisorLink, read_child};
use crate::system::services::migration_host_of;
use crate::timer::receive_timeout::Idle;
use crate::timer::timers::{Pace, Timer, Timers, cancel_all};

/// An actor that can be taken to another theater while it lives, with its state, its mail, its timers and its watchers.
/// References to it stay good everywhere, and what is sent to it keeps its order.
///
/// If a theater is lost to another one, and no third theater knows a mobile actor that is there, the other theater's references to the actor are dead
/// from then on: asks fail with [`Stopped`](crate::AskError::Stopped), though the actor may live on.
///
/// It goes on watching those that it watches, if other theaters may send to them (`#[actor(remote)]`); it is not told of the ends of others.
/// An answer that comes to the theater that it has left does not reach [`then`](crate::ContextAsk::then), and is a dead letter; what
/// [`pipe_to_self`](crate::ContextAsk::pipe_to_self) makes of it follows the actor.
///
/// Implemented by `#[actor(mobile)]` or `remote!(mobile ..)`.
///
/// What is tied to one theater (a file, a socket) is no part of its wire form (`#[serde(skip)]`); it is let go in
/// [`migrating`](Actor::migrating) and made anew in [`migrated`](Actor::migrated).
#[diagnostic::on_unimplemented(
    message = "the actor `{Self}` does not move between theaters",
    label = "`{Self}` is not mobile",
    note = "write `#[actor(mobile)]` at the block with its messages, and derive `Serialize` and `Deserialize` for `{Self}`: its state moves with it"
)]
pub trait Mobile: Remote + Serialize + DeserializeOwned {}

/// Why an actor was not taken to another theater, as far as is known. It lives on where it was, unless it has stopped, is lost with the other
/// theater, or has left for one that does not say that it has begun there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum MigrateError {
    /// It has stopped.
    Stopped,
    /// It does not live in this theater: only the theater that it is in can send it away.
    Elsewhere,
    /// Its state, or the message of one of its timers, cannot be written: why.
    Unwritable(String),
    /// The other theater does not take it: why.
    Refused(String),
    /// The other theater cannot be reached, or a theater did not answer within three times `lost_after`: why. If the actor had left by then,
    /// it may live in the other theater.
    Unreachable(String),
    /// The other theater was lost before it had said that the actor has begun there. The actor goes on where it was and is told
    /// ([`migration_failed`](Actor::migration_failed)), or it had left already and is lost with that theater.
    TheaterLost,
    /// Actors of its type are not mobile: see [`Mobile`].
    Immobile,
    /// It awaited something each time when the other actors of its group could have gone.
    Busy,
    /// An actor of a group cannot go, so none of them goes: who, and why.
    Member {
        /// The actor, as it is shown in reports.
        who: String,
        /// Why it cannot.
        why: Box<MigrateError>,
    },
    /// What was to move is no group, only a stage: made by [`Context::group`] in an actor that is in none, or in another system.
    NoGroup,
    /// It crashed in its hook [`migrating`](crate::Actor::migrating). It has ended by that, unless its supervisor has it go on.
    Crashed,
}

impl fmt::Display for MigrateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MigrateError::Stopped => f.write_str("the actor has stopped"),
            MigrateError::Crashed => f.write_str("the actor crashed in its `departing` hook"),
            MigrateError::Elsewhere => {
                f.write_str("the actor lives in another theater: only the one that it is in can send it away")
            }
            MigrateError::Unwritable(why) => write!(f, "the actor cannot be written: {why}"),
            MigrateError::Refused(why) => write!(f, "the other theater does not take the actor: {why}"),
            MigrateError::Unreachable(why) => write!(f, "the other theater cannot be reached: {why}"),
            MigrateError::TheaterLost => {
                f.write_str("the other theater was lost before it had said that the actor has begun there")
            }
            MigrateError::Immobile => f.write_str("actors of its type are not mobile: see `#[actor(mobile)]`"),
            MigrateError::Busy => {
                f.write_str("it awaited something each time when the others of its group could have gone")
            }
            MigrateError::Member { who, why } => write!(f, "{who}, of the group, cannot go: {why}"),
            MigrateError::NoGroup => f.write_str(
                "it is only a stage, and no group that can move: make one with `Group::new` in the system of a theater",
            ),
        }
    }
}

impl std::error::Error for MigrateError {}

/// What a theater is to the actors in it: takes them away, and knows their groups.
pub trait MigrationHost: Send + Sync + 'static {
    /// The name of a new group; none, where the theater is closing.
    fn new_group(&self) -> Option<GroupName>;
    /// The stage of a group here: `own`, if the group was made here.
    fn stage_of(&self, group: GroupName, own: u16) -> u16;
    /// `actor`, of the type `kind`, was started in a group.
    fn join(&self, group: GroupName, actor: ActorId, kind: &'static str);
    /// The group that the actor is a member of.
    fn group_of(&self, actor: ActorId) -> Option<GroupName>;
    /// Has `actor` taken to the theater at `to`; where that fails early, `failed` is told.
    fn migrate(&self, actor: ActorId, to: SocketAddr, failed: Box<dyn FnOnce(MigrateError) + Send>);
    /// The watcher does not watch `actor` any more, whose place does not know that it does.
    fn forget_watch(&self, actor: ActorId, watcher: Watcher);
}

fn migration_host() -> Option<Arc<dyn MigrationHost>> {
    playhouse_executor::with_current_system(|system| {
        migration_host_of(system.expect("a handler runs on a worker")).cloned()
    })
}

/// The watcher does not watch this actor any more. Perhaps its place was about to be told that it does.
pub(crate) fn forget_watch(actor: ActorId, watcher: Watcher) {
    if let Some(migration_host) = migration_host() {
        migration_host.forget_watch(actor, watcher);
    }
}

/// What the actor that is told to be taken away calls.
pub(crate) fn migrate<A: Mobile>(address: Address<ActorState<A>>, to: SocketAddr) {
    let failed = Box::new(move |why| address.send(MigrationFailedHook(why)));
    match migration_host() {
        Some(migration_host) => migration_host.migrate(ActorId(address.raw()), to, failed),
        None => failed(MigrateError::Unreachable("this system is not that of a theater".to_owned())),
    }
}

// -- packing ----------------------------------------------------------------------------------------------------------

/// A frozen actor, ready to be written.
pub struct PreparedActor<'a> {
    /// Writes its state.
    pub state: Write<'a>,
    /// What it is called in reports.
    pub name: Option<&'a str>,
    /// What it knows of its supervisor, if it has one.
    pub supervisor_link: Option<SupervisorLink>,
    /// Those that it watches.
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
    /// When it fires next.
    pub left: Duration,
    /// How often.
    pub pace: Pace,
    /// Whether it goes on after a restart.
    pub kept: bool,
    /// The type of its message.
    pub message: TypeId,
    /// What that is called in reports.
    pub name: &'static str,
    /// Writes it.
    pub write: Write<'a>,
}

/// Takes a frozen actor along, or hears why there is none. On an error it goes on where it is, and is told.
pub type Offer = Box<dyn FnOnce(Result<PreparedActor<'_>, MigrateError>) -> Result<(), MigrateError> + Send>;

/// What an actor has besides its state, as it was read.
#[derive(Default)]
pub struct ActorMetadata {
    /// What it is called in reports.
    pub name: Option<String>,
    /// What it knows of its supervisor, if it has one.
    pub supervisor_link: Option<SupervisorLink>,
    /// Those that it watches.
    pub watching: Vec<AnyActor>,
    /// The number of its last timer.
    pub last_timer: u64,
    /// Its timers.
    pub timers: Vec<ReadTimer>,
    /// Its receive timeout, if it has one.
    pub receive_timeout: Option<Duration>,
    /// It has not lived anywhere before: it starts.
    pub is_new: bool,
}

/// A timer, as it was read.
pub struct ReadTimer {
    /// Its number.
    pub id: u64,
    /// When it fires next.
    pub left: Duration,
    /// How often.
    pub pace: Pace,
    /// Whether it goes on after a restart.
    pub kept: bool,
    /// Starts it.
    pub start: AnyTimer,
}

/// A `StartTimer` of some actor's type.
pub type AnyTimer = Box<dyn Any + Send>;

type StartTimer<A> = Box<dyn FnOnce(Address<ActorState<A>>, u64, Duration, Pace) -> Timer + Send>;

pub(crate) fn timer<A: Actor, M: HandledBy<A, Mode>, Mode>(message: M) -> AnyTimer {
    let start: StartTimer<A> = Box::new(move |address, id, left, pace| {
        let copy = (pace != Pace::Once).then_some(copy_of::<M> as fn(&M) -> Result<M, WireError>);
        Timer::start::<A, M, Mode>(address, id, (left, pace), message, copy)
    });
    Box::new(start)
}

/// Takes an actor in that was read: to its place here, which [fits](Moves::fits). If its place has just ended, returns what was not taken.
pub type Install = Box<dyn FnOnce(ActorId, Arrival) -> Option<Arrival> + Send>;

/// An actor that is to start.
pub struct New {
    /// Starts it.
    pub install: Install,
    /// What it knows of its supervisor, if it is a child.
    pub supervisor_link: Option<SupervisorLink>,
}

/// How an actor comes to a place that it has here.
pub struct Arrival {
    /// Holds the actor's watchers until its cell notes them. They are told of its end also where it ends in its hook `arrived`.
    pub settling: Settling,
    /// The mail that comes before the actor begins.
    pub route: ArrivalRoute,
}

/// The mail that comes before an actor begins at a place that it has here.
pub enum ArrivalRoute {
    /// The mail that was sent on from there may still be under way, and comes before what waits there: a marker for its way,
    /// if the place does not turn already. It begins when it is [settled](Moves::settle).
    Behind(Option<Marker>),
    /// Nothing was sent on.
    Freely {
        /// It begins when it is settled: there is an antechamber.
        is_settled: bool,
    },
}

/// How a mobile actor is taken from theater to theater. All these are requests to its cell, and do nothing where the actor is
/// gone. What `read` returns, and all but `pack`, take their turn behind what the same worker has sent to the cell before, and to its
/// antechamber: none of that must come later.
#[derive(Clone, Copy)]
pub struct MigrationVTable {
    /// Freezes it between two messages and offers it.
    pub prepare: fn(ActorId, Offer),
    /// Calls back when it is between two messages: then it may be frozen with others.
    pub when_freezable: fn(ActorId, OnFrozen),
    /// Offers it, which was frozen with others.
    pub prepare_frozen: fn(ActorId, Offer),
    /// It goes on here after all.
    pub abort: fn(ActorId, MigrateError),
    /// It has left, and its mail follows by this carrier, as long as that way is not closed.
    pub commit: fn(ActorId, Arc<dyn Forwarder>, Arc<StubRoute>),
    /// Reads one that comes, with what it has besides its state.
    pub read: fn(&[u8], Codec, ActorMetadata) -> Result<Install, WireError>,
    /// Reads one that starts; if it is a child, with what it knows of its supervisor. On an error, that supervisor was told.
    pub read_new: fn(&[u8], Codec, bool) -> Result<New, WireError>,
    /// Makes a place in this stage for one that is elsewhere. Mail goes on from there by this carrier, as long as the way is not closed.
    pub make_stub: fn(&SystemCore, u16, Arc<dyn Forwarder>, Arc<StubRoute>) -> ActorId,
    /// Whether the place is that of such an actor.
    pub fits: fn(ActorId) -> bool,
    /// An antechamber of it.
    pub arrival_buffer: fn(&SystemCore, ActorId) -> Option<ActorId>,
    /// The way of its mail is to change, by the turn of this number: what comes waits, and the marker goes the old way.
    pub begin_reroute: fn(ActorId, u64, Marker),
    /// A marker goes on, behind the mail.
    pub pass_marker: fn(ActorId, Marker),
    /// Its mail goes on.
    pub settle: fn(ActorId, Settled, Settling),
    /// It was to be taken away, and was not.
    pub failed: fn(ActorId, MigrateError),
    /// Calls back behind what its cell was told before.
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
                Some(address) => address.send_control(PackFrozen(offer)),
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
                // Past a handler that waits, or a crash that is seen to: what came before it waits there too, in its order, and
                // who sees to the crash may be waiting for the answer.
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
    /// If the actor is not there, asks again behind the mail: it may be about to come.
    asks_again: bool,
}

impl<A: Mobile> Control<ActorState<A>> for Prepare {
    fn run(self, cx: &mut ControlCx<ActorState<A>>) {
        if !cx.is_calm() {
            // Behind the handler that waits, or the crash that is seen to.
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

/// Calls the hook. Returns the offer if the actor goes. Otherwise it ends or crashes, and the offer hears that.
///
/// # Panics
/// The hook panics.
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
    extra.watchers.extend(extra.child.as_mut().and_then(|child| child.leaves(who)));
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
            // Over there it watches its supervisor already.
            SupervisedRemotely::unwatch(child.supervisor_link());
        }
        for timer in extra.timers.values() {
            timer.stop();
        }
        extra.idle.take().into_iter().for_each(Idle::cancel);
        let who = ActorId(cx.address().raw());
        // It watches them from there.
        watching.into_iter().for_each(|watched| watched.unwatch(Watcher::last(who)));
        cx.depart(self.1);
        self.0.is_route_from(who);
        for (watcher, notify) in watchers {
            if watcher == Watcher::Theater {
                continue;
            }
            let notify = Watch::telling(who, notify);
            // Where it cannot be carried, the watcher is told by the carrier.
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
            // It has left, and come back before this cell has heard that it has left.
            return cx.address().send_control_behind(self);
        }
        // Nobody comes twice. What was sent with such a name is no more than a message that nobody wants.
        debug_assert!(false, "{:?} has come twice", cx.address().raw());
    }

    fn bounce(mut self, _: Undelivered) {
        // Its place was given up in the meantime, with the way that its mail had taken.
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
                // It may have left this place only a moment ago: then they were not found when it was let in.
                let late = extra.away.take().map(|forwarder| forwarder.take_watchers());
                extra.watched_by(late.unwrap_or_default());
            }
        }
    }
}

/// The first thing at the cell of an actor that has come: sent before what thaws it, or `at_once` thaws it.
struct Begin {
    metadata: ActorMetadata,
    at_once: bool,
}

impl<A: Mobile> Control<ActorState<A>> for Begin {
    fn passes(&self) -> bool {
        true
    }

    fn describe(&self) -> (MailKind, &'static str) {
        if self.metadata.is_new { (MailKind::Start, "start") } else { (MailKind::Control, "arrived") }
    }

    fn run(self, cx: &mut ControlCx<ActorState<A>>) {
        if self.at_once {
            cx.run(MigratedHook(self.metadata));
            cx.thaw();
        } else {
            // If it ends or crashes by that, it does so when what comes before all that waits here has come.
            let decided = cx.run_ahead(MigratedHook(self.metadata));
            cx.extra().decided = decided;
        }
    }
}

// -- hooks ------------------------------------------------------------------------------------------------------------

struct MigratingHook;

impl<A: Actor> Envelope<ActorState<A>> for MigratingHook {
    fn run(self, incarnation: &mut ActorState<A>, cx: &mut Cx<ActorState<A>>) {
        incarnation.actor.migrating(Context::of(cx));
        let streams = cx.with_extra_if_any(|extra| std::mem::take(&mut extra.streams));
        drop(streams);
    }

    fn describe() -> (MailKind, &'static str) {
        (MailKind::Control, "departing")
    }

    fn bounce(self, _: Undelivered) {}
}

struct MigrationFailedHook(MigrateError);

impl<A: Actor> Envelope<ActorState<A>> for MigrationFailedHook {
    fn run(self, incarnation: &mut ActorState<A>, cx: &mut Cx<ActorState<A>>) {
        incarnation.actor.migration_failed(self.0, Context::of(cx));
    }

    fn describe() -> (MailKind, &'static str) {
        (MailKind::Control, "stayed")
    }

    fn bounce(self, _: Undelivered) {}
}

pub(crate) struct MigratedHook(pub(crate) ActorMetadata);

impl<A: Mobile> Envelope<ActorState<A>> for MigratedHook {
    fn run(self, incarnation: &mut ActorState<A>, cx: &mut Cx<ActorState<A>>) {
        let ActorMetadata { name, supervisor_link, watching, last_timer, timers, receive_timeout, is_new } = self.0;
        if let Some(name) = name {
            take_name(cx, Name::new(name));
        }
        let address = cx.address();
        cx.with_extra(|extra| {
            extra.child = supervisor_link.map(Child::of_elsewhere);
            if let Some(supervisor_link) = supervisor_link {
                SupervisedRemotely::watch(ActorRef::new(address), supervisor_link);
            }
            // The place has no other timers: an actor that was here before has taken its own along.
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
            return Start.run(incarnation, cx);
        }
        incarnation.actor.migrated(ctx);
    }

    fn describe() -> (MailKind, &'static str) {
        (MailKind::Control, "arrived")
    }

    fn bounce(self, _: Undelivered) {}
}
