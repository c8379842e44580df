//! Groups: actors that share a stage, and migrate to other theaters together.
//!
//! Within a system a group is the number of a stage. In a theater it also has a name, which its members receive at
//! their start and keep. References to members carry the name to other theaters, so that all their stubs are on one
//! stage in each theater.
//!
//! The theater records the members; it learns of a member [before any other actor knows the member](Joined). A system
//! without a theater records none.

use std::any::type_name;

use playhouse_executor::{Cx, Envelope, MailKind, SystemCore, Undelivered};
use serde::{Deserialize, Serialize};

use crate::actor::of_system::migration_host_of;
use crate::actor::{Actor, ActorId, ActorState};

/// The name of a group, the same in all theaters.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct GroupName {
    /// The theater that made the group, with its incarnation.
    pub theater: u64,
    /// The number of the group among those of its theater.
    pub number: u64,
}

/// Actors that share a stage: made by [`Group::new`] or [`Context::group`](crate::Context::group).
///
/// In a theater they also migrate together. If one of them migrates, all members in the same theater migrate with it,
/// and share a stage in the target. Either all migrate, or none does. An actor belongs to the group of its start until
/// it ends.
///
/// The value names the group, not its location. Actors started with it start in this theater, on the one stage that the
/// group has in it. After the group has migrated, such an actor is a member left behind: it follows only when it is
/// sent to the target itself. Let a member start new members, in [`Context::group`](crate::Context::group).
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
/// let group = Group::new(&system);
/// let together = SpawnOptions::new().placement(Placement::Group(group));
/// let first = system.spawn_with(together.clone(), Counter::default());
/// let second = system.spawn_with(together, Counter::default()); // on the same stage
/// # assert_ne!(first, second);
/// # system.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Group {
    pub(crate) stage: u16,
    pub(crate) name: Option<GroupName>,
}

impl Group {
    /// Returns the group with this name and this stage.
    #[doc(hidden)]
    pub fn of(name: GroupName, stage: u16) -> Group {
        Group { stage, name: Some(name) }
    }

    /// Returns the name of the group, or `None` if it is only a stage.
    #[doc(hidden)]
    pub fn name(self) -> Option<GroupName> {
        self.name
    }

    /// Returns the stage of the group in this system.
    pub(crate) fn stage_in(self, system: &SystemCore) -> u16 {
        let known = self.name.and_then(|name| Some(migration_host_of(system)?.stage_of(name, self.stage)));
        known.unwrap_or(self.stage)
    }
}

/// The first message of an actor in a group: the actor is a member before it can send its own reference. Its spawner,
/// which may be ahead of it, records the membership, too.
pub(crate) struct Joined<A: Actor> {
    group: GroupName,
    /// Boxed, because each type of actors has several first messages, and each of them would be compiled twice.
    start: Box<dyn First<A>>,
}

impl<A: Actor> Joined<A> {
    pub(crate) fn new(group: GroupName, start: impl Envelope<ActorState<A>>) -> Joined<A> {
        Joined { group, start: Box::new(start) }
    }
}

/// A first message of any type.
trait First<A: Actor>: Send {
    fn run(self: Box<Self>, state: &mut ActorState<A>, cx: &mut Cx<ActorState<A>>);
    fn bounce(self: Box<Self>, why: Undelivered);
}

impl<A: Actor, E: Envelope<ActorState<A>>> First<A> for E {
    fn run(self: Box<Self>, state: &mut ActorState<A>, cx: &mut Cx<ActorState<A>>) {
        Envelope::run(*self, state, cx);
    }

    fn bounce(self: Box<Self>, why: Undelivered) {
        Envelope::bounce(*self, why);
    }
}

/// Records `actor` as a member of the group.
pub(crate) fn join<A: Actor>(system: &SystemCore, group: GroupName, actor: ActorId) {
    if let Some(migration_host) = migration_host_of(system) {
        migration_host.join(group, actor, type_name::<A>());
    }
}

impl<A: Actor> Envelope<ActorState<A>> for Joined<A> {
    fn run(self, state: &mut ActorState<A>, cx: &mut Cx<ActorState<A>>) {
        let id = ActorId(cx.address().raw());
        playhouse_executor::with_current_system(|system| {
            join::<A>(system.expect("an actor starts on a worker"), self.group, id);
        });
        self.start.run(state, cx);
    }

    fn describe() -> (MailKind, &'static str) {
        (MailKind::Start, "start")
    }

    fn bounce(self, why: Undelivered) {
        self.start.bounce(why);
    }
}
