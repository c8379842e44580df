//! Cycles of asks over several theaters.
//!
//! Within one process each awaited ask is noted before it is sent, and an ask that would close a cycle fails (`playhouse-actor`,
//! `wait_graph.rs`). Between theaters that would cost a round trip for each ask. A cycle over several theaters is therefore allowed
//! to close, and is found afterwards. Theaters search and exchange waits only if an actor has waited for a remote actor from one
//! tick of the housekeeper to the next.
//!
//! Its theater then asks all others for the waits of their actors ([`Waits`](crate::link::frame::Head::Waits)), and combines the
//! answers. Actors go by the names that they were born with, and their present locations therefore do not matter. The answers of
//! the theaters do not describe one moment. A cycle is therefore believed only under two conditions. It is found twice in turn,
//! with the same waits in it. All answers of the second time were given after all of the first had been received. Each of its
//! waits then lasted from before that moment to after it, and the cycle was closed at that moment. A closed cycle stays closed
//! until an ask in it ends.
//!
//! Several theaters of the cycle may find it. Only waits are candidates whose requests no handler is known to have begun; waits
//! for remote actors come first. Of these the wait with the lowest name is to fail, to let the others continue; its theater is
//! told ([`Cycle`](crate::link::frame::Head::Cycle)). The ask fails only if its request is taken back
//! ([`TakeBack`](crate::link::frame::Head::TakeBack)): a request that a handler has begun continues. The asker's theater is told
//! that ([`TooLate`](crate::link::frame::Head::TooLate)). It reports it with the wait from then on, and the next one of the waits
//! is to fail. At least one of them can fail. Each handler in the cycle waits in the course of at most one request. If all
//! requests had been begun, each of them would have been begun before itself.
//!
//! The awaited actor may go by another name if a theater reported it before its own name was known. The searching theater asks
//! the theater that has given the name for its meaning, in the next turn.
//!
//! An ask may have gone over a third theater. In that case the searching theater has no link with the theater of the asked actor.
//! In the next turn it therefore asks for the locations of awaited actors for which no wait of their own was reported. The
//! theater in which an actor was born knows its location ([`authority`](crate::migration::authority)). The searching theater
//! calls the theaters that it learns of.
//!
//! A request may be forwarded by its receiver ([`Reply::forward`](playhouse_actor::Reply::forward)), in a theater that is not the
//! asker's. An asker's theater therefore reports with a wait the route of its request. Each theater also reports the requests
//! that came over its links and were forwarded, or went on from it: their receivers, counts of forwards, and routes ([`Passed`]).
//! A searching theater follows these from the asker ([`follow`]). The count of forwards is part of the wait. A wait is therefore
//! the same in two turns only if the request was not forwarded between them. A request that a handler has begun may be forwarded
//! and wait again. The report of its beginning therefore contains the count of forwards at that time. The order to fail contains
//! that count, too, and changes nothing if the request has been forwarded since.
//!
//! Not found: cycles over theaters that the searching theater cannot call, if no other theater searches either. Also some cycles
//! in theaters in which more than [`WAITS_MAX`] actors wait at a time, or that have passed on that many requests. A wait is left
//! out if its request went over a theater that has not reported all of its requests, because the location of the request is
//! unknown.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use playhouse_actor::ActorId;
use playhouse_actor::away::{RequestLocation, TakeAnswer};
use playhouse_actor::waiting::{self, Stage};
use playhouse_actor::wire::Codec;
use playhouse_executor::Lane;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use crate::link::Link;
use crate::link::frame::{Head, WAITS_MAX, at_most};
use crate::link::node::Callee;
use crate::lock::lock;
use crate::naming::{Birth, Host};
use crate::node::core::TheaterCore;
use crate::node::links::TICK;

/// Interval, in ticks, of the two searches for cycles among long waits.
const EVERY_TICKS: u64 = 20;
/// Number of times that a cycle must be found before it is believed.
const ROUNDS: u64 = 2;
/// Number of turns in a row with frequent searches for a cycle of which no ask fails. After that the interval is the normal one.
const BELIEVED_TURNS_MAX: u64 = 100;
/// Maximum number of theaters reported as locations of actors in one frame.
const HOSTS_MAX: usize = 64;
/// Maximum number of theaters that are called in the time `CALLS_IN` because actors may wait in them. Each of them is called once
/// in that time.
const CALLS_MAX: usize = 16;
const CALLS_IN: Duration = Duration::from_secs(10);

