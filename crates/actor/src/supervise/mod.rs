//! Supervision: actors that restart others.
//!
//! A [`Supervisor`] is an ordinary actor. A supervised child that crashes is held, with its mailbox, until its
//! supervisor has decided; a restarted child keeps its address and its mailbox and has a new state, made by the factory
//! it was started with. A panic (or [`Context::fail`]) goes to the supervisor; a returned `Err` goes to the asker: the
//! two are never mixed. Children in other theaters: `remote_child`.

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
    ChildIsNoMore, ChildLocation, Decision, Emigrate, End, Host, Portable, Reached, RemoteChild, SupervisedRemotely,
    SupervisorLink, TheaterLost, emigrate,
};
use crate::timer::timers::go_on_all;

/// What is done about a crash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Directive {
    /// A new state, the same address and mailbox. The default.
    Restart,
    /// The actor goes on with the state it has.
    Resume,
    /// The actor ends.
    Stop,
    /// The supervisor crashes too.
    Escalate,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Strategy {
    OneForOne,
    OneForAll,
    RestForOne,
}

type Rule = (Box<dyn Fn(&Crash) -> bool + Send>, Directive);

/// How a [`Supervisor`] treats its children.
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
        f.debug_struct("Supervise")
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

    /// Only the child that crashed is restarted.
    pub fn one_for_one() -> SupervisionPolicy {
        SupervisionPolicy::new(Strategy::OneForOne)
    }

    /// All children are restarted when one crashes.
    pub fn one_for_all() -> SupervisionPolicy {
        SupervisionPolicy::new(Strategy::OneForAll)
    }

    /// The child that crashed and those started after it are restarted.
    pub fn rest_for_one() -> SupervisionPolicy {
        SupervisionPolicy::new(Strategy::RestForOne)
    }

    /// More crashes than `restarts` within `within`: the supervisor gives up and crashes itself. Default: 3 in 5 s.
    pub fn max_restarts(mut self, restarts: usize, within: Duration) -> Self {
        self.restarts_max = restarts;
        self.within = within;
        self
    }

    /// Waits before a restart: `first`, then twice as long each time within the window of `max_restarts`, at most
    /// `most`. Default: none.
    pub fn backoff(mut self, first: Duration, most: Duration) -> Self {
        self.backoff = Some((first, most));
        self
    }

    /// What is done when a child crashed with an `E`, by [`Context::fail`] or [`std::panic::panic_any`]. The first rule
    /// that fits is taken.
    ///
    /// Of a child in another theater only the text of its error comes: use [`SupervisionPolicy::when`] there. But
    /// [`TheaterLost`] is found by its type.
    pub fn on<E: Error + 'static>(mut self, directive: Directive) -> Self {
        let fits = |crash: &Crash| match crash {
            Crash::Error(error) => error.is::<E>(),
            Crash::Panic(payload) => payload.is::<E>(),
        };
        self.rules.push((Box::new(fits), directive));
        self
    }

    /// What is done when a child crashed with an error or a panic whose text `fits`. The first rule that fits is taken.
    pub fn when(mut self, fits: impl Fn(&str) -> bool + Send + 'static, directive: Directive) -> Self {
        self.rules.push((Box::new(move |crash: &Crash| fits(&crash.describe())), directive));
        self
    }

    fn decide(&self, crash: &Crash) -> Directive {
        self.rules.iter().find(|(fits, _)| fits(crash)).map_or(Directive::Restart, |(_, directive)| *directive)
    }
}

/// The error that a supervisor crashes with when it gives up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SupervisionFailed {
    /// The child's name.
    pub child: String,
    /// The crash that was one too many, or that was to be escalated.
    pub cause: String,
}

impl fmt::Display for SupervisionFailed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the supervisor gave up on its child {:?}: {}", self.child, self.cause)
    }
}

impl Error for SupervisionFailed {}

/// An actor that starts children and restarts them when they crash. When it ends, they are stopped.
#[derive(Debug)]
pub struct Supervisor {
    policy: SupervisionPolicy,
    children: Vec<Kept>,
    crashes: VecDeque<Duration>,
    /// The number of keys given to children.
    keys: u64,
    /// Theaters that children are started in, whose loss was counted as a crash, and when that was.
    lost: Vec<(u64, Duration)>,
}

struct Kept {
    key: u64,
    name: String,
    placement: Placement,
    child: ChildHandle,
}

enum ChildHandle {
    /// Makes its own new states; it was told to so often.
    Here(Box<dyn Supervisable>, u64),
    /// In another theater, or has been: its new states are made here.
    There(RemoteChild),
}

