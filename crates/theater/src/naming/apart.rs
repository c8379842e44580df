//! Places of actors of theaters that links were lost with.
//!
//! The other theater may live on: it stood still, or the two were apart. So the places of its actors that do not move are kept, if it has not said
//! goodbye. Mail for such a place fails at once with the reason that the theater is lost, and has the theater called now and then. After a new link
//! is made, the place leads to the theater again ([`Distant`]). References to the actor stay equal.
//!
//! How many places are kept is bounded. Of more, places are given up of the lost theater that has the most, so that a large theater does not cost a
//! small one its places.
//!
//! Actors that move are sought instead, and places of those that nobody knows are given up: an actor may have gone on, or may have been lost on its way
//! here, in which case its old way leads back here.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use playhouse_actor::ActorId;

use super::{Directory, Key, KnownActors, LOST_MAX, RemoteActorId, lock};
use crate::link::frame::THEATERS_MAX;
use crate::migration::authority::Host;
use crate::node::core::{Callee, TheaterCore};
use crate::proxy::pending::PendingProxy;

/// Most places of actors of lost theaters that are kept. Each takes about half a KiB.
pub(crate) const APART_MAX: usize = if cfg!(test) { 512 } else { 64 * 1024 };

/// Most lost theaters that are called within `lost_after`.
const CALLED_MAX: usize = 256;

/// A theater that the link was lost with.
struct Lost {
    theater: u64,
    /// The number of the link at that end, if it was known.
    number_there: Option<u64>,
    /// The places here of its actors that do not move, if it has not said goodbye.
    kept: Vec<ActorId>,
}

/// Theaters that links were lost with, and have not been made again, the latest first.
#[derive(Default)]
pub(super) struct LostTheaters(VecDeque<Lost>);

impl LostTheaters {
    /// Returns the latest ones. The other end of a lost link gives it up at about the same time.
    pub(super) fn latest(&self) -> Vec<u64> {
        self.0.iter().map(|lost| lost.theater).take(LOST_MAX).collect()
    }

    /// Returns the number at that end of the link with this theater, if one was lost.
    pub(super) fn number_there(&self, theater: u64) -> Option<Option<u64>> {
        self.0.iter().find(|lost| lost.theater == theater).map(|lost| lost.number_there)
    }

    /// There is a link with this theater.
    pub(super) fn remove(&mut self, theater: u64) {
        self.0.retain(|lost| lost.theater != theater);
    }

    /// Notes a theater. Returns the places that are to be given up.
    fn add(&mut self, (theater, number_there): (u64, Option<u64>), kept: Vec<ActorId>) -> Vec<ActorId> {
        self.0.push_front(Lost { theater, number_there, kept });
        let mut number = 0;
        self.0.retain(|lost| {
            number += 1;
            number <= LOST_MAX || !lost.kept.is_empty()
        });
        let forgotten = self.0.split_off(self.0.len().min(THEATERS_MAX));
        let mut given_up: Vec<ActorId> = forgotten.into_iter().flat_map(|lost| lost.kept).collect();
        let mut count: usize = self.0.iter().map(|lost| lost.kept.len()).sum();
        while count > APART_MAX
            && let Some(most) = self.0.iter_mut().max_by_key(|lost| lost.kept.len())
        {
            given_up.extend(most.kept.pop());
            count -= 1;
        }
        given_up
    }
}

impl KnownActors {
    /// Forgets the actors of this theater that do not move, but for as many as are kept. Returns the places of those that are kept, and of those
    /// that are not.
    fn split(&mut self, theater: u64, keeps: usize, is_mobile: impl Fn(ActorId) -> bool) -> [Vec<ActorId>; 2] {
        let is_there = |id: ActorId, far: &RemoteActorId| {
            far.theater == theater && !self.moved.contains_key(&id) && !is_mobile(id)
        };
        let there = self.names.iter().filter(|(id, far)| is_there(**id, far));
        let (mut lives, mut forgotten): (Vec<(Key, ActorId)>, Vec<_>) =
            there.map(|(id, far)| (far.key(), *id)).partition(|(_, id)| keeps > 0 && !id.address().is_stale());
        if lives.len() > keeps {
            // In an order that does not depend on where they lie in memory.
            lives.sort_unstable();
            forgotten.extend(lives.split_off(keeps));
        }
        forgotten.iter().for_each(|(_, id)| self.forget(*id));
        [lives, forgotten].map(|stubs| stubs.into_iter().map(|(_, id)| id).collect())
    }
}

impl Directory {
    /// The theater is lost, and there is no new link with it before this returns. The link had this number there. Keeps the places of its actors that do not move, if it has not said
    /// goodbye, and returns them. Without the lock of the guests.
    pub(super) fn keep_apart(
        self: &Arc<Self>,
        (theater, number_there): (u64, Option<u64>),
        has_left: bool,
        is_mobile: impl Fn(ActorId) -> bool,
    ) -> Vec<ActorId> {
        let keeps = if has_left { 0 } else { APART_MAX };
        let [kept, mut given_up] = self.known().split(theater, keeps, is_mobile);
        let mut surplus = lock(&self.lost).add((theater, number_there), kept.clone());
        // There may be a link with the theaters of some again.
        let linked = self.linked();
        {
            let mut known = self.known();
            surplus.retain(|id| known.names.get(id).is_none_or(|far| !linked.contains(&far.theater)));
            surplus.iter().for_each(|id| known.forget(*id));
        }
        given_up.extend(surplus);
        let Some(theater_core) = self.theater_core() else { return kept };
        for id in &given_up {
            if let Some(controls) = theater_core.registry.controls(*id) {
                (controls.forget)(*id);
            }
        }
        for id in &kept {
            if let Some(controls) = theater_core.registry.controls(*id) {
                PendingProxy::take_over(self, *id, controls);
            }
        }
        kept
    }
}

impl TheaterCore {
    /// Calls a lost theater, if that was not done lately. Nobody waits for it.
    pub(crate) fn call_lost(self: &Arc<Self>, far: &RemoteActorId) {
        let Some(address) = far.address else { return };
        let (host, now) = (Host { theater: far.theater, address: far.address }, self.now());
        {
            let mut called = lock(&self.directory.called);
            called.retain(|(_, until)| *until > now);
            if called.len() >= CALLED_MAX || called.iter().any(|(other, _)| *other == host) {
                return;
            }
            called.push((host, now.saturating_add(self.settings.lost_after)));
        }
        let callee = Callee { address, theater: Some(far.theater) };
        // Once.
        self.reach_later(callee, Duration::from_millis(1), Box::new(drop));
    }
}
