//! Places of actors of theaters that links were lost with.
//!
//! The other theater may live on: it stood still, or the two were apart. So a place is kept, if the other theater has not said goodbye. What is sent
//! to it fails at once with the reason that the theater is lost, and has the theater called now and then. When there is a link again, the place leads
//! there again ([`Distant`](crate::distant::Distant)). References to the actor stay equal over all this. How many places are kept is bounded: the
//! oldest are given up.

use std::collections::BTreeMap;

use playhouse_actor::ActorId;
use rustc_hash::FxHashMap;

use super::{Directory, Far, Known};
use crate::authority::Host;
use crate::house::{Callee, House};
use crate::migration::{Action, Event, Request};

/// Each takes about half a KiB.
pub(crate) const APART_MAX: usize = if cfg!(test) { 512 } else { 64 * 1024 };

/// The places, by when they were noted.
#[derive(Default)]
pub(super) struct Apart {
    in_order: BTreeMap<u64, ActorId>,
    numbers: FxHashMap<ActorId, u64>,
    last_number: u64,
}

impl Apart {
    fn keep(&mut self, id: ActorId) {
        self.last_number += 1;
        if let Some(earlier) = self.numbers.insert(id, self.last_number) {
            self.in_order.remove(&earlier);
        }
        self.in_order.insert(self.last_number, id);
    }

    fn remove(&mut self, id: ActorId) {
        if let Some(number) = self.numbers.remove(&id) {
            self.in_order.remove(&number);
        }
    }

    fn oldest(&mut self) -> Option<ActorId> {
        let (_, id) = self.in_order.pop_first()?;
        self.numbers.remove(&id);
        Some(id)
    }
}

/// What became of the place of an actor that nobody knows of.
pub(crate) enum Fate {
    /// It is kept: the actor's theater may live on.
    Kept,
    /// It is forgotten here, and is to be given up.
    Forgotten,
    /// The actor is elsewhere, or on its way.
    Lives,
}

impl Known {
    /// These are places of actors of a lost theater. Returns those that are to be given up for them.
    pub(super) fn keep_apart(&mut self, places: impl IntoIterator<Item = ActorId>) -> Vec<ActorId> {
        places.into_iter().for_each(|id| self.apart.keep(id));
        let surplus = self.apart.numbers.len().saturating_sub(APART_MAX);
        let given_up: Vec<ActorId> = (0..surplus).filter_map(|_| self.apart.oldest()).collect();
        given_up.iter().for_each(|id| self.forget(*id));
        given_up
    }

    /// The place is not one of those any more.
    pub(super) fn is_not_apart(&mut self, id: ActorId) {
        self.apart.remove(id);
    }
}

impl Directory {
    /// Others, who were asked since the theater `lost` is lost, do not know the actor of this place. `asked_lost`: that theater was asked, too,
    /// because there is a link with it again.
    pub(crate) fn lose_actor(&self, id: ActorId, lost: u64, asked_lost: bool) -> Fate {
        // An actor that is just accepted has a place.
        let _guests = self.guests();
        let may_live = !asked_lost && !self.has_left(lost);
        let mut known = self.known();
        let view = known.view(self.incarnation, id);
        if view.way().is_none() || view.turn().is_some() {
            return Fate::Lives;
        }
        let event = Event::Found { lost, at: None };
        let actions = known.step(self.incarnation, id, event, &mut || self.next_number());
        if !matches!(actions[..], [Action::Ask(Request::Report)]) {
            return Fate::Lives;
        }
        if !may_live {
            known.forget(id);
            return Fate::Forgotten;
        }
        let given_up = known.keep_apart([id]);
        drop(known);
        self.give_up(given_up);
        Fate::Kept
    }

    /// Gives up places that are forgotten.
    pub(super) fn give_up(&self, places: Vec<ActorId>) {
        let Some(house) = self.house() else { return };
        for id in places {
            if let Some(controls) = house.registry.controls(id) {
                (controls.forget)(id);
            }
        }
    }

    /// The way from the place leads to its actor again.
    pub(crate) fn is_reached_again(&self, id: ActorId) {
        self.known().is_not_apart(id);
    }

    /// Whether the theater has said goodbye, as far as is known.
    fn has_left(&self, theater: u64) -> bool {
        super::lock(&self.lost).iter().any(|lost| lost.theater == theater && lost.has_left)
    }
}

impl House {
    /// Calls a lost theater, if that was not done lately. Nobody waits for it.
    pub(crate) fn call_lost(self: &std::sync::Arc<Self>, far: &Far) {
        let host = Host { theater: far.theater, address: far.address };
        let Some(address) = far.address else { return };
        let now = self.now();
        if self.directory.was_unreached(host, now) {
            return;
        }
        self.directory.note_unreached(host, now.saturating_add(self.settings.lost_after));
        let callee = Callee { address, theater: Some(far.theater) };
        self.reach_later(callee, self.call_limit(), Box::new(drop));
    }
}
