//! Groups: actors that stay on one stage, and go to other theaters together.
//!
//! Within a system a group is the number of a stage. In a theater it has a name besides, which its members are started with
//! and keep: references to them tell it to other theaters, so that there, too, all their places are on one stage. Who is a
//! member is known to the theater, told [before anybody hears of the actor](Joined); a system without one keeps no books.

use std::any::type_name;

use playhouse_executor::{Cx, Envelope, MailKind, SystemCore, Undelivered};
use serde::{Deserialize, Serialize};

use crate::actor::{Actor, ActorId, ActorState};
use crate::system::System;
use crate::system::services::migration_host_of;

/// What a group is called by all theaters.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct GroupName {
    /// The theater that it was made in, in which of its lives.
    pub theater: u64,
    /// The how manyth there.
    pub number: u64,
}

/// Actors that share a stage: made by [`Group::new`] or [`Context::group`](crate::Context::group).
///
/// In a theater they also move together: where one of them is taken to another theater, all that live beside it are, and there
/// they share a stage again. Either all go, or none does. An actor belongs to the group that it was started in for all its
/// life.
///
/// The value says which group, not where it is. Who is started with it is started here, on the one stage that the group has in
/// this theater; so after the group has left, it is a member that was left behind, and goes after the others only when it is
/// sent there. What should be with the group is started by a member of it, in
/// [`Context::group`](crate::Context::group).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Group {
    pub(crate) stage: u16,
    pub(crate) name: Option<GroupName>,
}

impl Group {
    /// A new group; groups are spread over the stages by turns.
    pub fn new(system: &System) -> Group {
        let name = migration_host_of(system.core()).and_then(|migration_host| migration_host.new_group());
        Group { stage: system.core().next_stage(), name }
    }

    /// The group around an actor on this stage.
    pub(crate) fn around(actor: ActorId, stage: u16, system: &System) -> Group {
        Group {
            stage,
            name: migration_host_of(system.core()).and_then(|migration_host| migration_host.group_of(actor)),
        }
    }

    /// The group with this name, which has this stage.
    #[doc(hidden)]
    pub fn of(name: GroupName, stage: u16) -> Group {
        Group { stage, name: Some(name) }
    }

    /// What it is called by all theaters: nothing where it is only a stage.
    #[doc(hidden)]
    pub fn name(self) -> Option<GroupName> {
        self.name
    }

    /// Its stage in this system.
    pub(crate) fn stage_in(self, system: &SystemCore) -> u16 {
        let known = self.name.and_then(|name| Some(migration_host_of(system)?.stage_of(name, self.stage)));
        known.unwrap_or(self.stage)
    }
}

/// The first message of an actor in a group: it is a member before it can tell anybody of itself. Its spawner, who may be ahead
/// of it, makes it one too.
pub(crate) struct Joined<A: Actor> {
    group: GroupName,
    /// Boxed: there are several first messages to each type of actors, of which each would be compiled twice.
    start: Box<dyn First<A>>,
}

impl<A: Actor> Joined<A> {
    pub(crate) fn new(group: GroupName, start: impl Envelope<ActorState<A>>) -> Joined<A> {
        Joined { group, start: Box::new(start) }
    }
}

/// A first message of any type.
trait First<A: Actor>: Send {
    fn run(self: Box<Self>, incarnation: &mut ActorState<A>, cx: &mut Cx<ActorState<A>>);
    fn bounce(self: Box<Self>, why: Undelivered);
}

impl<A: Actor, E: Envelope<ActorState<A>>> First<A> for E {
    fn run(self: Box<Self>, incarnation: &mut ActorState<A>, cx: &mut Cx<ActorState<A>>) {
        Envelope::run(*self, incarnation, cx);
    }

    fn bounce(self: Box<Self>, why: Undelivered) {
        Envelope::bounce(*self, why);
    }
}

/// `actor` is a member of the group.
pub(crate) fn join<A: Actor>(system: &SystemCore, group: GroupName, actor: ActorId) {
    if let Some(migration_host) = migration_host_of(system) {
        migration_host.join(group, actor, type_name::<A>());
    }
}

impl<A: Actor> Envelope<ActorState<A>> for Joined<A> {
    fn run(self, incarnation: &mut ActorState<A>, cx: &mut Cx<ActorState<A>>) {
        let id = ActorId(cx.address().raw());
        playhouse_executor::with_current_system(|system| {
            join::<A>(system.expect("an actor starts on a worker"), self.group, id);
        });
        self.start.run(incarnation, cx);
    }

    fn describe() -> (MailKind, &'static str) {
        (MailKind::Start, "start")
    }

    fn bounce(self, why: Undelivered) {
        self.start.bounce(why);
    }
}
