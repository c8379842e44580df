//! Supervision: actors that restart others.
//!
//! A [`Supervisor`] is an ordinary actor. A supervised child that crashes is parked, with its mailbox, until its
//! supervisor has decided. A restarted child keeps its address and its mailbox; the factory that it was started with
//! makes its new state. A panic (or [`Context::fail`]) goes to the supervisor, and a returned `Err` goes to the asker:
//! the two are never mixed. Children in other theaters: `remote_child`.

pub(crate) mod crashes;
pub(crate) mod remote;
pub(crate) mod remote_child;

use std::collections::VecDeque;
use std::error::Error;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use playhouse_executor::{
    Control, ControlCx, Crash, Cx, Envelope, MailKind, Mailbox, Undelivered, during, with_current_system,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::actor::context::Context;
use crate::actor::names::Name;
use crate::actor::reference::ActorRef;
use crate::actor::spawn::{Placement, SpawnError, spawn_named, take_name};
use crate::actor::{Actor, ActorId, ActorState, Notify, Request, Watcher};
use crate::message::mail::Start;
use crate::message::{Handler, Message};
use crate::remote::wire::Remote;
use crate::supervise::crashes::DecisionReport;
use crate::supervise::remote::{
    ChildLocation, ChildLostOrEnded, Decision, End, Host, MakeRemoteChild, Portable, Reached, RemoteChild,
    SupervisedRemotely, SupervisorLink, TheaterLost, make_remote_child,
};
use crate::timer::timers::go_on_all;

/// The supervisor's action on a crash of a child.
///
/// # Examples
///
/// ```
/// use playhouse_actor::*;
///
/// let policy = SupervisionPolicy::one_for_one()
///     .on::<std::fmt::Error>(Directive::Resume) // goes on with the same state
///     .when(|text| text.contains("poisoned"), Directive::Stop);
/// # let _ = policy;
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Directive {
    /// The child gets a new state, and keeps its address and mailbox. The default.
    Restart,
    /// The child continues with its present state.
    Resume,
    /// The child ends.
    Stop,
    /// The supervisor crashes, too.
    Escalate,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Strategy {
    OneForOne,
    OneForAll,
    RestForOne,
}

type Rule = (Box<dyn Fn(&Crash) -> bool + Send>, Directive);

/// The restart strategy, limits and rules of a [`Supervisor`].
///
/// # Examples
///
/// ```
/// use playhouse_actor::*;
/// use std::time::Duration;
///
/// let policy = SupervisionPolicy::rest_for_one()
///     .max_restarts(10, Duration::from_secs(60))
///     .backoff(Duration::from_millis(100), Duration::from_secs(5))
///     .on::<std::io::Error>(Directive::Restart)
///     .when(|text| text.contains("fatal"), Directive::Escalate);
/// let supervisor = Supervisor::new(policy);
/// # let _ = supervisor;
/// ```
#[doc(alias("SupervisorStrategy", "SupervisionStrategy"))]
#[must_use]
pub struct SupervisionPolicy {
    strategy: Strategy,
    restarts_max: usize,
    within: Duration,
    backoff: Option<(Duration, Duration)>,
    rules: Vec<Rule>,
}

impl fmt::Debug for SupervisionPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SupervisionPolicy")
            .field("strategy", &self.strategy)
            .field("restarts_max", &self.restarts_max)
            .field("within", &self.within)
            .field("backoff", &self.backoff)
            .finish_non_exhaustive()
    }
}

impl SupervisionPolicy {
    fn new(strategy: Strategy) -> SupervisionPolicy {
        SupervisionPolicy {
            strategy,
            restarts_max: 3,
            within: Duration::from_secs(5),
            backoff: None,
            rules: Vec::new(),
        }
    }

    /// Returns a policy that restarts only the crashed child.
    pub fn one_for_one() -> SupervisionPolicy {
        SupervisionPolicy::new(Strategy::OneForOne)
    }

