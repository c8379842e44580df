//! Supervised children in other theaters: started in them, or migrated to them.
//!
//! The child's theater reports a crash to the supervisor by a message ([`ChildReport`]), and parks the child with its
//! mailbox until the decision ([`Decision`]) arrives by the route of the child's mail. The factory stays with the
//! supervisor: a restart sends a new state.
//!
//! Each side watches the other. A child ends if its supervisor is unreachable. A child counts as crashed if its theater
//! is lost, and is started anew: at the theater's address, when a theater answers at it again. A child that had
//! migrated to the lost theater starts in its supervisor's theater.
//!
//! A local child owns its factory. When it migrates for the first time, it sends the factory to its supervisor
//! ([`Child::begin_migration`]) before any part of it is sent to the target. It is a remote child from then on, even if the
//! migration fails. Decisions that the supervisor sends in between do not reach the child; the supervisor notices that
//! by the count of its decisions, and sends them again.
//!
//! Reports and decisions may be lost with a theater that they pass, while the child is alive in another one. A parked
//! child therefore reports again, every [`REMIND_EVERY`], and receives the decision again. Its crashes are numbered.

use std::any::{TypeId, type_name};
use std::error::Error;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use playhouse_executor::{
    AwayCx, Control, ControlCx, Crash, Cx, Envelope, Failure, Payload, SystemCore, TimerKey, Undelivered, contained,
    with_current_system,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::actor::context::Context;
use crate::actor::reference::ActorRef;
use crate::actor::spawn::Start;
use crate::actor::spawn::{Placement, spawn_named};
use crate::actor::{ActorId, ActorState, Ended, Notify, StopReason, Watcher};
use crate::codec::{Codec, WireError};
use crate::message::decision::{About, Decision};
use crate::message::forward::{self, ForwardedMessage, Write, guarded};
use crate::message::wire_form::WireForm;
use crate::message::{Handler, Message};
use crate::remote::reference_wire::MakeStub;
use crate::remote::registry::Remote;
use crate::remote::stub::spawn_stub;
use crate::supervise::Supervisor;
use crate::supervise::child::HasChild;
use crate::supervise::child::{Child, StartChild};
use crate::timer::HasTimers;
use crate::timer::timers::go_on_all;
use crate::watch::Watch;
use crate::{Actor, remote};

/// Another theater as a host of children: a `Peer` of `playhouse-theater`.
pub trait Host: Send + Sync + 'static {
    /// Starts an actor of the type `actor` in that theater, as a child. `write` writes the bytes that the theater
    /// reads, and `place` makes the child's stub in this theater.
    ///
    /// The child cannot be written, or the theater is lost.
    /// It cannot be written, or the theater is lost.
    fn start(
        &self,
        actor: TypeId,
        name: &'static str,
        write: Write<'_>,
        place: MakeStub<'_>,
    ) -> Result<ActorId, WireError>;

    /// Returns the identity of the theater, which includes its incarnation.
    fn theater(&self) -> u64;

    /// Returns whether the theater is lost.
    fn is_lost(&self) -> bool;

    /// Returns whether this actor, which was started in that theater, may have migrated to another one.
    fn may_have_left(&self, id: ActorId) -> bool;

    /// Calls the theater's address again, without blocking. `then` receives the theater that answers, or the error.
    fn reach(&self, then: Found);
}

/// Receives the theater that answers at a lost theater's address.
pub type Found = Box<dyn FnOnce(Result<Arc<dyn Host>, WireError>) + Send>;

/// The crash of a supervised child whose theater is lost, or cannot be reached again: for
/// [`SupervisionPolicy::on`](crate::SupervisionPolicy::on).
///
/// # Examples
///
/// ```
/// # use playhouse_actor::*;
/// use std::time::Duration;
///
/// // Children in other theaters: calls a lost theater again, at longer and longer intervals.
/// let policy = SupervisionPolicy::one_for_one()
///     .on::<TheaterLost>(Directive::Restart)
///     .backoff(Duration::from_secs(1), Duration::from_secs(60))
///     .max_restarts(20, Duration::from_secs(3600));
/// # let _ = policy;
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TheaterLost {
    /// The reason for which the theater cannot be reached, if it was called again.
    pub why: Option<String>,
}

