//! Where actors are put.

use std::fmt;
use std::sync::Arc;

use playhouse_executor::{StageChoice, SystemCore};

use crate::actor::{Actor, Life};
use crate::actor_ref::ActorRef;
use crate::mail::Start;
use crate::system::System;

/// Where an actor is put.
///
/// Actors of one stage are run one after the other; stages are what idle workers steal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Placement {
    /// On a stage of the worker that runs the spawning actor, by turns; from outside as `Spread`. The default.
    #[default]
    Near,
    /// On any stage of the system, by turns.
    Spread,
    /// With the other actors of a group, on one stage: for actors that talk much with each other.
    Group(Group),
    /// On the stage with this number.
    Stage(u16),
    /// On a thread of its own: for handlers that block. At most 64 at one time per system.
    Dedicated,
}

/// Actors that share a stage: made by [`Group::new`] or [`Context::group`](crate::Context::group).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Group {
    pub(crate) stage: u16,
}

impl Group {
    /// A new group; groups are spread over the stages by turns.
    pub fn new(system: &System) -> Group {
        Group { stage: system.core().next_stage() }
    }
}

/// How an actor is started.
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct SpawnOptions {
    pub(crate) placement: Placement,
    pub(crate) name: Option<String>,
}

impl SpawnOptions {
    /// The defaults: near the spawner, without a name.
    pub fn new() -> SpawnOptions {
        SpawnOptions::default()
    }

    /// Where to put it.
    pub fn placement(mut self, placement: Placement) -> Self {
        self.placement = placement;
        self
    }

    /// What to call it in reports.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }
}

/// An actor could not be started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpawnError(String);

impl fmt::Display for SpawnError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the actor could not be started: {}", self.0)
    }
}

impl std::error::Error for SpawnError {}

/// The first message of an actor with a name.
struct Named(String);

impl<A: Actor> playhouse_executor::Envelope<Life<A>> for Named {
    fn run(self, life: &mut Life<A>, mut cx: playhouse_executor::Cx<Life<A>>) -> playhouse_executor::Cx<Life<A>> {
        cx.extra().name = Some(self.0);
        Start.run(life, cx)
    }

    fn bounce(self, _: playhouse_executor::Undelivered) {}
}

pub(crate) fn spawn<A: Actor>(
    system: &Arc<SystemCore>,
    options: SpawnOptions,
    actor: A,
) -> Result<ActorRef<A>, SpawnError> {
    let choice = match options.placement {
        Placement::Near => StageChoice::Near,
        Placement::Spread => StageChoice::Spread,
        Placement::Group(Group { stage }) | Placement::Stage(stage) => StageChoice::At(stage),
        Placement::Dedicated => StageChoice::Dedicated,
    };
    let life = Life { actor };
    let spawned = match options.name {
        None => system.spawn(life, choice, Start),
        Some(name) => system.spawn(life, choice, Named(name)),
    };
    spawned.map(ActorRef::new).map_err(|(_, why)| SpawnError(why))
}

/// Starts a supervised child near its supervisor.
pub(crate) fn spawn_child<A: Actor>(
    system: &Arc<SystemCore>,
    actor: A,
    start: impl playhouse_executor::Envelope<Life<A>>,
) -> Result<ActorRef<A>, SpawnError> {
    system.spawn(Life { actor }, StageChoice::Near, start).map(ActorRef::new).map_err(|(_, why)| SpawnError(why))
}
