//! Routers: one of several actors of a type takes each message.
//!
//! A [`Router`] is a handle to be cloned, not an actor. [`pick`](Router::pick) chooses a member, to which its user sends
//! directly: nothing stands between, so asks, deadlines, the order of messages and the slowing down of senders are those of
//! any reference. Members are watched, and leave when they end. A [`Pool`] is a router that starts its members itself.

mod error;
mod members;
mod picked;
mod pool;
mod replace;

use std::fmt;
use std::hash::{BuildHasher, DefaultHasher, Hash, Hasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, RwLock, Weak};
use std::time::Duration;

use playhouse_actor::{Actor, ActorRef, HandledBy, Placement, SpawnOptions, System, Uncounted};
use playhouse_executor::Choices;

pub use self::error::NoMember;
use self::members::{Member, Members, RouterState, Slot};
pub use self::picked::Picked;
pub use self::pool::Pool;
use self::replace::RouterMembership;
use crate::asks::{AskMany, ask_many};
use crate::member_watcher::{MemberWatcher, WatchMember};

/// How [`Router::pick`] chooses. [`Router::pick_for`] goes by a key instead, whatever is said here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Routing {
    /// One after the other.
    RoundRobin,
    /// Any; in a simulated system, drawn from its seed.
    Random,
    /// Who has the least load; among equals, one after the other.
    ///
    /// Load is what was sent through this router and is not handled yet: a member has one more from when it is picked until
    /// the [`Picked`] is dropped and all that was sent to it before that is handled. It costs one small message for each
    /// pick. What others send to a member is not counted. Of a member in another theater, what is on its way counts no more:
    /// there only asks that are waited for are load.
    LeastLoaded,
}

/// Chooses one of its members for each message: see [the module](self). Clones are handles to the same router.
///
/// # Examples
///
/// `router.pick()?.tell(message)`, `router.pick()?.ask(message).await`, `router.pick_for(&customer)?.tell(message)`,
/// `router.broadcast(message)?`, `router.ask_all(message)?.first(1).await`.
pub struct Router<A: Actor> {
    state: Arc<RouterState<A>>,
}

impl<A: Actor> Clone for Router<A> {
    fn clone(&self) -> Self {
        Router { state: Arc::clone(&self.state) }
    }
}

impl<A: Actor> fmt::Debug for Router<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Router").field("routing", &self.state.routing).field("members", &self.members()).finish()
    }
}

impl<A: Actor> Router<A> {
    /// A router without members. An actor in `system` watches them. It ends with the last handle to the router; members live
    /// on.
    ///
    /// # Panics
    /// If the system was shut down.
    pub fn new(system: &System, routing: Routing) -> Router<A> {
        Router::build(system, routing, None)
    }

    fn build(system: &System, routing: Routing, factory: Option<Box<dyn Fn() -> A + Send + Sync>>) -> Router<A> {
        let seed = system.core().config().simulated.unwrap_or_else(|| RandomState::new().hash_one(0));
        let state = Arc::new_cyclic(|router: &Weak<RouterState<A>>| {
            let membership = RouterMembership { router: Weak::clone(router), recent_ends: 0, last_end: Duration::ZERO };
            RouterState {
                system: Uncounted::of(system),
                routing,
                seed,
                next: AtomicU64::new(0),
                members: RwLock::new(Members { list: Vec::new(), added: 0, size: 0 }),
                watcher: system.spawn_with(SpawnOptions::new().placement(Placement::Spread), MemberWatcher(membership)),
                factory,
            }
        });
        Router { state }
    }

    /// Makes `actor` a member, if it is none yet; it may live in another theater. It leaves when it ends.
    pub fn add(&self, actor: ActorRef<A>) {
        let mut members = self.state.write();
        if members.list.iter().any(|member| member.actor == actor) {
            return;
        }
        let slot = Slot::Added(members.added);
        members.added += 1;
        members.list.push(Member { actor, slot, load: Arc::default() });
        drop(members);
        self.state.watcher.tell_urgent(WatchMember { member: actor, watch: true });
    }

    /// Takes a member out, which lives on. False if it is none.
    pub fn remove(&self, actor: ActorRef<A>) -> bool {
        let removed = self.state.remove(actor.id()).is_some();
        if removed {
            self.state.watcher.tell_urgent(WatchMember { member: actor, watch: false });
        }
        removed
    }

    /// The members that are not known to have ended, in the order in which they came.
    pub fn members(&self) -> Vec<ActorRef<A>> {
        self.state.read().alive().map(|member| member.actor).collect()
    }

    /// Chooses a member, as the [`Routing`] says. Members that are known to have ended are passed over.
    ///
    /// # Errors
    /// There is no member.
    pub fn pick(&self) -> Result<Picked<A>, NoMember> {
        let RouterState { routing, seed, next, .. } = &*self.state;
        let next = next.fetch_add(1, Ordering::Relaxed);
        let members = self.state.read();
        let at = match routing {
            Routing::Random => Choices::new(seed.wrapping_add(next)).next(),
            Routing::RoundRobin | Routing::LeastLoaded => next,
        };
        let (before, from) = members.list.split_at((at % members.list.len().max(1) as u64) as usize);
        let mut around = from.iter().chain(before).filter(|member| !member.actor.is_stopped());
        let picked = match routing {
            Routing::LeastLoaded => around.min_by_key(|member| member.load.load(Ordering::Relaxed)),
            Routing::RoundRobin | Routing::Random => around.next(),
        };
        picked.map(|member| self.state.picked(member)).ok_or_else(|| self.state.no_member(&members))
    }

    /// The member for `key`: the same for equal keys, while the members stay the same. When one comes or goes, only the keys
    /// that it gets or had go to another one (consistent hashing, by the highest random weight: Thaler and Ravishankar 1998).
    /// The successor of a [`Pool`]'s member has the same keys.
    ///
    /// Takes time in proportion to the number of members.
    ///
    /// # Errors
    /// There is no member.
    pub fn pick_for(&self, key: &(impl Hash + ?Sized)) -> Result<Picked<A>, NoMember> {
        let mut hasher = DefaultHasher::new();
        key.hash(&mut hasher);
        let key = hasher.finish();
        let weight = |member: &&Member<A>| {
            let mut hasher = DefaultHasher::new();
            (key, member.slot).hash(&mut hasher);
            hasher.finish()
        };
        let members = self.state.read();
        members
            .alive()
            .max_by_key(weight)
            .map(|member| self.state.picked(member))
            .ok_or_else(|| self.state.no_member(&members))
    }

    /// Sends a clone of `message` to every member, as [`ActorRef::tell`] does. Returns how many there are.
    ///
    /// # Errors
    /// There is no member.
    pub fn broadcast<M, Mode>(&self, message: M) -> Result<usize, NoMember>
    where
        M: HandledBy<A, Mode> + Clone,
    {
        let members = self.some_members()?;
        let (last, others) = members.split_last().expect("there are some");
        for member in others {
            member.tell(message.clone());
        }
        last.tell(message);
        Ok(members.len())
    }

    /// Asks every member with a clone of `message`: for all answers, or (scatter, gather first) the first that come.
    ///
    /// # Errors
    /// There is no member.
    pub fn ask_all<M, Mode>(&self, message: M) -> Result<AskMany<A, M>, NoMember>
    where
        M: HandledBy<A, Mode> + Clone,
    {
        Ok(ask_many(self.some_members()?, message))
    }

    fn some_members(&self) -> Result<Vec<ActorRef<A>>, NoMember> {
        let members = self.members();
        if members.is_empty() { Err(self.state.no_member(&self.state.read())) } else { Ok(members) }
    }
}