impl fmt::Display for TheaterLost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the theater that the child lived in is lost")?;
        match &self.why {
            Some(why) => write!(f, ", and cannot be reached: {why}"),
            None => Ok(()),
        }
    }
}

impl Error for TheaterLost {}

impl TheaterLost {
    /// Returns the crash of a child that could not be started anew.
    pub(crate) fn again(why: &WireError) -> Crash {
        Crash::Error(Failure::without_place(TheaterLost { why: Some(why.to_string()) }))
    }

    /// Returns whether the crash is the loss itself, and not a failed call afterwards.
    pub(crate) fn is_first(crash: &Crash) -> bool {
        matches!(crash, Crash::Error(error) if error.downcast_ref::<TheaterLost>().is_some_and(|lost| lost.why.is_none()))
    }
}

/// The bounds of actors that can be children in other theaters.
pub(crate) trait Portable: Remote + Serialize + DeserializeOwned {}
impl<A: Remote + Serialize + DeserializeOwned> Portable for A {}

// -- at the supervisor --------------------------------------------------------------------------------------------------

/// The location of a child, as far as its supervisor knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChildLocation {
    /// In its theater.
    InTheater,
    /// Its theater is lost, or could not start it.
    Lost,
    /// Its theater is lost, and its address is being called.
    Called,
}

/// A child that is in another theater, or has been in one.
pub(crate) struct RemoteChild {
    pub(crate) whereabouts: ChildLocation,
    /// The theater of its starts; `None`: this one.
    pub(crate) host: Option<Arc<dyn Host>>,
    /// The number of its last crash, the decision about it, and the time when that was last sent.
    crashed: (u64, Option<(Decision<()>, Duration)>),
    /// The number of decisions sent.
    told: u64,
    child: Box<dyn TypedChild>,
}

/// A child of a known type.
trait TypedChild: Send {
    fn start_at(&mut self, host: &dyn Host, supervisor_link: SupervisorLink, name: &str) -> Result<ActorId, WireError>;
    fn start_locally(
        &mut self,
        placement: Placement,
        supervisor_link: SupervisorLink,
        name: &str,
    ) -> Result<ActorId, WireError>;
    fn watch(&self, watcher: Watcher, notify: Notify);
    fn decide(&mut self, about: About, decision: Decision<()>) -> Result<(), Crash>;
    fn id(&self) -> Option<ActorId>;
}

struct ChildOfType<A: Actor> {
    child: Option<ActorRef<A>>,
    factory: Box<dyn FnMut() -> A + Send>,
}

impl<A: Actor> ChildOfType<A> {
    fn make(&mut self) -> Result<A, WireError> {
        let made = catch_unwind(AssertUnwindSafe(&mut self.factory));
        made.map_err(|panic| WireError::new(Crash::Panic(panic.into()).describe()))
    }
}

/// Makes a remote child of a factory.
pub(crate) type MakeRemoteChild<A> = fn(Arc<dyn Host>, Box<dyn FnMut() -> A + Send>) -> RemoteChild;

pub(crate) fn make_remote_child<A: Portable>(
    host: Arc<dyn Host>,
    factory: Box<dyn FnMut() -> A + Send>,
) -> RemoteChild {
    let child = Box::new(ChildOfType { child: None, factory });
    RemoteChild { whereabouts: ChildLocation::Lost, host: Some(host), crashed: (0, None), told: 0, child }
}

impl RemoteChild {
    /// Returns a child that is about to leave this theater.
    pub(crate) fn migrating_child<A: Portable>(
        child: ActorRef<A>,
        factory: Box<dyn FnMut() -> A + Send>,
    ) -> RemoteChild {
        let child = Box::new(ChildOfType { child: Some(child), factory });
        RemoteChild { whereabouts: ChildLocation::InTheater, host: None, crashed: (0, None), told: 0, child }
    }

