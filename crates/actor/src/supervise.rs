//! Supervision: actors that restart others.
//!
//! A [`Supervisor`] is an ordinary actor. A supervised child that crashes is held, with its mailbox, until its
//! supervisor has decided; a restarted child keeps its address and its mailbox and has a new state, made by the factory
//! it was started with. A panic (or [`Context::fail`]) goes to the supervisor; a returned `Err` goes to the asker: the
//! two are never mixed.

use std::collections::VecDeque;
use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use playhouse_executor::{Control, ControlCx, Crash, Cx, Envelope, Undelivered, with_current_system};

use crate::actor::{Actor, Life, Request};
use crate::actor_ref::ActorRef;
use crate::context::Context;
use crate::mail::Start;
use crate::message::{Handler, Message};
use crate::names::Name;
use crate::spawn::{Placement, SpawnError, spawn_named, take_name};
use crate::timers::cancel_all;

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
pub struct Supervise {
    strategy: Strategy,
    restarts_max: usize,
    within: Duration,
    backoff: Option<(Duration, Duration)>,
    rules: Vec<Rule>,
}

impl fmt::Debug for Supervise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Supervise")
            .field("strategy", &self.strategy)
            .field("restarts_max", &self.restarts_max)
            .field("within", &self.within)
            .field("backoff", &self.backoff)
            .finish_non_exhaustive()
    }
}

impl Supervise {
    fn new(strategy: Strategy) -> Supervise {
        Supervise { strategy, restarts_max: 3, within: Duration::from_secs(5), backoff: None, rules: Vec::new() }
    }

    /// Only the child that crashed is restarted.
    pub fn one_for_one() -> Supervise {
        Supervise::new(Strategy::OneForOne)
    }

    /// All children are restarted when one crashes.
    pub fn one_for_all() -> Supervise {
        Supervise::new(Strategy::OneForAll)
    }

    /// The child that crashed and those started after it are restarted.
    pub fn rest_for_one() -> Supervise {
        Supervise::new(Strategy::RestForOne)
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
    pub fn on<E: Error + 'static>(mut self, directive: Directive) -> Self {
        let fits = |crash: &Crash| match crash {
            Crash::Error(error) => error.is::<E>(),
            Crash::Panic(payload) => payload.is::<E>(),
        };
        self.rules.push((Box::new(fits), directive));
        self
    }

    fn decide(&self, crash: &Crash) -> Directive {
        self.rules.iter().find(|(fits, _)| fits(crash)).map_or(Directive::Restart, |(_, directive)| *directive)
    }
}

/// The error that a supervisor crashes with when it gives up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GaveUp {
    /// The child's name.
    pub child: String,
    /// The crash that was one too many, or that was to be escalated.
    pub cause: String,
}

impl fmt::Display for GaveUp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the supervisor gave up on its child {:?}: {}", self.child, self.cause)
    }
}

impl Error for GaveUp {}

/// An actor that starts children and restarts them when they crash. When it ends, they are stopped.
#[derive(Debug)]
pub struct Supervisor {
    policy: Supervise,
    children: Vec<Kept>,
    crashes: VecDeque<Duration>,
}

struct Kept {
    key: u64,
    name: String,
    child: Box<dyn Supervisable>,
}

impl fmt::Debug for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.child.stop();
    }
}

/// Keys of children. No two supervisors, nor two lives of one, give the same: reports of a former life's children may
/// still be under way in the next.
static NEXT_KEY: AtomicU64 = AtomicU64::new(0);

trait Supervisable: Send {
    fn verdict(&self, verdict: Verdict);
    fn stop(&self);
}

impl<A: Actor> Supervisable for ActorRef<A> {
    fn verdict(&self, verdict: Verdict) {
        self.address.send_control(verdict);
    }

    fn stop(&self) {
        self.address.send_control(Request::Stop);
    }
}

impl Supervisor {
    /// A supervisor without children.
    pub fn new(policy: Supervise) -> Supervisor {
        Supervisor { policy, children: Vec::new(), crashes: VecDeque::new() }
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
        match delay.filter(|delay| !delay.is_zero()) {
            None => self.restart_now(key),
            Some(delay) => {
                ctx.send_after(delay, RestartNow { key });
            }
        }
    }

    fn restart_now(&mut self, key: u64) {
        let Some(at) = self.position(key) else { return };
        let affected = match self.policy.strategy {
            Strategy::OneForOne => at..at + 1,
            Strategy::OneForAll => 0..self.children.len(),
            Strategy::RestForOne => at..self.children.len(),
        };
        for kept in &self.children[affected] {
            kept.child.verdict(Verdict::Restart);
        }
    }

    fn give_up(&mut self, at: usize, crash: Crash, ctx: &mut Context<Self>) {
        let gave_up = GaveUp { child: self.children[at].name.clone(), cause: crash.describe() };
        self.children[at].child.verdict(Verdict::GiveUp(crash));
        self.children.clear();
        ctx.fail(gave_up);
    }
}

impl Actor for Supervisor {}

/// Starts a supervised child: ask a [`Supervisor`] for it. The answer is its reference, good over all restarts.
#[must_use = "a child is started when its supervisor is asked for it"]
pub struct Supervised<A> {
    name: String,
    placement: Placement,
    factory: Box<dyn FnMut() -> A + Send>,
}

impl<A> fmt::Debug for Supervised<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Supervised({:?})", self.name)
    }
}

