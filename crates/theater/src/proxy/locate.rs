//! Searches for actors that were in a lost theater, or were reached over it.
//!
//! An actor of the lost theater may have gone on before. Therefore stubs with routes to that theater ask all other theaters for their actors, by
//! birth names ([`Locate`](crate::link::frame::Head::Locate)), and keep the mail until the answers. An actor that no theater knows was lost. (The
//! source of an actor that migrates between two other theaters knows the actor until the source has learned its new location.) An actor that has come
//! to this theater since is not in another one. Contrary answers of others were true before.
//!
//! *When a theater answers.* An actor that the lost theater has sent may still be under way to a theater that has not lost it yet. A theater with a
//! link to the lost one therefore asks that one first ([`Inquiry`]). The reply follows all frames sent before it. Without a reply, the link is lost,
//! and all frames that came over it were read. Mail for the lost actors waits that long. If a theater is lost before its answer, the locating theater
//! asks the others again, because an actor may have moved from it to one of them.
//!
//! *The asked theaters.* These are all theaters with a link to the locating one. Each of them asks the theaters that it is linked with and that the
//! locating one is not. Before that, links are made with the birth theater of an actor, and from there with theaters that may have the actor
//! ([`authority`](crate::migration::authority)). A theater that knows the target of an actor asks that target, unless it was asked before. Therefore
//! the chain of the actor's routes is followed to its location. A theater says of another one that it has an actor only if that theater cannot be
//! asked. Otherwise it says that the actor has gone to it ([`Whereabouts::Gone`]). The reason is an actor that went from A to B and on over the lost
//! theater. B may locate it, and A must not say that it is in B.
//!
//! *Replies at different times.* An actor may go from one theater to another between their replies. Then the target has not seen it, and the source
//! says that it has gone to the target. Theaters with replies that contradict each other in this manner are asked again ([`ROUNDS_MAX`]). Replies do
//! not contradict each other if the chain ends in the lost theater. The same holds if it ends at the locating theater, which knows that the actor had
//! gone to the lost one.
//!
//! *Incoming actors.* An actor that no theater knows may be incoming in the locating theater. In that case all replies are older than its arrival.
//! The stub keeps its mail, and the locating theater asks all theaters again about a tick later. It does so until the source says that it has the
//! actor, or the incoming actor has begun, stays, or its source is lost. This has no other bound. A hostile source that says nothing delays the mail
//! of this stub until the link with it is lost. The actor of a stub that reroutes is located again in the same manner, after its marker is lost.
//!
//! *The affected stubs.* A link knows the actors that it is the route to, but a route may be about to change. The actor has come to this theater, or
//! leaves, or the stub has rerouted, and its cell has not learned of it. Therefore each cell is asked, in its stage. It has its mail kept
//! ([`PendingProxy`]) if its route leads over the lost link then. A link that becomes a route after its loss asks once more
//! ([`Forwarder::is_route_from`]). In the same manner a stub is asked again when its actor is found, whether it still waits for the actor.
//!
//! This theater knows that an actor comes, and that its route changes, some moments before its stub acts on it. A new watcher in between would be
//! told that the actor is lost; its watch is tried again instead (`Directory::again`).

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use playhouse_actor::away::{ActorLocation, ForwardedMessage, Forwarder};
use playhouse_actor::wire::{Codec, StubContent};
use playhouse_actor::{ActorId, AskError, Notify, StopReason, Tell, Watcher};
use playhouse_executor::jitter::seam;
use rustc_hash::FxHashSet;

use crate::link::Link;
use crate::link::frame::{LOCATE_THEATERS_MAX, LOST_ACTORS_MAX, LocateReply, Whereabouts};
use crate::link::link_table::LinkTable;
use crate::link::node::{LostActor, TakeLocateReply};
use crate::link::proxy::Proxy;
use crate::lock::lock;
use crate::naming::{BirthName, RemoteActorId, Seen};
use crate::proxy::pending_proxies::PendingProxies;
use crate::proxy::pending_proxy::PendingProxy;

