//! Supervised children in other theaters: started there, or gone there.
//!
//! The child's theater tells the supervisor of a crash by a message ([`ChildReport`]), and holds the child with its mailbox
//! until the verdict comes ([`Decision`]), which goes the way of the child's mail. The factory stays with the supervisor: a
//! restart brings the new state along. Each side watches the other: a child whose supervisor is out of reach ends, and a child
//! whose theater is lost counts as crashed, and is started anew: at that address, when a theater answers there again, or at its
//! supervisor's, if it had gone there itself.
//!
//! A child here has its factory with itself. When it is taken to another theater for the first time, it sends the factory to
//! its supervisor ([`Child::leaves`]) before anything of it is sent over there, and is one of these children from then on, even
//! if it stays after all. What the supervisor tells it in between does not reach it; the supervisor notices by the count of
//! what it was told, and tells it again.
//!
//! Reports and verdicts may be lost with a theater that they pass, while the child lives on in another one. So a child that is
//! held reports again, every [`REMIND_EVERY`], and is told again what was decided; its crashes have numbers.

use std::any::{TypeId, type_name};
use std::error::Error;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use playhouse_executor::{
    AwayCx, Control, ControlCx, Crash, Cx, Envelope, Failure, Payload, SystemCore, TimerKey, Undelivered,
    with_current_system,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::actor::context::Context;
use crate::actor::reference::ActorRef;
use crate::actor::spawn::{Placement, spawn_named};
use crate::actor::{ActorId, ActorState, Ended, Notify, StopReason, Watch, Watcher};
use crate::message::mail::Start;
use crate::message::{Handler, Message};
use crate::remote::stub::{ForwardedMessage, MakeStub, Write, guarded, spawn_stub};
use crate::remote::wire::{Codec, Remote, WireError, WireForm};
use crate::supervise::{Child, StartChild, Supervisor};
use crate::timer::timers::go_on_all;
use crate::{Actor, remote};

/// Another theater, as a place for children: a `Peer` of `playhouse-theater`.
pub trait Host: Send + Sync + 'static {
    /// Starts an actor of the type `actor` there, as a child; what is written is what that theater is to read. Its place here
    /// is made by `place`.
    ///
    /// # Errors
    /// It cannot be written, or the theater is lost.
    fn start(
        &self,
        actor: TypeId,
        name: &'static str,
        write: Write<'_>,
        place: MakeStub<'_>,
    ) -> Result<ActorId, WireError>;

    /// Which theater it is, in which of its lives.
    fn theater(&self) -> u64;

    /// Whether it is lost.
    fn is_lost(&self) -> bool;

    /// Whether this actor, which was started there, may have gone on to another theater.
    fn may_have_left(&self, id: ActorId) -> bool;

    /// Calls the theater at the same address again, without blocking; `then` is given what is there now, or why there is
    /// nothing.
    fn reach(&self, then: Found);
}

/// Told what answers where a theater was.
pub type Found = Box<dyn FnOnce(Result<Arc<dyn Host>, WireError>) + Send>;

/// The crash of a supervised child whose theater is lost, or cannot be reached again: for
/// [`SupervisionPolicy::on`](crate::SupervisionPolicy::on).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TheaterLost {
    /// Why it cannot be reached, where that was tried.
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
    /// The crash of a child that could not be started anew.
    pub(crate) fn again(why: &WireError) -> Crash {
        Crash::Error(Failure::without_place(TheaterLost { why: Some(why.to_string()) }))
    }

    /// Whether that is a crash that was not followed by another start.
    pub(crate) fn is_first(crash: &Crash) -> bool {
        matches!(crash, Crash::Error(error) if error.downcast_ref::<TheaterLost>().is_some_and(|lost| lost.why.is_none()))
    }
}

/// Which decision of a supervisor it is. Decisions take the way of control requests. Where an actor moves, a later one may come before an earlier
/// one, which is outdated then.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct About {
    /// The how manyth decision about this child.
    pub nth: u64,
    /// The how manyth of its crashes it is about; 0: about none.
    pub crash: u64,
}

/// What is to become of a crashed child, with what a new state is given by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Decision<S> {
    /// It starts again.
    Restart(S),
    /// It goes on.
    Resume,
    /// It ends.
    GiveUp,
    /// It ends, and has no supervisor any more that it could tell.
    Dismiss,
}

impl<S> Decision<S> {
    /// The same decision, with the state given by something else.
    pub fn map<T>(self, f: impl FnOnce(S) -> T) -> Decision<T> {
        match self {
            Decision::Restart(state) => Decision::Restart(f(state)),
            Decision::Resume => Decision::Resume,
            Decision::GiveUp => Decision::GiveUp,
            Decision::Dismiss => Decision::Dismiss,
        }
    }
}

