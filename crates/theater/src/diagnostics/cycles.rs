//! Cycles of asks over several theaters.
//!
//! Within one process each awaited ask is noted before it is sent, and the one that would close a cycle fails
//! (`playhouse-actor`, `waiting.rs`). Between theaters that would cost a round trip for each ask. So a cycle over several
//! theaters is allowed to close, and is found afterwards: nothing is looked for, or said, unless an actor has waited for an
//! actor elsewhere from one tick of the housekeeper to the next.
//!
//! Then its theater asks all others who waits for whom there ([`Waits`](crate::link::frame::Head::Waits)), and puts that together:
//! actors go by the names that they were born with, so it does not matter where they have gone. What the theaters say is not
//! true of one moment. So a cycle is believed only when it is found twice in turn, with the same waits in it, and all that the
//! second time was put together from was said after all of the first had been heard: each of its waits lasted from before that
//! moment to after it, so at that moment it was closed. And a cycle that is closed stays closed until an ask in it ends.
//!
//! Several theaters in it may find it. Of its waits that no handler is known to have begun, those for actors elsewhere first, the one with the lowest name is to fail, so that the others
//! go on; its theater is told ([`Cycle`](crate::link::frame::Head::Cycle)). The ask fails only if its request is taken back
//! ([`TakeBack`](crate::link::frame::Head::TakeBack)): a request that a handler has begun goes on. The asker's theater hears that
//! ([`TooLate`](crate::link::frame::Head::TooLate)), which is told with the wait from then on, and the next one of the waits is to fail. One of them can: each handler in the cycle waits in the course of at most one request, so that if all had been begun, each of them
//! would have been begun before itself.
//!
//! Who is waited for may go by another name where it was told of before its own was known. What is meant by that is asked of the
//! theater that has given it, in the next turn.
//!
//! An ask may have gone over a third theater, so that the one that looks has no link with the one where the asked actor lives. Therefore it asks, in the
//! next turn, where those actors are that are waited for and do not wait themselves, as far as was said: the theater where an actor was born knows that
//! ([`authority`](crate::migration::authority)). It calls the theaters that it hears of.
//!
//! A request may be forwarded by its receiver ([`Reply::forward`](playhouse_actor::Reply::forward)), in a theater that is not the asker's. An asker's theater therefore
//! tells with a wait which way the request has left, and every theater tells of the requests that came over its links and were forwarded, or went on from there:
//! to whom, how often, by which way ([`Passed`]). A theater that looks follows these from the asker ([`follow`]). How often a request was forwarded is part of the wait, so a
//! wait is the same one in two turns only if the request was not forwarded in between. A request that a handler has begun may be
//! forwarded and wait again, so the news of its beginning contains the number of times that it had been forwarded by then. The order to fail contains that number,
//! too, and changes nothing if the request has been forwarded since.
//!
//! Not found: cycles over theaters that the one that looks cannot call, as long as no other one looks either; and in theaters where more than
//! [`WAITS_MAX`] actors wait at a time, or that have passed on so many requests, some of theirs. A wait whose request went over a theater that has not told all is
//! left out: nobody knows where the request is.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use playhouse_actor::ActorId;
use playhouse_actor::away::{RequestLocation, TakeAnswer};
use playhouse_actor::waiting::{self, Stage};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use crate::link::frame::{WAITS_MAX, at_most};
use crate::migration::authority::Host;
use crate::node::core::{Callee, TICK, TheaterCore};

/// How often it is looked for cycles among those who have waited for long: twice in so many ticks.
const EVERY_TICKS: u64 = 20;
/// A cycle is believed when it is found so often.
const ROUNDS: u64 = 2;
/// Turns in a row after which a cycle of which no ask fails is looked for no more often than others.
const HUNTS_MAX: u64 = 100;
/// Theaters that are told as where actors are, in one frame.
const HOSTS_MAX: usize = 64;
/// Theaters that are called in so much time because actors may wait there, at most. Each of them is called once in it.
const CALLS_MAX: usize = 16;
const CALLS_IN: Duration = Duration::from_secs(10);

/// The name that an actor was born with: theater, slot, life.
type Name = (u64, u64, u64);

