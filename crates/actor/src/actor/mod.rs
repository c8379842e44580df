//! Actors: their hooks, their identities, and their ends.

pub(crate) mod any;
pub(crate) mod context;
pub(crate) mod ended;
pub(crate) mod group;
pub(crate) mod migrate_error;
pub(crate) mod migration_host;
pub(crate) mod names;
pub(crate) mod of_system;
pub(crate) mod reference;
pub(crate) mod spawn;

use std::any::type_name;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use playhouse_executor::{
    Address, AwayCx, Control, ControlCx, Crash, Cx, Decided, Ending, Lane, MailKind, Port, RawAddress, Resident,
    SystemCore, Undelivered, contained,
};
use serde::{Deserialize, Serialize};

use crate::actor::any::{ActorType, AnyActor};
use crate::actor::context::Context;
use crate::actor::migrate_error::MigrateError;
use crate::actor::migration_host::forget_watch;
use crate::actor::names::Name;
use crate::actor::reference::ActorRef;
use crate::ask::reentrant::Waiters;
use crate::message::forward::{self, ForwardedMessage, Forwarder};
use crate::message::stream::Streams;
use crate::supervise::child::Child;
use crate::supervise::crash_report::{self, AfterCrash};
use crate::timer::receive_timeout::Idle;
use crate::timer::timers::{Timers, cancel_all, renew_all};

/// A unit of state that is reached only through messages, one at a time.
///
/// Plain Rust types become actors by `impl Actor for T {}`, or by `#[actor]` on their `impl` block.
///
/// The hooks below run on the actor's worker, between two messages. A panic in a hook is a crash of the actor.
///
/// # Examples
///
/// ```
/// use playhouse_actor::*;
///
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

    /// Called once after the actor has stopped by [`Context::stop`], [`ActorRef::stop`], [`ActorRef::drain`], or the
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

/// State that few actors need: names, watchers, timers, streams and pending answers.
#[doc(hidden)]
pub struct Extra<A: Actor> {
    pub(crate) name: Option<Arc<Name>>,
    pub(crate) watchers: Vec<(Watcher, Notify)>,
    /// The number of [watches that queue behind](Behind) other mail: later watches queue behind them, too.
    pub(crate) watches_behind: usize,
    /// The actors that this one watches. Kept only for mobile actors, because the target theater of a migration watches
    /// them anew.
    pub(crate) watching: Vec<AnyActor>,
    pub(crate) timers: Timers,
    pub(crate) next_timer: u64,
    /// Counts the states that the actor has had in this theater: each new state has the next number.
    pub(crate) incarnation: u64,
    /// The actor's receive timeout.
    pub(crate) idle: Option<Idle>,
    pub(crate) streams: Streams<A>,
    pub(crate) waiters: Waiters,
    pub(crate) child: Option<Child<A>>,
    /// The forwarder to the actor's theater, if the actor is not in this one.
    pub(crate) away: Option<Arc<dyn Forwarder>>,
    /// The number of the reroute that the actor's stub waits for.
    pub(crate) reroute: Option<u64>,
    /// The end or crash that the hook `migrated` has decided on. It is carried out when the actor begins.
    pub(crate) decided: Option<Decided>,
}

impl<A: Actor> Default for Extra<A> {
    fn default() -> Self {
        Extra {
            name: None,
            watchers: Vec::new(),
            watches_behind: 0,
            watching: Vec::new(),
            timers: Timers::new(),
            next_timer: 0,
            incarnation: 0,
            idle: None,
            streams: Streams::new(),
            waiters: Waiters::default(),
            child: None,
            away: None,
            reroute: None,
            decided: None,
        }
    }
}

impl<A: Actor> Extra<A> {
    /// Counts one watch less that queues behind other mail. The watchers of such watches are notified of the actor's
    /// end, too.
    fn one_less_behind(&mut self) {
        self.watches_behind = self.watches_behind.saturating_sub(1);
    }

    pub(crate) fn watched_by(&mut self, watchers: Vec<(Watcher, Notify)>) {
        for (watcher, notify) in watchers {
            watcher.begin(&mut self.watchers, notify);
        }
    }

    /// Replaces the old state by a new one. The old state's timers end with it, except the kept ones.
    pub(crate) fn renew(&mut self) {
        self.incarnation += 1;
        renew_all(&mut self.timers);
        self.idle.take().into_iter().for_each(Idle::cancel);
        let (streams, _waiters) = (std::mem::take(&mut self.streams), std::mem::take(&mut self.waiters));
        contained(|| drop(streams));
    }
}