/// A wait of one actor for another. Two values of the same wait are equal even if one knows more about its request.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Wait {
    from: Birth,
    /// The number of this wait among those of `from`.
    token: u64,
    to: Birth,
    /// The display name of the awaited actor.
    label: String,
    /// The awaited actor lives in another theater than the asker, or did so when it was asked.
    #[serde(rename = "afar")]
    is_remote: bool,
    /// The count of forwards to other theaters at the time when a handler began the request. It cannot be taken back from that
    /// handler.
    begun: Option<u32>,
    /// Number of forwards in other theaters, as far as they were followed.
    forwards: u32,
    /// The theater that the request was sent to from the asker's theater, and its number among the requests to it.
    route: Option<(u64, u64)>,
    /// The reporting theater, in which `from` lives.
    at: u64,
}

impl Wait {
    fn key(&self) -> (Birth, u64, Birth, &str, bool, u32, u64) {
        (self.from, self.token, self.to, &self.label, self.is_remote, self.forwards, self.at)
    }

    /// Returns whether the request cannot be taken back, as far as this theater knows.
    fn has_begun(&self) -> bool {
        self.begun.is_some_and(|forwards| forwards >= self.forwards)
    }
}

/// A request that came over a link, and was forwarded or sent on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Passed {
    /// The theater that it came from, and its number among the requests from it.
    came: (u64, u64),
    /// The last actor that it was forwarded to, with its display name.
    to: Option<(Birth, String)>,
    /// Number of forwards.
    forwards: u32,
    /// The theater that it was sent on to, and its number among the requests to it.
    route: Option<(u64, u64)>,
}

/// The requests that theaters have reported.
#[derive(Default)]
struct AllPassed {
    /// The keys are the reporting theater and the request's origin: the theater that it came from and its number.
    told: BTreeMap<(u64, (u64, u64)), Passed>,
    /// The theaters that have reported all of their requests.
    complete: BTreeSet<u64>,
}