/// The interval between two checks whether a frame was read.
const READ_AGAIN: Duration = Duration::from_millis(1);

/// The number of rounds in which theaters with contradicting replies are asked, about a tick apart. If one of them has forgotten an actor that was
/// lost, the others learn of that within about a tick.
const ROUNDS_MAX: u32 = 20;

/// A search for some lost actors.
pub(crate) struct Locate {
    /// The theater that they were in, according to this one.
    lost: u64,
    /// The number of earlier rounds.
    round: u32,
    open: Mutex<Open>,
    proxies: Arc<PendingProxies>,
}

impl PendingProxies {
    /// Asks all other theaters for these actors, which were in the theater `lost`. Their mail waits in that time; an actor that no theater knows was lost with the theater.
    ///
    /// Only actors are located whose stubs say, in their stages, that their routes lead nowhere. Others have come to this theater in the meantime, or
    /// have another route.
    pub(crate) fn locate(self: &Arc<Self>, lost_actors: Vec<LostActor>, lost: u64) {
        let registry = &self.link_table.registry;
        // The actors of a stage are located together, when the request has come to all of them.
        let mut stages: BTreeMap<u16, Arc<Rerouted>> = BTreeMap::new();
        for LostActor { id, watchers } in lost_actors {
            let Some(controls) = registry.migration_vtable(id).and_then(|_| registry.controls(id)) else { continue };
            let of_stage = stages
                .entry(id.address().stage())
                .or_insert_with(|| Arc::new(Rerouted { lost, routes: Mutex::default(), proxies: Arc::clone(self) }));
            let of_stage = Arc::clone(of_stage);
            (controls.reroute)(id, Box::new(move |present| of_stage.reroute(id, present, watchers)));
        }
    }
}

/// Actors of a stage with lost routes, and the new routes. Dropping the last reference begins the search.
struct Rerouted {
    lost: u64,
    routes: Mutex<Vec<(ActorId, Arc<PendingProxy>)>>,
    proxies: Arc<PendingProxies>,
}

impl Rerouted {
    fn reroute(&self, id: ActorId, present: StubContent<'_>, watchers: Vec<(Watcher, Tell)>) -> Vec<(Watcher, Notify)> {
        match present {
            StubContent::Way(route) => {
                if leads_nowhere(&**route) {
                    let lost_actors = PendingProxy::lost_actors(&self.proxies);
                    lost_actors.is_at(id);
                    lock(&self.routes).push((id, Arc::clone(&lost_actors)));
                    *route = lost_actors;
                }
                for (watcher, notify) in watchers {
                    // The route keeps the watch, or notifies the watcher.
                    let _ = route.carry(ForwardedMessage::Watch { watcher, notify });
                }
                Vec::new()
            }
            StubContent::Here => watchers.into_iter().map(|(watcher, tell)| (watcher, Notify::Call(tell))).collect(),
            StubContent::Nobody => {
                watchers.into_iter().for_each(|(_, tell)| tell(StopReason::TheaterLost.into()));
                Vec::new()
            }
        }
    }
}

impl Drop for Rerouted {
    fn drop(&mut self) {
        let routes = std::mem::take(self.routes.get_mut().unwrap_or_else(PoisonError::into_inner));
        Locate::begin(routes, &self.proxies, (self.lost, 0));
    }
}

/// Returns whether this route goes over a link that is lost.
pub(crate) fn leads_nowhere(route: &dyn Forwarder) -> bool {
    let route = route.as_any();
    route.downcast_ref::<Proxy>().is_some_and(Proxy::is_lost)
        || route.downcast_ref::<PendingProxy>().is_some_and(PendingProxy::is_lost)
}

/// An actor that is not found yet.
struct Missing {
    id: ActorId,
    /// The route that keeps its mail.
    route: Arc<PendingProxy>,
    /// By theater: the target that it claims for the actor.
    gone: BTreeMap<u64, u64>,
}

