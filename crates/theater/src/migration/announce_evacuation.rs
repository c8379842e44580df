//! The announcement of a shutdown: other theaters reroute before an evacuated theater ends.
//!
//! An evacuated theater T asks all others not to send mail over it ([`Leaving`](Head::Leaving)). The other theater, H, looks for *all* stubs from
//! which mail goes to T. These include stubs of actors of which H knows only the name. H has them reroute, and answers when their mail takes another
//! route. A stub that reroutes already when H gets the question may reroute towards T, because its marker may have been answered in T before the
//! actor left. Therefore H looks again when the reroutes begun by then have ended. A marker that is sent later is not answered in T.
//!
//! # Names that are under way
//!
//! A message or a state may be on its way from H to a third theater, and may name an actor as one of T's. Therefore H answers when all that it has
//! sent by then has arrived. The third theater may have answered before. Therefore T asks at least twice, and again until no route has changed, and
//! nothing was sent over T in between. A route that was changed by [`Moved`](Head::Moved) may have been told to others before.
//!
//! H waits for earlier reroutes, and for its sent messages, for half of [`REACH_MAX`] each. A name that is under way for longer leads to T after T's
//! end.
//!
//! # Why H finds the actor when the next theater ends, too
//!
//! H may never send anything to the actor, and T's successor U may be evacuated and end like T. U can tell H only if there is a link. Therefore H
//! keeps the old route until it has a link with U: the old route is good as long as T waits. H calls U at once ([`Link::reaches`]). Then the stub
//! reroutes again. A route to U holds only if the link with U existed *before* the stub's last marker was sent. The marker was answered in U, so the
//! actor has left U later, if at all. U has announced its shutdown after that, to H as well.
//!
//! If U is evacuated and ends before H has reached it, the call fails. The actor is not lost, because T still runs: U has told T the actor's target,
//! and the next marker is answered by that target. Only if the answer names U again does the stub's route become a [`PendingProxy`] to U, which calls
//! when something is sent.
//!
//! # Why nothing waits for ever
//!
//! An answer to `Leaving` waits for reroutes ([`reroute`](crate::migration::reroute)), and for calls. No call and no marker waits for an answer to
//! `Leaving`: a theater takes calls, and passes markers on, during its evacuation. Therefore theaters that leave at the same time do not wait for
//! each other. H calls for [`REACH_MAX`] in all, for any number of theaters. After that it answers with the routes that it has. A theater that
//! announces its shutdown waits for at most [`SHUTDOWN_NOTICE_MAX`] in any case.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak, mpsc};
use std::time::Duration;

use playhouse_actor::away::TakeAnswer;
use playhouse_actor::{ActorId, AskError};
use playhouse_executor::Lane;
use rustc_hash::FxHashSet;

use crate::link::frame::Head;
use crate::link::link_table::LinkTable;
use crate::link::node::Callee;
use crate::link::{Fault, LEAVINGS_MAX, Link};
use crate::lock::lock;
use crate::migration::drain::DrainGuard;
use crate::naming::RemoteActorId;
use crate::node::core::TheaterCore;
use crate::proxy::pending_proxy::PendingProxy;

/// The time for the other theaters to find new routes to the actors of an evacuated theater.
pub(crate) const SHUTDOWN_NOTICE_MAX: Duration = Duration::from_secs(10);

/// The interval between two checks whether something has ended.
const LOOKED_AT_EVERY: Duration = Duration::from_millis(1);

/// The interval between two checks whether the theaters that have not answered are silent.
const SILENCE_LOOKED_AT_EVERY: Duration = Duration::from_millis(100);

/// The usual duration of a reroute.
const REROUTES_LAST: Duration = Duration::from_millis(1);

/// The time in which theaters that actors have gone to are called. It is less than [`SHUTDOWN_NOTICE_MAX`], so that the search finds routes without them before
/// the leaving theater has ended.
const REACH_MAX: Duration = Duration::from_secs(SHUTDOWN_NOTICE_MAX.as_secs() / 2);

/// Requests to the thread that waits for the stubs with mail over the other end, which leaves.
#[derive(Default)]
pub(crate) struct Leaving {
    /// Further asks to be answered.
    asks: Vec<u64>,
    /// Theaters to be called, because actors are in them.
    to_reach: BTreeMap<u64, SocketAddr>,
    /// Theaters that did not answer a call.
    tried: FxHashSet<u64>,
    /// Whether no more theaters are called.
    is_late: bool,
}