impl AllPassed {
    fn add(&mut self, theater: u64, passed: Vec<Passed>) {
        // A theater with more requests has not reported all of them.
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

/// The state of the search for cycles.
#[derive(Default)]
pub(crate) struct Cycles {
    /// The waits of local actors; empty unless one of them waits for a remote actor.
    seen: FxHashMap<(ActorId, u64), Seen>,
    /// Other theaters are being asked.
    asking: bool,
    /// The cycles found in the last turn.
    found: BTreeSet<Cycle>,
    /// Number of turns in a row in which a cycle was believed.
    believed_turns: u64,
    /// The actors' own names by the names that other theaters have used. An actor whose own name was not known went by the name
    /// of its stub in the reporting theater.
    meant: BTreeMap<Birth, Birth>,
    /// The awaited actors for which no theater has reported a wait of their own.
    ends: Vec<Birth>,
    /// Theaters that were called because actors may wait in them, with the times of the calls.
    called: BTreeMap<u64, Duration>,
}

/// The answer of a theater to [`Waits`](crate::link::frame::Head::Waits):
///
/// - the waits of its actors,
/// - the requests that it has passed on,
/// - the names of the actors that it was asked for by slot and incarnation,
/// - the theaters of the awaited actors, and of the actors that it was asked for if they were born in it.
#[derive(Default, Serialize, Deserialize)]
pub(crate) struct Said {
    #[serde(deserialize_with = "at_most::<_, _, WAITS_MAX>")]
    waits: Vec<Wait>,
    #[serde(deserialize_with = "at_most::<_, _, WAITS_MAX>")]
    passed: Vec<Passed>,
    #[serde(deserialize_with = "at_most::<_, _, WAITS_MAX>")]
    meant: Vec<(u64, u64, Birth)>,
    #[serde(deserialize_with = "at_most::<_, _, HOSTS_MAX>")]
    hosts: Vec<Host>,
}

/// The time for which a wait has been seen.
#[derive(Clone, Copy, Default)]
struct Seen {
    ticks: u64,
    /// Number of turns of the search for a cycle that it may be part of.
    rounds: u64,
}

/// The waits of a cycle, the lowest first.
type Cycle = Vec<Wait>;

/// The answers of the theaters so far.
struct SearchRound {
    /// The local waits that caused the search.
    asked_for: Vec<(ActorId, u64)>,
    waits: Vec<Wait>,
    passed: AllPassed,
    meant: Vec<(Birth, Birth)>,
    /// Theaters of awaited actors.
    hosts: Vec<Host>,
    to_answer: usize,
    all_said: bool,
}

impl Cycles {
    /// Returns whether a cycle was found of which an ask is about to fail.
    fn is_urgent(&self) -> bool {
        (1..BELIEVED_TURNS_MAX).contains(&self.believed_turns)
    }

    /// Returns the cycles in the answers of this turn that were also found in the last one.
    fn believe(&mut self, waits: &[Wait]) -> Vec<Cycle> {
        let before = std::mem::replace(&mut self.found, find(waits));
        self.found.intersection(&before).cloned().collect()
    }
}

impl Link {
    /// Asks for the waits in the other theater, the actors that these names mean (slot, incarnation), and the theaters of these actors.
    pub(crate) fn ask_waits(&self, names: Vec<(u64, u64)>, actors: Vec<Birth>, answer: TakeAnswer) {
        // On an error, the answer says it.
        let _ = self.ask_with(answer, Lane::System, |ask, out| Head::Waits { ask, names, actors }.write(out));
        self.flush(false);
    }

    /// Tells the other theater that one of its asks is part of a cycle.
    pub(crate) fn say_cycle(&self, wait: &Wait, path: &[String]) {
        // A failure does not matter: then the ask ends with the link.
        let _ = self.send(Lane::System, |out| {
            Head::Cycle.write(out)?;
            Codec::Positional.write(&(wait, path), out)
        });
        self.flush(false);
    }
}

impl TheaterCore {
    /// Takes a frame of the search for cycles.
    pub(crate) fn take_cycle_frame(&self, link: &Link, head: Head, rest: &[u8]) {
        match head {
            Head::Waits { ask, names, actors } => link.reply(ask, &self.say_waits(&names, &actors)),
            Head::Cycle => {
                if let Ok((wait, path)) = Codec::Positional.read::<(Wait, Vec<String>)>(rest) {
                    self.fail_wait(&wait, path);
                }
            }
            // The link passes on no other frames.
            _ => {}
        }
    }

    /// Returns the waits of the local actors, the names of the actors with these slots and incarnations, and the theaters of
    /// `actors`.
    pub(crate) fn say_waits(&self, names: &[(u64, u64)], actors: &[Birth]) -> Said {
        let meant = |(slot, incarnation): &(u64, u64)| {
            let id = self.directory.find(*slot, *incarnation)?;
            Some((*slot, *incarnation, self.directory.identity(id).ok()?.birth()))
        };
        let meant = names.iter().filter_map(meant).collect();
        Said { waits: self.own_waits(), passed: self.passed(), meant, hosts: self.hosts_of(actors) }
    }

    /// Returns the requests of other theaters that this theater has passed on.
    fn passed(&self) -> Vec<Passed> {
        let told = |(came, whereabouts): ((u64, u64), RequestLocation)| {
            let to = whereabouts.forwarded_to();
            let to = to.and_then(|(id, label)| Some((self.directory.identity(id).ok()?.birth(), label)));
            Passed { came, to, forwards: whereabouts.forwards, route: whereabouts.route }
        };
        let links = self.all_links();
        links.iter().flat_map(|link| link.passed()).take(WAITS_MAX).map(told).collect()
    }

    /// Returns the other theaters in which awaited actors may live:
    ///
    /// - the theaters of actors that local actors wait for or have forwarded requests to,
    /// - the theaters that such requests were sent to,
    /// - the theaters of `actors` that were born in this one.
    fn hosts_of(&self, actors: &[Birth]) -> Vec<Host> {
        let born = |name: &&Birth| name.theater == self.incarnation;
        let born = actors.iter().filter(born).filter_map(|name| self.directory.find(name.slot, name.incarnation));
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
        let (token, label, is_remote, at) = (wait.token, wait.label(), self.may_be_remote(wait), self.incarnation);
        Some(Wait { from, token, to, label, is_remote, begun, forwards, route, at })
    }

    /// Returns whether the awaited actor is or may be remote, because its theater may have forwarded the request.
    fn may_be_remote(&self, wait: &waiting::Wait) -> bool {
        wait.is_away() || self.directory.is_remote(wait.to())
    }

    fn cycles(&self) -> MutexGuard<'_, Cycles> {
        lock(&self.cycles)
    }

    /// Searches for cycles if a local actor has waited for some time while a local actor waits for a remote one: twice, and after
    /// that about once per second.
    pub(crate) fn look_for_cycles(self: &Arc<Self>) {
        let is_due = |seen: &Seen| seen.ticks > 0 && (seen.rounds < ROUNDS || seen.ticks % EVERY_TICKS <= 1);
        let asked_for = {
            let mut cycles = self.cycles();
            let before = std::mem::take(&mut cycles.seen);
            let waits = waiting::waits(self.system.core().id());
            if !waits.iter().any(|wait| self.may_be_remote(wait)) {
                cycles.meant.clear();
                cycles.believed_turns = 0;
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
        // An actor with an unknown meaning goes by the name that was used.
        let unknown: Vec<Birth> =
            self.cycles().meant.iter().filter(|(name, meant)| name == meant).map(|(name, _)| *name).collect();
        for link in links {
            let theater = link.incarnation;
            let its = unknown
                .iter()
                .filter(|name| name.theater == theater)
                .map(|name| (name.slot, name.incarnation))
                .collect();
            let (theater_core, round) = (Arc::downgrade(self), Arc::clone(&round));
            let answer: TakeAnswer = Box::new(move |answer| {
                let said = answer.ok().and_then(|(codec, bytes)| codec.read::<Said>(bytes).ok());
                let mut open = lock(&round);
                let Some(round) = open.as_mut() else { return };
                round.all_said &= said.is_some();
                let Said { waits, passed, meant, hosts } = said.unwrap_or_default();
                round.waits.extend(waits);
                round.passed.add(theater, passed);
                round.hosts.extend(hosts);
                round.meant.extend(
                    meant.into_iter().map(|(slot, incarnation, name)| (Birth { theater, slot, incarnation }, name)),
                );
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

    /// Returns whether the search will soon have decided for each local wait whether it is endless. No actor has handled anything
    /// for the time `quiet`.
    pub(crate) fn looks_for_cycles(&self, quiet: Duration) -> bool {
        /// Includes one more search, because the meaning of a name may have to be learnt first.
        const ALL_TICKS: u64 = 2 * EVERY_TICKS + ROUNDS;
        let waits = waiting::waits(self.system.core().id());
        if !waits.iter().any(|wait| self.may_be_remote(wait)) {
            return false;
        }
        let cycles = self.cycles();
        let seen = |wait: &waiting::Wait| cycles.seen.get(&(wait.from, wait.token)).copied().unwrap_or_default();
        let is_new = waits.iter().any(|wait| seen(wait).ticks < ALL_TICKS);
        let limit = TICK * ALL_TICKS as u32;
        let now = self.now();
        let calls = cycles.called.values().any(|called| now.saturating_sub(*called) < limit);
        // The request of a long wait may have been forwarded to another theater.
        let is_urgent = !cycles.found.is_empty() && cycles.believed_turns < BELIEVED_TURNS_MAX;
        cycles.asking || is_urgent || is_new || calls || quiet < limit
    }

    /// Handles the answers of the theaters.
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
                let own = || {
                    self.directory
                        .find(wait.to.slot, wait.to.incarnation)
                        .and_then(|id| self.directory.identity(id).ok())
                };
                let known = cycles.meant.get(&wait.to).copied();
                any_new |= known.is_none();
                let name =
                    known.or_else(|| own().filter(|_| wait.to.theater == self.incarnation).map(|far| far.birth()));
                cycles.meant.insert(wait.to, name.unwrap_or(wait.to));
                wait.to = name.unwrap_or(wait.to);
            }
            if any_new {
                // The meaning of their names is known in the next turn.
                return;
            }
            let certain = cycles.believe(&round.waits);
            cycles.believed_turns = if certain.is_empty() { 0 } else { cycles.believed_turns + 1 };
            // If a request cannot be taken back, another one is to be taken back soon.
            let is_urgent = cycles.is_urgent();
            for wait in round.asked_for {
                if let Some(seen) = cycles.seen.get_mut(&wait) {
                    let soon = is_urgent || calls && seen.ticks < EVERY_TICKS;
                    seen.rounds = if soon { ROUNDS - 1 } else { seen.rounds + 1 };
                }
            }
            cycles.ends = ends_from(self.incarnation, &round.waits);
            certain
        };
        for cycle in certain {
            let may_fail = (0..cycle.len()).filter(|at| !cycle[*at].has_begun());
            let Some(at) = may_fail.min_by_key(|at| (!cycle[*at].is_remote, &cycle[*at])) else { continue };
            let path: Vec<String> = cycle[at..].iter().chain(&cycle[..=at]).map(|wait| wait.label.clone()).collect();
            let victim = &cycle[at];
            if victim.at == self.incarnation {
                self.fail_wait(victim, path);
            } else if let Some(link) = self.link_table.link(victim.at) {
                link.say_cycle(victim, &path);
            }
        }
    }

    /// Calls the theaters in `hosts` that have no link with this one. Returns whether there are any.
    fn call_hosts(self: &Arc<Self>, hosts: &[Host]) -> bool {
        let now = self.now();
        let unknown: Vec<Callee> = {
            let mut cycles = self.cycles();
            cycles.called.retain(|_, called| now.saturating_sub(*called) < CALLS_IN);
            let callee = |host: &Host| {
                let is_unknown = host.theater != self.incarnation && self.link_table.link(host.theater).is_none();
                let address = host.address.filter(|_| is_unknown && cycles.called.len() < CALLS_MAX)?;
                let is_new = cycles.called.insert(host.theater, now).is_none();
                is_new.then_some(Callee::of(address, host.theater))
            };
            hosts.iter().filter_map(callee).collect()
        };
        for callee in &unknown {
            self.reach_later(*callee, Duration::ZERO, Box::new(|_| ()));
        }
        !unknown.is_empty()
    }

    /// Fails an ask of a cycle if it still waits; `told` is the wait as it was reported to other theaters.
    pub(crate) fn fail_wait(&self, told: &Wait, path: Vec<String>) {
        let own = waiting::waits(self.system.core().id());
        if let Some(wait) =
            own.iter().find(|wait| self.told(wait).is_some_and(|own| own.from == told.from && own.token == told.token))
        {
            waiting::fail(wait.from, wait.token, path, told.forwards);
        }
    }
}

/// Follows the request of a wait to the last actor that it was forwarded to. Returns false if that actor is unknown: the receiver
/// has ended, or a theater on the route has not reported all of its requests.
fn follow(wait: &mut Wait, passed: &AllPassed) -> bool {
    /// Maximum number of theaters on a route. A receiver that migrates while its requests are in transit lengthens the route.
    const STEPS_MAX: usize = 64;
    /// Maximum number of characters of a label from another theater.
    const LABEL_MAX: usize = 256;
    let mut to: Option<Option<&(Birth, String)>> = None;
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
    // Reports of different moments may combine to a circular route.
    false
}

/// Returns the cycles that contain a wait for a remote actor. Chains that lead into no cycle cost one step for each wait.
fn find(waits: &[Wait]) -> BTreeSet<Cycle> {
    let waits = without_ends(waits);
    let mut by_name: BTreeMap<Birth, Vec<&Wait>> = BTreeMap::new();
    for wait in &waits {
        by_name.entry(wait.from).or_default().push(wait);
    }
    let mut found = BTreeSet::new();
    for start in waits.iter().filter(|wait| wait.is_remote) {
        if let Some(mut path) = path_back(&by_name, start) {
            let lowest = path.iter().enumerate().min_by_key(|(_, wait)| **wait).map_or(0, |(at, _)| at);
            path.rotate_left(lowest);
            found.insert(path.into_iter().cloned().collect());
        }
    }
    found
}

/// Returns the actors that this theater's actors wait for, directly or over others, and that do not wait themselves.
fn ends_from(theater: u64, waits: &[Wait]) -> Vec<Birth> {
    let mut waits_of: BTreeMap<Birth, Vec<Birth>> = BTreeMap::new();
    for wait in waits {
        waits_of.entry(wait.from).or_default().push(wait.to);
    }
    let mut open: Vec<Birth> = waits.iter().filter(|wait| wait.at == theater).map(|wait| wait.to).collect();
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

/// Returns the waits that can be part of a cycle: waits for an actor that waits for nothing are removed, repeatedly.
fn without_ends(waits: &[Wait]) -> Vec<&Wait> {
    let mut waits_of: FxHashMap<Birth, usize> = FxHashMap::default();
    let mut waits_for: FxHashMap<Birth, Vec<usize>> = FxHashMap::default();
    for (at, wait) in waits.iter().enumerate() {
        *waits_of.entry(wait.from).or_default() += 1;
        waits_for.entry(wait.to).or_default().push(at);
    }
    let mut ends: Vec<Birth> = waits_for.keys().filter(|name| !waits_of.contains_key(*name)).copied().collect();
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
fn path_back<'a>(by_name: &BTreeMap<Birth, Vec<&'a Wait>>, start: &'a Wait) -> Option<Vec<&'a Wait>> {
    let waits_of = |name: Birth| by_name.get(&name).map_or(&[][..], Vec::as_slice).iter();
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

    fn born_in(theater: u64) -> Birth {
        Birth { theater, slot: 0, incarnation: 0 }
    }

    fn wait(from: u64, token: u64, to: u64) -> Wait {
        Wait {
            from: born_in(from),
            token,
            to: born_in(to),
            label: to.to_string(),
            is_remote: true,
            begun: None,
            forwards: 0,
            route: None,
            at: from,
        }
    }

    // GUARANTEE: Cycles over theaters
    #[test]
    fn a_request_is_followed_to_its_last_receiver() {
        let name = born_in;
        let said = |at, came, to: Option<u64>, forwards, route| {
            let to = to.map(|to| (name(to), to.to_string()));
            ((at, came), Passed { came, to, forwards, route })
        };
        // Actor 1 asks 2 over the theater 3, which sends the request on. It is forwarded in 2 and sent on to 4, where it is
        // forwarded twice.
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
            follow(&mut wait, &passed).then_some((wait.to.theater, wait.label.clone(), wait.forwards))
        };
        let follow_in = |told: &_| follow_among(told, &[2, 3, 4]);
        assert_eq!(follow_in(&all), Some((6, "6".to_owned(), 3)));
        // A report that is missing leaves the wait unchanged.
        let without =
            |left_out: (u64, (u64, u64))| all.clone().into_iter().filter(move |(key, _)| *key != left_out).collect();
        assert_eq!(follow_in(&without((4, (2, 5)))), Some((4, "4".to_owned(), 1)));
        assert_eq!(follow_in(&without((3, (1, 7)))), Some((2, "2".to_owned(), 0)));
        // A theater that has not reported all of its requests may have passed this one on.
        assert_eq!(follow_among(&without((4, (2, 5))), &[2, 3]), None);
        assert_eq!(follow_among(&all, &[]), Some((6, "6".to_owned(), 3)));
        assert_eq!(follow_among(&without((3, (1, 7))), &[2, 4]), None);
        // Numbers from other theaters can have any value, and labels are cut.
        let mut absurd = all.clone();
        let (key, mut passed) = said(4, (2, 5), Some(6), u32::MAX, None);
        passed.to = Some((name(6), "\u{e9}".repeat(1_000)));
        absurd.insert(key, passed);
        assert_eq!(follow_in(&absurd), Some((6, "\u{e9}".repeat(256), u32::MAX)));
        // The last receiver has ended: nothing can wait for it.
        let mut ended = all.clone();
        ended.extend([said(4, (2, 5), None, 2, None)]);
        assert_eq!(follow_in(&ended), None);
        // Reports of different moments may combine to a circular route.
        let mut round = all;
        round.extend([said(2, (3, 9), None, 0, Some((3, 8))), said(3, (2, 8), None, 0, Some((2, 9)))]);
        assert_eq!(follow_in(&round), None);
    }

    #[test]
    fn a_request_that_was_forwarded_after_its_begin_can_be_taken_back() {
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
        // An actor that waits again has not waited all the time.
        assert_eq!(cycles.believe(&[wait(1, 0, 2), wait(2, 1, 1)]), Vec::<Cycle>::new());
        assert_eq!(cycles.believe(&closed), Vec::<Cycle>::new());
        assert_eq!(cycles.believe(&closed), [closed.to_vec()]);
        assert_eq!(cycles.believe(&closed[..1]), Vec::<Cycle>::new());
    }
    #[test]
    fn the_ends_of_a_theater_are_those_that_its_actors_wait_for_and_that_do_not_wait() {
        // 1 waits for 2, which waits for 3 and for 1; 4 waits for 5, in another theater.
        let waits = [wait(1, 0, 2), wait(2, 0, 3), wait(2, 1, 1), wait(4, 0, 5)];
        assert_eq!(ends_from(1, &waits), [born_in(3)]);
        assert_eq!(ends_from(3, &waits), []);
    }

    // GUARANTEE: Nesting does not overflow a stack
    #[test]
    fn a_long_chain_takes_a_step_for_each_wait_and_no_stack() {
        const WAITS: u64 = 100_000;
        let look = || {
            let mut waits: Vec<Wait> = (0..WAITS).map(|at| wait(at, 0, at + 1)).collect();
            assert_eq!(find(&waits), BTreeSet::new());
            // One wait for a remote actor, in a ring.
            waits.iter_mut().skip(1).for_each(|wait| wait.is_remote = false);
            waits.push(Wait { is_remote: false, ..wait(WAITS, 0, 0) });
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