impl Missing {
    /// Returns whether the actor may have gone from one theater to another between the replies of the two.
    fn may_have_passed(&self, lost: u64, locator: u64) -> bool {
        let ends = |to: &u64| {
            let chain = std::iter::successors(Some(*to), |at| self.gone.get(at).copied());
            chain.take(self.gone.len() + 1).any(|at| at == lost || at == locator)
        };
        !self.gone.values().all(ends)
    }
}

struct Open {
    lost_actors: Vec<Option<Missing>>,
    /// The number of theaters without an answer.
    to_answer: usize,
    /// Whether one of them was lost before its answer.
    is_incomplete: bool,
}

impl Locate {
    /// Asks all other theaters for these actors, which were in the theater `lost`, and tells their routes.
    pub(crate) fn begin(
        lost_actors: Vec<(ActorId, Arc<PendingProxy>)>,
        proxies: &Arc<PendingProxies>,
        (lost, round): (u64, u32),
    ) {
        for (id, _) in &lost_actors {
            // The actions are carried out already: its mail waits, and it is being located. At a repeated search, there may be a link with that
            // theater again.
            proxies.directory.note_route_lost(*id, lost);
        }
        let proxies = Arc::clone(proxies);
        let Some(node) = proxies.link_table.node() else {
            return Locate::ask(lost_actors, &proxies, (lost, round));
        };
        let actors: Vec<ActorId> = lost_actors.iter().map(|(id, _)| *id).collect();
        let ask = Box::new(move || Locate::ask(lost_actors, &proxies, (lost, round)));
        node.reach_hosts(&actors, &FxHashSet::from_iter([lost]), ask);
    }

    fn ask(lost_actors: Vec<(ActorId, Arc<PendingProxy>)>, proxies: &Arc<PendingProxies>, (lost, round): (u64, u32)) {
        let PendingProxies { directory, link_table, .. } = &**proxies;
        let links = link_table.all_links();
        let theaters = links.iter().map(|link| link.incarnation).chain([directory.incarnation]);
        let asked: Vec<u64> = theaters.take(LOCATE_THEATERS_MAX).collect();
        let mut lost_actors = lost_actors.into_iter();
        loop {
            let some: Vec<(ActorId, Arc<PendingProxy>)> = lost_actors.by_ref().take(LOST_ACTORS_MAX).collect();
            if some.is_empty() {
                return;
            }
            // An actor without a known name gets the name of no actor.
            let no_actor = RemoteActorId { theater: 0, address: None, slot: 0, incarnation: 0, capability: 0 };
            let names: Vec<BirthName> =
                some.iter().map(|(id, _)| directory.identity(*id).unwrap_or(no_actor).birth_name()).collect();
            let missing = |(id, route)| Some(Missing { id, route, gone: BTreeMap::new() });
            let open = Mutex::new(Open {
                lost_actors: some.into_iter().map(missing).collect(),
                to_answer: links.len(),
                is_incomplete: false,
            });
            let search = Arc::new(Locate { lost, round, open, proxies: Arc::clone(proxies) });
            for link in &links {
                let (search, theater) = (Arc::clone(&search), link.incarnation);
                link.locate(lost, (true, &asked), &names, Box::new(move |answer| search.told(theater, answer)));
            }
            if links.is_empty() {
                search.close();
            }
        }
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        lock(&self.open)
    }

