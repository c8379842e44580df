//! The state that handles to a router share, and its members.

use std::any::type_name;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, AtomicUsize};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use playhouse_actor::{Actor, ActorId, ActorRef, Placement, SpawnOptions, Uncounted};

use super::Routing;
use super::error::NoMember;
use super::picked::{Load, Picked};
use super::replace::RouterMembership;
use crate::member_watcher::{MemberWatcher, WatchMember};

pub(super) struct Members<A: Actor> {
    pub(super) list: Vec<Member<A>>,
    /// The number of members that were ever added by [`Router::add`](super::Router::add).
    pub(super) added: u64,
    /// The number of members that the pool keeps alive.
    pub(super) size: usize,
}

pub(super) struct Member<A: Actor> {
    pub(super) actor: ActorRef<A>,
    pub(super) slot: Slot,
    pub(super) load: Arc<AtomicUsize>,
}

/// The identity of a member for keys. The successor of a pool's member keeps the slot.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Slot {
    Pooled(usize),
    Added(u64),
}

pub(super) struct RouterState<A: Actor> {
    pub(super) system: Uncounted,
    pub(super) routing: Routing,
    pub(super) seed: u64,
    pub(super) next: AtomicU64,
    pub(super) members: RwLock<Members<A>>,
    pub(super) watcher: ActorRef<MemberWatcher<RouterMembership<A>>>,
    pub(super) factory: Option<Box<dyn Fn() -> A + Send + Sync>>,
}

impl<A: Actor> Members<A> {
    pub(super) fn alive(&self) -> impl Iterator<Item = &Member<A>> {
        self.list.iter().filter(|member| !member.actor.is_stopped())
    }
}

impl<A: Actor> RouterState<A> {
    pub(super) fn no_member(&self, members: &Members<A>) -> NoMember {
        NoMember { actor: type_name::<A>(), had: members.added, size: self.factory.is_some().then_some(members.size) }
    }

    pub(super) fn read(&self) -> RwLockReadGuard<'_, Members<A>> {
        self.members.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn write(&self) -> RwLockWriteGuard<'_, Members<A>> {
        self.members.write().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn picked(&self, member: &Member<A>) -> Picked<A> {
        let counts = self.routing == Routing::LeastLoaded;
        Picked { actor: member.actor, load: counts.then(|| Load::on(&member.load)) }
    }

    pub(super) fn remove(&self, who: ActorId) -> Option<Slot> {
        let mut members = self.write();
        let at = members.list.iter().position(|member| member.actor.id() == who)?;
        Some(members.list.remove(at).slot)
    }

    /// Starts the member of a pool for `slot`, if the pool wants one. Returns false if the factory has panicked.
    pub(super) fn start_member(&self, slot: usize) -> bool {
        let Some(factory) = &self.factory else { return true };
        if slot >= self.read().size {
            return true;
        }
        // The factory is the user's code, so no lock is held while it runs.
        let Ok(state) = catch_unwind(AssertUnwindSafe(factory)) else { return false };
        let spread = SpawnOptions::new().placement(Placement::Spread);
        // A system that has ended needs no member.
        let Ok(actor) = self.system.system().try_spawn_with(spread, state) else { return true };
        let mut members = self.write();
        let taken = members.list.iter().any(|member| member.slot == Slot::Pooled(slot));
        if taken || slot >= members.size {
            drop(members);
            actor.stop();
            return true;
        }
        members.list.push(Member { actor, slot: Slot::Pooled(slot), load: Arc::default() });
        drop(members);
        self.watcher.tell_urgent(WatchMember { member: actor, watch: true });
        true
    }

    pub(super) fn resize(&self, size: usize) {
        let (missing, surplus) = {
            let mut members = self.write();
            let missing = members.size..size.max(members.size);
            members.size = size;
            let is_surplus = |member: &mut Member<A>| matches!(member.slot, Slot::Pooled(slot) if slot >= size);
            (missing, members.list.extract_if(.., is_surplus).map(|member| member.actor).collect::<Vec<_>>())
        };
        for slot in missing {
            assert!(self.start_member(slot), "the pool's factory of {} has panicked", type_name::<A>());
        }
        for actor in surplus {
            actor.drain();
        }
    }
}

impl<A: Actor> Drop for RouterState<A> {
    fn drop(&mut self) {
        self.watcher.drain();
        self.resize(0);
    }
}
