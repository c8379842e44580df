//! Who of other theaters is known here, and under which name: one place for each, whichever way its name came.
//!
//! # Names
//!
//! An actor is known by the name that it was born with: theater, slot, life and seal. Theaters believe a peer about the peer's own
//! actors. The seal of such an actor is noted, and a name with another seal is refused from then on. Of an actor of a third theater
//! two names with different seals may come, before its own theater has told one. They are two actors here: neither hides the other,
//! and the owner lets only the true one be reached.

pub(crate) mod capability;
pub(crate) mod locate;
pub(crate) mod name_server;

mod apart;
mod departures;
mod ends;
mod known;
mod names;

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;

use playhouse_actor::away::{ActorLocation, RefName, TakeAnswer};
use playhouse_actor::wire::WireError;
use playhouse_actor::{ActorId, MigrateError, ShortType, Tell, Watcher};
use playhouse_executor::{StubRoute, SystemCore};
use rustc_hash::FxHashMap;

#[cfg(test)]
pub(crate) use self::apart::APART_MAX;
use self::ends::{Again, Ends};
use self::known::{KnownActors, Met, Moved};
pub(crate) use self::names::{BadName, Birth, Key, NAMES_MAX, RemoteActorId};
use crate::link::Link;
use crate::migration::arrivals::IncomingActors;
use crate::migration::authority::{Epoch, Host};
use crate::migration::drain::Drains;
use crate::migration::groups::Groups;
use crate::migration::{Action, Attempt, Event, Request, Residence, View, Word};
use crate::naming::capability::Capability;
use crate::naming::locate::Seen;
use crate::node::core::TheaterCore;
use crate::proxy::pending::PendingProxy;

/// The other end of a lost link gives it up at about the same time: until then, at the most, so many others are lost.
const LOST_MAX: usize = 256;

/// What the links of a theater share.
pub(crate) struct Directory {
    pub(crate) core: Arc<SystemCore>,
    /// This theater, in which of its lives.
    pub(crate) incarnation: u64,
    capability: Capability,
    theater_core: OnceLock<Weak<TheaterCore>>,
    known: Mutex<KnownActors>,
    links: Mutex<FxHashMap<u64, Weak<Link>>>,
    /// Theaters that links were lost with, the latest first.
    lost: Mutex<apart::LostTheaters>,
    /// Theaters that could not be called for what they know of actors, the latest first, and until when they are not called again.
    unreached: Mutex<VecDeque<(Host, Duration)>>,
    /// Ways to actors of theaters that there was no link with, in the order in which they were made. Nothing may have been sent there.
    unlinked: Mutex<VecDeque<Weak<PendingProxy>>>,
    /// Lost theaters that were called since something was sent to their actors, and until when they are not called again.
    called: Mutex<Vec<(Host, Duration)>>,
    /// The last number that was given to an attempt to move or to a turn.
    last_number: AtomicU64,
    /// Places whose cells have not heard that their turns have ended.
    pub(crate) settling: Mutex<Settling>,
    /// For who brings together who talks.
    pub(crate) talk: crate::migration::rebalance::Talk,
    /// Actors that other theaters have sent, and that have not begun. With the lock held, no actor begins, and no place is sent another way.
    incoming_actors: Mutex<IncomingActors>,
    /// For actors that leave.
    pub(crate) drains: Drains,
    /// Who is in which group.
    groups: Mutex<Groups>,
    /// How often others were told that actors have moved.
    pub(crate) told_moved: AtomicU64,
    /// How often room was made on a link whose window was full.
    pub(crate) room_made: AtomicU64,
    /// What to do to an actor of which it is known that it lives, or not yet that it does not, while the way from its place leads
    /// to a theater that is lost: it has come back, or has been found, and its place has not heard of that yet.
    again: Mutex<Vec<Again>>,
    /// How those have ended that had come from other theaters.
    ends: Mutex<Ends>,
    /// Actors that have come from other theaters, and are not in their cells yet.
    pub(crate) arriving: Arc<AtomicU64>,
    /// Actors that have come from other theaters, ...
    pub(crate) came: AtomicU64,
    /// ... and mobile ones that others have started here.
    pub(crate) started: AtomicU64,
    /// Actors that have left for other theaters.
    left: AtomicU64,
    /// In simulation: what actors are called instead of where they lie in memory, which is another place in each run.
    numbers: Option<Mutex<Numbers>>,
}