    /// Returns a policy that restarts all children when one crashes.
    pub fn one_for_all() -> SupervisionPolicy {
        SupervisionPolicy::new(Strategy::OneForAll)
    }

    /// Returns a policy that restarts the crashed child and those started after it.
    pub fn rest_for_one() -> SupervisionPolicy {
        SupervisionPolicy::new(Strategy::RestForOne)
    }

    /// Sets the restart limit: at more than `restarts` crashes within `within`, the supervisor gives up and crashes
    /// itself. Default: 3 in 5 s.
    pub fn max_restarts(mut self, restarts: usize, within: Duration) -> Self {
        self.restarts_max = restarts;
        self.within = within;
        self
    }

    /// Sets the delay before a restart: `first`, then doubled at each crash within the window of `max_restarts`, at
    /// most `most`. Default: no delay.
    pub fn backoff(mut self, first: Duration, most: Duration) -> Self {
        self.backoff = Some((first, most));
        self
    }

    /// Sets the directive for crashes with an error of type `E`, by [`Context::fail`] or [`std::panic::panic_any`]. The
    /// first rule that fits applies.
    ///
    /// The error of a child in another theater arrives as text only: use [`SupervisionPolicy::when`] for it.
    /// [`TheaterLost`] is the exception: it is found by its type.
    pub fn on<E: Error + 'static>(mut self, directive: Directive) -> Self {
        let fits = |crash: &Crash| match crash {
            Crash::Error(error) => error.is::<E>(),
            Crash::Panic(payload) => payload.is::<E>(),
        };
        self.rules.push((Box::new(fits), directive));
        self
    }

    /// Sets the directive for crashes with an error or a panic whose text `fits`. The first rule that fits applies.
    pub fn when(mut self, fits: impl Fn(&str) -> bool + Send + 'static, directive: Directive) -> Self {
        self.rules.push((Box::new(move |crash: &Crash| fits(&crash.describe())), directive));
        self
    }

    fn decide(&self, crash: &Crash) -> Directive {
        self.rules.iter().find(|(fits, _)| fits(crash)).map_or(Directive::Restart, |(_, directive)| *directive)
    }
}

/// The error with which a supervisor crashes when it gives up.
///
/// # Examples
///
/// ```
/// use playhouse_actor::*;
///
/// // The parent of a supervisor that gives up stops it, and does not restart it.
/// let policy = SupervisionPolicy::one_for_one().on::<SupervisionFailed>(Directive::Stop);
/// # let _ = policy;
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SupervisionFailed {
    /// The name of the child.
    pub child: String,
    /// The text of the crash that exceeded the restart limit, or that was escalated.
    pub cause: String,
}

impl fmt::Display for SupervisionFailed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the supervisor gave up on its child {:?}: {}", self.child, self.cause)
    }
}

impl Error for SupervisionFailed {}

/// An actor that starts children and restarts them when they crash. The children are stopped when the supervisor ends.
///
/// Ask it for a [`ChildSpec`] to start a child.
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
/// let supervisor = system.spawn(Supervisor::new(SupervisionPolicy::one_for_one()));
/// let counter = supervisor.ask(ChildSpec::new("apples", Counter::default)).wait()??;
/// counter.tell(Add(1)); // the reference stays valid over restarts
/// assert_eq!(counter.ask(Get).wait()?, 1);
/// # system.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Supervisor {
    policy: SupervisionPolicy,
    children: Vec<ChildEntry>,
    crashes: VecDeque<Duration>,
    /// The number of keys given to children.
    keys: u64,
    /// Theaters of children whose loss was counted as a crash, with the time of the loss.
    lost: Vec<(u64, Duration)>,
}

struct ChildEntry {
    key: u64,
    name: String,
    placement: Placement,
    child: ChildHandle,
}

enum ChildHandle {
    /// A child that makes its own new states, and the number of its restarts.
    Local(Box<dyn Supervisable>, u64),
    /// A child that is in another theater, or has been: the supervisor makes its new states.
    Remote(RemoteChild),
}