    /// Takes the answer of one more theater.
    fn told(&self, theater: u64, answer: Result<(Codec, &[u8]), AskError>) {
        let is_lost = matches!(answer, Err(AskError::TheaterLost { .. }));
        let known = read_sightings(answer);
        let (found, all, is_incomplete) = {
            let mut open = self.open();
            open.to_answer -= 1;
            open.is_incomplete |= is_lost;
            let mut found = Vec::new();
            for (lost_actors, whereabouts) in open.lost_actors.iter_mut().zip(known) {
                let Some(missing) = lost_actors else { continue };
                match whereabouts {
                    // This theater is the first to know that it has come to it; answers of others were true before.
                    Some(Whereabouts::At(location)) if location.theater != self.proxies.directory.incarnation => {
                        found.extend(lost_actors.take().map(|missing| (missing, location)));
                    }
                    Some(Whereabouts::Gone(to)) => drop(missing.gone.insert(theater, to)),
                    Some(Whereabouts::At(_)) | None => {}
                }
            }
            (found, open.to_answer == 0, open.is_incomplete)
        };
        for (Missing { id, route, .. }, location) in found {
            let remote = RemoteActorId::from(location);
            seam(2);
            match self.proxies.directory.note_found(id, self.lost, remote) {
                Some(at) => route.found(at),
                None => route.is_not_needed(),
            }
        }
        if all && is_incomplete {
            // An actor may have gone from that theater to one that had answered before. There are fewer theaters to ask each time.
            let lost_actors = std::mem::take(&mut self.open().lost_actors);
            let lost_actors = lost_actors.into_iter().flatten().map(|missing| (missing.id, missing.route)).collect();
            Locate::begin(lost_actors, &self.proxies, (self.lost, self.round));
        } else if all {
            self.close();
        }
    }

    /// Ends the round: all theaters have answered.
    fn close(&self) {
        let lost_actors = std::mem::take(&mut self.open().lost_actors);
        let (lost, round, locator) = (self.lost, self.round + 1, self.proxies.directory.incarnation);
        let may_be_alive = |missing: &Missing| round < ROUNDS_MAX && missing.may_have_passed(lost, locator);
        let (again, lost_too): (Vec<Missing>, Vec<Missing>) = lost_actors.into_iter().flatten().partition(may_be_alive);
        self.begin_later(again.into_iter().map(|missing| (missing.id, missing.route)).collect(), round);
        let mut awaited = Vec::new();
        for Missing { id, route, .. } in lost_too {
            seam(2);
            awaited.extend(Self::end(id, route, &self.proxies, lost));
        }
        // The rounds count anew, because this theater's knowledge has changed since the last one, or is about to change.
        self.begin_later(awaited, 0);
    }

    /// Ends the search for the actor of this stub, which no other theater knows since the theater `lost` is lost. The mail goes to the actor, if this
    /// theater knows it. Otherwise the mail is reported. Returns the actor if it is to be located again.
    pub(crate) fn end(
        id: ActorId,
        route: Arc<PendingProxy>,
        proxies: &PendingProxies,
        lost: u64,
    ) -> Option<(ActorId, Arc<PendingProxy>)> {
        match proxies.directory.note_not_found(id, lost) {
            Seen::Moved(at) => route.found(at),
            Seen::Here => route.is_not_needed(),
            Seen::Incoming => return Some((id, route)),
            Seen::Reroutes(reroute) => {
                // Its marker waits behind the kept mail. The loss of the marker ends the reroute.
                route.lose_marker(reroute);
                return Some((id, route));
            }
            Seen::Nowhere => {
                // This comes before its stub ends: other theaters may watch it at the stub later.
                proxies.directory.note_lost(id);
                route.give_up();
                if let Some(controls) = proxies.link_table.registry.controls(id) {
                    (controls.forget)(id);
                }
            }
        }
        None
    }

    /// Asks all other theaters again for these actors, about a tick later.
    fn begin_later(&self, lost_actors: Vec<(ActorId, Arc<PendingProxy>)>, round: u32) {
        let Some((id, _)) = lost_actors.first() else { return };
        let (id, lost) = (*id, self.lost);
        let proxies = Arc::clone(&self.proxies);
        self.proxies.directory.again(id, move |_, _| Locate::begin(lost_actors, &proxies, (lost, round)));
    }
}

/// Returns a theater's answer to a search. Returns nothing if the theater is lost or the answer cannot be read.
fn read_sightings(answer: Result<(Codec, &[u8]), AskError>) -> Vec<Option<Whereabouts>> {
    answer.ok().and_then(|(codec, bytes)| codec.read(bytes).ok()).map_or_else(Vec::new, |LocateReply(known)| known)
}