/// Actors by the order in which they were first named.
#[derive(Default)]
struct Numbers {
    by_number: FxHashMap<u64, ActorId>,
    numbers: FxHashMap<ActorId, u64>,
    last: u64,
    /// With so many, those that have ended are looked for.
    many: usize,
}

/// Who a theater is.
pub(crate) struct Identity {
    pub(crate) incarnation: u64,
    pub(crate) capability: Capability,
    /// It is one of a simulation.
    pub(crate) simulated: bool,
}

impl Identity {
    pub(crate) fn new(incarnation: u64) -> Identity {
        Identity { incarnation, capability: Capability::random(), simulated: false }
    }
}

/// Places whose turns have ended, as long as their cells have not heard it.
#[derive(Default)]
pub(crate) struct Settling {
    /// In the order in which they ended.
    pub(crate) stubs: BTreeMap<u64, SettlingPlace>,
    pub(crate) last_number: u64,
    /// Answers that are due when an actor that has come begins, whether or not its turn has ended.
    pub(crate) answers: FxHashMap<ActorId, Vec<TakeAnswer>>,
}

/// A place whose cell is about to hear how its mail goes on.
pub(crate) struct SettlingPlace {
    pub(crate) id: ActorId,
    /// Those that watched the actor over the old way. The cell notes them on the new one.
    pub(crate) watchers: Arc<Mutex<Vec<(Watcher, Tell)>>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Directory {
    pub(crate) fn new(core: &Arc<SystemCore>, identity: Identity) -> Directory {
        let Identity { incarnation, capability, simulated } = identity;
        Directory {
            core: Arc::clone(core),
            incarnation,
            capability,
            theater_core: OnceLock::new(),
            known: Mutex::default(),
            links: Mutex::default(),
            lost: Mutex::default(),
            unreached: Mutex::default(),
            unlinked: Mutex::default(),
            called: Mutex::default(),
            last_number: AtomicU64::new(0),
            talk: crate::migration::rebalance::Talk::default(),
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

    pub(crate) fn belongs_to(&self, theater_core: &Arc<TheaterCore>) {
        // Once, by the house itself.
        let _ = self.theater_core.set(Arc::downgrade(theater_core));
    }

    pub(crate) fn theater_core(&self) -> Option<Arc<TheaterCore>> {
        self.theater_core.get()?.upgrade()
    }

    fn known(&self) -> MutexGuard<'_, KnownActors> {
        lock(&self.known)
    }

    pub(crate) fn groups(&self) -> MutexGuard<'_, Groups> {
        lock(&self.groups)
    }

    pub(crate) fn incoming_actors(&self) -> MutexGuard<'_, IncomingActors> {
        lock(&self.incoming_actors)
    }