/// Waits until the mail of all stubs with routes to the theater behind `link` takes other routes.
struct RerouteAll {
    link: Arc<Link>,
    theater_core: Arc<TheaterCore>,
    /// The asks to be answered.
    asks: Vec<u64>,
    /// The number of changed routes.
    rerouted: u64,
    /// The time after which no more theaters are called.
    deadline: Duration,
    /// Stubs with new routes to theaters that may have had no link when the markers were sent.
    unsure: Vec<ActorId>,
    step: Step,
}

enum Step {
    Begin,
    /// Reroutes of these numbers had begun when the question came, or begin then. The wait for them ends at this time.
    Settle(Vec<u64>, Duration),
    /// These stubs reroute. There were links with these theaters when that began.
    Reroute {
        stubs: Vec<ActorId>,
        linked: FxHashSet<u64>,
    },
    /// These theaters are called. Each call has a reference to `calls`.
    Reach {
        theaters: Vec<u64>,
        calls: Arc<()>,
    },
    /// Messages sent from this theater until now are under way.
    Drain(Weak<DrainGuard>, Duration),
}

impl RerouteAll {
    /// Continues as far as possible without waiting. Returns whether all is answered.
    fn go_on(&mut self) -> bool {
        match std::mem::replace(&mut self.step, Step::Begin) {
            Step::Begin => {
                self.reroute_all();
                self.step = Step::Settle(self.theater_core.directory.reroutes_of_routes(), self.half_time());
                false
            }
            Step::Settle(reroutes, until) => {
                let waits = self.theater_core.directory.is_any_under_way(&reroutes) && self.theater_core.now() < until;
                if waits && !self.link.is_lost() {
                    self.step = Step::Settle(reroutes, until);
                    return false;
                }
                if self.theater_core.now() >= self.deadline {
                    self.link.note_leaving(|leaving| leaving.is_late = true);
                }
                let linked = self.theater_core.link_table.linked().into_iter().collect();
                let stubs = self.reroute_all();
                self.step = Step::Reroute { stubs, linked };
                false
            }
            Step::Reroute { stubs, linked } => {
                if !self.link.is_lost() && self.theater_core.directory.is_any_rerouting(&stubs) {
                    self.step = Step::Reroute { stubs, linked };
                    return false;
                }
                self.look_at(&stubs, &linked);
                let theaters = self.link.note_leaving(|leaving| std::mem::take(&mut leaving.to_reach));
                let has_time = self.theater_core.now() < self.deadline;
                if self.link.is_lost() || theaters.is_empty() && (self.unsure.is_empty() || !has_time) {
                    let rest = Arc::default();
                    self.theater_core.drain_stubs_and_links(&rest);
                    self.step = Step::Drain(Arc::downgrade(&rest), self.half_time());
                    return false;
                }
                self.reach(theaters);
                false
            }
            Step::Drain(rest, until) => {
                if rest.strong_count() == 0 || self.link.is_lost() || self.theater_core.now() >= until {
                    return self.answer();
                }
                self.step = Step::Drain(rest, until);
                false
            }
            Step::Reach { theaters, calls } => {
                let waits = Arc::strong_count(&calls) > 1 && self.theater_core.now() < self.deadline;
                if waits && !self.link.is_lost() {
                    self.step = Step::Reach { theaters, calls };
                    return false;
                }
                let link_table = &self.theater_core.link_table;
                let in_vain = theaters.into_iter().filter(|theater| link_table.link(*theater).is_none());
                self.link.note_leaving(|leaving| leaving.tried.extend(in_vain));
                false
            }
        }
    }

    /// Has all stubs reroute from which mail goes to the other end, or may go to it.
    fn reroute_all(&mut self) -> Vec<ActorId> {
        let is_mobile = |id| self.theater_core.registry.migration_vtable(id).is_some();
        let mut stubs = self.theater_core.directory.routes_to(self.link.incarnation, is_mobile);
        stubs.append(&mut self.unsure);
        for id in &stubs {
            if let Some(at) = self.theater_core.directory.at(*id) {
                self.theater_core.reroute(*id, at.theater);
            }
        }
        stubs
    }

    /// Returns the end of one step, which leaves time for the others.
    fn half_time(&self) -> Duration {
        self.deadline.min(self.theater_core.now() + REACH_MAX / 2)
    }