/// What actors are that can be children in other theaters.
pub(crate) trait Portable: Remote + Serialize + DeserializeOwned {}
impl<A: Remote + Serialize + DeserializeOwned> Portable for A {}

// -- at the supervisor --------------------------------------------------------------------------------------------------

/// Where a child is, as far as its supervisor knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChildLocation {
    /// In its theater.
    There,
    /// Its theater is lost, or could not start it.
    Lost,
    /// The same, and somebody is calling there.
    Called,
}

/// A child in another theater, or that has been in one.
pub(crate) struct RemoteChild {
    pub(crate) whereabouts: ChildLocation,
    /// Where it is started; None: here.
    pub(crate) host: Option<Arc<dyn Host>>,
    /// The number of its last crash; what was decided about that, and when it was told so last.
    crashed: (u64, Option<(Decision<()>, Duration)>),
    /// How often it was told what was decided.
    told: u64,
    child: Box<dyn TypedChild>,
}

/// A child of some type.
trait TypedChild: Send {
    fn start_at(&mut self, host: &dyn Host, supervisor_link: SupervisorLink, name: &str) -> Result<ActorId, WireError>;
    fn start_here(
        &mut self,
        placement: Placement,
        supervisor_link: SupervisorLink,
        name: &str,
    ) -> Result<ActorId, WireError>;
    fn watch(&self, watcher: Watcher, notify: Notify);
    fn decide(&mut self, about: About, decision: Decision<()>) -> Result<(), Crash>;
    fn id(&self) -> Option<ActorId>;
}

struct Issue<A: Actor> {
    child: Option<ActorRef<A>>,
    factory: Box<dyn FnMut() -> A + Send>,
}

impl<A: Actor> Issue<A> {
    fn make(&mut self) -> Result<A, WireError> {
        let made = catch_unwind(AssertUnwindSafe(&mut self.factory));
        made.map_err(|panic| WireError::new(Crash::Panic(panic.into()).describe()))
    }
}

/// How such a child is made.
pub(crate) type Emigrate<A> = fn(Arc<dyn Host>, Box<dyn FnMut() -> A + Send>) -> RemoteChild;

pub(crate) fn emigrate<A: Portable>(host: Arc<dyn Host>, factory: Box<dyn FnMut() -> A + Send>) -> RemoteChild {
    let child = Box::new(Issue { child: None, factory });
    RemoteChild { whereabouts: ChildLocation::Lost, host: Some(host), crashed: (0, None), told: 0, child }
}

impl RemoteChild {
    /// A child that leaves this theater.
    pub(crate) fn that_leaves<A: Portable>(child: ActorRef<A>, factory: Box<dyn FnMut() -> A + Send>) -> RemoteChild {
        let child = Box::new(Issue { child: Some(child), factory });
        RemoteChild { whereabouts: ChildLocation::There, host: None, crashed: (0, None), told: 0, child }
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
            None => self.child.start_here(placement, supervisor_link, name),
        }?;
        self.whereabouts = ChildLocation::There;
        let (watcher, notify) = RemoteChild::watch_of(supervisor, key, id);
        self.child.watch(watcher, notify);
        Ok(id)
    }

    /// How the supervisor watches the child `id`.
    pub(crate) fn watch_of(supervisor: ActorRef<Supervisor>, key: u64, id: ActorId) -> (Watcher, Notify) {
        let lost = Box::new(move |Ended { reason, .. }| {
            // Of its end the child itself tells as well. Where its place was given up with the link, it is not alive.
            let end = match reason {
                StopReason::TheaterLost => End::Lost,
                StopReason::NotAlive => End::NotAlive,
                _ => End::Other,
            };
            supervisor.address.send_urgent(ChildIsNoMore { key, id, end });
        });
        (watcher_of(key), Notify::Call(lost))
    }

    /// The theater that it is started in, in which of its lives; None: this one.
    pub(crate) fn theater(&self) -> Option<u64> {
        self.host.as_ref().map(|host| host.theater())
    }

    /// Tells the child. On an error, the factory has crashed.
    pub(crate) fn decide(&mut self, decision: Decision<()>, now: Duration) -> Result<(), Crash> {
        if self.whereabouts != ChildLocation::There {
            return Ok(());
        }
        let crash = match &mut self.crashed {
            (crash, decided @ None) if *crash > 0 => {
                *decided = Some((decision, now));
                *crash
            }
            // It is not held, as far as is known here.
            _ => 0,
        };
        self.tell(crash, decision)
    }

    fn tell(&mut self, crash: u64, decision: Decision<()>) -> Result<(), Crash> {
        self.told += 1;
        self.child.decide(About { nth: self.told, crash }, decision)
    }

    /// The child reports a crash. True: it has before. If it was decided about, it is told again.
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
            // On an error, the factory has crashed, and is asked again when the child reports again.
            let _ = self.tell(crash, decision);
        }
        true
    }

    /// It has no supervisor any more.
    pub(crate) fn dismiss(&mut self) {
        // No factory is asked for this.
        let _ = self.tell(0, Decision::Dismiss);
    }

    pub(crate) fn id(&self) -> Option<ActorId> {
        self.child.id()
    }
}