impl ChildEntry {
    /// Returns whether the child has ended, and its report is under way. A child lost with its theater has not ended,
    /// because it is going to start again.
    fn has_ended(&self) -> bool {
        match &self.child {
            ChildHandle::Local(child, _) => child.id().address().is_stale(),
            ChildHandle::Remote(child) => {
                child.whereabouts == ChildLocation::InTheater && child.id().is_some_and(|id| id.address().is_stale())
            }
        }
    }
}

impl ChildHandle {
    fn id(&self) -> Option<ActorId> {
        match self {
            ChildHandle::Local(child, _) => Some(child.id()),
            ChildHandle::Remote(child) => child.id(),
        }
    }

    /// Returns whether it is a child of that theater with these known whereabouts.
    fn is_at(&self, theater: u64, whereabouts: ChildLocation) -> bool {
        matches!(self, ChildHandle::Remote(child) if child.whereabouts == whereabouts && child.theater() == Some(theater))
    }
}

impl fmt::Debug for ChildEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

impl Drop for ChildEntry {
    fn drop(&mut self) {
        match &mut self.child {
            ChildHandle::Local(child, _) => child.stop(),
            ChildHandle::Remote(child) => child.dismiss(),
        }
    }
}

/// Returns a key for a child. No two incarnations of a supervisor return the same key, because reports about an earlier
/// incarnation's children may still be under way in the next. The key does not depend on other actors of the process,
/// so a simulation with the same seed sends the same keys.
fn new_key(keys: &mut u64, ctx: &mut Context<Supervisor>) -> u64 {
    *keys += 1;
    (ctx.incarnation() << 32) | *keys
}

trait Supervisable: Send {
    fn verdict(&self, verdict: Verdict);
    fn stop(&self);
    fn id(&self) -> ActorId;
}

impl<A: Actor> Supervisable for ActorRef<A> {
    fn verdict(&self, verdict: Verdict) {
        self.address.send_control(verdict);
    }

    fn stop(&self) {
        self.address.send_control(Request::Stop);
    }

    fn id(&self) -> ActorId {
        ActorRef::id(*self)
    }
}

impl Supervisor {
    /// Returns a supervisor without children.
    pub fn new(policy: SupervisionPolicy) -> Supervisor {
        Supervisor { policy, children: Vec::new(), crashes: VecDeque::new(), keys: 0, lost: Vec::new() }
    }

    fn position(&self, key: u64) -> Option<usize> {
        self.children.iter().position(|kept| kept.key == key)
    }

    fn restart(&mut self, key: u64, crash: Crash, ctx: &mut Context<Self>) {
        let Some(at) = self.position(key) else { return };
        let now = ctx.now();
        self.crashes.retain(|crashed| now - *crashed <= self.policy.within);
        self.crashes.push_back(now);
        let count = self.crashes.len();
        if count > self.policy.restarts_max {
            return self.give_up(at, crash, ctx);
        }
        let delay = self.policy.backoff.map(|(first, most)| {
            let doublings = u32::try_from(count - 1).unwrap_or(u32::MAX).min(31);
            first.saturating_mul(1 << doublings).min(most)
        });
        self.decided(at, &crash, (Directive::Restart, delay.unwrap_or_default()), ctx);
        match delay.filter(|delay| !delay.is_zero()) {
            None => self.restart_now(key, self.policy.strategy, ctx),
            Some(delay) => {
                let theater = self.remote_child(key).and_then(|child| child.theater());
                ctx.send_after(delay, RestartNow { key, theater });
            }
        }
    }