/// Returns the location of the actor with this birth name, if it is known. It is this theater until the actor has begun in another one.
fn whereabouts(link_table: &LinkTable, born: BirthName) -> Option<RemoteActorId> {
    let LinkTable { directory, .. } = link_table;
    let id = directory.known_as(born).or_else(|| directory.own_born(born))?;
    if id.address().is_stale() {
        return None;
    }
    let (at, has_begun) = directory.location_of(id);
    let is_going = |at: &RemoteActorId| !has_begun && link_table.link(at.theater).is_some();
    match at.filter(|at| !is_going(at)) {
        Some(at) => Some(at),
        None => directory.location(id, directory.listens).ok().map(RemoteActorId::from),
    }
}

/// A question of another theater for these actors.
pub(crate) struct Inquiry {
    lost: u64,
    actors: Vec<BirthName>,
    /// Theaters that answer for themselves.
    asked: FxHashSet<u64>,
    /// The link with the lost theater, if there was one.
    over_lost: Option<Arc<Link>>,
    gathered: Mutex<Gathered>,
    link_table: Arc<LinkTable>,
}

struct Gathered {
    /// The answers of other theaters.
    said: BTreeMap<u64, Vec<Option<Whereabouts>>>,
    to_answer: usize,
    answer: Option<TakeLocateReply>,
}

impl Inquiry {
    /// Asks other theaters for the actors, and then this one. Answers their locations, except in the theater `lost`. Theaters that were `asked`, the
    /// locating one among them, are not asked again. If it is not `for_others`, only the targets of actors are asked.
    pub(crate) fn begin(
        lost: u64,
        (for_others, asked): (bool, Vec<u64>),
        actors: Vec<BirthName>,
        link_table: &Arc<LinkTable>,
        answer: TakeLocateReply,
    ) {
        let own: Vec<ActorId> =
            actors.iter().filter_map(|actor| link_table.directory.born_in_this_theater(*actor)).collect();
        let here = Arc::clone(link_table);
        let known = asked.iter().copied().chain([lost]).collect();
        let ask = move || Inquiry::ask(lost, (for_others, asked), actors, &here, answer);
        match link_table.node() {
            Some(node) => node.reach_hosts(&own, &known, Box::new(ask)),
            None => ask(),
        }
    }

    fn ask(
        lost: u64,
        (for_others, asked): (bool, Vec<u64>),
        actors: Vec<BirthName>,
        link_table: &Arc<LinkTable>,
        answer: TakeLocateReply,
    ) {
        let mut asked = FxHashSet::from_iter(asked);
        let directory = &link_table.directory;
        let gone = actors.iter().filter_map(|actor| whereabouts(link_table, *actor)).map(|at| at.theater);
        let own = actors.iter().filter_map(|actor| directory.born_in_this_theater(*actor));
        let noted = own.flat_map(|id| directory.hosts(id)).map(|host| host.theater);
        let gone: FxHashSet<u64> = gone.chain(noted).collect();
        let is_to_be_asked = |link: &Arc<Link>| {
            let theater = link.incarnation;
            theater == lost || !asked.contains(&theater) && (for_others || gone.contains(&theater))
        };
        let others: Vec<Arc<Link>> = link_table.all_links().into_iter().filter(is_to_be_asked).collect();
        asked.extend(others.iter().map(|link| link.incarnation).chain([directory.incarnation]));
        let mut known: Vec<u64> = asked.iter().copied().take(LOCATE_THEATERS_MAX).collect();
        known.sort_unstable();
        let (said, to_answer) = (BTreeMap::new(), others.len() + 1);
        let gathered = Gathered { said, to_answer, answer: Some(answer) };
        let (gathered, link_table) = (Mutex::new(gathered), Arc::clone(link_table));
        let over_lost = others.iter().find(|link| link.incarnation == lost).cloned();
        let inquiry = Arc::new(Inquiry { lost, actors, asked, over_lost, gathered, link_table });
        for other in others {
            let (answered, theater) = (Arc::clone(&inquiry), other.incarnation);
            let answer = move |answer: Result<(Codec, &[u8]), AskError>| {
                answered.told(Some((theater, read_sightings(answer))));
            };
            other.locate(lost, (false, &known), &inquiry.actors, Box::new(answer));
        }
        inquiry.told(None);
    }