    /// Starts the child with a new state.
    pub(crate) fn start(
        &mut self,
        supervisor: ActorRef<Supervisor>,
        key: u64,
        name: &str,
        placement: Placement,
    ) -> Result<ActorId, WireError> {
        let supervisor_link = SupervisorLink { supervisor, key, crashes: 0, heard: 0 };
        self.crashed = (0, None);
        let id = match &self.host {
            Some(host) => self.child.start_at(&**host, supervisor_link, name),
            None => self.child.start_locally(placement, supervisor_link, name),
        }?;
        self.whereabouts = ChildLocation::InTheater;
        let (watcher, notify) = RemoteChild::watch_of(supervisor, key, id);
        self.child.watch(watcher, notify);
        Ok(id)
    }

    /// Returns the supervisor's watch on the child `id`.
    pub(crate) fn watch_of(supervisor: ActorRef<Supervisor>, key: u64, id: ActorId) -> (Watcher, Notify) {
        let lost = Box::new(move |Ended { reason, .. }| {
            // The child itself reports its end, too. If its stub was released together with the link, the reason is
            // `NotAlive`.
            let end = match reason {
                StopReason::TheaterLost => End::Lost,
                StopReason::NotAlive => End::NotAlive,
                _ => End::Other,
            };
            supervisor.address.send_urgent(ChildLostOrEnded { key, id, end });
        });
        (watcher_of(key), Notify::Call(lost))
    }

    /// Returns the theater of its starts, with its incarnation; `None`: this one.
    pub(crate) fn theater(&self) -> Option<u64> {
        self.host.as_ref().map(|host| host.theater())
    }

    /// Sends a decision to the child. On an error, the factory has crashed.
    pub(crate) fn decide(&mut self, decision: Decision<()>, now: Duration) -> Result<(), Crash> {
        if self.whereabouts != ChildLocation::InTheater {
            return Ok(());
        }
        let crash = match &mut self.crashed {
            (crash, decided @ None) if *crash > 0 => {
                *decided = Some((decision, now));
                *crash
            }
            // The child is not parked, as far as this theater knows.
            _ => 0,
        };
        self.tell(crash, decision)
    }

    fn tell(&mut self, crash: u64, decision: Decision<()>) -> Result<(), Crash> {
        self.told += 1;
        self.child.decide(About { nth: self.told, crash }, decision)
    }

    /// Handles the child's report of a crash. Returns whether it was reported before. A decision that was made is sent
    /// again.
    fn has_reported(&mut self, crash: u64, now: Duration) -> bool {
        if self.crashed.0 != crash {
            self.crashed = (crash, None);
            return false;
        }
        if let Some((decision, told)) = &mut self.crashed.1
            && now.saturating_sub(*told) >= REMIND_EVERY
        {
            *told = now;
            let decision = *decision;
            // On an error, the factory has crashed. It is called again at the child's next report.
            let _ = self.tell(crash, decision);
        }
        true
    }

    /// Ends the supervision of the child.
    pub(crate) fn dismiss(&mut self) {
        // This decision needs no factory.
        let _ = self.tell(0, Decision::Dismiss);
    }

    pub(crate) fn id(&self) -> Option<ActorId> {
        self.child.id()
    }
}

/// Returns the watcher of a supervision. It differs from the watcher of an actor that watches by itself.
fn watcher_of(key: u64) -> Watcher {
    Watcher::There(u64::MAX, key)
}

impl<A: Portable> TypedChild for ChildOfType<A> {
    fn start_at(&mut self, host: &dyn Host, supervisor_link: SupervisorLink, name: &str) -> Result<ActorId, WireError> {
        let actor = self.make()?;
        let write = guarded(|codec, out| {
            Codec::Positional.write(&(supervisor_link, name), out)?;
            codec.write(&actor, out)
        });
        let place =
            |system: &SystemCore, stub_placement, forwarder| spawn_stub::<A>(system, stub_placement, forwarder).id();
        let id = host.start(TypeId::of::<A>(), type_name::<A>(), &write, &place)?;
        self.child = ActorRef::of_id(id);
        Ok(id)
    }