/// Who watches for the sake of supervision: another one than an actor that watches for itself.
fn watcher_of(key: u64) -> Watcher {
    Watcher::There(u64::MAX, key)
}

impl<A: Portable> TypedChild for Issue<A> {
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

    fn start_here(
        &mut self,
        placement: Placement,
        supervisor_link: SupervisorLink,
        name: &str,
    ) -> Result<ActorId, WireError> {
        let actor = self.make()?;
        let start = |name| StartChild { name, child: Child::of_elsewhere(supervisor_link) };
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

/// What a child's theater tells the supervisor.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ChildReport {
    key: u64,
    news: News,
}

#[derive(Debug, Serialize, Deserialize)]
enum News {
    /// A handler panicked; the child is held. The how manyth crash it is, and the text.
    Panicked(u64, String),
    /// A handler failed; the child is held.
    Failed(u64, String),
    /// It could not be started.
    NotStarted(String),
    /// It is no more.
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

/// A crash in another theater: its text is all that has come.
#[derive(Debug)]
struct CrashThere(String);

impl fmt::Display for CrashThere {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for CrashThere {}

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
                self.child_crashed(key, Crash::Error(Failure::without_place(CrashThere(text))), ctx)
            }
            News::NotStarted(why) => {
                if let Some(remote_child) = self.remote_child(key) {
                    remote_child.whereabouts = ChildLocation::Lost;
                    self.child_crashed(key, Crash::Error(Failure::without_place(CrashThere(why))), ctx);
                }
            }
            News::Ended => self.forget(key),
        }
    }
}

/// A child is no more, as far as can be seen from here.
pub(crate) struct ChildIsNoMore {
    pub(crate) key: u64,
    pub(crate) id: ActorId,
    pub(crate) end: End,
}

/// How that is seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// Its theater is lost.
    Lost,
    /// It was not there any more. Its theater is lost if the link is; else it tells of its end itself.
    NotAlive,
    /// It has ended.
    Other,
}

impl Envelope<ActorState<Supervisor>> for ChildIsNoMore {
    fn run(self, incarnation: &mut ActorState<Supervisor>, cx: &mut Cx<ActorState<Supervisor>>) {
        incarnation.actor.child_is_no_more(self, Context::of(cx));
    }

    fn bounce(self, _: Undelivered) {}
}

/// Somebody has called where children were lost.
pub(crate) struct Reached {
    /// The theater that was there before.
    pub(crate) theater: u64,
    pub(crate) found: Result<Arc<dyn Host>, WireError>,
}

impl Envelope<ActorState<Supervisor>> for Reached {
    fn run(self, incarnation: &mut ActorState<Supervisor>, cx: &mut Cx<ActorState<Supervisor>>) {
        incarnation.actor.reached(self, Context::of(cx));
    }

    fn bounce(self, _: Undelivered) {}
}

// -- at the child -------------------------------------------------------------------------------------------------------

/// What a child knows of its supervisor when it comes.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct SupervisorLink {
    pub(crate) supervisor: ActorRef<Supervisor>,
    pub(crate) key: u64,
    /// How often it has crashed.
    pub(crate) crashes: u64,
    /// The how manyth decision of its supervisor it has heard last.
    pub(crate) heard: u64,
}

impl SupervisorLink {
    fn report(self, news: News) {
        self.supervisor.tell_urgent(ChildReport { key: self.key, news });
    }

    /// The child could not be started: why.
    pub fn not_started(&self, why: String) {
        self.report(News::NotStarted(why));
    }
}

/// Reads a child that is to be supervised from another theater: what it knows of its supervisor, what it is called, and its state. If that cannot be
/// read, its supervisor is told.
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