    fn restart_now(&mut self, key: u64, strategy: Strategy, ctx: &mut Context<Self>) {
        let Some(at) = self.position(key) else { return };
        let affected = match strategy {
            Strategy::OneForOne => at..at + 1,
            Strategy::OneForAll => 0..self.children.len(),
            Strategy::RestForOne => at..self.children.len(),
        };
        // Children that are lost with the theater start again with the crashed child.
        let lost = match &self.children[at].child {
            ChildHandle::Remote(child) if child.whereabouts == ChildLocation::Lost => child.theater(),
            _ => None,
        };
        let now = ctx.now();
        let mut to_call: Vec<Arc<dyn Host>> = Vec::new();
        let mut crashed = Vec::new();
        for (index, kept) in self.children.iter_mut().enumerate() {
            let goes_along = lost.is_some_and(|theater| kept.child.is_at(theater, ChildLocation::Lost));
            if !affected.contains(&index) && !goes_along {
                continue;
            }
            match &mut kept.child {
                ChildHandle::Local(child, restarts) => {
                    *restarts += 1;
                    child.verdict(Verdict::Restart);
                }
                ChildHandle::Remote(child) => match (child.whereabouts, &child.host) {
                    (ChildLocation::InTheater, _) => {
                        crashed.extend(child.decide(Decision::Restart(()), now).err().map(|crash| (kept.key, crash)));
                    }
                    // This child is about to start again by itself: its theater is called when its own backoff is over.
                    (ChildLocation::Lost, Some(_)) if !goes_along => {}
                    (ChildLocation::Lost, Some(host)) => {
                        if !to_call.iter().any(|known| known.theater() == host.theater()) {
                            to_call.push(Arc::clone(host));
                        }
                        child.whereabouts = ChildLocation::Called;
                    }
                    (ChildLocation::Lost, None) => {
                        kept.key = new_key(&mut self.keys, ctx);
                        let started = child.start(ctx.this(), kept.key, &kept.name, kept.placement);
                        crashed.extend(started.err().map(|why| (kept.key, TheaterLost::again(&why))));
                    }
                    (ChildLocation::Called, _) => {}
                },
            }
        }
        for host in to_call {
            let (supervisor, theater) = (ctx.this(), host.theater());
            host.reach(Box::new(move |found| supervisor.address.send_urgent(Reached { theater, found })));
        }
        for (key, crash) in crashed {
            self.child_crashed(key, crash, ctx);
        }
    }

    /// Reports the directive about the crash of this child, and the delay.
    fn decided(&self, at: usize, crash: &Crash, (directive, after): (Directive, Duration), ctx: &mut Context<Self>) {
        let (supervisor, name) = (ctx.this().id(), ctx.name().map(|name| name.to_string()));
        let (child, cause) = (self.children[at].name.clone(), crash.describe());
        crashes::decided(&DecisionReport { supervisor, name, child, cause, directive, after });
    }

    fn give_up(&mut self, at: usize, crash: Crash, ctx: &mut Context<Self>) {
        let gave_up = SupervisionFailed { child: self.children[at].name.clone(), cause: crash.describe() };
        // A child in another theater is told, like all children, that it has no supervisor any more.
        if let ChildHandle::Local(child, _) = &mut self.children[at].child {
            child.verdict(Verdict::GiveUp(crash));
        }
        self.children.clear();
        ctx.fail_without_place(gave_up);
    }
}

impl Actor for Supervisor {}

/// A request to start a supervised child: ask a [`Supervisor`] with it. The answer is the child's reference, valid over
/// all restarts.
///
/// The answer is a [`SpawnError`] if the supervisor has a living child of that name, or if the child cannot be started.
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
/// let supervisor = system.spawn(Supervisor::new(SupervisionPolicy::one_for_one()));
/// let child = ChildSpec::new("apples", || Counter(10)).placement(Placement::Spread);
/// let counter = supervisor.ask(child).wait()??;
/// assert_eq!(counter.ask(Get).wait()?, 10);
/// # system.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(alias("child_spec", "supervise"))]
#[must_use = "a child is started when its supervisor is asked for it"]
pub struct ChildSpec<A> {
    name: String,
    placement: Placement,
    mailbox: Option<Mailbox>,
    remote_child: Option<(Arc<dyn Host>, MakeRemoteChild<A>)>,
    factory: Box<dyn FnMut() -> A + Send>,
}

impl<A> fmt::Debug for ChildSpec<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ChildSpec({:?})", self.name)
    }
}

