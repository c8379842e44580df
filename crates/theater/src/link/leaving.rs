//! Theaters that were evacuated, and are about to end: see [`crate::migration::host`].
//!
//! When a theater T was evacuated, it asks all others not to send mail over it ([`Leaving`](Head::Leaving)). The other theater, H, looks
//! for *all* places from where mail goes to T: also those of actors that it was only told of. It has them turn, and answers when their mail
//! goes elsewhere. A place that turns already when H hears this may turn towards T: its marker may have been answered in T before the actor left. So
//! H looks again when the turns have ended that had begun by then. A marker that is sent later is not answered in T.
//!
//! # Names that are under way
//!
//! A message or the state of an actor may be on its way from H to a third theater, and may name an actor as one of T's. So H answers when all that it
//! has sent by then has come there. The third theater may have answered before. So T asks at least twice, and again until no way has changed, and
//! nothing was sent over T meanwhile: a way that was changed by [`Moved`](Head::Moved) may have been told to others before.
//!
//! H waits for earlier turns, and for what it has sent, for half of [`REACH_MAX`] each. A name that is under way for longer leads to T when T has ended.
//!
//! # Why H finds the actor when the next theater ends, too
//!
//! H may never send anything to the actor, and T's successor U may be evacuated and end like T. U can tell H only if there is a link. So H
//! keeps the old way, which is good as long as T waits, until it has a link with U: H calls U at once ([`Link::reaches`]). Then the place
//! turns again. A way to U holds only if the link with U was there *before* the place's last marker was sent. The marker was answered in U, so
//! the actor has left U later, if at all, and U has taken leave after that: of H as well.
//!
//! If U is evacuated and ends before H has reached it, the call fails. The actor is not lost, because T is still there: U has told T where
//! the actor went, and the next marker is answered from there. Only if that one names U again is the place's way a [`Distant`] to U, which
//! calls when something is sent.
//!
//! # Why nothing waits for ever
//!
//! An answer to `Leaving` waits for turns ([`moves`](crate::migration::host)), and for calls. No call and no marker waits for an answer to `Leaving`: a theater
//! takes calls, and passes markers on, while it is evacuated. So theaters that leave at the same time do not wait for each other. H calls for
//! [`REACH_MAX`] in all, however many theaters it is told of. After that it answers with the ways that it has. A theater that takes leave waits for
//! at most [`LEAVE_MAX`] in any case.
//!
//! [`Distant`]: crate::proxy::pending::Distant

use std::collections::BTreeMap;
use std::sync::{Weak, mpsc};

use super::*;
use crate::migration::drain::DrainGuard;
use crate::migration::host::LEAVE_MAX;
use crate::naming::RemoteActorId;
use crate::node::core::{Callee, TheaterCore};

/// About as long as it takes for places to turn.
const REROUTES_LAST: Duration = Duration::from_millis(1);

/// For so long, theaters are called that actors have gone to. Less than [`LEAVE_MAX`], so that ways are found without them before the theater
/// that leaves has ended.
const REACH_MAX: Duration = Duration::from_secs(LEAVE_MAX.as_secs() / 2);

/// What the thread is told that waits for the places whose mail goes over the other end, which leaves.
#[derive(Default)]
pub(super) struct Leaving {
    /// Further asks to be answered.
    asks: Vec<u64>,
    /// Theaters that are to be called, since actors are there.
    to_reach: BTreeMap<u64, SocketAddr>,
    /// Theaters that were called in vain.
    tried: FxHashSet<u64>,
    /// No more theaters are called.
    is_late: bool,
}

/// Waits until the mail of all places that went to the theater behind `link` goes elsewhere.
struct Farewell {
    link: Arc<Link>,
    theater_core: Arc<TheaterCore>,
    /// To be answered.
    asks: Vec<u64>,
    /// So many ways have changed.
    rerouted: u64,
    /// No more theaters are called after this time.
    deadline: Duration,
    /// Places whose new ways lead to theaters that there may have been no link with when their markers were sent.
    unsure: Vec<ActorId>,
    step: Step,
}

enum Step {
    Begin,
    /// Turns of these numbers had begun when the other end was heard, or begin then. They are not waited for after this time.
    Settle(Vec<u64>, Duration),
    /// These places turn. There were links with these theaters when that began.
    Turn {
        stubs: Vec<ActorId>,
        linked: FxHashSet<u64>,
    },
    /// These theaters are called. Each call has a reference to `calls`.
    Reach {
        theaters: Vec<u64>,
        calls: Arc<()>,
    },
    /// What was sent from here until now is under way.
    Drain(Weak<DrainGuard>, Duration),
}

