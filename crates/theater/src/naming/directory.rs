//! The directory of a theater: the state that its links share, and the residence of each known actor.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::Duration;

use playhouse_actor::away::TakeAnswer;
use playhouse_actor::{ActorId, Tell, Watcher};
use playhouse_executor::{StubRoute, SystemCore};
use rustc_hash::FxHashMap;

use crate::link::Link;
use crate::link::node::Node;
use crate::lock::lock;
use crate::migration::arrivals::IncomingActors;
use crate::migration::drain::Drains;
use crate::migration::groups::Groups;
use crate::migration::view::{Action, Attempt, Event, Request, Residence, View, Word};
use crate::naming::apart::LostTheaters;
use crate::naming::capability::Capability;
use crate::naming::ends::{Again, Ends};
use crate::naming::known::{KnownActors, Moved};
use crate::naming::locate::Seen;
use crate::naming::names::{Epoch, Host, Key, RemoteActorId};
use crate::proxy::pending::PendingProxy;

/// Most lost theaters that a theater lists. The other end of a lost link gives it up at about the same time; until then at most this number of others
/// are lost.
pub(super) const LOST_MAX: usize = 256;

/// The state that the links of a theater share.
pub(crate) struct Directory {
    pub(crate) core: Arc<SystemCore>,
    /// The incarnation of this theater.
    pub(crate) incarnation: u64,
    pub(super) capability: Capability,
    pub(super) node: Weak<dyn Node>,
    pub(super) known: Mutex<KnownActors>,
    pub(super) links: Mutex<FxHashMap<u64, Weak<Link>>>,
    /// Theaters that links were lost with, the latest first.
    pub(super) lost: Mutex<LostTheaters>,
    /// Theaters that could not be called for their knowledge of actors, the latest first, and the ends of the pauses before the next call.
    pub(super) unreached: Mutex<VecDeque<(Host, Duration)>>,
    /// Routes to actors of theaters without a link, in the order in which they were made. Nothing may have been sent along them.
    pub(super) unlinked: Mutex<VecDeque<Weak<PendingProxy>>>,
    /// Lost theaters that were called because something was sent to their actors, and the ends of the pauses before the next call.
    pub(super) called: Mutex<Vec<(Host, Duration)>>,
    /// The last number that was given to a migration attempt or to a reroute.
    pub(super) last_number: AtomicU64,
    /// Stubs with reroutes that have ended, which their cells have not learned.
    pub(crate) settling: Mutex<Settling>,
    /// The message counts for the rebalancing by traffic.
    pub(crate) traffic: crate::migration::rebalance::Traffic,
    /// Actors that other theaters have sent, and that have not begun. With the lock held, no actor begins, and no stub gets another route.
    pub(super) incoming_actors: Mutex<IncomingActors>,
    /// The drains of departing actors.
    pub(crate) drains: Drains,
    /// The members of each group.
    pub(super) groups: Mutex<Groups>,
    /// The number of times that others were told that actors have moved.
    pub(crate) told_moved: AtomicU64,
    /// The number of times that room was made on a link with a full window.
    pub(crate) room_made: AtomicU64,
    /// Acts on living actors, or on those not known to be lost, with stubs whose routes lead to a lost theater. Such an actor has come back, or has
    /// been found, and its stub has not learned that yet.
    pub(super) again: Mutex<Vec<Again>>,
    /// The ends of actors that had come from other theaters.
    pub(super) ends: Mutex<Ends>,
    /// Actors that have come from other theaters, and are not in their cells yet.
    pub(crate) arriving: Arc<AtomicU64>,
    /// The number of actors that have come from other theaters.
    pub(crate) came: AtomicU64,
    /// The number of mobile actors that other theaters have started in this one.
    pub(crate) started: AtomicU64,
    /// Actors that have left for other theaters.
    pub(super) left: AtomicU64,
    /// In simulation: the numbers that name actors instead of their positions in memory, which differ in each run.
    pub(super) numbers: Option<Mutex<Numbers>>,
}

/// Actors by the order in which they were first named.
#[derive(Default)]
pub(super) struct Numbers {
    pub(super) by_number: FxHashMap<u64, ActorId>,
    pub(super) numbers: FxHashMap<ActorId, u64>,
    pub(super) last: u64,
    /// The number of entries at which ended actors are looked for.
    pub(super) many: usize,
}