impl<A: Actor> ChildSpec<A> {
    /// Returns the specification of a child called `name`. `factory` makes its state now, and again for each restart.
    ///
    /// A supervisor has at most 1 child of each name: a second one is an error.
    pub fn new(name: impl Into<String>, factory: impl FnMut() -> A + Send + 'static) -> Self {
        let (placement, mailbox) = (Placement::Near, None);
        ChildSpec { name: name.into(), placement, mailbox, remote_child: None, factory: Box::new(factory) }
    }

    /// Sets the bound of the child's mailbox. It stays over all restarts, and has no effect on a child in another
    /// theater. Default: no bound of its own.
    pub fn mailbox(mut self, mailbox: Mailbox) -> Self {
        self.mailbox = Some(mailbox);
        self
    }

    /// Sets the placement of the child. It stays over all restarts. Default: near its supervisor.
    pub fn placement(mut self, placement: Placement) -> Self {
        self.placement = placement;
        self
    }

    /// Starts the child in another theater, a `Peer`. The factory makes its state in this theater, and the state is
    /// sent, as by `spawn_at`. The [`placement`](Self::placement) has no effect on it.
    ///
    /// A crashed child is parked with its mailbox in its theater until the directive arrives. A restart sends a new
    /// state. The supervisor receives the text of the panic or the error, and not the error itself: see
    /// [`SupervisionPolicy::when`].
    ///
    /// The loss of the child's theater is a crash with a [`TheaterLost`], one for all children of that theater. The
    /// restart calls the theater's address again. If a theater answers, the children are started anew in it. They are
    /// *other actors* then: references to the former ones are invalid, and [`FindChild`] returns the new ones.
    ///
    /// If no theater answers, that is another crash. With a [backoff](SupervisionPolicy::backoff) the supervisor calls
    /// repeatedly; without one it soon gives up. In the other direction, a child whose supervisor has ended or is lost
    /// is stopped.
    pub fn at<H: Host + Clone>(mut self, theater: &H) -> Self
    where
        A: Remote + Serialize + DeserializeOwned,
    {
        self.remote_child = Some((Arc::new(theater.clone()), make_remote_child::<A>));
        self
    }
}

impl<A: Actor> Message for ChildSpec<A> {
    type Reply = Result<ActorRef<A>, SpawnError>;
}

impl<A: Actor> Handler<ChildSpec<A>> for Supervisor {
    fn handle(&mut self, mut child: ChildSpec<A>, ctx: &mut Context<Self>) -> Result<ActorRef<A>, SpawnError> {
        if let Some(known) = self.children.iter().find(|kept| kept.name == child.name && !kept.has_ended()) {
            let why = match known.child.id() {
                Some(id) => format!("its supervisor has a child of that name, {id}"),
                None => "its supervisor has a child of that name".to_owned(),
            };
            return Err(SpawnError::new::<A>(Some(&child.name), why));
        }
        let key = new_key(&mut self.keys, ctx);
        if let Some((host, make_remote_child)) = child.remote_child {
            let mut remote_child = make_remote_child(host, child.factory);
            let started = remote_child.start(ctx.this(), key, &child.name, child.placement);
            let id = started.map_err(|why| SpawnError::new::<A>(Some(&child.name), why.to_string()))?;
            let (name, placement) = (child.name, child.placement);
            self.children.push(ChildEntry { key, name, placement, child: ChildHandle::Remote(remote_child) });
            return Ok(ActorRef::of_id_or_ended(id).unwrap_or_else(ActorRef::nowhere));
        }
        let actor = (child.factory)();
        let restarts = Restarts::Itself { factory: child.factory, count: 0 };
        let known = Child { supervisor: ctx.this(), key, crashed: false, restarts };
        let started = with_current_system(|system| {
            let system = system.expect("a handler runs on a worker");
            let start = |name| StartChild { name, child: known };
            spawn_named(system, child.placement, child.mailbox, child.name.clone(), actor, start)
        })?;
        let (name, placement) = (child.name, child.placement);
        self.children.push(ChildEntry { key, name, placement, child: ChildHandle::Local(Box::new(started), 0) });
        Ok(started)
    }
}