    fn start_locally(
        &mut self,
        placement: Placement,
        supervisor_link: SupervisorLink,
        name: &str,
    ) -> Result<ActorId, WireError> {
        let actor = self.make()?;
        let start = |name| StartChild { name, child: Child::with_link(supervisor_link) };
        let started = with_current_system(|system| {
            let system = system.expect("a handler runs on a worker");
            spawn_named(system, placement, None, name.to_owned(), actor, start)
        });
        let child = started.map_err(|error| WireError::new(error.to_string()))?;
        self.child = Some(child);
        Ok(child.id())
    }

    fn watch(&self, watcher: Watcher, notify: Notify) {
        match self.child {
            Some(child) => child.address.send_control(Watch::Begin { watcher, notify, who: child.id() }),
            None => {
                if let Notify::Call(call) = notify {
                    call(StopReason::TheaterLost.into());
                }
            }
        }
    }

    fn decide(&mut self, about: About, decision: Decision<()>) -> Result<(), Crash> {
        let Some(child) = self.child else { return Ok(()) };
        let decision = match decision {
            Decision::Restart(()) => Decision::Restart(
                catch_unwind(AssertUnwindSafe(&mut self.factory)).map_err(|panic| Crash::Panic(panic.into()))?,
            ),
            Decision::Resume => Decision::Resume,
            Decision::GiveUp => Decision::GiveUp,
            Decision::Dismiss => Decision::Dismiss,
        };
        child.address.send_control(Verdict { about, decision });
        Ok(())
    }

    fn id(&self) -> Option<ActorId> {
        self.child.map(ActorRef::id)
    }
}

/// A report of a child's theater to the supervisor.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ChildReport {
    key: u64,
    news: News,
}

#[derive(Debug, Serialize, Deserialize)]
enum News {
    /// A handler panicked, and the child is parked. Holds the number of the crash, and its text.
    Panicked(u64, String),
    /// A handler failed, and the child is parked. Holds the number of the crash, and its text.
    Failed(u64, String),
    /// The child could not be started. Holds the reason.
    NotStarted(String),
    /// The child has ended.
    Ended,
}

impl Message for ChildReport {
    type Reply = ();
    const WIRE: Option<WireForm<ChildReport>> = Some(WireForm::named("playhouse.ChildReport"));
}

impl Remote for Supervisor {
    fn wire_name() -> &'static str {
        "playhouse.Supervisor"
    }
}

remote!(also Supervisor: ChildReport);

/// A crash in another theater: only its text has arrived.
#[derive(Debug)]
struct RemoteCrash(String);

impl fmt::Display for RemoteCrash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for RemoteCrash {}

impl Handler<ChildReport> for Supervisor {
    fn handle(&mut self, report: ChildReport, ctx: &mut Context<Self>) {
        let ChildReport { key, news } = report;
        if let News::Panicked(crash, _) | News::Failed(crash, _) = &news
            && self.remote_child(key).is_none_or(|remote_child| remote_child.has_reported(*crash, ctx.now()))
        {
            return;
        }
        match news {
            News::Panicked(_, text) => self.child_crashed(key, Crash::Panic(Payload::new(text)), ctx),
            News::Failed(_, text) => {
                self.child_crashed(key, Crash::Error(Failure::without_place(RemoteCrash(text))), ctx)
            }
            News::NotStarted(why) => {
                if let Some(remote_child) = self.remote_child(key) {
                    remote_child.whereabouts = ChildLocation::Lost;
                    self.child_crashed(key, Crash::Error(Failure::without_place(RemoteCrash(why))), ctx);
                }
            }
            News::Ended => self.forget(key),
        }
    }
}

