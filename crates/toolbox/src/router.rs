//! Routers: one of several actors of a type takes each message.
//!
//! A [`Router`] is a handle to be cloned, not an actor. [`pick`](Router::pick) chooses a member, to which its user sends
//! directly: nothing stands between, so asks, deadlines, the order of messages and the slowing down of senders are those of
//! any reference. Members are watched, and leave when they end. A [`Pool`] is a router that starts its members itself.

use std::any::type_name;
use std::fmt;
use std::hash::{BuildHasher, DefaultHasher, Hash, Hasher, RandomState};
use std::ops::Deref;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, Weak};
use std::time::Duration;

use playhouse_actor::{
    Actor, ActorId, ActorRef, Context, HandledBy, Placement, SpawnOptions, StopReason, System, Terminated, Uncounted,
};
use playhouse_executor::Choices;

use crate::asks::{AskMany, ask_many};
use crate::keeper::{Keeper, Observe, Table};

/// Before a member of a [`Pool`] is replaced that has ended within [`CALM`] of another one: doubled for each in a row.
const REPLACE_AFTER: Duration = Duration::from_millis(10);
const REPLACE_AFTER_MAX: Duration = Duration::from_secs(1);
const CALM: Duration = Duration::from_secs(2);

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
    inner: Arc<Inner<A>>,
}

struct Inner<A: Actor> {
    system: Uncounted,
    routing: Routing,
    seed: u64,
    turn: AtomicU64,
    members: RwLock<Members<A>>,
    keeper: ActorRef<Keeper<Roll<A>>>,
    factory: Option<Box<dyn Fn() -> A + Send + Sync>>,
}

struct Members<A: Actor> {
    list: Vec<Member<A>>,
    /// How many were added from outside, ever.
    added: u64,
    /// How many the router is to keep by itself.
    size: usize,
}

struct Member<A: Actor> {
    actor: ActorRef<A>,
    slot: Slot,
    load: Arc<AtomicUsize>,
}

/// What a member is known by for keys: of a pool's member, its successors have the same.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Slot {
    Own(usize),
    Added(u64),
}

impl<A: Actor> Clone for Router<A> {
    fn clone(&self) -> Self {
        Router { inner: Arc::clone(&self.inner) }
    }
}

impl<A: Actor> fmt::Debug for Router<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Router").field("routing", &self.inner.routing).field("members", &self.members()).finish()
    }
}

/// A router has no member that lives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoMember {
    actor: &'static str,
    had: u64,
    /// Of a pool.
    size: Option<usize>,
}

impl fmt::Display for NoMember {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let NoMember { actor, had, size } = self;
        let actor = actor.split('<').next().and_then(|path| path.rsplit("::").next()).unwrap_or(actor);
        match (size, had) {
            (None, 0) => write!(f, "the router has no {actor} to send to: none was added yet"),
            (None, had) => write!(
                f,
                "the router has no {actor} to send to: of the {had} that were added, all have ended or were removed"
            ),
            (Some(0), _) => write!(f, "the pool has no {actor} to send to: it was resized to 0"),
            (Some(size), _) => {
                write!(f, "the pool has no {actor} to send to: all {size} have ended, and are being replaced")
            }
        }
    }
}