impl<A: Actor> Supervised<A> {
    /// A child called `name`, whose state `factory` makes: now, and again for each restart.
    pub fn new(name: impl Into<String>, factory: impl FnMut() -> A + Send + 'static) -> Self {
        Supervised { name: name.into(), placement: Placement::Near, factory: Box::new(factory) }
    }

    /// Where to put it; it stays there over all restarts. Default: near its supervisor.
    pub fn placement(mut self, placement: Placement) -> Self {
        self.placement = placement;
        self
    }
}

impl<A: Actor> Message for Supervised<A> {
    type Reply = Result<ActorRef<A>, SpawnError>;
}

impl<A: Actor> Handler<Supervised<A>> for Supervisor {
    fn handle(&mut self, mut child: Supervised<A>, ctx: &mut Context<Self>) -> Result<ActorRef<A>, SpawnError> {
        let key = NEXT_KEY.fetch_add(1, Ordering::Relaxed);
        let actor = (child.factory)();
        let known = Child { supervisor: ctx.this(), key, crashed: false, factory: child.factory };
        let started = with_current_system(|system| {
            let system = system.expect("a handler runs on a worker");
            let start = |name| StartChild { name, child: known };
            spawn_named(system, child.placement, child.name.clone(), actor, start)
        })?;
        self.children.push(Kept { key, name: child.name, child: Box::new(started) });
        Ok(started)
    }
}

/// What a child knows of its supervisor.
pub(crate) struct Child<A> {
    supervisor: ActorRef<Supervisor>,
    key: u64,
    /// It waits for its supervisor, with the state that it had when it crashed.
    pub(crate) crashed: bool,
    factory: Box<dyn FnMut() -> A + Send>,
}

impl<A: Actor> Child<A> {
    /// Returns how to tell the supervisor of `crash`.
    pub(crate) fn report(&self, crash: Crash, child: ActorRef<A>) -> impl FnOnce() + use<A> {
        let (supervisor, key) = (self.supervisor, self.key);
        move || supervisor.address.send_urgent(ChildCrashed { key, crash, child: Box::new(child) })
    }

    pub(crate) fn ended(self) {
        self.supervisor.address.send(ChildEnded { key: self.key });
    }
}

struct StartChild<A> {
    name: Arc<Name>,
    child: Child<A>,
}

impl<A: Actor> Envelope<Life<A>> for StartChild<A> {
    fn run(self, life: &mut Life<A>, mut cx: Cx<Life<A>>) -> Cx<Life<A>> {
        take_name(&mut cx, self.name);
        cx.extra().child = Some(self.child);
        Start.run(life, cx)
    }

    fn bounce(self, _: Undelivered) {}
}

struct ChildCrashed {
    key: u64,
    crash: Crash,
    child: Box<dyn Supervisable>,
}

impl Envelope<Life<Supervisor>> for ChildCrashed {
    fn run(self, life: &mut Life<Supervisor>, cx: Cx<Life<Supervisor>>) -> Cx<Life<Supervisor>> {
        let mut ctx = Context::new(cx);
        let supervisor = &mut life.actor;
        match supervisor.position(self.key) {
            None => self.child.verdict(Verdict::GiveUp(self.crash)),
            Some(at) => match supervisor.policy.decide(&self.crash) {
                Directive::Restart => supervisor.restart(self.key, self.crash, &mut ctx),
                Directive::Resume => self.child.verdict(Verdict::Resume),
                Directive::Stop => self.child.verdict(Verdict::GiveUp(self.crash)),
                Directive::Escalate => supervisor.give_up(at, self.crash, &mut ctx),
            },
        }
        ctx.into_cx()
    }

    /// The supervisor is gone: nobody will restart the child.
    fn bounce(self, _: Undelivered) {
        self.child.verdict(Verdict::GiveUp(self.crash));
    }
}

struct ChildEnded {
    key: u64,
}

impl Envelope<Life<Supervisor>> for ChildEnded {
    fn run(self, life: &mut Life<Supervisor>, cx: Cx<Life<Supervisor>>) -> Cx<Life<Supervisor>> {
        life.actor.children.retain(|kept| kept.key != self.key);
        cx
    }

    fn bounce(self, _: Undelivered) {}
}

#[derive(Clone, Copy)]
struct RestartNow {
    key: u64,
}

impl Message for RestartNow {
    type Reply = ();
}

impl Handler<RestartNow> for Supervisor {
    fn handle(&mut self, restart: RestartNow, _: &mut Context<Self>) {
        self.restart_now(restart.key);
    }
}

/// What the supervisor decided about a child.
enum Verdict {
    Restart,
    Resume,
    GiveUp(Crash),
}

impl<A: Actor> Control<Life<A>> for Verdict {
    fn run(self, cx: &mut ControlCx<Life<A>>) {
        match self {
            Verdict::Resume => {
                if let Some(child) = &mut cx.extra().child {
                    child.crashed = false;
                }
                cx.resume();
            }
            Verdict::GiveUp(crash) => cx.give_up(crash),
            Verdict::Restart => {
                cx.interrupt();
                cancel_all(std::mem::take(&mut cx.extra().timers));
                let Some(child) = cx.extra().child.as_mut() else { return };
                let actor = (child.factory)();
                child.crashed = false;
                drop(cx.replace(Life { actor }));
                cx.resume();
                cx.run(Start);
            }
        }
    }
}