    /// Checks stubs whose reroutes have ended.
    fn look_at(&mut self, stubs: &[ActorId], linked: &FxHashSet<u64>) {
        self.unsure.clear();
        for id in stubs {
            let at = self.theater_core.directory.at(*id);
            if at.is_some_and(|at| at.theater == self.link.incarnation) {
                continue;
            }
            self.rerouted += 1;
            // (If there is no link now, a call has failed.)
            if at.is_some_and(|at| {
                !linked.contains(&at.theater) && self.theater_core.link_table.link(at.theater).is_some()
            }) {
                self.unsure.push(*id);
            }
        }
    }

    /// Calls these theaters in the background.
    fn reach(&mut self, theaters: BTreeMap<u64, SocketAddr>) {
        let calls = Arc::new(());
        let retry_for = self.deadline.saturating_sub(self.theater_core.now());
        for (theater, address) in &theaters {
            let call = Arc::clone(&calls);
            let callee = Callee::of(*address, *theater);
            self.theater_core.reach_later(callee, retry_for, Box::new(move |_| drop(call)));
        }
        self.step = Step::Reach { theaters: theaters.into_keys().collect(), calls };
    }

    /// Answers, and begins again if the other end has asked again in between. Returns whether it has not.
    fn answer(&mut self) -> bool {
        for ask in self.asks.drain(..) {
            self.link.reply(ask, &self.rerouted);
        }
        self.link.flush(false);
        self.rerouted = 0;
        self.deadline = self.theater_core.now() + REACH_MAX;
        let mut leaving = lock(&self.link.migrations().leaving);
        self.asks = leaving.as_mut().map(|leaving| std::mem::take(&mut leaving.asks)).unwrap_or_default();
        if self.asks.is_empty() {
            *leaving = None;
            return true;
        }
        if let Some(leaving) = leaving.as_mut() {
            leaving.is_late = false;
        }
        false
    }
}

impl Link {
    /// Asks the other end not to send mail for migrated actors over this theater. `rerouted` gets the number of changed routes, or is dropped.
    pub(crate) fn say_leaving(&self, rerouted: mpsc::Sender<u64>) {
        let answer: TakeAnswer = Box::new(move |answer| {
            if let Ok(count) = answer.and_then(|(codec, bytes)| {
                codec.read::<u64>(bytes).map_err(|error| AskError::Unreachable(error.to_string()))
            }) {
                let _ = rerouted.send(count);
            }
        });
        // On an error, `rerouted` is dropped with the answer.
        let _ = self.ask_with(answer, Lane::Normal, |ask, out| Head::Leaving { ask }.write(out));
        self.flush(false);
    }

    pub(crate) fn take_leaving(&self, theater_core: &Arc<TheaterCore>, ask: u64) {
        let link = self.this();
        match &mut *lock(&self.migrations().leaving) {
            // One thread waits for the other end. Later questions are answered behind its work.
            Some(further) if further.asks.len() >= LEAVINGS_MAX => return self.fault(Fault::Leavings),
            Some(further) => return further.asks.push(ask),
            waits => *waits = Some(Leaving::default()),
        }
        let deadline = theater_core.now() + REACH_MAX;
        let mut reroute_all = RerouteAll {
            link,
            theater_core: Arc::clone(theater_core),
            asks: vec![ask],
            rerouted: 0,
            deadline,
            unsure: Vec::new(),
            step: Step::Begin,
        };
        // If no thread can be started, the other end waits as long as it wants to.
        if theater_core.until_done("turn", REROUTES_LAST, move || reroute_all.go_on()).is_err() {
            *lock(&self.migrations().leaving) = None;
        }
    }

    /// Returns whether the route to an actor stays over the leaving other end until the theater that the actor `is` in has been called.
    pub(crate) fn reaches(&self, is: &RemoteActorId) -> bool {
        let mut leaving = lock(&self.migrations().leaving);
        let (Some(leaving), Some(address)) = (leaving.as_mut(), is.address) else { return false };
        if leaving.is_late || leaving.tried.contains(&is.theater) || self.link_table.link(is.theater).is_some() {
            return false;
        }
        leaving.to_reach.insert(is.theater, address);
        true
    }

    /// Applies `note` to the state of the thread that waits for the leaving other end.
    fn note_leaving<R: Default>(&self, note: impl FnOnce(&mut Leaving) -> R) -> R {
        lock(&self.migrations().leaving).as_mut().map(note).unwrap_or_default()
    }
}