/// A wait of one actor for another. The same wait is equal to itself also when more is known of its request.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Wait {
    from: Name,
    /// The number of this wait among those of `from`.
    token: u64,
    to: Name,
    /// How that one is shown.
    label: String,
    /// It lives in another theater than who waits, or lived there when it was asked.
    afar: bool,
    /// A handler has begun the request, when it had been forwarded so often elsewhere. It cannot be taken back from that handler.
    begun: Option<u32>,
    /// How often the request was forwarded elsewhere, as far as it was followed.
    forwards: u32,
    /// The theater that the request was sent to from there, and its number among those.
    route: Option<(u64, u64)>,
    /// The theater that says so, where `from` lives.
    at: u64,
}

impl Wait {
    fn key(&self) -> (Name, u64, Name, &str, bool, u32, u64) {
        (self.from, self.token, self.to, &self.label, self.afar, self.forwards, self.at)
    }

    /// Whether the request cannot be taken back, as far as is known.
    fn has_begun(&self) -> bool {
        self.begun.is_some_and(|forwards| forwards >= self.forwards)
    }
}

/// A request that came over a link, and was forwarded or went on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Passed {
    /// The theater that it came from, and its number among those.
    came: (u64, u64),
    /// Whom it was forwarded to last, and how that one is shown.
    to: Option<(Name, String)>,
    /// How often it was forwarded.
    forwards: u32,
    /// The theater that it went on to, and its number among those.
    route: Option<(u64, u64)>,
}

/// The requests that were told by theaters.
#[derive(Default)]
struct AllPassed {
    /// The keys are the theater that tells, and where and as what it came there.
    told: BTreeMap<(u64, (u64, u64)), Passed>,
    /// The theaters that have told all of theirs.
    complete: BTreeSet<u64>,
}

impl AllPassed {
    fn add(&mut self, theater: u64, passed: Vec<Passed>) {
        // More are not told.
        if passed.len() < WAITS_MAX {
            self.complete.insert(theater);
        }
        self.told.extend(passed.into_iter().map(|passed| ((theater, passed.came), passed)));
    }
}

impl Ord for Wait {
    fn cmp(&self, other: &Wait) -> Ordering {
        self.key().cmp(&other.key())
    }
}