impl std::error::Error for NoMember {}

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
        let inner = Arc::new_cyclic(|router: &Weak<Inner<A>>| {
            let roll = Roll { router: Weak::clone(router), ends: 0, last_end: Duration::ZERO };
            Inner {
                system: Uncounted::of(system),
                routing,
                seed,
                turn: AtomicU64::new(0),
                members: RwLock::new(Members { list: Vec::new(), added: 0, size: 0 }),
                keeper: system.spawn_with(SpawnOptions::new().placement(Placement::Spread), Keeper(roll)),
                factory,
            }
        });
        Router { inner }
    }

    /// Makes `actor` a member, if it is none yet; it may live in another theater. It leaves when it ends.
    pub fn add(&self, actor: ActorRef<A>) {
        let mut members = self.inner.write();
        if members.list.iter().any(|member| member.actor == actor) {
            return;
        }
        let slot = Slot::Added(members.added);
        members.added += 1;
        members.list.push(Member { actor, slot, load: Arc::default() });
        drop(members);
        self.inner.keeper.tell_urgent(Observe { who: actor, watch: true });
    }

    /// Takes a member out, which lives on. False if it is none.
    pub fn remove(&self, actor: ActorRef<A>) -> bool {
        let removed = self.inner.take_out(actor.id()).is_some();
        if removed {
            self.inner.keeper.tell_urgent(Observe { who: actor, watch: false });
        }
        removed
    }

    /// The members that are not known to have ended, in the order in which they came.
    pub fn members(&self) -> Vec<ActorRef<A>> {
        self.inner.read().alive().map(|member| member.actor).collect()
    }

    /// Chooses a member, as the [`Routing`] says. Members that are known to have ended are passed over.
    ///
    /// # Errors
    /// There is no member.
    pub fn pick(&self) -> Result<Picked<A>, NoMember> {
        let Inner { routing, seed, turn, .. } = &*self.inner;
        let turn = turn.fetch_add(1, Ordering::Relaxed);
        let members = self.inner.read();
        let at = match routing {
            Routing::Random => Choices::new(seed.wrapping_add(turn)).next(),
            Routing::RoundRobin | Routing::LeastLoaded => turn,
        };
        let (before, from) = members.list.split_at((at % members.list.len().max(1) as u64) as usize);
        let mut around = from.iter().chain(before).filter(|member| !member.actor.is_stopped());
        let picked = match routing {
            Routing::LeastLoaded => around.min_by_key(|member| member.load.load(Ordering::Relaxed)),
            Routing::RoundRobin | Routing::Random => around.next(),
        };
        picked.map(|member| self.inner.picked(member)).ok_or_else(|| self.inner.none(&members))
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
        let members = self.inner.read();
        members
            .alive()
            .max_by_key(weight)
            .map(|member| self.inner.picked(member))
            .ok_or_else(|| self.inner.none(&members))
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
        if members.is_empty() { Err(self.inner.none(&self.inner.read())) } else { Ok(members) }
    }
}

impl<A: Actor> Members<A> {
    fn alive(&self) -> impl Iterator<Item = &Member<A>> {
        self.list.iter().filter(|member| !member.actor.is_stopped())
    }
}

impl<A: Actor> Inner<A> {
    fn none(&self, members: &Members<A>) -> NoMember {
        NoMember { actor: type_name::<A>(), had: members.added, size: self.factory.is_some().then_some(members.size) }
    }

    fn read(&self) -> RwLockReadGuard<'_, Members<A>> {
        self.members.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Members<A>> {
        self.members.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn picked(&self, member: &Member<A>) -> Picked<A> {
        let counts = self.routing == Routing::LeastLoaded;
        Picked { actor: member.actor, load: counts.then(|| Load::on(&member.load)) }
    }

    fn take_out(&self, who: ActorId) -> Option<Slot> {
        let mut members = self.write();
        let at = members.list.iter().position(|member| member.actor.id() == who)?;
        Some(members.list.remove(at).slot)
    }

    /// Starts the member of a pool for `slot`, if one is wanted. False: the factory has panicked.
    fn fill(&self, slot: usize) -> bool {
        let Some(factory) = &self.factory else { return true };
        if slot >= self.read().size {
            return true;
        }
        // No code of the user's is run under the lock.
        let Ok(state) = catch_unwind(AssertUnwindSafe(factory)) else { return false };
        let spread = SpawnOptions::new().placement(Placement::Spread);
        // After the end of the system nobody is missed.
        let Ok(actor) = self.system.system().try_spawn_with(spread, state) else { return true };
        let mut members = self.write();
        let taken = members.list.iter().any(|member| member.slot == Slot::Own(slot));
        if taken || slot >= members.size {
            drop(members);
            actor.stop();
            return true;
        }
        members.list.push(Member { actor, slot: Slot::Own(slot), load: Arc::default() });
        drop(members);
        self.keeper.tell_urgent(Observe { who: actor, watch: true });
        true
    }

    fn resize(&self, size: usize) {
        let (missing, surplus) = {
            let mut members = self.write();
            let missing = members.size..size.max(members.size);
            members.size = size;
            let is_surplus = |member: &mut Member<A>| matches!(member.slot, Slot::Own(slot) if slot >= size);
            (missing, members.list.extract_if(.., is_surplus).map(|member| member.actor).collect::<Vec<_>>())
        };
        for slot in missing {
            assert!(self.fill(slot), "the pool's function that makes a {} has panicked", type_name::<A>());
        }
        for actor in surplus {
            actor.drain();
        }
    }
}

impl<A: Actor> Drop for Inner<A> {
    fn drop(&mut self) {
        self.keeper.drain();
        self.resize(0);
    }
}

/// What the keeper of a router does.
struct Roll<A: Actor> {
    router: Weak<Inner<A>>,
    /// How many have ended one soon after the other.
    ends: u32,
    last_end: Duration,
}

impl<A: Actor> Roll<A> {
    fn replace_later(&mut self, slot: usize, ctx: &mut Context<Keeper<Self>>) {
        let now = ctx.now();
        self.ends = if now.saturating_sub(self.last_end) < CALM { self.ends.saturating_add(1) } else { 0 };
        self.last_end = now;
        let delay = match self.ends {
            0 => Duration::ZERO,
            ends => REPLACE_AFTER.saturating_mul(1 << (ends - 1).min(10)).min(REPLACE_AFTER_MAX),
        };
        Keeper::remind(ctx, delay, slot);
    }
}

impl<A: Actor> Table for Roll<A> {
    fn ended(&mut self, down: &Terminated, ctx: &mut Context<Keeper<Self>>) {
        let Some(router) = self.router.upgrade() else { return };
        if let Some(Slot::Own(slot)) = router.take_out(down.who)
            && down.reason != StopReason::Shutdown
        {
            self.replace_later(slot, ctx);
        }
    }