    /// Notes the answer of one theater, or that all have been asked. After the last one, this theater adds its own knowledge.
    fn told(self: &Arc<Self>, said: Option<(u64, Vec<Option<Whereabouts>>)>) {
        let mut gathered = lock(&self.gathered);
        gathered.said.extend(said);
        gathered.to_answer -= 1;
        if gathered.to_answer > 0 {
            return;
        }
        drop(gathered);
        let is_read = |link: &Arc<Link>| link.is_read_by_another_thread();
        let (waits, node) = (self.over_lost.as_ref().is_some_and(is_read), self.link_table.node());
        let Some(node) = node.filter(|_| waits) else { return self.close() };
        // The frame that is being read may hold the actor.
        let inquiry = Arc::clone(self);
        let wait = move || {
            let waits = inquiry.over_lost.as_ref().is_some_and(is_read);
            if !waits {
                inquiry.close();
            }
            !waits
        };
        if node.until_done("search", READ_AGAIN, Box::new(wait)).is_err() {
            self.close();
        }
    }

    /// Answers with the actors of this theater, and with the answers of the others.
    fn close(&self) {
        let (said, answer) = {
            let mut gathered = lock(&self.gathered);
            (std::mem::take(&mut gathered.said), gathered.answer.take())
        };
        let known = (0..self.actors.len()).map(|nth| self.whereabouts(nth, &said)).collect();
        if let Some(answer) = answer {
            answer(known);
        }
    }

    /// Returns the knowledge about the `nth` actor.
    fn whereabouts(&self, nth: usize, said: &BTreeMap<u64, Vec<Option<Whereabouts>>>) -> Option<Whereabouts> {
        let own = whereabouts(&self.link_table, self.actors[nth]);
        let location_of = |RemoteActorId { theater, address, slot, incarnation, capability }| ActorLocation {
            theater,
            address,
            slot,
            incarnation,
            capability,
        };
        if let Some(here) = own.filter(|at| at.theater == self.link_table.directory.incarnation) {
            return Some(Whereabouts::At(location_of(here)));
        }
        let said_by = |theater: &u64| said.get(theater).and_then(|said| *said.get(nth)?);
        let seen = said.keys().filter_map(said_by);
        let is_at = |seen: &Whereabouts| matches!(seen, Whereabouts::At(location) if location.theater != self.lost);
        if let Some(at) = seen.clone().find(is_at) {
            return Some(at);
        }
        if let Some(at) = own
            && at.theater != self.lost
            && !self.asked.contains(&at.theater)
            && at.is_stub()
        {
            return Some(Whereabouts::At(location_of(at)));
        }
        let gone = |seen: Whereabouts| if let Whereabouts::Gone(to) = seen { Some(to) } else { None };
        // The theaters asked by this one know a part of the chains only.
        let here = self.link_table.directory.incarnation;
        let next = |at: &u64| if *at == here { own.map(|at| at.theater) } else { said_by(at).and_then(gone) };
        let end = |to| std::iter::successors(Some(to), next).take(said.len() + 1).last();
        let mut ends = own.map(|at| at.theater).into_iter().chain(seen.filter_map(gone)).filter_map(end);
        // A chain that ends in the lost theater may be older than another one.
        let first = ends.next()?;
        let end = std::iter::once(first).chain(ends).find(|end| *end != self.lost).unwrap_or(first);
        Some(Whereabouts::Gone(end))
    }
}