/// A function of its own and not inlined, because many actors end, and few of them by a crash.
#[cold]
#[inline(never)]
fn end_by_crash<A: Actor>(extra: Option<Box<Extra<A>>>, mut crash: Crash, id: ActorId) {
    let name = extra.as_ref().and_then(|extra| extra.name.as_ref());
    crash_report::report(type_name::<A>(), id, name.map(|name| name.text().to_string()), &mut crash, AfterCrash::Ends);
    let text = crash.describe();
    let reason = match crash {
        Crash::Panic(_) => StopReason::Panicked(text),
        Crash::Error(_) => StopReason::Failed(text),
    };
    drop(TellOthers { extra, id, reason });
}

impl<A: Actor> Resident for ActorState<A> {
    type Extra = Extra<A>;

    fn name() -> &'static str {
        type_name::<A>()
    }

    fn ended(&mut self, mut extra: Option<Box<Extra<A>>>, ending: Ending, cx: &mut Cx<Self>) {
        let id = ActorId(cx.address().raw());
        crate::ask::wait_graph::forget_asks(id);
        let crashed = extra.as_ref().and_then(|extra| extra.child.as_ref()).is_some_and(|child| child.crashed);
        let reason = match ending {
            Ending::Stopped => StopReason::Stopped,
            Ending::Killed => StopReason::Killed,
            Ending::Shutdown => StopReason::Shutdown,
            Ending::Crashed(crash) => return end_by_crash(extra, crash, id),
        };
        let calm = reason != StopReason::Killed && !crashed;
        if let Some(extra) = extra.as_mut().filter(|_| calm) {
            extra.waiters.let_go();
        }
        let _tell = TellOthers { extra, id, reason };
        if calm {
            contained(|| self.actor.stopped(Context::of(cx)));
            // Children and timers that the hook has started end with the actor.
            let started = cx.with_extra_if_any(|extra| {
                extra.waiters.let_go();
                (std::mem::take(&mut extra.timers), extra.idle.take(), std::mem::take(&mut extra.streams))
            });
            if let Some((timers, idle, streams)) = started {
                cancel_all(timers);
                contained(|| idle.into_iter().for_each(Idle::cancel));
                contained(|| drop(streams));
            }
        }
    }

    fn crashed(mut crash: Crash, cx: &mut ControlCx<Self>) {
        let this = ActorRef::new(cx.address());
        let extra = cx.extra();
        let name = extra.name.as_ref().map(|name| name.text().to_string());
        match &mut extra.child {
            Some(child) => {
                crash_report::report(type_name::<A>(), this.id(), name, &mut crash, AfterCrash::SupervisorDecides);
                child.crashed = true;
                let report = child.report(crash, this);
                cx.hold();
                report();
            }
            None => cx.give_up(crash),
        }
    }
}

/// Notifies the watchers and the supervisor, and cancels the timers, even if `stopped` panics.
struct TellOthers<A: Actor> {
    extra: Option<Box<Extra<A>>>,
    id: ActorId,
    reason: StopReason,
}

impl<A: Actor> Drop for TellOthers<A> {
    fn drop(&mut self) {
        let Some(extra) = self.extra.take() else { return };
        let Extra { name, watchers, child, timers, idle, streams, .. } = *extra;
        // Each step runs even if another one panics: a full mailbox calls the hook for dead letters, and timers own
        // messages.
        contained(|| tell_watchers(watchers, self.id, name, &self.reason));
        contained(|| child.map(|child| child.ended()));
        cancel_all(timers);
        contained(|| idle.into_iter().for_each(Idle::cancel));
        contained(|| drop(streams));
    }
}

// Not inlined and not generic: code that does not depend on the types of actors and messages is compiled once, and not
// once for each type.

#[inline(never)]
fn tell_watchers(watchers: Vec<(Watcher, Notify)>, who: ActorId, name: Option<Arc<Name>>, reason: &StopReason) {
    for (_, watcher) in watchers {
        let name = name.as_ref().map(|name| name.text().to_string());
        watcher.tell(Terminated { who, name, reason: reason.clone() });
    }
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

/// Requests that every actor understands.
pub(crate) enum Request {
    Stop,
    Kill,
}

impl Request {
    #[inline(never)]
    fn forwarded(self, lane: Lane) -> ForwardedMessage<'static> {
        match self {
            Request::Stop => ForwardedMessage::Stop { drain: lane != Lane::System },
            Request::Kill => ForwardedMessage::Kill,
        }
    }
}

impl<A: Actor> Control<ActorState<A>> for Request {
    fn run(self, cx: &mut ControlCx<ActorState<A>>) {
        match self {
            Request::Stop => cx.stop(),
            Request::Kill => cx.kill(),
        }
    }

