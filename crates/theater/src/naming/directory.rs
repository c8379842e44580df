//! The directory of a theater: its knowledge of actors, and of their residences.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use playhouse_actor::away::TakeAnswer;
use playhouse_actor::{ActorId, Tell, Watcher};
use playhouse_executor::{StubRoute, SystemCore};
use rustc_hash::FxHashMap;

use crate::lock::lock;
use crate::naming::arrivals::IncomingActors;
use crate::naming::capability::Capability;
use crate::naming::ends::{Again, Ends};
use crate::naming::groups::Groups;
use crate::naming::identities::{BirthName, Epoch, RemoteActorId};
use crate::naming::known::{KnownActors, Moved};
use crate::naming::migration_protocol::{Action, Attempt, Event, Request, Residence, View, Word};

/// The knowledge of a theater about actors, and about their residences.
pub(crate) struct Directory {
    pub(crate) core: Arc<SystemCore>,
    /// The incarnation of this theater.
    pub(crate) incarnation: u64,
    pub(super) capability: Capability,
    /// The address that other theaters call.
    pub(crate) listens: Option<SocketAddr>,
    pub(super) known: Mutex<KnownActors>,
    /// The last number that was given to a migration attempt or to a reroute.
    pub(super) last_number: AtomicU64,
    /// Stubs with reroutes that have ended, which their cells have not learned.
    pub(crate) settling: Mutex<Settling>,
    /// Actors that other theaters have sent, and that have not begun. With the lock held, no actor begins, and no stub gets another route.
    pub(super) incoming_actors: Mutex<IncomingActors>,
    /// The members of each group.
    pub(super) groups: Mutex<Groups>,
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

/// The result for an actor that no other theater knows.
pub(crate) enum Seen {
    /// It has come to this theater.
    Here,
    /// It has come to this theater, or was found, and has gone on to this location.
    Moved(RemoteActorId),
    /// It is an incoming actor of this theater. All replies are older.
    Incoming,
    /// Its stub reroutes, by this number. The reroute has to end first.
    Reroutes(u64),
    /// It is lost.
    Nowhere,
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
    pub(crate) fn new(core: &Arc<SystemCore>, identity: Identity, listens: Option<SocketAddr>) -> Directory {
        let Identity { incarnation, capability, simulated } = identity;
        Directory {
            core: Arc::clone(core),
            incarnation,
            capability,
            listens,
            known: Mutex::default(),
            last_number: AtomicU64::new(0),
            incoming_actors: Mutex::default(),
            settling: Mutex::default(),
            groups: Mutex::default(),
            again: Mutex::default(),
            ends: Mutex::default(),
            arriving: Arc::default(),
            came: AtomicU64::new(0),
            started: AtomicU64::new(0),
            left: AtomicU64::new(0),
            numbers: simulated.then(Mutex::default),
        }
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

    /// Notes that routes to `theater` are lost. Forgets the actors of these routes that do not migrate, except for those whose stubs reroute.
    pub(crate) fn lose_routes_to(&self, theater: u64, is_mobile: impl Fn(ActorId) -> bool) {
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

    /// Forgets the actors of the lost `theater` that do not migrate, except for `keeps` of them. Returns the stubs of the kept ones, and of the
    /// forgotten ones. Called without the lock of the incoming actors.
    pub(crate) fn forget_immobile(
        &self,
        theater: u64,
        keeps: usize,
        is_mobile: impl Fn(ActorId) -> bool,
    ) -> [Vec<ActorId>; 2] {
        self.known().forget_immobile(theater, keeps, is_mobile)
    }

    /// Forgets the actors of these stubs, except for those of the `linked` theaters. Returns the stubs of the forgotten ones.
    pub(crate) fn forget_except(&self, mut stubs: Vec<ActorId>, linked: &[u64]) -> Vec<ActorId> {
        let mut known = self.known();
        stubs.retain(|id| known.names.get(id).is_none_or(|remote| !linked.contains(&remote.theater)));
        stubs.iter().for_each(|id| known.forget(*id));
        stubs
    }

    /// Returns the stub or cell of the actor with this birth name.
    pub(crate) fn known_as(&self, name: BirthName) -> Option<ActorId> {
        self.known().met.get(&name).map(|met| met.id)
    }

    /// Returns whether the actor of this stub lives in another theater, according to this one.
    pub(crate) fn is_remote(&self, id: ActorId) -> bool {
        self.at(id).is_some()
    }

    /// Returns whether the actor of this stub lives in this theater. Its cell may not have learned yet that it has come.
    pub(crate) fn lives_in_this_theater(&self, id: ActorId) -> bool {
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
    pub(crate) fn note_begun(&self, born: BirthName, theater: u64) {
        if let Some(id) = self.known_as(born).or_else(|| self.own_born(born)) {
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
        stubs.sort_by_cached_key(|id| self.identity(*id).ok().map(|born| born.birth_name()));
        stubs
    }

    /// Returns whether a `mobile` actor is known that has come, has left, or is in another theater: mail for it may take a route over this theater.
    pub(crate) fn knows_any(&self, is_mobile: impl Fn(ActorId) -> bool) -> bool {
        let known = self.known();
        known.names.keys().chain(known.moved.keys()).any(|id| is_mobile(*id))
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
    pub(crate) fn awaits_arrivals(&self) -> bool {
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

    /// Returns the actor of this theater with this birth name.
    pub(crate) fn own_born(&self, born: BirthName) -> Option<ActorId> {
        self.own(born.slot_name()).filter(|_| born.theater == self.incarnation)
    }

    /// Returns the location of the actor of this stub, and whether other theaters may be told it.
    pub(crate) fn location_of(&self, id: ActorId) -> (Option<RemoteActorId>, bool) {
        let known = self.known();
        (known.at(id), known.view(self.incarnation, id).has_begun())
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
}