impl TheaterCore {
    /// Has the other theaters send mail for actors that have left this one directly, instead of over this one.
    ///
    /// Repeats that until nothing has changed, and no other theater has called: see the module. Then waits until the mail that waits for new
    /// routes is forwarded, and for the answers that come over this theater.
    pub(crate) fn announce_evacuation(&self) {
        let deadline = self.now() + SHUTDOWN_NOTICE_MAX;
        let begun = self.now();
        self.have_others_reroute(deadline);
        self.await_kept(deadline, PendingProxy::keeps_anything);
        self.await_routes(deadline);
        // Answers that are to come over this theater, to asks that it has forwarded.
        let asked: Vec<(Arc<Link>, u64)> =
            self.link_table.all_links().into_iter().map(|link| (Arc::clone(&link), link.asked())).collect();
        let links: Vec<Arc<Link>> = asked.iter().map(|(link, _)| Arc::clone(link)).collect();
        let is_any_awaited = || asked.iter().any(|(link, asked)| link.awaits_answers(*asked));
        while is_any_awaited() && self.now() < deadline && !self.awaits_only_silent(&links, begun) {
            self.pause(LOOKED_AT_EVERY);
        }
        // The answers may wait at the stubs of actors that have asked, and left.
        self.await_routes(deadline);
    }

    /// Asks the other theaters until none of them has changed a route, but not after `deadline`.
    fn have_others_reroute(&self, deadline: Duration) {
        let told = |link_table: &LinkTable| link_table.told_moved.load(Ordering::Relaxed);
        let (mut is_first, asked_at) = (true, self.now());
        loop {
            let told_before = told(&self.link_table);
            let (rerouted, counts) = mpsc::channel();
            let links = self.link_table.all_links();
            for link in &links {
                link.say_leaving(rerouted.clone());
            }
            drop(rerouted);
            let mut any = false;
            loop {
                let look = deadline.min(self.now() + SILENCE_LOOKED_AT_EVERY);
                match self.receive(&counts, look) {
                    Some(count) => any |= count > 0,
                    // All have answered, or are lost.
                    None if self.now() < look => break,
                    None if self.now() >= deadline || self.awaits_only_silent(&links, asked_at) => break,
                    None => {}
                }
            }
            any |= std::mem::take(&mut is_first) || told(&self.link_table) != told_before;
            let was_told = |link: &Arc<Link>| links.iter().any(|told| Arc::ptr_eq(told, link));
            if !any && self.link_table.all_links().iter().all(was_told) || self.now() >= deadline {
                return;
            }
        }
    }

    /// Returns whether no other theater has a route over this one, and the theaters that have not answered since `asked_at` are silent or unreachable. A
    /// theater has a route over this one only to actors that this theater knows, or is about to start one in it.
    fn awaits_only_silent(&self, links: &[Arc<Link>], asked_at: Duration) -> bool {
        let asked_for = self.now().saturating_sub(asked_at);
        let answers_late = |link: &&Arc<Link>| link.may_hear_goodbye(asked_for) && link.awaits_answers(link.asked());
        let is_mobile = |id| self.registry.migration_vtable(id).is_some();
        !links.iter().any(|link| answers_late(&link)) && !self.directory.knows_any(is_mobile)
    }

    /// Waits until the messages are forwarded that are kept for theaters without links, and the present mail for migrated actors, but not after
    /// `deadline`.
    pub(crate) fn await_messages(&self, deadline: Duration) {
        self.await_kept(deadline, PendingProxy::keeps_messages_for_a_call);
        self.await_routes(deadline);
    }

    /// Waits until the present mail for migrated actors is forwarded, but not after `deadline`.
    fn await_routes(&self, deadline: Duration) {
        self.await_reroutes(deadline);
        // A rerouted stub may have its new theater called.
        self.await_kept(deadline, PendingProxy::keeps_for_another_route);
    }

    fn await_kept(&self, deadline: Duration, keeps: impl Fn(&PendingProxy) -> bool) {
        let routes = self.proxies.keeping_mail();
        while routes.iter().any(|route| keeps(route)) && self.now() < deadline {
            let before = self.now();
            self.pause(LOOKED_AT_EVERY);
            if self.now() == before {
                // A simulation in which nothing is left to do.
                return;
            }
        }
    }

    /// Waits until the stubs that reroute now have forwarded their waiting mail, but not after `deadline`.
    fn await_reroutes(&self, deadline: Duration) {
        let reroutes = self.directory.reroutes_of_routes();
        while self.directory.is_any_under_way(&reroutes) && self.now() < deadline {
            self.pause(LOOKED_AT_EVERY);
        }
        let last = self.settling().last_number;
        let any_settles = || self.settling().stubs.keys().next().is_some_and(|number| *number <= last);
        while any_settles() && self.now() < deadline {
            self.pause(LOOKED_AT_EVERY);
        }
    }
}