/// A notice that a child has ended or is lost, as far as its supervisor's theater sees.
pub(crate) struct ChildLostOrEnded {
    pub(crate) key: u64,
    pub(crate) id: ActorId,
    pub(crate) end: End,
}

/// The kind of end that the supervisor's theater sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The child's theater is lost.
    Lost,
    /// The child was not alive. If the link is lost, its theater is; otherwise the child reports its end itself.
    NotAlive,
    /// The child has ended.
    Other,
}

impl Envelope<ActorState<Supervisor>> for ChildLostOrEnded {
    fn run(self, state: &mut ActorState<Supervisor>, cx: &mut Cx<ActorState<Supervisor>>) {
        state.actor.child_lost_or_ended(self, Context::of(cx));
    }

    fn bounce(self, _: Undelivered) {}
}

/// The result of a call to the address of a lost theater.
pub(crate) struct Reached {
    /// The theater that was lost.
    pub(crate) theater: u64,
    pub(crate) found: Result<Arc<dyn Host>, WireError>,
}

impl Envelope<ActorState<Supervisor>> for Reached {
    fn run(self, state: &mut ActorState<Supervisor>, cx: &mut Cx<ActorState<Supervisor>>) {
        state.actor.reached(self, Context::of(cx));
    }

    fn bounce(self, _: Undelivered) {}
}

// -- at the child -------------------------------------------------------------------------------------------------------

/// The supervision data of a child that starts or arrives.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct SupervisorLink {
    pub(crate) supervisor: ActorRef<Supervisor>,
    pub(crate) key: u64,
    /// The number of its crashes.
    pub(crate) crashes: u64,
    /// The number of the last decision of its supervisor that it has acknowledged.
    pub(crate) heard: u64,
}

impl SupervisorLink {
    fn report(self, news: News) {
        self.supervisor.tell_urgent(ChildReport { key: self.key, news });
    }

    /// Reports to the supervisor that the child could not be started, with the reason.
    pub fn not_started(&self, why: String) {
        self.report(News::NotStarted(why));
    }
}

/// Reads a child that is supervised from another theater: its link to its supervisor, its name, and its state. If that
/// cannot be read, its supervisor is notified.
pub(crate) fn read_child<A: Portable>(bytes: &[u8], codec: Codec) -> Result<(SupervisorLink, String, A), WireError> {
    let read =
        postcard::take_from_bytes::<(SupervisorLink, String)>(bytes).map_err(|error| WireError::new(error.to_string()));
    let ((supervisor_link, name), state) = read?;
    let actor = catch_unwind(|| codec.read::<A>(state)).unwrap_or_else(|panic| {
        let why = Crash::Panic(panic.into()).describe();
        Err(WireError::new(format!("reading the actor's state panicked: {why}")))
    });
    let actor = actor.inspect_err(|error| supervisor_link.not_started(error.to_string()))?;
    Ok((supervisor_link, name, actor))
}

/// Reads a child that is supervised from another theater, and starts it.
pub(crate) fn start_child<A: Portable>(
    system: &Arc<SystemCore>,
    bytes: &[u8],
    codec: Codec,
) -> Result<ActorId, WireError> {
    let (supervisor_link, name, actor) = read_child::<A>(bytes, codec)?;
    let start = |name| StartChild { name, child: Child::with_link(supervisor_link) };
    let started = spawn_named(system, Placement::Near, None, name, actor, start);
    let started = started.map_err(|error| WireError::new(error.to_string()));
    started.inspect_err(|error| supervisor_link.not_started(error.to_string())).map(ActorRef::id)
}

/// The interval at which a parked child repeats its report.
const REMIND_EVERY: Duration = Duration::from_secs(1);

/// The supervision state of a child whose supervisor may be in another theater.
pub(crate) struct SupervisedRemotely {
    /// The crash for which it is parked.
    crash: Option<Crash>,
    crashes: u64,
    /// The number of the last decision that it has acknowledged.
    heard: u64,
    /// The timer that repeats the report.
    reminder: Option<TimerKey>,
}