/// The identity of a theater.
pub(crate) struct Identity {
    pub(crate) incarnation: u64,
    pub(crate) capability: Capability,
    /// Whether the theater is one of a simulation.
    pub(crate) simulated: bool,
}

impl Identity {
    pub(crate) fn new(incarnation: u64) -> Identity {
        Identity { incarnation, capability: Capability::random(), simulated: false }
    }
}

/// Stubs with reroutes that have ended, while their cells have not learned it.
#[derive(Default)]
pub(crate) struct Settling {
    /// Ordered by the end of the reroute.
    pub(crate) stubs: BTreeMap<u64, SettlingStub>,
    pub(crate) last_number: u64,
    /// Answers that are due when an arrived actor begins, whether or not its reroute has ended.
    pub(crate) answers: FxHashMap<ActorId, Vec<TakeAnswer>>,
}

/// A stub whose cell is about to learn the new route of its mail.
pub(crate) struct SettlingStub {
    pub(crate) id: ActorId,
    /// The watchers of the actor over the old route. The cell notes them on the new one.
    pub(crate) watchers: Arc<Mutex<Vec<(Watcher, Tell)>>>,
}

impl Directory {
    pub(crate) fn new(core: &Arc<SystemCore>, identity: Identity, node: Weak<dyn Node>) -> Directory {
        let Identity { incarnation, capability, simulated } = identity;
        Directory {
            core: Arc::clone(core),
            incarnation,
            capability,
            node,
            known: Mutex::default(),
            links: Mutex::default(),
            lost: Mutex::default(),
            unreached: Mutex::default(),
            unlinked: Mutex::default(),
            called: Mutex::default(),
            last_number: AtomicU64::new(0),
            traffic: crate::migration::rebalance::Traffic::default(),
            incoming_actors: Mutex::default(),
            drains: Drains::default(),
            settling: Mutex::default(),
            groups: Mutex::default(),
            told_moved: AtomicU64::new(0),
            room_made: AtomicU64::new(0),
            again: Mutex::default(),
            ends: Mutex::default(),
            arriving: Arc::default(),
            came: AtomicU64::new(0),
            started: AtomicU64::new(0),
            left: AtomicU64::new(0),
            numbers: simulated.then(Mutex::default),
        }
    }

    /// Returns the theater of the directory, unless it has ended.
    pub(crate) fn node(&self) -> Option<Arc<dyn Node>> {
        self.node.upgrade()
    }