impl Kept {
    /// It has ended, and its report of that is under way. One that is lost with its theater is to start again.
    fn has_ended(&self) -> bool {
        match &self.child {
            ChildHandle::Here(child, _) => child.id().address().is_stale(),
            ChildHandle::There(child) => {
                child.whereabouts == ChildLocation::There && child.id().is_some_and(|id| id.address().is_stale())
            }
        }
    }
}

impl ChildHandle {
    fn id(&self) -> Option<ActorId> {
        match self {
            ChildHandle::Here(child, _) => Some(child.id()),
            ChildHandle::There(child) => child.id(),
        }
    }

    /// If it is a child of that theater, and this is what is known of it.
    fn is_at(&self, theater: u64, whereabouts: ChildLocation) -> bool {
        matches!(self, ChildHandle::There(child) if child.whereabouts == whereabouts && child.theater() == Some(theater))
    }
}

impl fmt::Debug for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        match &mut self.child {
            ChildHandle::Here(child, _) => child.stop(),
            ChildHandle::There(child) => child.dismiss(),
        }
    }
}

/// Returns a key for a child. No two lives of a supervisor give the same: reports of a former life's children may still be under way in the
/// next. It does not depend on what else there is in the process, so a simulation with the same seed sends the same.
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
    /// A supervisor without children.
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
        // Those that are lost with it start again with it.
        let lost = match &self.children[at].child {
            ChildHandle::There(child) if child.whereabouts == ChildLocation::Lost => child.theater(),
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
                ChildHandle::Here(child, restarts) => {
                    *restarts += 1;
                    child.verdict(Verdict::Restart);
                }
                ChildHandle::There(child) => match (child.whereabouts, &child.host) {
                    (ChildLocation::There, _) => {
                        crashed.extend(child.decide(Decision::Restart(()), now).err().map(|crash| (kept.key, crash)));
                    }
                    // It is about to start again by itself: its theater is called when its own backoff is over.
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

    /// Reports what is done about the crash of this child, and when.
    fn decided(&self, at: usize, crash: &Crash, (directive, after): (Directive, Duration), ctx: &mut Context<Self>) {
        let (supervisor, name) = (ctx.this().id(), ctx.name().map(|name| name.to_string()));
        let (child, cause) = (self.children[at].name.clone(), crash.describe());
        crashes::decided(&DecisionReport { supervisor, name, child, cause, directive, after });
    }

    fn give_up(&mut self, at: usize, crash: Crash, ctx: &mut Context<Self>) {
        let gave_up = SupervisionFailed { child: self.children[at].name.clone(), cause: crash.describe() };
        // One in another theater is told, like all of them, that it has no supervisor any more.
        if let ChildHandle::Here(child, _) = &mut self.children[at].child {
            child.verdict(Verdict::GiveUp(crash));
        }
        self.children.clear();
        ctx.fail_without_place(gave_up);
    }
}

impl Actor for Supervisor {}

/// Starts a supervised child: ask a [`Supervisor`] for it. The answer is its reference, good over all restarts.
#[must_use = "a child is started when its supervisor is asked for it"]
pub struct ChildSpec<A> {
    name: String,
    placement: Placement,
    mailbox: Option<Mailbox>,
    remote_child: Option<(Arc<dyn Host>, Emigrate<A>)>,
    factory: Box<dyn FnMut() -> A + Send>,
}

impl<A> fmt::Debug for ChildSpec<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Supervised({:?})", self.name)
    }
}

impl<A: Actor> ChildSpec<A> {
    /// A child called `name`, whose state `factory` makes: now, and again for each restart. A supervisor has one child of each name: a second
    /// one is an error.
    pub fn new(name: impl Into<String>, factory: impl FnMut() -> A + Send + 'static) -> Self {
        let (placement, mailbox) = (Placement::Near, None);
        ChildSpec { name: name.into(), placement, mailbox, remote_child: None, factory: Box::new(factory) }
    }

    /// How much may wait for it; this stays over all restarts, and says nothing of a child in another theater. Default: no
    /// bound of its own.
    pub fn mailbox(mut self, mailbox: Mailbox) -> Self {
        self.mailbox = Some(mailbox);
        self
    }

    /// Where to put it; it stays there over all restarts. Default: near its supervisor.
    pub fn placement(mut self, placement: Placement) -> Self {
        self.placement = placement;
        self
    }