impl Drop for SupervisedRemotely {
    fn drop(&mut self) {
        self.decided();
    }
}

impl SupervisedRemotely {
    /// Parks the crashed child: records the crash, and returns a call that reports it to the supervisor.
    pub(crate) fn crashed<A: Actor>(
        &mut self,
        crash: Crash,
        supervisor_link: SupervisorLink,
        child: ActorRef<A>,
    ) -> impl FnOnce() + use<A> {
        let remind = move || {
            child.address.send_control(Remind);
            Some(REMIND_EVERY)
        };
        let news = self.note(crash, Box::new(remind));
        move || {
            if let Some(news) = news {
                supervisor_link.report(news);
            }
        }
    }

    #[inline(never)]
    fn note(&mut self, crash: Crash, remind: Box<dyn FnMut() -> Option<Duration> + Send>) -> Option<News> {
        self.decided();
        self.crash = Some(crash);
        self.crashes += 1;
        self.reminder = with_current_system(|system| system.map(|system| system.start_timer(REMIND_EVERY, remind)));
        self.news()
    }

    /// Returns the report for the supervisor, if the child is parked.
    fn news(&self) -> Option<News> {
        let crash = self.crash.as_ref()?;
        Some(match crash {
            Crash::Panic(_) => News::Panicked(self.crashes, crash.describe()),
            Crash::Error(_) => News::Failed(self.crashes, crash.describe()),
        })
    }

    /// Ends the parking. Returns the crash.
    #[inline(never)]
    fn decided(&mut self) -> Option<Crash> {
        if let Some(reminder) = self.reminder.take() {
            with_current_system(|system| {
                if let Some(system) = system {
                    system.cancel_timer(reminder);
                }
            });
        }
        self.crash.take()
    }

    /// Returns the state of a child with this number of crashes, and of acknowledged decisions.
    pub(crate) fn that_crashed(crashes: u64, heard: u64) -> SupervisedRemotely {
        SupervisedRemotely { crash: None, crashes, heard, reminder: None }
    }

    /// Returns the number of its crashes, and the number of the last acknowledged decision.
    pub(crate) fn counts(&self) -> (u64, u64) {
        (self.crashes, self.heard)
    }

    #[inline(never)]
    pub(crate) fn ended(supervisor_link: SupervisorLink) {
        supervisor_link.report(News::Ended);
        SupervisedRemotely::unwatch(supervisor_link);
    }

    pub(crate) fn unwatch(SupervisorLink { supervisor, key, .. }: SupervisorLink) {
        supervisor.address.send_control(Watch::End { watcher: watcher_of(key) });
    }

    pub(crate) fn into_crash(mut self) -> Option<Crash> {
        self.decided()
    }

    /// Begins the child's watch on its supervisor.
    pub(crate) fn watch<A: Actor>(child: ActorRef<A>, SupervisorLink { supervisor, key, .. }: SupervisorLink) {
        let orphaned = Box::new(move |_| child.address.send_control(Orphaned));
        let (watcher, notify) = (watcher_of(key), Notify::Call(orphaned));
        supervisor.address.send_control(Watch::Begin { watcher, notify, who: supervisor.id() });
    }
}

/// A parked child repeats its report.
struct Remind;

impl<A: Actor> Control<ActorState<A>> for Remind {
    fn run(self, cx: &mut ControlCx<ActorState<A>>) {
        let Some(child) = cx.extra().child() else { return };
        let supervisor_link = child.supervisor_link();
        if let Some(news) = child.supervised_remotely().and_then(|supervised_remotely| supervised_remotely.news()) {
            supervisor_link.report(news);
        }
    }

    fn send_on(self, _: &mut AwayCx<ActorState<A>>) {}
}

/// The supervisor has ended, or is unreachable.
struct Orphaned;

impl<A: Actor> Control<ActorState<A>> for Orphaned {
    fn run(self, cx: &mut ControlCx<ActorState<A>>) {
        dismiss(cx);
    }

    fn send_on(self, _: &mut AwayCx<ActorState<A>>) {}
}