impl PartialOrd for Wait {
    fn partial_cmp(&self, other: &Wait) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Wait {
    fn eq(&self, other: &Wait) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Wait {}

/// What is known of cycles.
#[derive(Default)]
pub(crate) struct Cycles {
    /// Who waits here; nobody, unless one waits for an actor elsewhere.
    seen: FxHashMap<(ActorId, u64), Seen>,
    /// Others are being asked.
    asking: bool,
    /// Found in the last turn.
    found: BTreeSet<Cycle>,
    /// Turns in a row in which a cycle was believed.
    hunts: u64,
    /// Who is meant by the names that others have used: where an actor's own name was not known yet, it went by that of its place
    /// in the theater that told of it.
    meant: BTreeMap<Name, Name>,
    /// Those that are waited for, and that no theater has said to wait.
    ends: Vec<Name>,
    /// Theaters that were called because actors may wait there, and when.
    called: BTreeMap<u64, Duration>,
}

/// The answer of a theater to [`Waits`](crate::link::frame::Head::Waits): the waits of its actors; the requests that were passed on there; the names of the actors that it was asked for by slot and life;
/// and the theaters of the actors that are waited for, and of those that it was asked for if they were born in it.
#[derive(Default, Serialize, Deserialize)]
pub(crate) struct Said {
    #[serde(deserialize_with = "at_most::<_, _, WAITS_MAX>")]
    waits: Vec<Wait>,
    #[serde(deserialize_with = "at_most::<_, _, WAITS_MAX>")]
    passed: Vec<Passed>,
    #[serde(deserialize_with = "at_most::<_, _, WAITS_MAX>")]
    meant: Vec<(u64, u64, Name)>,
    #[serde(deserialize_with = "at_most::<_, _, HOSTS_MAX>")]
    hosts: Vec<Host>,
}

/// For how long a wait has been seen.
#[derive(Clone, Copy, Default)]
struct Seen {
    ticks: u64,
    /// Turns in which it was looked for a cycle that it may be part of.
    rounds: u64,
}

/// The waits along it, the lowest first.
type Cycle = Vec<Wait>;

/// What the theaters have said so far.
struct SearchRound {
    /// The waits here for which they are asked.
    asked_for: Vec<(ActorId, u64)>,
    waits: Vec<Wait>,
    passed: AllPassed,
    meant: Vec<(Name, Name)>,
    /// Theaters of actors that are waited for.
    hosts: Vec<Host>,
    to_answer: usize,
    all_said: bool,
}

impl Cycles {
    /// Whether a cycle was found of which an ask is about to fail.
    fn hunts(&self) -> bool {
        (1..HUNTS_MAX).contains(&self.hunts)
    }

    /// The cycles in what was said in this turn that were in the last one, too.
    fn believe(&mut self, waits: &[Wait]) -> Vec<Cycle> {
        let before = std::mem::replace(&mut self.found, find(waits));
        self.found.intersection(&before).cloned().collect()
    }
}

impl TheaterCore {
    /// Returns the waits of the actors here, the names of the actors with these slots and lives, and the theaters of `actors`.
    pub(crate) fn say_waits(&self, names: &[(u64, u64)], actors: &[Name]) -> Said {
        let meant = |(slot, incarnation): &(u64, u64)| {
            let id = self.directory.find(*slot, *incarnation)?;
            Some((*slot, *incarnation, self.directory.identity(id).ok()?.birth()))
        };
        let meant = names.iter().filter_map(meant).collect();
        Said { waits: self.own_waits(), passed: self.passed(), meant, hosts: self.hosts_of(actors) }
    }

    /// Returns the requests of other theaters that were passed on here.
    fn passed(&self) -> Vec<Passed> {
        let told = |(came, whereabouts): ((u64, u64), RequestLocation)| {
            let to = whereabouts.forwarded_to();
            let to = to.and_then(|(id, label)| Some((self.directory.identity(id).ok()?.birth(), label)));
            Passed { came, to, forwards: whereabouts.forwards, route: whereabouts.route }
        };
        let links = self.all_links();
        links.iter().flat_map(|link| link.passed()).take(WAITS_MAX).map(told).collect()
    }

    /// Returns the other theaters of the actors that actors here wait for or have forwarded requests to, those that such requests went to, and the theaters of
    /// those of `actors` that were born here.
    fn hosts_of(&self, actors: &[Name]) -> Vec<Host> {
        let born = |name: &&Name| name.0 == self.incarnation;
        let born =
            actors.iter().filter(born).filter_map(|(_, slot, incarnation)| self.directory.find(*slot, *incarnation));
        let waits = waiting::waits(self.system.core().id());
        let links = self.all_links();
        let passed: Vec<RequestLocation> =
            links.iter().flat_map(|link| link.passed()).map(|(_, passed)| passed).collect();
        let forwarded = passed.iter().filter_map(RequestLocation::forwarded_to).map(|(id, _)| id);
        let away = waits.iter().filter_map(|wait| match wait.stage {
            Stage::Away { whereabouts, .. } => Some(whereabouts),
            Stage::Queued | Stage::Begun => None,
        });
        let routes: BTreeSet<u64> =
            away.chain(passed.iter().copied()).filter_map(|passed| passed.route).map(|(theater, _)| theater).collect();
        let on_routes = links.iter().filter(|link| routes.contains(&link.incarnation));
        let on_routes = on_routes.map(|link| Host { theater: link.incarnation, address: link.advertised });
        let host = |id| self.directory.at(id).map(|at| Host { theater: at.theater, address: at.address });
        let hosts: BTreeMap<u64, Host> = born
            .chain(waits.iter().map(waiting::Wait::to))
            .chain(forwarded)
            .filter_map(host)
            .chain(on_routes)
            .map(|host| (host.theater, host))
            .collect();
        hosts.into_values().take(HOSTS_MAX).collect()
    }

    fn own_waits(&self) -> Vec<Wait> {
        let waits = waiting::waits(self.system.core().id());
        let mut waits: Vec<Wait> = waits.iter().take(WAITS_MAX).filter_map(|wait| self.told(wait)).collect();
        waits.sort();
        waits
    }

    fn told(&self, wait: &waiting::Wait) -> Option<Wait> {
        let name = |id: ActorId| self.directory.identity(id).ok().map(|far| far.birth());
        let (from, to) = (name(wait.from)?, name(wait.to())?);
        let (begun, forwards, route) = match wait.stage {
            Stage::Queued => (None, 0, None),
            Stage::Begun => (Some(0), 0, None),
            Stage::Away { begun, whereabouts } => (begun, whereabouts.forwards, whereabouts.route),
        };
        let (token, label, afar, at) = (wait.token, wait.label(), self.is_afar(wait), self.incarnation);
        Some(Wait { from, token, to, label, afar, begun, forwards, route, at })
    }

    /// Whether who is waited for is elsewhere, or may be: its theater may have forwarded the request.
    fn is_afar(&self, wait: &waiting::Wait) -> bool {
        wait.is_away() || self.directory.is_remote(wait.to())
    }

    fn cycles(&self) -> MutexGuard<'_, Cycles> {
        self.cycles.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks for cycles, if somebody here has waited for some time while somebody waits for an actor elsewhere: twice, and then
    /// about once in a second.
    pub(crate) fn look_for_cycles(self: &Arc<Self>) {
        let is_due = |seen: &Seen| seen.ticks > 0 && (seen.rounds < ROUNDS || seen.ticks % EVERY_TICKS <= 1);
        let asked_for = {
            let mut cycles = self.cycles();
            let before = std::mem::take(&mut cycles.seen);
            let waits = waiting::waits(self.system.core().id());
            if !waits.iter().any(|wait| self.is_afar(wait)) {
                cycles.meant.clear();
                cycles.hunts = 0;
                return;
            }
            let seen = |wait: &waiting::Wait| {
                let key = (wait.from, wait.token);
                let seen = before.get(&key).map_or(Seen::default(), |seen| Seen { ticks: seen.ticks + 1, ..*seen });
                (key, seen)
            };
            cycles.seen = waits.iter().map(seen).collect();
            if cycles.asking || !cycles.seen.values().any(is_due) {
                return;
            }
            cycles.asking = true;
            cycles.seen.keys().copied().collect::<Vec<_>>()
        };
        let links = self.all_links();
        let ends = self.cycles().ends.clone();
        let mut passed = AllPassed::default();
        passed.add(self.incarnation, self.passed());
        let open = SearchRound {
            asked_for,
            waits: self.own_waits(),
            passed,
            meant: Vec::new(),
            hosts: self.hosts_of(&ends),
            to_answer: links.len(),
            all_said: true,
        };
        if links.is_empty() {
            return self.take_waits(open);
        }
        let round = Arc::new(Mutex::new(Some(open)));
        // Whom nobody knows is meant by its name.
        let unknown: Vec<Name> =
            self.cycles().meant.iter().filter(|(name, meant)| name == meant).map(|(name, _)| *name).collect();
        for link in links {
            let theater = link.incarnation;
            let its = unknown
                .iter()
                .filter(|name| name.0 == theater)
                .map(|(_, slot, incarnation)| (*slot, *incarnation))
                .collect();
            let (theater_core, round) = (Arc::downgrade(self), Arc::clone(&round));
            let answer: TakeAnswer = Box::new(move |answer| {
                let said = answer.ok().and_then(|(codec, bytes)| codec.read::<Said>(bytes).ok());
                let mut open = round.lock().unwrap_or_else(PoisonError::into_inner);
                let Some(round) = open.as_mut() else { return };
                round.all_said &= said.is_some();
                let Said { waits, passed, meant, hosts } = said.unwrap_or_default();
                round.waits.extend(waits);
                round.passed.add(theater, passed);
                round.hosts.extend(hosts);
                round
                    .meant
                    .extend(meant.into_iter().map(|(slot, incarnation, name)| ((theater, slot, incarnation), name)));
                round.to_answer -= 1;
                let over = if round.to_answer == 0 { open.take() } else { None };
                drop(open);
                if let (Some(round), Some(theater_core)) = (over, theater_core.upgrade()) {
                    theater_core.take_waits(round);
                }
            });
            link.ask_waits(its, ends.clone(), answer);
        }
    }

    /// Whether it will soon be known of everybody who waits here whether that is for ever. No actor has handled anything for the time `quiet`.
    pub(crate) fn looks_for_cycles(&self, quiet: Duration) -> bool {
        /// Before that it may have to be learnt who is meant by a name.
        const ALL_TICKS: u64 = 2 * EVERY_TICKS + ROUNDS;
        let waits = waiting::waits(self.system.core().id());
        if !waits.iter().any(|wait| self.is_afar(wait)) {
            return false;
        }
        let cycles = self.cycles();
        let seen = |wait: &waiting::Wait| cycles.seen.get(&(wait.from, wait.token)).copied().unwrap_or_default();
        let is_new = waits.iter().any(|wait| seen(wait).ticks < ALL_TICKS);
        let limit = TICK * ALL_TICKS as u32;
        let now = self.now();
        let calls = cycles.called.values().any(|called| now.saturating_sub(*called) < limit);
        // A request may have been forwarded elsewhere, in a wait that is seen for long.
        let hunts = !cycles.found.is_empty() && cycles.hunts < HUNTS_MAX;
        cycles.asking || hunts || is_new || calls || quiet < limit
    }

    /// The theaters have said who waits for whom.
    fn take_waits(self: &Arc<Self>, mut round: SearchRound) {
        let calls = self.call_hosts(&round.hosts);
        let certain: Vec<Cycle> = {
            let mut cycles = self.cycles();
            cycles.asking = false;
            if !round.all_said {
                return;
            }
            if cycles.meant.len() > WAITS_MAX {
                cycles.meant.clear();
            }
            cycles.meant.extend(round.meant);
            round.waits.retain_mut(|wait| follow(wait, &round.passed));
            let mut any_new = false;
            for wait in &mut round.waits {
                let own = || self.directory.find(wait.to.1, wait.to.2).and_then(|id| self.directory.identity(id).ok());
                let known = cycles.meant.get(&wait.to).copied();
                any_new |= known.is_none();
                let name = known.or_else(|| own().filter(|_| wait.to.0 == self.incarnation).map(|far| far.birth()));
                cycles.meant.insert(wait.to, name.unwrap_or(wait.to));
                wait.to = name.unwrap_or(wait.to);
            }
            if any_new {
                // Next time it is known whom they mean.
                return;
            }
            let certain = cycles.believe(&round.waits);
            cycles.hunts = if certain.is_empty() { 0 } else { cycles.hunts + 1 };
            // If a request cannot be taken back, another one is to be, soon.
            let hunts = cycles.hunts();
            for wait in round.asked_for {
                if let Some(seen) = cycles.seen.get_mut(&wait) {
                    let soon = hunts || calls && seen.ticks < EVERY_TICKS;
                    seen.rounds = if soon { ROUNDS - 1 } else { seen.rounds + 1 };
                }
            }
            cycles.ends = ends_from(self.incarnation, &round.waits);
            certain
        };
        for cycle in certain {
            let may_fail = (0..cycle.len()).filter(|at| !cycle[*at].has_begun());
            let Some(at) = may_fail.min_by_key(|at| (!cycle[*at].afar, &cycle[*at])) else { continue };
            let path: Vec<String> = cycle[at..].iter().chain(&cycle[..=at]).map(|wait| wait.label.clone()).collect();
            let victim = &cycle[at];
            if victim.at == self.incarnation {
                self.fail_wait(victim, path);
            } else if let Some(link) = self.directory.link(victim.at) {
                link.say_cycle(victim, &path);
            }
        }
    }

    /// Calls those of the theaters that there is no link with. Returns whether there are any.
    fn call_hosts(self: &Arc<Self>, hosts: &[Host]) -> bool {
        let now = self.now();
        let unknown: Vec<Callee> = {
            let mut cycles = self.cycles();
            cycles.called.retain(|_, called| now.saturating_sub(*called) < CALLS_IN);
            let callee = |host: &Host| {
                let is_unknown = host.theater != self.incarnation && self.directory.link(host.theater).is_none();
                let address = host.address.filter(|_| is_unknown && cycles.called.len() < CALLS_MAX)?;
                let is_new = cycles.called.insert(host.theater, now).is_none();
                is_new.then_some(Callee { address, theater: Some(host.theater) })
            };
            hosts.iter().filter_map(callee).collect()
        };
        for callee in &unknown {
            self.reach_later(*callee, Duration::ZERO, Box::new(|_| ()));
        }
        !unknown.is_empty()
    }

    /// An ask is part of a cycle, if it waits still: it was told to others as this.
    pub(crate) fn fail_wait(&self, told: &Wait, path: Vec<String>) {
        let own = waiting::waits(self.system.core().id());
        if let Some(wait) =
            own.iter().find(|wait| self.told(wait).is_some_and(|own| own.from == told.from && own.token == told.token))
        {
            waiting::fail(wait.from, wait.token, path, told.forwards);
        }
    }
}

/// Follows the request of a wait to the last actor that it was forwarded to. Returns false if that is not known: the receiver has ended, or a theater on the way
/// has not told of all of its requests.
fn follow(wait: &mut Wait, passed: &AllPassed) -> bool {
    /// The most theaters on a way. A receiver may move while its requests are under way, which makes a way longer.
    const STEPS_MAX: usize = 64;
    /// The most characters of a label that another theater has told.
    const LABEL_MAX: usize = 256;
    let mut to: Option<Option<&(Name, String)>> = None;
    let (mut at, mut route) = (wait.at, wait.route);
    for _ in 0..STEPS_MAX {
        let Some((theater, number)) = route else {
            return match to {
                Some(Some((name, label))) => {
                    wait.to = *name;
                    wait.label = label.chars().take(LABEL_MAX).collect();
                    true
                }
                Some(None) => false,
                None => true,
            };
        };
        route = match passed.told.get(&(theater, (at, number))) {
            Some(next) => {
                wait.forwards = wait.forwards.saturating_add(next.forwards);
                if next.forwards > 0 {
                    to = Some(next.to.as_ref());
                }
                next.route
            }
            None if passed.complete.contains(&theater) => None,
            None => return false,
        };
        at = theater;
    }
    // Told of different moments, a way may lead round.
    false
}

/// The cycles that lead over a wait for an actor elsewhere. Chains that lead into no cycle cost one step for each wait.
fn find(waits: &[Wait]) -> BTreeSet<Cycle> {
    let waits = without_ends(waits);
    let mut by_name: BTreeMap<Name, Vec<&Wait>> = BTreeMap::new();
    for wait in &waits {
        by_name.entry(wait.from).or_default().push(wait);
    }
    let mut found = BTreeSet::new();
    for start in waits.iter().filter(|wait| wait.afar) {
        if let Some(mut path) = path_back(&by_name, start) {
            let lowest = path.iter().enumerate().min_by_key(|(_, wait)| **wait).map_or(0, |(at, _)| at);
            path.rotate_left(lowest);
            found.insert(path.into_iter().cloned().collect());
        }
    }
    found
}

/// Those that the actors of this theater wait for, directly or over others, and that do not wait themselves.
fn ends_from(theater: u64, waits: &[Wait]) -> Vec<Name> {
    let mut waits_of: BTreeMap<Name, Vec<Name>> = BTreeMap::new();
    for wait in waits {
        waits_of.entry(wait.from).or_default().push(wait.to);
    }
    let mut open: Vec<Name> = waits.iter().filter(|wait| wait.at == theater).map(|wait| wait.to).collect();
    let (mut seen, mut ends) = (BTreeSet::new(), Vec::new());
    while let Some(name) = open.pop().filter(|_| ends.len() < WAITS_MAX) {
        if seen.insert(name) {
            match waits_of.get(&name) {
                Some(next) => open.extend(next),
                None => ends.push(name),
            }
        }
    }
    ends
}

/// The waits from which a walk along waits need not end: those for an actor that waits for nobody are removed, again and again.
fn without_ends(waits: &[Wait]) -> Vec<&Wait> {
    let mut waits_of: FxHashMap<Name, usize> = FxHashMap::default();
    let mut waits_for: FxHashMap<Name, Vec<usize>> = FxHashMap::default();
    for (at, wait) in waits.iter().enumerate() {
        *waits_of.entry(wait.from).or_default() += 1;
        waits_for.entry(wait.to).or_default().push(at);
    }
    let mut ends: Vec<Name> = waits_for.keys().filter(|name| !waits_of.contains_key(*name)).copied().collect();
    let mut is_left = vec![true; waits.len()];
    while let Some(end) = ends.pop() {
        for at in waits_for.remove(&end).unwrap_or_default() {
            is_left[at] = false;
            let from = waits[at].from;
            if let Some(left) = waits_of.get_mut(&from) {
                *left -= 1;
                if *left == 0 {
                    ends.push(from);
                }
            }
        }
    }
    waits.iter().zip(is_left).filter_map(|(wait, is_left)| is_left.then_some(wait)).collect()
}

/// Returns the waits along a path that begins with `start` and leads back to it, depth first.
fn path_back<'a>(by_name: &BTreeMap<Name, Vec<&'a Wait>>, start: &'a Wait) -> Option<Vec<&'a Wait>> {
    let waits_of = |name: Name| by_name.get(&name).map_or(&[][..], Vec::as_slice).iter();
    let (mut path, mut open) = (vec![start], vec![waits_of(start.to)]);
    let mut seen = BTreeSet::from([start.to]);
    if start.to == start.from {
        return Some(path);
    }
    while let Some(waits) = open.last_mut() {
        let Some(wait) = waits.next() else {
            open.pop();
            path.pop();
            continue;
        };
        if wait.to == start.from {
            path.push(wait);
            return Some(path);
        }
        if seen.insert(wait.to) {
            path.push(wait);
            open.push(waits_of(wait.to));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wait(from: u64, token: u64, to: u64) -> Wait {
        Wait {
            from: (from, 0, 0),
            token,
            to: (to, 0, 0),
            label: to.to_string(),
            afar: true,
            begun: None,
            forwards: 0,
            route: None,
            at: from,
        }
    }

    // GUARANTEE: Cycles over theaters
    #[test]
    fn a_request_is_followed_to_whom_it_was_forwarded_last() {
        let name = |theater| (theater, 0, 0);
        let said = |at, came, to: Option<u64>, forwards, route| {
            let to = to.map(|to| (name(to), to.to_string()));
            ((at, came), Passed { came, to, forwards, route })
        };
        // 1 asks 2 over the theater 3, which sends the request on. It is forwarded in 2 and sent on to 4, where it is forwarded twice.
        let asked = Wait { route: Some((3, 7)), ..wait(1, 0, 2) };
        let all = BTreeMap::from([
            said(3, (1, 7), None, 0, Some((2, 9))),
            said(2, (3, 9), Some(4), 1, Some((4, 5))),
            said(4, (2, 5), Some(6), 2, None),
            said(4, (3, 5), Some(8), 1, None),
        ]);
        let follow_among = |told: &BTreeMap<_, _>, complete: &[u64]| {
            let passed = AllPassed { told: told.clone(), complete: complete.iter().copied().collect() };
            let mut wait = asked.clone();
            follow(&mut wait, &passed).then_some((wait.to.0, wait.label.clone(), wait.forwards))
        };
        let follow_in = |told: &_| follow_among(told, &[2, 3, 4]);
        assert_eq!(follow_in(&all), Some((6, "6".to_owned(), 3)));
        // What was not told is as before.
        let without =
            |left_out: (u64, (u64, u64))| all.clone().into_iter().filter(move |(key, _)| *key != left_out).collect();
        assert_eq!(follow_in(&without((4, (2, 5)))), Some((4, "4".to_owned(), 1)));
        assert_eq!(follow_in(&without((3, (1, 7)))), Some((2, "2".to_owned(), 0)));
        // A theater that has not told all may have passed the request on.
        assert_eq!(follow_among(&without((4, (2, 5))), &[2, 3]), None);
        assert_eq!(follow_among(&all, &[]), Some((6, "6".to_owned(), 3)));
        assert_eq!(follow_among(&without((3, (1, 7))), &[2, 4]), None);
        // Numbers of others are any numbers, and labels are cut.
        let mut absurd = all.clone();
        let (key, mut passed) = said(4, (2, 5), Some(6), u32::MAX, None);
        passed.to = Some((name(6), "\u{e9}".repeat(1_000)));
        absurd.insert(key, passed);
        assert_eq!(follow_in(&absurd), Some((6, "\u{e9}".repeat(256), u32::MAX)));
        // The last receiver has ended: nobody waits for it.
        let mut ended = all.clone();
        ended.extend([said(4, (2, 5), None, 2, None)]);
        assert_eq!(follow_in(&ended), None);
        // Told of different moments, a way may lead round.
        let mut round = all;
        round.extend([said(2, (3, 9), None, 0, Some((3, 8))), said(3, (2, 8), None, 0, Some((2, 9)))]);
        assert_eq!(follow_in(&round), None);
    }

    #[test]
    fn a_request_that_was_forwarded_since_it_was_begun_can_be_taken_back() {
        let begun = |begun, forwards| Wait { begun, forwards, ..wait(1, 0, 2) }.has_begun();
        assert_eq!(
            [begun(None, 0), begun(Some(0), 0), begun(Some(0), 1), begun(Some(1), 1)],
            [false, true, false, true]
        );
        // A request that was forwarded in between has waited for different actors.
        assert_ne!(Wait { forwards: 1, ..wait(1, 0, 2) }, wait(1, 0, 2));
        assert_eq!(Wait { begun: Some(0), route: Some((2, 3)), ..wait(1, 0, 2) }, wait(1, 0, 2));
    }

    // GUARANTEE: Cycles over theaters
    #[test]
    fn a_cycle_is_believed_when_the_same_waits_are_in_it_twice_in_turn() {
        let mut cycles = Cycles::default();
        let closed = [wait(1, 0, 2), wait(2, 0, 1)];
        assert_eq!(cycles.believe(&closed), Vec::<Cycle>::new());
        // Who waits again has not waited all the time.
        assert_eq!(cycles.believe(&[wait(1, 0, 2), wait(2, 1, 1)]), Vec::<Cycle>::new());
        assert_eq!(cycles.believe(&closed), Vec::<Cycle>::new());
        assert_eq!(cycles.believe(&closed), [closed.to_vec()]);
        assert_eq!(cycles.believe(&closed[..1]), Vec::<Cycle>::new());
    }
    #[test]
    fn the_ends_of_a_theater_are_those_that_its_actors_wait_for_and_that_do_not_wait() {
        // 1 waits for 2, which waits for 3 and for 1; 4 waits for 5, in another theater.
        let waits = [wait(1, 0, 2), wait(2, 0, 3), wait(2, 1, 1), wait(4, 0, 5)];
        assert_eq!(ends_from(1, &waits), [(3, 0, 0)]);
        assert_eq!(ends_from(3, &waits), []);
    }

    // GUARANTEE: Nesting does not overflow a stack
    #[test]
    fn a_long_chain_takes_a_step_for_each_wait_and_no_stack() {
        const WAITS: u64 = 100_000;
        let look = || {
            let mut waits: Vec<Wait> = (0..WAITS).map(|at| wait(at, 0, at + 1)).collect();
            assert_eq!(find(&waits), BTreeSet::new());
            // One wait for an actor elsewhere, in a ring.
            waits.iter_mut().skip(1).for_each(|wait| wait.afar = false);
            waits.push(Wait { afar: false, ..wait(WAITS, 0, 0) });
            assert_eq!(find(&waits), BTreeSet::from([waits.clone()]));
        };
        std::thread::Builder::new().stack_size(256 << 10).spawn(look).unwrap().join().unwrap();
    }

    #[test]
    fn a_cycle_is_found_among_waits_that_lead_into_it_and_out_of_it() {
        // 1 and 2 wait for each other, 0 waits for 1, and 2 for 3.
        let waits = [wait(0, 0, 1), wait(1, 0, 2), wait(2, 0, 3), wait(2, 1, 1), wait(4, 0, 4)];
        let ring = vec![waits[1].clone(), waits[3].clone()];
        assert_eq!(find(&waits), BTreeSet::from([ring, vec![waits[4].clone()]]));
    }
}