    /// Has the child live in another theater, a `Peer`, instead: it is started there with the state that the factory makes
    /// here, as by `spawn_at` ([`placement`](Self::placement) says nothing of it).
    ///
    /// When it crashes there, it is held with its mailbox until the verdict comes; a restart takes a new state there. Its
    /// supervisor learns the text of the panic or the error, and not the error itself: see [`SupervisionPolicy::when`].
    ///
    /// When its theater is lost, that is a crash with a [`TheaterLost`], one for all children there. The restart calls the
    /// theater's address again; if a theater answers, they are started there anew. They are *other actors* then: references
    /// to the former ones are good no more, and [`FindChild`] tells the new ones. If none answers, that is another crash: so
    /// with a [backoff](SupervisionPolicy::backoff) it is tried again and again, and without one the supervisor soon gives up.
    /// The other way round, a child whose supervisor has ended or is lost is stopped.
    pub fn at<H: Host + Clone>(mut self, theater: &H) -> Self
    where
        A: Remote + Serialize + DeserializeOwned,
    {
        self.remote_child = Some((Arc::new(theater.clone()), emigrate::<A>));
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
        if let Some((host, emigrate)) = child.remote_child {
            let mut remote_child = emigrate(host, child.factory);
            let started = remote_child.start(ctx.this(), key, &child.name, child.placement);
            let id = started.map_err(|why| SpawnError::new::<A>(Some(&child.name), why.to_string()))?;
            let (name, placement) = (child.name, child.placement);
            self.children.push(Kept { key, name, placement, child: ChildHandle::There(remote_child) });
            return Ok(ActorRef::of_id_or_ended(id).unwrap_or_else(ActorRef::nowhere));
        }
        let actor = (child.factory)();
        let restarts = Restarts::Here { factory: child.factory, count: 0 };
        let known = Child { supervisor: ctx.this(), key, crashed: false, restarts };
        let started = with_current_system(|system| {
            let system = system.expect("a handler runs on a worker");
            let start = |name| StartChild { name, child: known };
            spawn_named(system, child.placement, child.mailbox, child.name.clone(), actor, start)
        })?;
        let (name, placement) = (child.name, child.placement);
        self.children.push(Kept { key, name, placement, child: ChildHandle::Here(Box::new(started), 0) });
        Ok(started)
    }
}

/// Asks a [`Supervisor`] for its child of some name: `None` where there is no such child, or it is no `A`, or has ended. Needed
/// for children in other theaters only, which are other actors after they were lost with their theater.
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
    /// The child called `name`.
    pub fn new(name: impl Into<String>) -> FindChild<A> {
        FindChild { name: name.into(), actor: PhantomData }
    }
}

impl<A: Actor> Message for FindChild<A> {
    type Reply = Option<ActorRef<A>>;
}

impl<A: Actor> Handler<FindChild<A>> for Supervisor {
    fn handle(&mut self, find: FindChild<A>, _: &mut Context<Self>) -> Option<ActorRef<A>> {
        // One that has ended, and has not been forgotten yet, may have a successor of its name.
        self.children
            .iter()
            .rev()
            .find(|kept| kept.name == find.name)
            .and_then(|kept| ActorRef::of_id(kept.child.id()?))
    }
}

/// What a child knows of its supervisor.
pub(crate) struct Child<A> {
    supervisor: ActorRef<Supervisor>,
    key: u64,
    /// It waits for its supervisor, with the state that it had when it crashed.
    pub(crate) crashed: bool,
    restarts: Restarts<A>,
}

/// Who makes new states for a child.
enum Restarts<A> {
    /// It does, and did so often.
    Here { factory: Box<dyn FnMut() -> A + Send>, count: u64 },
    /// Its supervisor, which may be in another theater.
    There(SupervisedRemotely),
}

impl<A: Actor> Child<A> {
    /// A child whose supervisor may be in another theater.
    pub(crate) fn of_elsewhere(SupervisorLink { supervisor, key, crashes, heard }: SupervisorLink) -> Child<A> {
        Child {
            supervisor,
            key,
            crashed: false,
            restarts: Restarts::There(SupervisedRemotely::that_crashed(crashes, heard)),
        }
    }

    /// What it takes along to another theater.
    pub(crate) fn supervisor_link(&self) -> SupervisorLink {
        let (crashes, heard) = match &self.restarts {
            Restarts::Here { .. } => (0, 0),
            Restarts::There(supervised_remotely) => supervised_remotely.counts(),
        };
        SupervisorLink { supervisor: self.supervisor, key: self.key, crashes, heard }
    }

