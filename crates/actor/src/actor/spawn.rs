//! Placement and options of new actors.

use std::any::type_name;
use std::fmt;
use std::sync::Arc;

use playhouse_executor::{Cx, Envelope, MailKind, Mailbox, StageChoice, SystemCore, Undelivered};

use crate::actor::HasIdentity;
use crate::actor::context::Context;
use crate::actor::group::{Group, Joined, join};
use crate::actor::names::{Name, ShortType};
use crate::actor::reference::ActorRef;
use crate::actor::{Actor, ActorId, ActorState};

/// The placement of an actor: its stage, or a thread of its own.
///
/// Actors of one stage run one after the other. Idle workers steal whole stages.
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
/// let anywhere = SpawnOptions::new().placement(Placement::Spread);
/// let blocking = SpawnOptions::new().placement(Placement::Dedicated);
/// let counter = system.spawn_with(anywhere, Counter::default());
/// let loader = system.spawn_with(blocking, Counter::default()); // may block its thread
/// # assert_ne!(counter, loader);
/// # system.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(alias("dispatcher", "Arbiter", "pinned"))]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Placement {
    /// On a stage of the spawning actor's worker, in turn. Outside of actors it is `Spread`. The default.
    #[default]
    Near,
    /// On any stage of the system, in turn.
    Spread,
    /// With the other actors of a group, on one stage: for actors that exchange many messages. In a theater they
    /// migrate together.
    Group(Group),
    /// On the stage with this number. The spawn fails if the system has no such stage.
    Stage(u16),
    /// On a thread of its own: for handlers that block. At most 64 at one time in each system.
    Dedicated,
}

/// The options of a new actor: placement, mailbox and name.
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
/// let options = SpawnOptions::new().name("apples").placement(Placement::Spread);
/// let counter = system.spawn_with(options, Counter::default());
/// assert_eq!(counter.to_string(), "Counter \"apples\"");
/// # system.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct SpawnOptions {
    pub(crate) placement: Placement,
    pub(crate) name: Option<String>,
    pub(crate) mailbox: Option<Mailbox>,
}

impl SpawnOptions {
    /// Returns the defaults: near the spawner, unbounded mailbox, no name.
    pub fn new() -> SpawnOptions {
        SpawnOptions::default()
    }

    /// Sets the placement of the actor. Default: [`Placement::Near`].
    pub fn placement(mut self, placement: Placement) -> Self {
        self.placement = placement;
        self
    }

    /// Sets the bound of the actor's mailbox. Default: no bound of its own; senders to an overloaded worker are slowed.
    ///
    /// The bound stays over restarts. It does not migrate with the actor to another theater.
    pub fn mailbox(mut self, mailbox: Mailbox) -> Self {
        self.mailbox = Some(mailbox);
        self
    }

    /// Sets the actor's name in reports. It is shown as `Account "alice"` where its reference is printed, in
    /// [`AskError::Cycle`](crate::AskError::Cycle), [`Terminated`](crate::Terminated) and [`SpawnError`]. Names need
    /// not be unique.
    ///
    /// Reports know the names of living actors only. A [`DeadLetter`](crate::DeadLetter) has the type of its actor,
    /// which has ended, and not its name.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }
}

/// The error of an actor that could not be started.
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
/// let options = SpawnOptions::new().placement(Placement::Stage(u16::MAX)); // the system has fewer stages
/// let error: SpawnError = system.try_spawn_with(options, Counter::default()).unwrap_err();
/// assert!(error.to_string().starts_with("the actor Counter could not be started: "), "{error}");
/// # system.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpawnError {
    actor: &'static str,
    name: Option<String>,
    why: String,
}

impl SpawnError {
    pub(crate) fn new<A>(name: Option<&str>, why: String) -> SpawnError {
        SpawnError { actor: type_name::<A>(), name: name.map(str::to_owned), why }
    }
}

impl fmt::Display for SpawnError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the actor {}", ShortType(self.actor))?;
        if let Some(name) = &self.name {
            write!(f, " {name:?}")?;
        }
        write!(f, " could not be started: {}", self.why)
    }
}