    fn describe(&self) -> (MailKind, &'static str) {
        (MailKind::Control, if matches!(self, Request::Stop) { "stop" } else { "kill" })
    }

    fn send_on(self, cx: &mut AwayCx<ActorState<A>>) {
        // A request that cannot be forwarded is dropped: an unreachable actor counts as stopped.
        let _ = forward::carry(self.forwarded(cx.lane()), cx);
    }
}

/// The identity of a watcher.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Watcher {
    /// An actor of this system. Its later watches have higher numbers.
    Here(ActorId, u64),
    /// A watcher in the theater behind the link with the first number. The second number is the watcher's own.
    There(u64, u64),
    /// The theater of the actor. This watch does not migrate with the actor.
    Theater,
    /// A thread or a task, which has this number.
    Outside(u64),
}

/// The last number that was given to a watch of a local actor.
static LAST_WATCH: AtomicU64 = AtomicU64::new(0);

impl Watcher {
    /// Returns the next watch of the local actor `watcher`.
    pub(crate) fn next(watcher: ActorId) -> Watcher {
        // Relaxed: the handlers of an actor run one after the other, so the actor sees all numbers that were given to
        // it before.
        Watcher::Here(watcher, LAST_WATCH.fetch_add(1, Ordering::Relaxed) + 1)
    }

    /// Returns a watcher that covers all watches of the local actor `watcher` up to now.
    pub(crate) fn last(watcher: ActorId) -> Watcher {
        Watcher::Here(watcher, LAST_WATCH.load(Ordering::Relaxed))
    }

    /// Adds a watch with its `value`. An existing watch of the same watcher continues under the later number.
    ///
    /// Returns whether the watch is new.
    pub fn begin<T>(self, watchers: &mut Vec<(Watcher, T)>, value: T) -> bool {
        if let Watcher::Outside(_) = self {
            // The number of a new watch is higher than all earlier ones.
            watchers.push((self, value));
            return true;
        }
        let known = watchers.iter_mut().map(|(known, _)| known).find(|known| self.is_of(known));
        let is_new = known.is_none();
        match (self, known) {
            (_, None) => watchers.push((self, value)),
            (Watcher::Here(_, later), Some(Watcher::Here(_, number))) => *number = later.max(*number),
            (_, Some(_)) => {}
        }
        is_new
    }

    /// Returns whether the end of this watch ends the watch `known`. It does not end a watch that the same watcher
    /// began later.
    pub fn ends(&self, known: &Watcher) -> bool {
        match (self, known) {
            (Watcher::Here(_, last), Watcher::Here(_, number)) => self.is_of(known) && number <= last,
            _ => self == known,
        }
    }

    fn is_of(&self, known: &Watcher) -> bool {
        match (self, known) {
            (Watcher::Here(watcher, _), Watcher::Here(other, _)) => watcher == other,
            _ => self == known,
        }
    }
}

/// The route of a notice to its watcher.
pub enum Notify {
    /// The notice is a message.
    Port(Port<Terminated>),
    /// The notice is a call.
    Call(Tell),
}

/// The function called when an actor has ended.
pub type Tell = Box<dyn FnOnce(Ended) + Send>;

/// The end of an actor: its name and the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// The name given to the actor, if it is known.
    pub name: Option<String>,
    /// The reason for the end.
    pub reason: StopReason,
}

impl From<StopReason> for Ended {
    /// Returns the end of an actor of unknown name.
    fn from(reason: StopReason) -> Ended {
        Ended { name: None, reason }
    }
}

impl Notify {
    fn tell(self, Terminated { who, name, reason }: Terminated) {
        match self {
            Notify::Port(port) => port.send(Terminated { who, name, reason }),
            Notify::Call(call) => call(Ended { name, reason }),
        }
    }
}

/// The beginning or the end of a watch on this actor.
pub(crate) enum Watch {
    Begin { watcher: Watcher, notify: Notify, who: ActorId },
    End { watcher: Watcher },
}

impl Watch {
    /// Returns a call that notifies the watcher of the end of `who`.
    pub(crate) fn telling(who: ActorId, notify: Notify) -> Tell {
        // A notice that was forwarded before is not wrapped again, because it would grow with each migration.
        let notify = match notify {
            Notify::Call(tell) => return tell,
            port @ Notify::Port(_) => port,
        };
        Box::new(move |Ended { name, reason }| notify.tell(Terminated { who, name, reason }))
    }