    /// It is about to be taken to another theater: from now on its supervisor makes its new states, and wants to be told if
    /// the theater that it is in is lost.
    pub(crate) fn leaves(&mut self, child: ActorRef<A>) -> Option<(Watcher, Notify)>
    where
        A: Portable,
    {
        if self.supervised_remotely().is_some() {
            return None;
        }
        let here = std::mem::replace(&mut self.restarts, Restarts::There(SupervisedRemotely::that_crashed(0, 0)));
        let Restarts::Here { factory, count } = here else { return None };
        let SupervisorLink { supervisor, key, .. } = self.supervisor_link();
        // Urgently: before anything that the child's next theater could say.
        supervisor.address.send_urgent(ChildLeaves {
            key,
            remote_child: RemoteChild::that_leaves(child, factory),
            count,
        });
        SupervisedRemotely::watch(child, self.supervisor_link());
        Some(RemoteChild::watch_of(supervisor, key, child.id()))
    }

    pub(crate) fn supervised_remotely(&mut self) -> Option<&mut SupervisedRemotely> {
        match &mut self.restarts {
            Restarts::Here { .. } => None,
            Restarts::There(supervised_remotely) => Some(supervised_remotely),
        }
    }

    /// Returns how to tell the supervisor of `crash`.
    pub(crate) fn report(&mut self, crash: Crash, child: ActorRef<A>) -> Box<dyn FnOnce()> {
        let (supervisor, key, supervisor_link) = (self.supervisor, self.key, self.supervisor_link());
        match &mut self.restarts {
            Restarts::Here { .. } => ChildCrashed { key, crash, child: Box::new(child) }.report(supervisor),
            Restarts::There(supervised_remotely) => {
                Box::new(supervised_remotely.crashed(crash, supervisor_link, child))
            }
        }
    }

    /// It has no supervisor any more. Returns why it is held, if it is.
    pub(crate) fn unbind(self) -> Option<Crash> {
        let supervisor_link = self.supervisor_link();
        match self.restarts {
            Restarts::Here { .. } => None,
            Restarts::There(supervised_remotely) => {
                SupervisedRemotely::unwatch(supervisor_link);
                supervised_remotely.into_crash()
            }
        }
    }

    pub(crate) fn ended(self) {
        match self.restarts {
            Restarts::Here { .. } => ChildEnded { key: self.key }.tell(self.supervisor),
            Restarts::There(_) => SupervisedRemotely::ended(self.supervisor_link()),
        }
    }
}

pub(crate) struct StartChild<A> {
    pub(crate) name: Arc<Name>,
    pub(crate) child: Child<A>,
}

impl<A: Actor> Envelope<ActorState<A>> for StartChild<A> {
    fn run(mut self, incarnation: &mut ActorState<A>, cx: &mut Cx<ActorState<A>>) {
        take_name(cx, self.name);
        if self.child.supervised_remotely().is_some() {
            SupervisedRemotely::watch(ActorRef::new(cx.address()), self.child.supervisor_link());
        }
        cx.with_extra(|extra| extra.child = Some(self.child));
        Start.run(incarnation, cx)
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
    fn run(self, incarnation: &mut ActorState<Supervisor>, cx: &mut Cx<ActorState<Supervisor>>) {
        let ctx = Context::of(cx);
        let supervisor = &mut incarnation.actor;
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

    /// The supervisor is gone: nobody will restart the child.
    fn bounce(self, _: Undelivered) {
        self.child.verdict(Verdict::GiveUp(self.crash));
    }
}

/// A child is about to be taken to another theater for the first time.
struct ChildLeaves {
    key: u64,
    remote_child: RemoteChild,
    count: u64,
}

impl Envelope<ActorState<Supervisor>> for ChildLeaves {
    fn run(self, incarnation: &mut ActorState<Supervisor>, cx: &mut Cx<ActorState<Supervisor>>) {
        incarnation.actor.child_leaves(self.key, self.remote_child, self.count, Context::of(cx));
    }

    /// The supervisor is gone, and the child learns that.
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
    fn run(self, incarnation: &mut ActorState<Supervisor>, _: &mut Cx<ActorState<Supervisor>>) {
        incarnation.actor.forget(self.key);
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
        // It has ended elsewhere, as is known by now. Others that were lost with it wait for this.
        let is_lost = |kept: &&Kept| theater.is_some_and(|theater| kept.child.is_at(theater, ChildLocation::Lost));
        if let Some(other) = self.children.iter().find(is_lost).map(|kept| kept.key) {
            self.restart_now(other, Strategy::OneForOne, ctx);
        }
    }
}

/// What the supervisor decided about a child.
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
                // One that has given away its factory is told once more, by who has it.
                if !matches!(cx.extra().child, Some(Child { restarts: Restarts::Here { .. }, .. })) {
                    return;
                }
                cx.interrupt();
                if cx.is_ending() {
                    // It was to stop behind its handler.
                    return;
                }
                cx.extra().renew();
                cx.note_handled(false);
                let Some(Child { crashed, restarts: Restarts::Here { factory, count }, .. }) = &mut cx.extra().child
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