impl std::error::Error for SpawnError {}

/// The first message of an actor with a name.
struct Named(Arc<Name>);

impl<A: Actor> Envelope<ActorState<A>> for Named {
    fn run(self, state: &mut ActorState<A>, cx: &mut Cx<ActorState<A>>) {
        take_name(cx, self.0);
        Start.run(state, cx)
    }

    fn describe() -> (MailKind, &'static str) {
        (MailKind::Start, "start")
    }

    fn bounce(self, _: Undelivered) {}
}

/// Gives the running actor its name.
pub(crate) fn take_name<A: Actor>(cx: &mut Cx<ActorState<A>>, name: Arc<Name>) {
    name.belongs_to(ActorId(cx.address().raw()));
    cx.with_extra(|extra| extra.identity().name = Some(name));
}

pub(crate) fn spawn<A: Actor>(
    system: &Arc<SystemCore>,
    options: SpawnOptions,
    actor: A,
) -> Result<ActorRef<A>, SpawnError> {
    match options.name {
        None => {
            let spawned = spawn_at(system, options.placement, options.mailbox, actor, Start);
            spawned.map_err(|why| SpawnError::new::<A>(None, why))
        }
        Some(name) => spawn_named(system, options.placement, options.mailbox, name, actor, Named),
    }
}

/// Starts an actor called `name` with the first message that `start` makes. The message has to [take](take_name) the
/// name.
pub(crate) fn spawn_named<A: Actor, E: Envelope<ActorState<A>>>(
    system: &Arc<SystemCore>,
    placement: Placement,
    mailbox: Option<Mailbox>,
    name: String,
    actor: A,
    start: impl FnOnce(Arc<Name>) -> E,
) -> Result<ActorRef<A>, SpawnError> {
    let name = Name::new(name);
    let spawned = spawn_at(system, placement, mailbox, actor, start(Arc::clone(&name)))
        .map_err(|why| SpawnError::new::<A>(Some(name.text()), why))?;
    name.belongs_to(spawned.id());
    Ok(spawned)
}

pub(crate) fn spawn_at<A: Actor>(
    system: &Arc<SystemCore>,
    placement: Placement,
    mailbox: Option<Mailbox>,
    actor: A,
    start: impl Envelope<ActorState<A>>,
) -> Result<ActorRef<A>, String> {
    let choice = match placement {
        Placement::Near => StageChoice::Near,
        Placement::Spread => StageChoice::Spread,
        Placement::Group(group) => {
            let choice = StageChoice::At(group.stage_in(system));
            let Some(name) = group.name else { return settle(system, choice, mailbox, actor, start) };
            let spawned = settle(system, choice, mailbox, actor, Joined::new(name, start))?;
            join::<A>(system, name, spawned.id());
            return Ok(spawned);
        }
        Placement::Stage(stage) => StageChoice::At(stage),
        Placement::Dedicated => StageChoice::Dedicated,
    };
    settle(system, choice, mailbox, actor, start)
}

fn settle<A: Actor>(
    system: &Arc<SystemCore>,
    choice: StageChoice,
    mailbox: Option<Mailbox>,
    actor: A,
    start: impl Envelope<ActorState<A>>,
) -> Result<ActorRef<A>, String> {
    let spawned = match mailbox {
        None => system.spawn(ActorState { actor }, choice, start),
        Some(mailbox) => system.spawn_bounded(ActorState { actor }, choice, start, mailbox),
    };
    spawned.map(ActorRef::new).map_err(|(_, why)| why)
}

/// The first message of an actor.
pub(crate) struct Start;

impl<A: Actor> Envelope<ActorState<A>> for Start {
    #[inline(always)]
    fn run(self, state: &mut ActorState<A>, cx: &mut Cx<ActorState<A>>) {
        state.actor.started(Context::of(cx));
    }

    fn describe() -> (MailKind, &'static str) {
        (MailKind::Start, "start")
    }

    fn bounce(self, _: Undelivered) {}
}