/// A request for a [`Supervisor`]'s child of a name. The answer is `None` if the supervisor has no such child, or if
/// the child is no `A`, or has ended.
///
/// It is needed for children in other theaters only, because these are other actors after a loss of their theater.
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
/// let supervisor = system.spawn(Supervisor::new(SupervisionPolicy::one_for_one()));
/// let counter = supervisor.ask(ChildSpec::new("apples", Counter::default)).wait()??;
/// assert_eq!(supervisor.ask(FindChild::new("apples")).wait()?, Some(counter));
/// assert_eq!(supervisor.ask(FindChild::<Counter>::new("pears")).wait()?, None);
/// # system.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct FindChild<A> {
    name: String,
    actor: PhantomData<fn() -> A>,
}

impl<A> fmt::Debug for FindChild<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FindChild({:?})", self.name)
    }
}

impl<A: Actor> FindChild<A> {
    /// Returns the request for the child called `name`.
    pub fn new(name: impl Into<String>) -> FindChild<A> {
        FindChild { name: name.into(), actor: PhantomData }
    }
}

impl<A: Actor> Message for FindChild<A> {
    type Reply = Option<ActorRef<A>>;
}

impl<A: Actor> Handler<FindChild<A>> for Supervisor {
    fn handle(&mut self, find: FindChild<A>, _: &mut Context<Self>) -> Option<ActorRef<A>> {
        // A child that has ended, and has not been removed yet, may have a successor of its name.
        self.children
            .iter()
            .rev()
            .find(|kept| kept.name == find.name)
            .and_then(|kept| ActorRef::of_id(kept.child.id()?))
    }
}

/// A child's knowledge of its supervisor.
pub(crate) struct Child<A> {
    supervisor: ActorRef<Supervisor>,
    key: u64,
    /// The child is parked until its supervisor decides, with the state that it had when it crashed.
    pub(crate) crashed: bool,
    restarts: Restarts<A>,
}

/// The maker of new states for a child.
enum Restarts<A> {
    /// The child itself, and the number of its restarts.
    Itself { factory: Box<dyn FnMut() -> A + Send>, count: u64 },
    /// The supervisor, which may be in another theater.
    Supervisor(SupervisedRemotely),
}

impl<A: Actor> Child<A> {
    /// Returns the state of a child whose supervisor may be in another theater.
    pub(crate) fn with_link(SupervisorLink { supervisor, key, crashes, heard }: SupervisorLink) -> Child<A> {
        Child {
            supervisor,
            key,
            crashed: false,
            restarts: Restarts::Supervisor(SupervisedRemotely::that_crashed(crashes, heard)),
        }
    }

    /// Returns the link that the child takes along to another theater.
    pub(crate) fn supervisor_link(&self) -> SupervisorLink {
        let (crashes, heard) = match &self.restarts {
            Restarts::Itself { .. } => (0, 0),
            Restarts::Supervisor(supervised_remotely) => supervised_remotely.counts(),
        };
        SupervisorLink { supervisor: self.supervisor, key: self.key, crashes, heard }
    }

    /// Prepares a migration of the child. The supervisor makes the child's new states from now on, and watches for the
    /// loss of the target theater: returns that watch.
    pub(crate) fn begin_migration(&mut self, child: ActorRef<A>) -> Option<(Watcher, Notify)>
    where
        A: Portable,
    {
        if self.supervised_remotely().is_some() {
            return None;
        }
        let former =
            std::mem::replace(&mut self.restarts, Restarts::Supervisor(SupervisedRemotely::that_crashed(0, 0)));
        let Restarts::Itself { factory, count } = former else { return None };
        let SupervisorLink { supervisor, key, .. } = self.supervisor_link();
        // Urgent, because it has to arrive before any report from the child's next theater.
        supervisor.address.send_urgent(ChildMigrates {
            key,
            remote_child: RemoteChild::migrating_child(child, factory),
            count,
        });
        SupervisedRemotely::watch(child, self.supervisor_link());
        Some(RemoteChild::watch_of(supervisor, key, child.id()))
    }