    pub(super) fn known(&self) -> MutexGuard<'_, KnownActors> {
        lock(&self.known)
    }

    pub(crate) fn groups(&self) -> MutexGuard<'_, Groups> {
        lock(&self.groups)
    }

    pub(crate) fn incoming_actors(&self) -> MutexGuard<'_, IncomingActors> {
        lock(&self.incoming_actors)
    }

    pub(super) fn links(&self) -> MutexGuard<'_, FxHashMap<u64, Weak<Link>>> {
        lock(&self.links)
    }

    /// Notes that a link with `theater` was made.
    pub(crate) fn add_link(&self, theater: u64, link: &Arc<Link>) {
        lock(&self.lost).remove(theater);
        self.links().insert(theater, Arc::downgrade(link));
    }

    /// Returns the link with `theater`, if there is one.
    pub(crate) fn link(&self, theater: u64) -> Option<Arc<Link>> {
        self.links().get(&theater)?.upgrade().filter(|link| !link.is_lost())
    }

    /// Returns all links that are not lost. Also called by threads that read a link: they must not wait for the theater's lock, because its owner
    /// waits for readers.
    pub(crate) fn all_links(&self) -> Vec<Arc<Link>> {
        self.links().values().filter_map(Weak::upgrade).filter(|link| !link.is_lost()).collect()
    }

    /// Returns the theaters with a link.
    pub(crate) fn linked(&self) -> Vec<u64> {
        self.all_links().iter().map(|link| link.incarnation).collect()
    }

    /// Returns the theaters that links were lost with lately.
    pub(crate) fn lost(&self) -> Vec<u64> {
        lock(&self.lost).latest()
    }

    /// Returns the other end's number of the lost link with `theater`, as far as it was known. Returns `None` if no link was lost, or there was one
    /// since.
    pub(crate) fn lost_link(&self, theater: u64) -> Option<Option<u64>> {
        lock(&self.lost).peer_number(theater)
    }

    /// Forgets all knowledge of the lost `theater`, except for stubs that may still be of use. These are the stubs of mobile actors, and those of its
    /// other actors, if it has not announced its shutdown. Returns the latter.
    pub(crate) fn lose(
        self: &Arc<Self>,
        (theater, peer_number): (u64, Option<u64>),
        has_left: bool,
        is_mobile: impl Fn(ActorId) -> bool,
    ) -> Vec<ActorId> {
        {
            let _incoming_actors = self.incoming_actors();
            self.known().moved.retain(|id, moved| {
                if moved.view.route().is_none_or(|at| at.theater != theater) {
                    return true;
                }
                // Their mail waits, and others are asked, when their cells learn that the route is lost.
                moved.view.step(Event::TheaterLost { theater }, &mut || 0);
                moved.view.reroute().is_some() || is_mobile(*id)
            });
        }
        let kept = self.keep_apart((theater, peer_number), has_left, is_mobile);
        self.links().remove(&theater);
        kept
    }

    /// Returns whether the link with `theater` is lost, and not all is forgotten yet. Until then there is no other one.
    pub(crate) fn is_forgetting(&self, theater: u64) -> bool {
        self.links().get(&theater).and_then(Weak::upgrade).is_some_and(|link| link.is_lost())
    }

    /// Returns the stub or cell of the actor with this birth name.
    pub(crate) fn known_as(&self, name: Key) -> Option<ActorId> {
        self.known().met.get(&name).map(|met| met.id)
    }

    /// Returns whether the actor of this stub lives in another theater, according to this one.
    pub(crate) fn is_remote(&self, id: ActorId) -> bool {
        self.at(id).is_some()
    }

    /// Returns whether the actor of this stub lives in this theater. Its cell may not have learned yet that it has come.
    pub(crate) fn lives_here(&self, id: ActorId) -> bool {
        matches!(self.view(id).residence(), Residence::Here | Residence::Leaving { .. } | Residence::Arriving { .. })
    }

    /// Returns the location of the actor of this stub, according to this theater; `None` if it is in this theater.
    pub(crate) fn at(&self, id: ActorId) -> Option<RemoteActorId> {
        self.known().at(id)
    }

    pub(crate) fn next_number(&self) -> u64 {
        // Relaxed: it is a counter only.
        self.last_number.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Applies an event to the actor's view. Returns the actions for it.
    pub(crate) fn step(&self, id: ActorId, event: Event<RemoteActorId>) -> Vec<Action<RemoteActorId>> {
        // Numbers are given with the lock held: the later reroute has the higher one.
        self.known().step(self.incarnation, id, event, &mut || self.next_number())
    }

    /// Notes that the theater that the mail of this stub goes to was lost before, and its actors are being located.
    pub(crate) fn note_route_lost(&self, id: ActorId, theater: u64) {
        self.step(id, Event::RouteLost { theater });
    }

    /// Returns the view of the actor of this stub.
    pub(crate) fn view(&self, id: ActorId) -> View<RemoteActorId> {
        self.known().view(self.incarnation, id)
    }

    /// Commits the migration of the actor by this event.
    pub(crate) fn leave(
        &self,
        id: ActorId,
        event: Event<RemoteActorId>,
        route: &Arc<StubRoute>,
    ) -> Vec<Action<RemoteActorId>> {
        // Relaxed: it is a counter only.
        self.left.fetch_add(1, Ordering::Relaxed);
        self.drains.note_stage(&self.core, id.address().stage());
        let mut known = self.known();
        let actions = known.step(self.incarnation, id, event, &mut || self.next_number());
        if let Some(moved) = known.moved.get_mut(&id) {
            moved.route = Some(Arc::clone(route));
        }
        actions
    }

    /// Notes a stub of an actor that is in another theater. Nothing was forwarded, if there is a `route`.
    pub(crate) fn note_stub(&self, id: ActorId, at: RemoteActorId, route: Option<Arc<StubRoute>>) {
        let view = View::new(self.incarnation, Residence::Away { at, begun: true, reroute: None });
        let mut known = self.known();
        known.listed.insert(id);
        known.moved.insert(id, Moved::new(view, route));
    }

    /// Notes, in the birth theater, an actor that is started in another theater. Its stub in the target is not known yet. Therefore no theater is
    /// told to call it directly, but over this one. Returns the epoch with which it leaves.
    pub(crate) fn note_start(&self, id: ActorId, theater: u64) -> Epoch {
        let at = RemoteActorId::somewhere_in(theater);
        let view = View::new(self.incarnation, Residence::Away { at, begun: false, reroute: None });
        let epoch = self.next_epoch(id);
        let mut known = self.known();
        known.listed.insert(id);
        known.moved.insert(id, Moved { epoch, ..Moved::new(view, None) });
        epoch
    }

    /// Notes that the actor that was born in this theater was started in another one, and is in it.
    pub(crate) fn note_started(&self, id: ActorId, at: RemoteActorId) {
        let mut known = self.known();
        if let Some(moved) = known.moved.get_mut(&id) {
            moved.view.learn_stub(at);
        }
        let begun = Event::Said { from: at.theater, word: Word::Begun };
        known.step(self.incarnation, id, begun, &mut || self.next_number());
    }

    /// Notes that the actor with this birth name, which has left for `theater`, has begun in it.
    pub(crate) fn note_begun(&self, born: Key, theater: u64) {
        let (here, slot, incarnation, capability) = born;
        let own = || self.own(slot, incarnation, capability).filter(|_| here == self.incarnation);
        if let Some(id) = self.known_as(born).or_else(own) {
            self.step(id, Event::Said { from: theater, word: Word::Begun });
        }
    }

    /// Begins the incoming actor at its stub, if nothing was forwarded since it left, and nothing will be. Otherwise nothing has changed.
    pub(crate) fn begin_freely(&self, id: ActorId, attempt: Attempt) -> bool {
        let mut known = self.known();
        let may_close = known.view(self.incarnation, id).may_close(attempt);
        let is_closed =
            may_close && known.moved.get(&id).and_then(|moved| moved.route.as_ref()).is_some_and(|route| route.close());
        if is_closed {
            known.step(self.incarnation, id, Event::Begin { attempt, closed: true }, &mut || self.next_number());
        }
        is_closed
    }

    /// Lets the incoming actor come to its stub, where it begins when the reroute ends. Returns the number of the reroute, and whether that has begun
    /// now.
    pub(crate) fn begin_behind(&self, id: ActorId, attempt: Attempt, arrival_buffer: ActorId) -> Option<(u64, bool)> {
        let mut known = self.known();
        let before = known.view(self.incarnation, id).reroute();
        let event = Event::Begin { attempt, closed: false };
        known.step(self.incarnation, id, event, &mut || self.next_number());
        let moved = known.moved.get_mut(&id).filter(|moved| moved.view.is_arriving())?;
        moved.arrival_buffer = Some(arrival_buffer);
        let reroute = moved.view.reroute()?;
        Some((reroute, before != Some(reroute)))
    }

    /// Returns the buffer of the mail that comes over a link to an incoming actor of its other end, and makes it at the first such mail. Returns
    /// `None` if the actor has begun.
    pub(crate) fn open_arrival_buffer(&self, link: u64, stub: ActorId) -> Option<ActorId> {
        let mut incoming_actors = self.incoming_actors();
        match incoming_actors.at(link, stub) {
            Some(incoming) => {
                let made = || (incoming.incoming.moves.arrival_buffer)(&self.core, incoming.stub);
                incoming.arrival_buffer = incoming.arrival_buffer.or_else(made);
                incoming.arrival_buffer
            }
            None => self.arrival_buffer_of(stub),
        }
    }

    /// Calls `f` with the watchers of the incoming actor, if it came over this link.
    pub(crate) fn with_incoming_watchers<R>(
        &self,
        link: u64,
        stub: ActorId,
        f: impl FnOnce(&mut Vec<(Watcher, Tell)>) -> R,
    ) -> Option<R> {
        self.incoming_actors().at(link, stub).map(|incoming| f(&mut incoming.watchers))
    }

    /// Returns the arrival buffer of an actor that has come to this theater, and has not begun.
    pub(crate) fn arrival_buffer_of(&self, id: ActorId) -> Option<ActorId> {
        self.known().moved.get(&id)?.arrival_buffer
    }

    /// Takes the arrival buffer of an actor that begins: it is closed.
    pub(crate) fn take_arrival_buffer(&self, id: ActorId) -> Option<ActorId> {
        self.known().moved.get_mut(&id)?.arrival_buffer.take()
    }

    /// Returns the stubs that reroute, in the order in which that began.
    pub(crate) fn rerouting(&self) -> Vec<ActorId> {
        self.known().rerouting.values().copied().collect()
    }

    /// Returns the stubs of `mobile` actors from which mail goes to `theater`, whether or not anything was ever sent there. This examines all known
    /// names.
    pub(crate) fn routes_to(&self, theater: u64, is_mobile: impl Fn(ActorId) -> bool) -> Vec<ActorId> {
        let mut stubs: Vec<ActorId> = {
            let known = self.known();
            let born_there =
                known.names.iter().filter(|(id, remote)| remote.theater == theater && !known.moved.contains_key(id));
            let leads_there = |moved: &Moved| moved.view.route().is_some_and(|at| at.theater == theater);
            let gone_there = known.moved.iter().filter(|(_, moved)| leads_there(moved));
            born_there.map(|(id, _)| *id).chain(gone_there.map(|(id, _)| *id)).filter(|id| is_mobile(*id)).collect()
        };
        // The order does not depend on positions in memory.
        stubs.sort_by_cached_key(|id| self.identity(*id).ok().map(|born| born.key()));
        stubs
    }

    /// Returns the numbers of the reroutes of stubs with actors in other theaters.
    pub(crate) fn reroutes_of_routes(&self) -> Vec<u64> {
        let known = self.known();
        let is_remote = |(_, id): &(&u64, &ActorId)| known.at(**id).is_some();
        known.rerouting.iter().filter(is_remote).map(|(reroute, _)| *reroute).collect()
    }

    /// Returns whether one of these reroutes has not ended.
    pub(crate) fn is_any_under_way(&self, reroutes: &[u64]) -> bool {
        let known = self.known();
        reroutes.iter().any(|reroute| known.rerouting.contains_key(reroute))
    }

    /// Returns whether one of these stubs reroutes.
    pub(crate) fn is_any_rerouting(&self, ids: &[ActorId]) -> bool {
        let known = self.known();
        ids.iter().any(|id| known.moved.get(id).is_some_and(|moved| moved.view.reroute().is_some()))
    }

    /// Returns whether an actor has come that does not live in its cell yet.
    pub(crate) fn awaits_anybody(&self) -> bool {
        // Incoming actors first: an actor is counted as arriving before it stops being an incoming one.
        !self.incoming_actors().is_empty() || self.is_any_arriving()
    }

    /// Returns whether an actor has come, has begun, and is not in its cell yet.
    pub(crate) fn is_any_arriving(&self) -> bool {
        // Acquire: an actor that is no longer counted is in its cell.
        self.arriving.load(Ordering::Acquire) > 0
    }

    /// Returns the numbers of actors that have come, and that have left.
    pub(crate) fn migrations(&self) -> (u64, u64) {
        (self.came.load(Ordering::Relaxed), self.left.load(Ordering::Relaxed))
    }

    /// Returns the number of mobile actors that have begun in this theater, after a migration or a remote start.
    pub(crate) fn begun(&self) -> u64 {
        self.came.load(Ordering::Relaxed) + self.started.load(Ordering::Relaxed)
    }

    /// Returns the location of the actor with this birth name, if it is known. It is this theater until the actor has begun in another one.
    pub(crate) fn whereabouts(&self, born: Key) -> Option<RemoteActorId> {
        let (theater, slot, incarnation, capability) = born;
        let own = || self.own(slot, incarnation, capability).filter(|_| theater == self.incarnation);
        let id = self.known_as(born).or_else(own)?;
        if id.address().is_stale() {
            return None;
        }
        let (at, begun) = {
            let known = self.known();
            (known.at(id), known.view(self.incarnation, id).has_begun())
        };
        let is_going = |at: &RemoteActorId| !begun && self.link(at.theater).is_some();
        match at.filter(|at| !is_going(at)) {
            Some(at) => Some(at),
            None => self.location(id, self.node()?.listens()).ok().map(RemoteActorId::from),
        }
    }

    /// Notes that the actor of this stub is at `there`, if nothing else is known. Another theater says so, because the theater `lost` is lost.
    /// Returns the location of the actor, or `None` if it is in this theater.
    pub(crate) fn note_found(&self, id: ActorId, lost: u64, there: RemoteActorId) -> Option<RemoteActorId> {
        let mut known = self.known();
        let at = known.at(id)?;
        if at.theater != lost {
            return Some(at);
        }
        known.step(self.incarnation, id, Event::Found { lost, at: Some(there) }, &mut || self.next_number());
        Some(there)
    }

    /// Notes that the theaters asked since the loss of the theater `lost` do not know the actor of this stub. Forgets the actor, if this theater does
    /// not know it either.
    pub(crate) fn note_not_found(&self, id: ActorId, lost: u64) -> Seen {
        // An actor that is being accepted has a stub.
        let _incoming_actors = self.incoming_actors();
        let mut known = self.known();
        let view = known.view(self.incarnation, id);
        match view.residence() {
            Residence::Locating { lost: at, reroute } if at.theater == lost => {
                if let Some(reroute) = reroute.filter(|_| view.incoming_from().is_none()) {
                    return Seen::Reroutes(reroute);
                }
                let found = Event::Found { lost, at: None };
                if let [Action::Locate { .. }] = known.step(self.incarnation, id, found, &mut || self.next_number())[..]
                {
                    return Seen::Incoming;
                }
                known.forget(id);
                Seen::Nowhere
            }
            _ => view.route().map_or(Seen::Here, Seen::Moved),
        }
    }

    /// Forgets the actor of this stub, which has ended in another theater. Returns false if it is not in another theater, or migrates.
    pub(crate) fn forget_actor(&self, id: ActorId) -> bool {
        // An actor that is being accepted has a stub.
        let _incoming_actors = self.incoming_actors();
        let mut known = self.known();
        let view = known.view(self.incarnation, id);
        let Some(at) = view.route().filter(|_| view.reroute().is_none()) else { return false };
        let ended = Event::Said { from: at.theater, word: Word::Ended };
        let actions = known.step(self.incarnation, id, ended, &mut || self.next_number());
        if !matches!(actions[..], [Action::Ask(Request::Report)]) {
            return false;
        }
        known.forget(id);
        true
    }

    /// Forgets actors that have ended in this theater. Called at intervals; frequent calls find all of them.
    pub(crate) fn forget_ended(&self) {
        /// The number of actors that are examined under one lock.
        const LOOKED_AT: usize = 1_024;
        /// The share of actors that one call examines, 1 in 64, so that all are examined within seconds.
        const ONE_IN: usize = 64;
        // A simulation examines all, because their order is that of memory, which differs in each run.
        let part = if self.numbers.is_some() { 1 } else { ONE_IN };
        let listed = self.known().listed.len();
        for _ in 0..(listed / part).div_ceil(LOOKED_AT).max(1) {
            let mut ids = self.known().next_listed(LOOKED_AT);
            ids.retain(|id| id.address().is_stale());
            if !ids.is_empty() {
                let mut known = self.known();
                ids.into_iter().for_each(|id| known.forget_ended(id));
            }
        }
        self.groups().forget_ended();
        if let Some(numbers) = &self.numbers {
            const FEW: usize = 1_024;
            let Numbers { by_number, numbers, many, .. } = &mut *lock(numbers);
            if numbers.len() >= FEW.max(*many) {
                by_number.retain(|_, id| !id.address().is_stale());
                numbers.retain(|id, _| !id.address().is_stale());
                *many = 2 * numbers.len();
            }
        }
    }

    /// Returns the number of kept entries about actors, by kind.
    #[cfg(test)]
    pub(crate) fn kept(&self) -> Vec<(&'static str, usize)> {
        let KnownActors { met, with_capability, told, names, moved, rerouting, listed, .. } = &*self.known();
        let (members, groups) = self.groups().kept();
        vec![
            ("met", met.len()),
            ("sealed", with_capability.len()),
            ("told", told.len()),
            ("names", names.len()),
            ("moved", moved.len()),
            ("rerouting", rerouting.len()),
            ("listed", listed.len()),
            ("members", members),
            ("groups", groups),
        ]
    }

    /// Notes a route to an actor of a theater without a link.
    pub(crate) fn note_unlinked(&self, route: Weak<PendingProxy>) {
        lock(&self.unlinked).push_back(route);
    }

    /// Takes the oldest of these routes, except for the youngest ones.
    pub(crate) fn take_unlinked(&self) -> Vec<Arc<PendingProxy>> {
        /// Without a link, no theater tells that an actor has ended, and its stub stays. This number of stubs costs little; with more, a link is
        /// worth its cost.
        const UNLINKED_MAX: usize = 1_024;
        let mut unlinked = lock(&self.unlinked);
        let too_many = unlinked.len().saturating_sub(UNLINKED_MAX);
        unlinked.drain(..too_many).filter_map(|route| route.upgrade()).collect()
    }
}