/// Reads a child that is to be supervised from another theater, and starts it.
pub(crate) fn start_child<A: Portable>(
    system: &Arc<SystemCore>,
    bytes: &[u8],
    codec: Codec,
) -> Result<ActorId, WireError> {
    let (supervisor_link, name, actor) = read_child::<A>(bytes, codec)?;
    let start = |name| StartChild { name, child: Child::of_elsewhere(supervisor_link) };
    let started = spawn_named(system, Placement::Near, None, name, actor, start);
    let started = started.map_err(|error| WireError::new(error.to_string()));
    started.inspect_err(|error| supervisor_link.not_started(error.to_string())).map(ActorRef::id)
}

/// How often a child that is held says so.
const REMIND_EVERY: Duration = Duration::from_secs(1);

/// What a child whose supervisor is elsewhere keeps.
pub(crate) struct SupervisedRemotely {
    /// Why it is held.
    crash: Option<Crash>,
    crashes: u64,
    /// The how manyth decision it has heard last.
    heard: u64,
    /// Reminds its supervisor of that.
    reminder: Option<TimerKey>,
}

impl Drop for SupervisedRemotely {
    fn drop(&mut self) {
        self.decided();
    }
}

impl SupervisedRemotely {
    /// The child crashed: keeps why, and returns how to tell the supervisor.
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

    /// What the supervisor is to know, if the child is held.
    fn news(&self) -> Option<News> {
        let crash = self.crash.as_ref()?;
        Some(match crash {
            Crash::Panic(_) => News::Panicked(self.crashes, crash.describe()),
            Crash::Error(_) => News::Failed(self.crashes, crash.describe()),
        })
    }

    /// It is not held any more. Returns why it was.
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

    /// Of a child that has crashed so often, and has heard so many decisions.
    pub(crate) fn that_crashed(crashes: u64, heard: u64) -> SupervisedRemotely {
        SupervisedRemotely { crash: None, crashes, heard, reminder: None }
    }

    /// How often it has crashed, and the how manyth decision it has heard last.
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

    /// The child is there, and wants to know if its supervisor is not.
    pub(crate) fn watch<A: Actor>(child: ActorRef<A>, SupervisorLink { supervisor, key, .. }: SupervisorLink) {
        let orphaned = Box::new(move |_| child.address.send_control(Orphaned));
        let (watcher, notify) = (watcher_of(key), Notify::Call(orphaned));
        supervisor.address.send_control(Watch::Begin { watcher, notify, who: supervisor.id() });
    }
}

/// A child that is held says so again.
struct Remind;

impl<A: Actor> Control<ActorState<A>> for Remind {
    fn run(self, cx: &mut ControlCx<ActorState<A>>) {
        let Some(child) = &mut cx.extra().child else { return };
        let supervisor_link = child.supervisor_link();
        if let Some(news) = child.supervised_remotely().and_then(|supervised_remotely| supervised_remotely.news()) {
            supervisor_link.report(news);
        }
    }

    fn send_on(self, _: &mut AwayCx<ActorState<A>>) {}
}

/// The supervisor has ended, or is out of reach.
struct Orphaned;

impl<A: Actor> Control<ActorState<A>> for Orphaned {
    fn run(self, cx: &mut ControlCx<ActorState<A>>) {
        dismiss(cx);
    }

    fn send_on(self, _: &mut AwayCx<ActorState<A>>) {}
}

/// The child ends without a supervisor: as crashed, if it is.
fn dismiss<A: Actor>(cx: &mut ControlCx<ActorState<A>>) {
    let child = &mut cx.extra().child;
    if child.as_mut().and_then(Child::supervised_remotely).is_none() {
        return;
    }
    match child.take().and_then(Child::unbind) {
        Some(crash) => cx.give_up(crash),
        None => cx.stop(),
    }
}

/// A decision about a child, on its way there.
struct Verdict<A> {
    about: About,
    decision: Decision<A>,
}

impl<A: Portable> Control<ActorState<A>> for Verdict<A> {
    fn run(self, cx: &mut ControlCx<ActorState<A>>) {
        let extra = cx.extra();
        let Some(child) = &mut extra.child else { return };
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
                go_on_all(&mut extra.timers);
                cx.resume();
            }
            Decision::Restart(actor) => {
                supervised_remotely.decided();
                child.crashed = false;
                extra.renew();
                cx.interrupt();
                if cx.is_ending() {
                    // It was to stop behind its handler.
                    return;
                }
                cx.note_handled(false);
                drop(cx.replace(ActorState { actor }));
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
            crate::remote::stub::carry(ForwardedMessage::Verdict { actor, name, about, verdict }, cx)
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
            // It must not wait for ever. Where that cannot be said either, its theater is lost.
            let _ = carry(self.about, Decision::GiveUp, cx);
        }
    }
}

/// Tells a child here, or further on, what was decided elsewhere.
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