/// Ends the child without a supervisor: as crashed, if it is parked.
fn dismiss<A: Actor>(cx: &mut ControlCx<ActorState<A>>) {
    let child = cx.extra().child();
    if child.as_mut().and_then(Child::supervised_remotely).is_none() {
        return;
    }
    match child.take().and_then(Child::unbind) {
        Some(crash) => cx.give_up(crash),
        None => cx.stop(),
    }
}

/// A decision about a child, on its way to it.
struct Verdict<A> {
    about: About,
    decision: Decision<A>,
}

impl<A: Portable> Control<ActorState<A>> for Verdict<A> {
    fn run(self, cx: &mut ControlCx<ActorState<A>>) {
        let extra = cx.extra();
        let Some(child) = extra.child() else { return };
        let (crashed, Some(supervised_remotely)) = (child.crashed, child.supervised_remotely()) else { return };
        let About { nth, crash } = self.about;
        let was_told = crash != 0 && !(crashed && crash == supervised_remotely.crashes);
        let is_outdated = nth < supervised_remotely.heard && !matches!(self.decision, Decision::Dismiss);
        if was_told || is_outdated {
            return;
        }
        supervised_remotely.heard = nth;
        match self.decision {
            Decision::Dismiss => dismiss(cx),
            Decision::GiveUp => {
                if let Some(crash) = supervised_remotely.decided() {
                    cx.give_up(crash);
                }
            }
            Decision::Resume if !crashed => {}
            Decision::Resume => {
                supervised_remotely.decided();
                child.crashed = false;
                go_on_all(&mut extra.timer_slot().timers);
                cx.resume();
            }
            Decision::Restart(actor) => {
                supervised_remotely.decided();
                child.crashed = false;
                extra.renew();
                cx.interrupt();
                if cx.is_ending() {
                    // A stop was to follow behind the child's handler.
                    return;
                }
                cx.note_handled(false);
                let former = cx.replace(ActorState { actor });
                let _panicked = contained(|| drop(former));
                cx.resume();
                cx.run(Start);
            }
        }
    }

    fn send_on(self, cx: &mut AwayCx<ActorState<A>>) {
        fn carry<A: Actor>(
            about: About,
            verdict: Decision<Write<'_>>,
            cx: &mut AwayCx<ActorState<A>>,
        ) -> Result<(), WireError> {
            let (actor, name) = (TypeId::of::<A>(), type_name::<A>());
            forward::carry(ForwardedMessage::Verdict { actor, name, about, verdict }, cx)
        }
        let carried = match self.decision {
            Decision::Restart(state) => {
                let write = guarded(|codec, out| codec.write(&state, out));
                carry(self.about, Decision::Restart(&write), cx)
            }
            Decision::Resume => carry(self.about, Decision::Resume, cx),
            Decision::GiveUp => carry(self.about, Decision::GiveUp, cx),
            Decision::Dismiss => carry(self.about, Decision::Dismiss, cx),
        };
        if carried.is_err() {
            // The child must not wait forever. If this decision cannot be sent either, its theater is lost.
            let _ = carry(self.about, Decision::GiveUp, cx);
        }
    }
}

/// Gives a decision from another theater to a child in this one, or forwards it.
pub(crate) fn decide<A: Portable>(
    child: ActorId,
    about: About,
    decision: Decision<(&[u8], Codec)>,
) -> Result<(), WireError> {
    let Some(child) = ActorRef::<A>::of_id(child) else { return Ok(()) };
    let read = match decision {
        Decision::Restart((bytes, codec)) => codec.read::<A>(bytes).map(Decision::Restart),
        Decision::Resume => Ok(Decision::Resume),
        Decision::GiveUp => Ok(Decision::GiveUp),
        Decision::Dismiss => Ok(Decision::Dismiss),
    };
    let error = read.as_ref().err().cloned();
    child.address.send_control(Verdict { about, decision: read.unwrap_or(Decision::GiveUp) });
    error.map_or(Ok(()), Err)
}