    pub(crate) fn supervised_remotely(&mut self) -> Option<&mut SupervisedRemotely> {
        match &mut self.restarts {
            Restarts::Itself { .. } => None,
            Restarts::Supervisor(supervised_remotely) => Some(supervised_remotely),
        }
    }

    /// Returns a call that reports `crash` to the supervisor.
    pub(crate) fn report(&mut self, crash: Crash, child: ActorRef<A>) -> Box<dyn FnOnce()> {
        let (supervisor, key, supervisor_link) = (self.supervisor, self.key, self.supervisor_link());
        match &mut self.restarts {
            Restarts::Itself { .. } => ChildCrashed { key, crash, child: Box::new(child) }.report(supervisor),
            Restarts::Supervisor(supervised_remotely) => {
                Box::new(supervised_remotely.crashed(crash, supervisor_link, child))
            }
        }
    }

    /// Ends the supervision. Returns the crash for which the child is parked, if it is.
    pub(crate) fn unbind(self) -> Option<Crash> {
        let supervisor_link = self.supervisor_link();
        match self.restarts {
            Restarts::Itself { .. } => None,
            Restarts::Supervisor(supervised_remotely) => {
                SupervisedRemotely::unwatch(supervisor_link);
                supervised_remotely.into_crash()
            }
        }
    }

    pub(crate) fn ended(self) {
        match self.restarts {
            Restarts::Itself { .. } => ChildEnded { key: self.key }.tell(self.supervisor),
            Restarts::Supervisor(_) => SupervisedRemotely::ended(self.supervisor_link()),
        }
    }
}

pub(crate) struct StartChild<A> {
    pub(crate) name: Arc<Name>,
    pub(crate) child: Child<A>,
}

impl<A: Actor> Envelope<ActorState<A>> for StartChild<A> {
    fn run(mut self, state: &mut ActorState<A>, cx: &mut Cx<ActorState<A>>) {
        take_name(cx, self.name);
        if self.child.supervised_remotely().is_some() {
            SupervisedRemotely::watch(ActorRef::new(cx.address()), self.child.supervisor_link());
        }
        cx.with_extra(|extra| extra.child = Some(self.child));
        Start.run(state, cx)
    }

    fn describe() -> (MailKind, &'static str) {
        (MailKind::Start, "start")
    }

    fn bounce(self, _: Undelivered) {}
}

struct ChildCrashed {
    key: u64,
    crash: Crash,
    child: Box<dyn Supervisable>,
}

impl ChildCrashed {
    #[inline(never)]
    fn report(self, supervisor: ActorRef<Supervisor>) -> Box<dyn FnOnce()> {
        Box::new(move || supervisor.address.send_urgent(self))
    }
}

impl Envelope<ActorState<Supervisor>> for ChildCrashed {
    fn run(self, state: &mut ActorState<Supervisor>, cx: &mut Cx<ActorState<Supervisor>>) {
        let ctx = Context::of(cx);
        let supervisor = &mut state.actor;
        match supervisor.position(self.key) {
            None => self.child.verdict(Verdict::GiveUp(self.crash)),
            Some(at) => match supervisor.policy.decide(&self.crash) {
                Directive::Restart => supervisor.restart(self.key, self.crash, ctx),
                Directive::Resume => {
                    supervisor.decided(at, &self.crash, (Directive::Resume, Duration::ZERO), ctx);
                    self.child.verdict(Verdict::Resume);
                }
                Directive::Stop => {
                    supervisor.decided(at, &self.crash, (Directive::Stop, Duration::ZERO), ctx);
                    self.child.verdict(Verdict::GiveUp(self.crash));
                }
                Directive::Escalate => supervisor.give_up(at, self.crash, ctx),
            },
        }
    }

