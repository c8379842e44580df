//! Routers: each message goes to one of several actors of a type.
//!
//! A [`Router`] is a cloned handle, not an actor. [`pick`](Router::pick) chooses a member, and the user sends to that
//! member directly. Asks, deadlines, the order of messages and overload are those of any reference. The router
//! watches its members, and removes those that end. A [`Pool`] is a router that starts its members itself.
//!
//! # Examples
//!
//! ```
//! use playhouse::prelude::*;
//! use playhouse::router::{Pool, Routing};
//!
//! struct Square;
//!
//! #[actor]
//! impl Square {
//!     #[message]
//!     fn of(&self, n: u64) -> u64 { n * n }
//! }
//!
//! let system = System::start()?;
//! let pool = Pool::start(&system, Routing::LeastLoaded, 4, || Square);
//! assert_eq!(pool.pick()?.ask(Of(7)).wait()?, 49);
//! # system.shutdown()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

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

/// A strategy of [`Router::pick`]. [`Router::pick_for`] chooses by a key instead.
///
/// # Examples
///
/// ```
/// use playhouse::prelude::*;
/// use playhouse::router::{Router, Routing};
///
/// struct Idle;
/// #[actor]
/// impl Idle {}
///
/// let system = System::start()?;
/// let router = Router::new(&system, Routing::RoundRobin);
/// let (first, second) = (system.spawn(Idle), system.spawn(Idle));
/// router.add(first);
/// router.add(second);
/// assert_ne!(*router.pick()?, *router.pick()?);
/// # system.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Routing {
    /// Members in turn.
    RoundRobin,
    /// A random member. A simulated system draws it from the seed.
    Random,
    /// The member with the least load, and among equal loads the members in turn.
    ///
    /// The load of a member is the number of picks whose messages are not handled yet. A pick counts until the
    /// [`Picked`] is dropped and all messages sent before that are handled. Each pick costs one small message.
    ///
    /// Messages that are sent past the router are not counted. For a member in another theater, only asks that are
    /// waited for are load, because messages on their way are not counted.
    LeastLoaded,
}

/// A handle that chooses one of its members for each message: see [the module](self). Clones are handles to the same
/// router.
///
/// # Examples
///
///
/// ```
/// use playhouse::prelude::*;
/// use playhouse::router::{Router, Routing};
///
/// #[derive(Default)]
/// struct Counter(u64);
///
/// #[actor]
/// impl Counter {
///     #[message(derive(Clone))]
///     fn count(&mut self) -> u64 {
///         self.0 += 1;
///         self.0
///     }
/// }
///
/// let system = System::start()?;
/// let router = Router::new(&system, Routing::RoundRobin);
/// for _ in 0..3 {
///     router.add(system.spawn(Counter::default()));
/// }
/// router.pick()?.tell(Count);
/// let one = router.pick_for("customer 7")?.ask(Count).wait()?; // the same member for the same key
/// assert_eq!(router.pick_for("customer 7")?.ask(Count).wait()?, one + 1);
/// assert_eq!(router.broadcast(Count)?, 3);
/// let fastest = router.ask_all(Count)?.first(1).wait()?;
/// assert_eq!(fastest.len(), 1);
/// # system.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(alias = "group")]
#[doc(alias = "RouterActor")]
#[doc(alias = "scatter_gather")]
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
    /// Creates a router without members. An actor in `system` watches the members. The router ends with its last
    /// handle, and the members live on.
    ///
    /// # Panics
    /// The system was shut down.
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

    /// Adds `actor` to the members, unless it is one. The actor may live in another theater. It is removed when it
    /// ends.
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

    /// Removes a member, which lives on. Returns false if `actor` is no member.
    pub fn remove(&self, actor: ActorRef<A>) -> bool {
        let removed = self.state.remove(actor.id()).is_some();
        if removed {
            self.state.watcher.tell_urgent(WatchMember { member: actor, watch: false });
        }
        removed
    }

    /// Returns the members that are not known to have ended, in the order in which they were added.
    pub fn members(&self) -> Vec<ActorRef<A>> {
        self.state.read().alive().map(|member| member.actor).collect()
    }

    /// Chooses a member by the [`Routing`]. Members that are known to have ended are skipped.
    ///
    /// # Errors
    /// The router has no living member.
    #[doc(alias = "route")]
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

    /// Chooses the member for `key`: equal keys have the same member while the members stay the same.
    ///
    /// A member that is added or removed changes only the keys that it gets or had. This is consistent hashing by the
    /// highest random weight (Thaler and Ravishankar 1998). The successor of a [`Pool`]'s member has the same keys.
    ///
    /// The time is proportional to the number of members.
    ///
    /// # Errors
    /// The router has no living member.
    #[doc(alias = "consistent_hashing")]
    #[doc(alias = "ConsistentHashingRouting")]
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

    /// Sends a clone of `message` to every member, as [`ActorRef::tell`] does. Returns the number of members.
    ///
    /// # Errors
    /// The router has no living member.
    #[doc(alias = "Broadcast")]
    #[doc(alias = "cast")]
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

    /// Asks every member with a clone of `message`. The result waits for all answers, or (scatter-gather) for the
    /// first that arrive.
    ///
    /// # Errors
    /// The router has no living member.
    #[doc(alias = "ScatterGatherFirstCompleted")]
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