impl Farewell {
    /// Goes on as far as possible without waiting. Returns whether all is answered.
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
                let linked = self.theater_core.directory.linked().into_iter().collect();
                let stubs = self.reroute_all();
                self.step = Step::Turn { stubs, linked };
                false
            }
            Step::Turn { stubs, linked } => {
                if !self.link.is_lost() && self.theater_core.directory.is_any_rerouting(&stubs) {
                    self.step = Step::Turn { stubs, linked };
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
                let directory = &self.theater_core.directory;
                let in_vain = theaters.into_iter().filter(|theater| directory.link(*theater).is_none());
                self.link.note_leaving(|leaving| leaving.tried.extend(in_vain));
                false
            }
        }
    }

    /// Has all places turn from where mail goes to the other end, or may go there.
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

    /// When one step is to have ended, so that time is left for the others.
    fn half_time(&self) -> Duration {
        self.deadline.min(self.theater_core.now() + REACH_MAX / 2)
    }

    /// These places do not turn any more.
    fn look_at(&mut self, stubs: &[ActorId], linked: &FxHashSet<u64>) {
        self.unsure.clear();
        for id in stubs {
            let at = self.theater_core.directory.at(*id);
            if at.is_some_and(|at| at.theater == self.link.incarnation) {
                continue;
            }
            self.rerouted += 1;
            // (Where there is no link now, it was tried in vain.)
            if at.is_some_and(|at| {
                !linked.contains(&at.theater) && self.theater_core.directory.link(at.theater).is_some()
            }) {
                self.unsure.push(*id);
            }
        }
    }

    /// Calls these theaters in the background.
    fn reach(&mut self, theaters: BTreeMap<u64, SocketAddr>) {
        let calls = Arc::new(());
        let patience = self.deadline.saturating_sub(self.theater_core.now());
        for (theater, address) in &theaters {
            let call = Arc::clone(&calls);
            let callee = Callee { address: *address, theater: Some(*theater) };
            self.theater_core.reach_later(callee, patience, Box::new(move |_| drop(call)));
        }
        self.step = Step::Reach { theaters: theaters.into_keys().collect(), calls };
    }

    /// Answers, and begins again if the other end has asked again meanwhile. Returns whether it has not.
    fn answer(&mut self) -> bool {
        for ask in self.asks.drain(..) {
            let _ = self.link.send(Lane::Normal, |out| {
                Head::Answer { ask, codec: Codec::Positional.into() }.write(out)?;
                Codec::Positional.write(&self.rerouted, out)
            });
        }
        self.link.flush(false);
        self.rerouted = 0;
        self.deadline = self.theater_core.now() + REACH_MAX;
        let mut leaving = lock(&self.link.leaving);
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
    /// Asks the other end not to send mail over this theater that is for actors elsewhere. `rerouted` is told how many ways have
    /// changed for that, or is dropped.
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

    pub(super) fn take_leaving(&self, ask: u64) {
        let (link, Some(theater_core)) = (self.this(), self.theater_core()) else { return };
        match &mut *lock(&self.leaving) {
            // One thread waits for the other end. What is asked after it has begun is answered behind that.
            Some(further) if further.asks.len() >= LEAVINGS_MAX => return self.fault(Fault::Leavings),
            Some(further) => return further.asks.push(ask),
            waits => *waits = Some(Leaving::default()),
        }
        let deadline = theater_core.now() + REACH_MAX;
        let theater_core_here = Arc::clone(&theater_core);
        let mut farewell = Farewell {
            link,
            theater_core,
            asks: vec![ask],
            rerouted: 0,
            deadline,
            unsure: Vec::new(),
            step: Step::Begin,
        };
        // If no thread can be had, the other end waits as long as it wants to.
        if theater_core_here.until_done("turn", REROUTES_LAST, move || farewell.go_on()).is_err() {
            *lock(&self.leaving) = None;
        }
    }

    /// Whether the way to an actor goes on over the other end until the theater that the actor `is` in has been called: the other end leaves.
    pub(crate) fn reaches(&self, is: &RemoteActorId) -> bool {
        let mut leaving = lock(&self.leaving);
        let (Some(leaving), Some(address)) = (leaving.as_mut(), is.address) else { return false };
        if leaving.is_late || leaving.tried.contains(&is.theater) || self.directory.link(is.theater).is_some() {
            return false;
        }
        leaving.to_reach.insert(is.theater, address);
        true
    }

    /// What the thread that waits for the other end, which leaves, notes or is told.
    fn note_leaving<R: Default>(&self, note: impl FnOnce(&mut Leaving) -> R) -> R {
        lock(&self.leaving).as_mut().map(note).unwrap_or_default()
    }
}