    fn links(&self) -> MutexGuard<'_, FxHashMap<u64, Weak<Link>>> {
        lock(&self.links)
    }

    /// A link with `theater` was made.
    pub(crate) fn add_link(&self, theater: u64, link: &Arc<Link>) {
        lock(&self.lost).remove(theater);
        self.links().insert(theater, Arc::downgrade(link));
    }

    /// The link with `theater`, if there is one.
    pub(crate) fn link(&self, theater: u64) -> Option<Arc<Link>> {
        self.links().get(&theater)?.upgrade().filter(|link| !link.is_lost())
    }

    /// All links that are not lost. By whoever reads one of them too, who must not wait for the house: that waits for readers.
    pub(crate) fn all_links(&self) -> Vec<Arc<Link>> {
        self.links().values().filter_map(Weak::upgrade).filter(|link| !link.is_lost()).collect()
    }

    /// The theaters that there are links with.
    pub(crate) fn linked(&self) -> Vec<u64> {
        self.all_links().iter().map(|link| link.incarnation).collect()
    }

    /// Theaters that links were lost with lately.
    pub(crate) fn lost(&self) -> Vec<u64> {
        lock(&self.lost).latest()
    }

    /// If a link with `theater` was lost, and there was none since: its number at the other end, as far as it was known.
    pub(crate) fn lost_link(&self, theater: u64) -> Option<Option<u64>> {
        lock(&self.lost).number_there(theater)
    }

    /// `theater` is lost, and all that was known of it, except for places that may still be of use: those of actors that move, and, if it has not said
    /// goodbye, those of its actors that do not. Returns the latter.
    pub(crate) fn lose(
        self: &Arc<Self>,
        (theater, number_there): (u64, Option<u64>),
        has_left: bool,
        is_mobile: impl Fn(ActorId) -> bool,
    ) -> Vec<ActorId> {
        {
            let _incoming_actors = self.incoming_actors();
            self.known().moved.retain(|id, moved| {
                if moved.view.route().is_none_or(|at| at.theater != theater) {
                    return true;
                }
                // Their mail waits, and others are asked, when their cells hear that the way is lost.
                moved.view.step(Event::TheaterLost { theater }, &mut || 0);
                moved.view.reroute().is_some() || is_mobile(*id)
            });
        }
        let kept = self.keep_apart((theater, number_there), has_left, is_mobile);
        self.links().remove(&theater);
        kept
    }

    /// Whether the link with `theater` is lost, and not all is forgotten yet. Until then there is no other one.
    pub(crate) fn is_forgetting(&self, theater: u64) -> bool {
        self.links().get(&theater).and_then(Weak::upgrade).is_some_and(|link| link.is_lost())
    }

    /// The place of the actor that was born with this name.
    pub(crate) fn known_as(&self, name: Key) -> Option<ActorId> {
        self.known().met.get(&name).map(|met| met.id)
    }

    /// Whether the actor of this place lives elsewhere, as far as is known here.
    pub(crate) fn is_remote(&self, id: ActorId) -> bool {
        self.at(id).is_some()
    }

    /// Whether the actor of this place lives here. Its cell may not have heard yet that it has come.
    pub(crate) fn lives_here(&self, id: ActorId) -> bool {
        matches!(self.view(id).residence(), Residence::Here | Residence::Leaving { .. } | Residence::Arriving { .. })
    }

    /// Where the actor of this place is, as far as is known here; nothing if it is here.
    pub(crate) fn at(&self, id: ActorId) -> Option<RemoteActorId> {
        self.known().at(id)
    }

    pub(crate) fn next_number(&self) -> u64 {
        // Relaxed: it is counted only.
        self.last_number.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// The actor's view takes an event. Returns what is to be done.
    pub(crate) fn step(&self, id: ActorId, event: Event<RemoteActorId>) -> Vec<Action<RemoteActorId>> {
        // Numbers are given with the lock held: the later turn has the higher one.
        self.known().step(self.incarnation, id, event, &mut || self.next_number())
    }

    /// What is known of the actor of this place.
    pub(crate) fn view(&self, id: ActorId) -> View<RemoteActorId> {
        self.known().view(self.incarnation, id)
    }

    /// The actor leaves by this event.
    pub(crate) fn leave(
        &self,
        id: ActorId,
        event: Event<RemoteActorId>,
        route: &Arc<StubRoute>,
    ) -> Vec<Action<RemoteActorId>> {
        // Relaxed: it is counted only.
        self.left.fetch_add(1, Ordering::Relaxed);
        self.drains.note_stage(&self.core, id.address().stage());
        let mut known = self.known();
        let actions = known.step(self.incarnation, id, event, &mut || self.next_number());
        if let Some(moved) = known.moved.get_mut(&id) {
            moved.route = Some(Arc::clone(route));
        }
        actions
    }

    /// This is the place of an actor that is elsewhere. Nothing was sent on, if there is a `route`.
    pub(crate) fn note_stub(&self, id: ActorId, at: RemoteActorId, route: Option<Arc<StubRoute>>) {
        let view = View::new(self.incarnation, Residence::Away { at, begun: true, reroute: None });
        let mut known = self.known();
        known.listed.insert(id);
        known.moved.insert(id, Moved::new(view, route));
    }

    /// This is the birthplace of an actor that is started in another theater. Its place there is not known yet: nobody is told that it can be called
    /// there, but by way of this one. Returns the epoch with which it leaves.
    pub(crate) fn note_start(&self, id: ActorId, theater: u64) -> Epoch {
        let at = RemoteActorId::somewhere_in(theater);
        let view = View::new(self.incarnation, Residence::Away { at, begun: false, reroute: None });
        let epoch = self.next_epoch(id);
        let mut known = self.known();
        known.listed.insert(id);
        known.moved.insert(id, Moved { epoch, ..Moved::new(view, None) });
        epoch
    }

    /// The actor of this birthplace was started in another theater, and is there.
    pub(crate) fn note_started(&self, id: ActorId, at: RemoteActorId) {
        let mut known = self.known();
        if let Some(moved) = known.moved.get_mut(&id) {
            moved.view.hear_stub(at);
        }
        let begun = Event::Said { from: at.theater, word: Word::Begun };
        known.step(self.incarnation, id, begun, &mut || self.next_number());
    }

    /// The actor that was born with this name, and has left for `theater`, has begun there.
    pub(crate) fn note_begun(&self, born: Key, theater: u64) {
        let (here, slot, incarnation, capability) = born;
        let own = || self.own(slot, incarnation, capability).filter(|_| here == self.incarnation);
        if let Some(id) = self.known_as(born).or_else(own) {
            self.step(id, Event::Said { from: theater, word: Word::Begun });
        }
    }

    /// The guest begins at its place, if nothing was sent on from there since it left, and nothing will be. Otherwise nothing has changed.
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

    /// The guest comes to its place, and begins when its turn ends. Returns the number of the turn, and whether that has begun now.
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

    /// Where what comes for an actor waits that has come here, and has not begun.
    pub(crate) fn arrival_buffer_of(&self, id: ActorId) -> Option<ActorId> {
        self.known().moved.get(&id)?.arrival_buffer
    }

    /// The actor begins: its antechamber is closed.
    pub(crate) fn take_arrival_buffer(&self, id: ActorId) -> Option<ActorId> {
        self.known().moved.get_mut(&id)?.arrival_buffer.take()
    }

    /// The places that turn, in the order in which that began.
    pub(crate) fn rerouting(&self) -> Vec<ActorId> {
        self.known().rerouting.values().copied().collect()
    }

    /// The places of `mobile` actors from where mail goes to `theater`, whether or not something was ever sent there. All known names are
    /// looked at.
    pub(crate) fn routes_to(&self, theater: u64, is_mobile: impl Fn(ActorId) -> bool) -> Vec<ActorId> {
        let mut stubs: Vec<ActorId> = {
            let known = self.known();
            let born_there =
                known.names.iter().filter(|(id, far)| far.theater == theater && !known.moved.contains_key(id));
            let leads_there = |moved: &Moved| moved.view.route().is_some_and(|at| at.theater == theater);
            let gone_there = known.moved.iter().filter(|(_, moved)| leads_there(moved));
            born_there.map(|(id, _)| *id).chain(gone_there.map(|(id, _)| *id)).filter(|id| is_mobile(*id)).collect()
        };
        // In an order that does not depend on where they lie in memory.
        stubs.sort_by_cached_key(|id| self.identity(*id).ok().map(|born| born.key()));
        stubs
    }

    /// The numbers of the turns of places whose actors live elsewhere.
    pub(crate) fn reroutes_of_routes(&self) -> Vec<u64> {
        let known = self.known();
        let is_remote = |(_, id): &(&u64, &ActorId)| known.at(**id).is_some();
        known.rerouting.iter().filter(is_remote).map(|(reroute, _)| *reroute).collect()
    }

    /// Whether one of these turns has not ended.
    pub(crate) fn is_any_under_way(&self, reroutes: &[u64]) -> bool {
        let known = self.known();
        reroutes.iter().any(|reroute| known.rerouting.contains_key(reroute))
    }

    /// Whether one of these places turns.
    pub(crate) fn is_any_rerouting(&self, ids: &[ActorId]) -> bool {
        let known = self.known();
        ids.iter().any(|id| known.moved.get(id).is_some_and(|moved| moved.view.reroute().is_some()))
    }

    /// Whether an actor has come that does not live in its cell yet.
    pub(crate) fn awaits_anybody(&self) -> bool {
        // Guests first: an actor is counted as arriving before it stops being a guest.
        !self.incoming_actors().is_empty() || self.is_any_arriving()
    }

    /// Whether an actor has come, is no guest any more, and is not in its cell yet.
    pub(crate) fn is_any_arriving(&self) -> bool {
        // Acquire: one that is no longer counted is in its cell.
        self.arriving.load(Ordering::Acquire) > 0
    }

    /// Actors that have come, and that have left.
    pub(crate) fn migrations(&self) -> (u64, u64) {
        (self.came.load(Ordering::Relaxed), self.left.load(Ordering::Relaxed))
    }

    /// Mobile actors that have begun here, and that others had sent or started.
    pub(crate) fn begun(&self) -> u64 {
        self.came.load(Ordering::Relaxed) + self.started.load(Ordering::Relaxed)
    }

    /// Returns where the actor that was born with this name is, if it is known here. It is here until it has begun elsewhere.
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
            None => self.location(id, self.theater_core()?.listens).ok().map(RemoteActorId::from),
        }
    }

    /// Another theater says that the actor of this place is `there`, since the theater `lost` is lost. Notes that, if nothing else is known.
    /// Returns where the actor is. Returns nothing if it is here.
    pub(crate) fn note_found(&self, id: ActorId, lost: u64, there: RemoteActorId) -> Option<RemoteActorId> {
        let mut known = self.known();
        let at = known.at(id)?;
        if at.theater != lost {
            return Some(at);
        }
        known.step(self.incarnation, id, Event::Found { lost, at: Some(there) }, &mut || self.next_number());
        Some(there)
    }

    /// The theaters that were asked since the theater `lost` is lost do not know where the actor of this place is. Forgets the actor, if this theater
    /// does not know it either.
    pub(crate) fn note_not_found(&self, id: ActorId, lost: u64) -> Seen {
        // An actor that is just accepted has a place.
        let _incoming_actors = self.incoming_actors();
        let mut known = self.known();
        let view = known.view(self.incarnation, id);
        match view.residence() {
            Residence::Sought { lost: at, reroute } if at.theater == lost => {
                if let Some(reroute) = reroute.filter(|_| view.incoming_from().is_none()) {
                    return Seen::Turns(reroute);
                }
                let found = Event::Found { lost, at: None };
                if let [Action::Seek { .. }] = known.step(self.incarnation, id, found, &mut || self.next_number())[..] {
                    return Seen::Awaited;
                }
                known.forget(id);
                Seen::Nowhere
            }
            _ => view.route().map_or(Seen::Here, Seen::Elsewhere),
        }
    }

    /// Forgets the actor of this place, which has ended elsewhere. Returns false if it is not elsewhere, or on its way.
    pub(crate) fn forget_actor(&self, id: ActorId) -> bool {
        // An actor that is just accepted has a place.
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

    /// Now and then: forgets actors that have ended here. All of them, if asked often.
    pub(crate) fn forget_ended(&self) {
        /// So many are looked at with the lock held once, ...
        const LOOKED_AT: usize = 1_024;
        /// ... and so often by one call, or one in so many, so that all have their turn within seconds.
        const ONE_IN: usize = 64;
        // A simulation looks at all: their order is that of memory, which is another one in each run.
        let part = if self.numbers.is_some() { 1 } else { ONE_IN };
        let listed = self.known().listed.len();
        for _ in 0..(listed / part).div_ceil(LOOKED_AT).max(1) {
            let mut ids = self.known().look(LOOKED_AT);
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

    /// So much is kept of actors, by what it is.
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
            ("turning", rerouting.len()),
            ("listed", listed.len()),
            ("members", members),
            ("groups", groups),
        ]
    }

    /// A way was made to an actor of a theater that there is no link with.
    pub(crate) fn note_unlinked(&self, route: Weak<PendingProxy>) {
        lock(&self.unlinked).push_back(route);
    }

    /// The oldest ways of those, but for the youngest ones.
    pub(crate) fn take_unlinked(&self) -> Vec<Arc<PendingProxy>> {
        /// Where no theater tells that an actor has ended, its place stays. So many of them are little; with more, it is worth a link.
        const UNLINKED_MAX: usize = 1_024;
        let mut unlinked = lock(&self.unlinked);
        let too_many = unlinked.len().saturating_sub(UNLINKED_MAX);
        unlinked.drain(..too_many).filter_map(|route| route.upgrade()).collect()
    }

    /// The place here of the actor that the theater `teller` calls so, if there is one.
    ///
    /// # Errors
    /// The seal contradicts what is known: for an actor of this theater, its own seal; for one of another theater, what that
    /// has told itself. A name that only third theaters have told cannot be checked. Two with different seals are two actors
    /// here then, and the owner lets only one of them be reached. Or there is no place, and `teller` has told too many names.
    pub(crate) fn met(&self, teller: u64, far: &RemoteActorId) -> Result<Option<ActorId>, BadName> {
        if far.theater == self.incarnation {
            if !self.capability.is_right(far.slot, far.incarnation, far.capability) {
                return Err(BadName::Invented(far.birth()));
            }
            // One that had ended here may have come back under that name.
            return Ok(self
                .known_as(far.key())
                .or_else(|| self.own_or_ended(far.slot, far.incarnation, far.capability)));
        }
        let mut known = self.known();
        let met = known.hear(teller, far)?;
        if met.is_none() && known.told.get(&teller).is_some_and(|count| *count >= NAMES_MAX) {
            return Err(BadName::TooMany);
        }
        Ok(met)
    }

    /// `id` is the place of the actor that the theater `teller` calls so.
    ///
    /// # Errors
    /// The seal contradicts what is known, as in [`Directory::met`], or the place has another name: then nothing has changed.
    pub(crate) fn note(&self, teller: u64, id: ActorId, far: RemoteActorId) -> Result<(), BadName> {
        let is_own = far.theater == self.incarnation;
        if is_own && !self.capability.is_right(far.slot, far.incarnation, far.capability) {
            return Err(BadName::Invented(far.birth()));
        }
        let mut known = self.known();
        // An actor that was born here has no name in the list, and is noted as moved before another theater can name it.
        let is_renamed = match known.names.get(&id) {
            Some(name) => name.key() != far.key(),
            None => known.moved.contains_key(&id),
        };
        if is_renamed {
            return Err(BadName::Renamed(far.birth()));
        }
        if !is_own {
            known.hear(teller, &far)?;
        }
        let KnownActors { met, told, names, listed, .. } = &mut *known;
        listed.insert(id);
        names.insert(id, far);
        let met = met.entry(far.key()).or_insert_with(|| {
            *told.entry(teller).or_default() += 1;
            Met { id, teller, is_sealed: false }
        });
        // A place that has ended, and is not forgotten yet, gives way to this one.
        if met.id.address().is_stale() {
            met.id = id;
        }
        if is_own { Ok(()) } else { known.hear(teller, &far).map(drop) }
    }

    /// The name of the actor whose place `id` is.
    pub(crate) fn far_name(&self, id: ActorId) -> Option<RemoteActorId> {
        self.known().names.get(&id).copied()
    }

    /// The actor of this theater that a name is of.
    pub(crate) fn own(&self, slot: u64, incarnation: u64, capability: u64) -> Option<ActorId> {
        self.capability.is_right(slot, incarnation, capability).then(|| self.find(slot, incarnation)).flatten()
    }

    /// Returns the actor of this theater with this name, whether it lives or has ended. So references to it are equal that were written before and
    /// after its end.
    pub(crate) fn own_or_ended(&self, slot: u64, incarnation: u64, capability: u64) -> Option<ActorId> {
        let ended = || match &self.numbers {
            Some(numbers) => lock(numbers).by_number.get(&slot).copied(),
            None => self.core.find_ended(slot, incarnation).map(ActorId::of),
        };
        self.capability
            .is_right(slot, incarnation, capability)
            .then(|| self.find(slot, incarnation).or_else(ended))
            .flatten()
    }

    /// The seal of a turn of the place with this slot and life.
    pub(crate) fn capability_of_reroute(&self, slot: u64, incarnation: u64, reroute: u64) -> u64 {
        self.capability.of_reroute(slot, incarnation, reroute)
    }

    /// Place and life of an actor of this theater, as others are told them.
    pub(crate) fn stub_of(&self, id: ActorId) -> (u64, u64) {
        let Some(numbers) = &self.numbers else { return (id.address().slot(), id.address().incarnation()) };
        let Numbers { by_number, numbers, last, .. } = &mut *lock(numbers);
        let number = numbers.entry(id).or_insert_with(|| {
            *last += 1;
            by_number.insert(*last, id);
            *last
        });
        (*number, 1)
    }

    /// In simulation: puts actors into an order that is the same in each run; those who were never named come last.
    pub(crate) fn sort(&self, actors: &mut [ActorId]) {
        if let Some(numbers) = &self.numbers {
            let numbers = lock(numbers);
            actors.sort_by_key(|id| numbers.numbers.get(id).copied().unwrap_or(u64::MAX));
        }
    }

    /// The actor of this theater that was told as this.
    pub(crate) fn find(&self, slot: u64, incarnation: u64) -> Option<ActorId> {
        let Some(numbers) = &self.numbers else { return self.core.find(slot, incarnation).map(ActorId::of) };
        let numbers = lock(numbers);
        let id = numbers.by_number.get(&slot);
        id.copied().filter(|id| !id.address().is_stale())
    }

    /// Place, life and seal of an actor of this theater (or of the place of one that is elsewhere).
    pub(crate) fn with_capability(&self, id: ActorId) -> Result<(u64, u64, u64), WireError> {
        let address = id.address();
        // The name of one that has ended leads to nobody, whoever it was.
        if address.system() != self.core.id() && !address.is_stale() {
            return Err(WireError::new(format!(
                "{id} belongs to another system of this process, not to this theater's"
            )));
        }
        let (slot, incarnation) = self.stub_of(id);
        Ok((slot, incarnation, self.capability.of(slot, incarnation)))
    }

    /// The name of `id` for other theaters, or for the theater `reader`.
    ///
    /// Where the actor is elsewhere and cannot be called there, it is the name of its place here, from where what is sent to
    /// it is sent on.
    pub(crate) fn name_for_others(&self, id: ActorId, reader: Option<u64>) -> Result<RefName, WireError> {
        let name = self.name_alone(id, reader)?;
        let group = self.groups().of(id).filter(|_| {
            self.theater_core().is_some_and(|theater_core| theater_core.registry.migration_vtable(id).is_some())
        });
        let Some(group) = group else { return Ok(name) };
        Ok(match name {
            RefName::Mine { slot, incarnation, capability } => {
                let born = ActorLocation { theater: self.incarnation, address: None, slot, incarnation, capability };
                RefName::Member { group, born, at: None }
            }
            RefName::Moved { born, at } => RefName::Member { group, born, at: Some(at) },
            RefName::Other { theater, address, slot, incarnation, capability } => {
                let born = ActorLocation { theater, address: Some(address), slot, incarnation, capability };
                RefName::Member { group, born, at: Some(born) }
            }
            RefName::Yours(_) | RefName::Member { .. } => name,
        })
    }

    /// As [`Directory::name_for_others`], without its group.
    fn name_alone(&self, id: ActorId, reader: Option<u64>) -> Result<RefName, WireError> {
        let (name, moved) = {
            let known = self.known();
            let name = known.names.get(&id).copied();
            let moved = known.moved.get(&id).map(|moved| moved.view);
            // Who was born here, and is here, has its own name.
            let moved = moved.filter(|view| name.is_some() || view.route().is_some());
            (name, moved.map(|view| view.route().filter(|_| view.has_begun())))
        };
        if let Some(at) = moved {
            let here = || self.location(id, self.theater_core().and_then(|theater_core| theater_core.listens));
            let born = match name {
                Some(RemoteActorId { theater, address, slot, incarnation, capability }) => {
                    ActorLocation { theater, address, slot, incarnation, capability }
                }
                None => here()?,
            };
            let at = match at {
                Some(RemoteActorId { theater, address: Some(address), slot, incarnation, capability }) => {
                    ActorLocation { theater, address: Some(address), slot, incarnation, capability }
                }
                // It is here or on its way, or cannot be called where it is: this theater knows the way.
                _ => here()?,
            };
            return Ok(RefName::Moved { born, at });
        }
        match name {
            Some(RemoteActorId { theater, address: Some(address), slot, incarnation, capability }) => {
                Ok(RefName::Other { theater, address, slot, incarnation, capability })
            }
            // It has no number on the link since an earlier one was lost.
            Some(RemoteActorId { theater, address, slot, incarnation, capability }) if reader == Some(theater) => {
                let born = ActorLocation { theater, address, slot, incarnation, capability };
                Ok(RefName::Moved { born, at: born })
            }
            _ => self.with_capability(id).map(|(slot, incarnation, capability)| RefName::Mine {
                slot,
                incarnation,
                capability,
            }),
        }
    }

    /// The place of an actor in this theater.
    pub(crate) fn location(&self, id: ActorId, address: Option<SocketAddr>) -> Result<ActorLocation, WireError> {
        self.with_capability(id).map(|(slot, incarnation, capability)| ActorLocation {
            theater: self.incarnation,
            address,
            slot,
            incarnation,
            capability,
        })
    }

    /// That a group stays, since `member` cannot go.
    pub(crate) fn of_member(&self, member: ActorId, why: MigrateError) -> MigrateError {
        let kind = ShortType(self.groups().kind_of(member).unwrap_or("an actor"));
        let who = match playhouse_actor::name_of(member) {
            Some(name) => format!("{kind} {name:?}"),
            None => format!("{kind}{member}"),
        };
        MigrateError::Member { who, why: Box::new(why) }
    }

    /// The name that it was born with.
    pub(crate) fn identity(&self, id: ActorId) -> Result<RemoteActorId, WireError> {
        match self.far_name(id) {
            Some(name) => Ok(name),
            None => self.location(id, None).map(RemoteActorId::from),
        }
    }
}