    fn due(&mut self, slot: usize, ctx: &mut Context<Keeper<Self>>) {
        let Some(router) = self.router.upgrade() else { return };
        if !router.fill(slot) {
            self.replace_later(slot, ctx);
        }
    }
}

/// A member that a router has chosen: used like its reference, in the same statement or for as long as it is needed.
///
/// Under [`Routing::LeastLoaded`], the member counts as loaded until this is dropped and what was sent to it before is handled.
#[must_use = "nothing is sent by picking a member"]
pub struct Picked<A: Actor> {
    actor: ActorRef<A>,
    load: Option<Load>,
}

impl<A: Actor> Deref for Picked<A> {
    type Target = ActorRef<A>;

    fn deref(&self) -> &ActorRef<A> {
        &self.actor
    }
}

impl<A: Actor> fmt::Debug for Picked<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Picked({:?})", self.actor)
    }
}

impl<A: Actor> Drop for Picked<A> {
    fn drop(&mut self) {
        if let Some(load) = self.load.take() {
            self.actor.mark(load);
        }
    }
}

/// One of the things that load a member.
struct Load(Arc<AtomicUsize>);

impl Load {
    fn on(load: &Arc<AtomicUsize>) -> Load {
        load.fetch_add(1, Ordering::Relaxed);
        Load(Arc::clone(load))
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A [`Router`] that starts its members, spread over the stages, and replaces those that end.
///
/// A member that ends, crashes too, is replaced by one with a new state: at once, or where several end within two seconds
/// after a pause that grows from 10 ms to 1 s. What was queued for it is dead letters. Where members are to keep their mailbox
/// over a crash, have them started by a [`Supervisor`](playhouse_actor::Supervisor), and add them to a router.
///
/// When the last handle to its router is dropped, members are drained. (A member that has a handle in its state keeps it.)
pub struct Pool<A: Actor> {
    router: Router<A>,
}

impl<A: Actor> Pool<A> {
    /// Starts `size` members that `factory` makes.
    ///
    /// # Panics
    /// If the system was shut down, or `factory` panics.
    pub fn start(
        system: &System,
        routing: Routing,
        size: usize,
        factory: impl Fn() -> A + Send + Sync + 'static,
    ) -> Pool<A> {
        let router = Router::build(system, routing, Some(Box::new(factory)));
        router.inner.resize(size);
        Pool { router }
    }

    /// Changes how many members there are: starts some, or takes out those that came last and drains them.
    ///
    /// # Panics
    /// If the factory panics.
    pub fn resize(&self, size: usize) {
        self.router.inner.resize(size);
    }
}

impl<A: Actor> Deref for Pool<A> {
    type Target = Router<A>;

    fn deref(&self) -> &Router<A> {
        &self.router
    }
}

impl<A: Actor> Clone for Pool<A> {
    fn clone(&self) -> Self {
        Pool { router: self.router.clone() }
    }
}

impl<A: Actor> fmt::Debug for Pool<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.router.fmt(f)
    }
}