    #[inline(never)]
    fn note<A: Actor>(self, who: ActorId, extra: &mut Extra<A>) {
        match self {
            Watch::Begin { watcher, notify, .. } => drop(watcher.begin(&mut extra.watchers, notify)),
            Watch::End { watcher } => {
                // A notice that is dropped uncalled notifies no watcher.
                let ended = extra.watchers.extract_if(.., |(known, _)| watcher.ends(known)).count();
                if ended == 0 && ActorType::moves::<A>() {
                    forget_watch(who, watcher);
                }
            }
        }
    }

    /// Returns the watcher if this end of a watch may have overtaken the watch's beginning, which is `deferred` with
    /// other mail.
    ///
    /// Watches are numbered, so the end may be handled a second time later. A supervisor may watch again under the same
    /// key, so the end of its watch may not be repeated.
    fn is_early(&self, deferred: bool) -> Option<Watcher> {
        match self {
            Watch::End { watcher } if deferred && !matches!(watcher, Watcher::There(u64::MAX, _)) => Some(*watcher),
            Watch::End { .. } | Watch::Begin { .. } => None,
        }
    }

    #[inline(never)]
    pub(crate) fn refuse(self) {
        if let Watch::Begin { notify, who, .. } = self {
            notify.tell(Terminated { who, name: None, reason: StopReason::NotAlive });
        }
    }

    #[inline(never)]
    fn forwarded(self) -> ForwardedMessage<'static> {
        match self {
            Watch::Begin { watcher, notify, who } => {
                ForwardedMessage::Watch { watcher, notify: Watch::telling(who, notify) }
            }
            Watch::End { watcher } => ForwardedMessage::Unwatch { watcher },
        }
    }
}

impl<A: Actor> Control<ActorState<A>> for Watch {
    fn run(self, cx: &mut ControlCx<ActorState<A>>) {
        if cx.extra().watches_behind > 0 {
            let to = cx.address();
            return Behind::put(self, cx.extra(), to);
        }
        if let Some(watcher) = self.is_early(cx.has_deferred()) {
            cx.address().send_control_in_order(LateEnd(watcher));
        }
        self.note(ActorId(cx.address().raw()), cx.extra());
    }

    fn bounce(self, _: Undelivered) {
        self.refuse();
    }

    fn describe(&self) -> (MailKind, &'static str) {
        (MailKind::Control, if matches!(self, Watch::Begin { .. }) { "watch" } else { "unwatch" })
    }

    fn send_on(self, cx: &mut AwayCx<ActorState<A>>) {
        if cx.is_closed() || cx.extra().watches_behind > 0 {
            let to = cx.address();
            return Behind::put(self, cx.extra(), to);
        }
        if let Some(watcher) = self.is_early(cx.has_deferred()) {
            cx.address().send_control_in_order(LateEnd(watcher));
        }
        // If the request cannot be forwarded, the forwarder notifies the watcher.
        let _ = forward::carry(self.forwarded(), cx);
    }
}

/// A watch that queues behind an actor about to arrive, because the incoming actor brings its watchers along. It also
/// queues behind earlier watches of this kind.
struct Behind(Watch);

impl Behind {
    fn put<A: Actor>(watch: Watch, extra: &mut Extra<A>, to: Address<ActorState<A>>) {
        extra.watches_behind += 1;
        to.send_control_behind(Behind(watch));
    }
}

impl<A: Actor> Control<ActorState<A>> for Behind {
    fn run(self, cx: &mut ControlCx<ActorState<A>>) {
        cx.extra().one_less_behind();
        self.0.note(ActorId(cx.address().raw()), cx.extra());
    }

    fn bounce(self, _: Undelivered) {
        self.0.refuse();
    }

    fn send_on(self, cx: &mut AwayCx<ActorState<A>>) {
        if cx.is_closed() {
            return cx.address().send_control_behind(self);
        }
        cx.extra().one_less_behind();
        let _ = forward::carry(self.0.forwarded(), cx);
    }
}

/// A [`Watch::End`] that queues behind all mail sent to the actor before, including deferred mail.
struct LateEnd(Watcher);

impl<A: Actor> Control<ActorState<A>> for LateEnd {
    fn run(self, cx: &mut ControlCx<ActorState<A>>) {
        Watch::End { watcher: self.0 }.note(ActorId(cx.address().raw()), cx.extra());
    }

    fn bounce(self, _: Undelivered) {}

    fn send_on(self, cx: &mut AwayCx<ActorState<A>>) {
        if cx.is_closed() {
            return cx.address().send_control_behind(self);
        }
        let _ = forward::carry(Watch::End { watcher: self.0 }.forwarded(), cx);
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