    fn describe() -> (MailKind, &'static str) {
        (MailKind::Control, "crashed")
    }

    /// The supervisor has ended: the child will not be restarted.
    fn bounce(self, _: Undelivered) {
        self.child.verdict(Verdict::GiveUp(self.crash));
    }
}

/// A notice that a child is about to migrate for the first time.
struct ChildMigrates {
    key: u64,
    remote_child: RemoteChild,
    count: u64,
}

impl Envelope<ActorState<Supervisor>> for ChildMigrates {
    fn run(self, state: &mut ActorState<Supervisor>, cx: &mut Cx<ActorState<Supervisor>>) {
        state.actor.child_migrates(self.key, self.remote_child, self.count, Context::of(cx));
    }

    /// The supervisor has ended, and the child learns of that by its watch.
    fn bounce(self, _: Undelivered) {}
}

struct ChildEnded {
    key: u64,
}

impl ChildEnded {
    #[inline(never)]
    fn tell(self, supervisor: ActorRef<Supervisor>) {
        supervisor.address.send(self);
    }
}

impl Envelope<ActorState<Supervisor>> for ChildEnded {
    fn run(self, state: &mut ActorState<Supervisor>, _: &mut Cx<ActorState<Supervisor>>) {
        state.actor.forget(self.key);
    }

    fn describe() -> (MailKind, &'static str) {
        (MailKind::Control, "ended")
    }

    fn bounce(self, _: Undelivered) {}
}

#[derive(Clone, Copy)]
struct RestartNow {
    key: u64,
    /// The theater that the child is started in, if it is another one.
    theater: Option<u64>,
}

impl Message for RestartNow {
    type Reply = ();
}

impl Handler<RestartNow> for Supervisor {
    fn handle(&mut self, RestartNow { key, theater }: RestartNow, ctx: &mut Context<Self>) {
        if self.position(key).is_some() {
            return self.restart_now(key, self.policy.strategy, ctx);
        }
        // The child has ended in another theater, as this theater knows by now. Other children that were lost with that
        // theater wait for this report.
        let is_lost =
            |kept: &&ChildEntry| theater.is_some_and(|theater| kept.child.is_at(theater, ChildLocation::Lost));
        if let Some(other) = self.children.iter().find(is_lost).map(|kept| kept.key) {
            self.restart_now(other, Strategy::OneForOne, ctx);
        }
    }
}

/// The supervisor's decision about a child.
enum Verdict {
    Restart,
    Resume,
    GiveUp(Crash),
}

impl<A: Actor> Control<ActorState<A>> for Verdict {
    fn describe(&self) -> (MailKind, &'static str) {
        let name = match self {
            Verdict::Restart => "restart",
            Verdict::Resume => "resume",
            Verdict::GiveUp(_) => "give up",
        };
        (MailKind::Control, name)
    }

    fn run(self, cx: &mut ControlCx<ActorState<A>>) {
        match self {
            Verdict::Resume => {
                if let Some(child) = &mut cx.extra().child {
                    child.crashed = false;
                }
                go_on_all(&mut cx.extra().timers);
                cx.resume();
            }
            Verdict::GiveUp(crash) => cx.give_up(crash),
            Verdict::Restart => {
                // A child that has given its factory away is told once more, by the owner of the factory.
                if !matches!(cx.extra().child, Some(Child { restarts: Restarts::Itself { .. }, .. })) {
                    return;
                }
                cx.interrupt();
                if cx.is_ending() {
                    // A stop was to follow behind the child's handler.
                    return;
                }
                cx.extra().renew();
                cx.note_handled(false);
                let Some(Child { crashed, restarts: Restarts::Itself { factory, count }, .. }) = &mut cx.extra().child
                else {
                    return;
                };
                *count += 1;
                let actor = during(|| (MailKind::Control, "factory"), &mut *factory);
                *crashed = false;
                drop(cx.replace(ActorState { actor }));
                cx.resume();
                cx.run(Start);
            }
        }
    }
}
