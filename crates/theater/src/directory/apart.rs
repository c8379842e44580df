//! Places of actors of theaters that links were lost with.
//!
//! The other theater may live on: it stood still, or the two were apart. So the places of its actors that do not move are kept, if it has not said
//! goodbye. What is sent to such a place fails at once with the reason that the theater is lost, and has the theater called now and then. When there is
//! a link again, the place leads there again ([`Distant`](crate::distant::Distant)). References to the actor stay equal over all this.
//!
//! How many places are kept is bounded. Of more, places are given up of the lost theater that has the most, so that a large theater does not cost a
//! small one its places.
//!
//! Actors that move are sought instead, and places of those that nobody knows are given up: an actor may have gone on, or may have been lost on its way
//! here, in which case its old way leads back here.

use std::collections::VecDeque;
use std::sync::Arc;

use playhouse_actor::ActorId;

use super::{Directory, Far, Known, LOST_MAX, lock};
use crate::authority::Host;
use crate::house::{Callee, House};

/// Most places of actors of lost theaters that are kept. Each takes about half a KiB.
pub(crate) const APART_MAX: usize = if cfg!(test) { 512 } else { 64 * 1024 };

/// A theater that the link was lost with.
struct Lost {
    theater: u64,
    /// The places here of its actors that do not move, if it has not said goodbye.
    kept: Vec<ActorId>,
}

/// Theaters that links were lost with, and have not been made again, the latest first.
#[derive(Default)]
pub(super) struct LostTheaters(VecDeque<Lost>);

impl LostTheaters {
    pub(super) fn all(&self) -> Vec<u64> {
        self.0.iter().map(|lost| lost.theater).collect()
    }

    /// There is a link with this theater.
    pub(super) fn remove(&mut self, theater: u64) {
        self.0.retain(|lost| lost.theater != theater);
    }

    /// Notes a theater. Returns the places that are to be given up.
    fn add(&mut self, theater: u64, kept: Vec<ActorId>) -> Vec<ActorId> {
        self.0.push_front(Lost { theater, kept });
        let forgotten = self.0.split_off(self.0.len().min(LOST_MAX));
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

impl Known {
    /// Takes the names of actors of this theater that do not move from those that are known, but for as many as are kept. Returns the places of
    /// those that are kept, and of those that are not.
    fn split(&mut self, theater: u64, keeps: usize, is_mobile: impl Fn(ActorId) -> bool) -> [Vec<ActorId>; 2] {
        let is_there =
            |id: ActorId, far: &Far| far.theater == theater && !self.moved.contains_key(&id) && !is_mobile(id);
        let mut there: Vec<(ActorId, Far)> =
            self.names.iter().map(|(id, far)| (*id, *far)).filter(|(id, far)| is_there(*id, far)).collect();
        // Those that have ended are about to be forgotten anyway.
        there.sort_by_cached_key(|(id, far)| (id.address().is_stale(), far.key()));
        let lives = there.iter().take_while(|(id, _)| !id.address().is_stale()).count();
        let forgotten = there.split_off(keeps.min(lives));
        forgotten.iter().for_each(|(id, _)| self.forget(*id));
        [there, forgotten].map(|places| places.into_iter().map(|(id, _)| id).collect())
    }
}

impl Directory {
    /// The theater is lost. Keeps the places of its actors that do not move, if it has not said goodbye, and returns them. Without the lock of the
    /// guests.
    pub(super) fn keep_apart(&self, theater: u64, has_left: bool, is_mobile: impl Fn(ActorId) -> bool) -> Vec<ActorId> {
        let keeps = if has_left { 0 } else { APART_MAX };
        let [mut kept, mut given_up] = self.known().split(theater, keeps, is_mobile);
        let surplus = lock(&self.lost).add(theater, kept.clone());
        {
            let mut known = self.known();
            surplus.iter().for_each(|id| known.forget(*id));
        }
        given_up.extend(surplus);
        if let Some(house) = self.house() {
            for id in &given_up {
                if let Some(controls) = house.registry.controls(*id) {
                    (controls.forget)(*id);
                }
            }
        }
        kept.retain(|id| self.far_name(*id).is_some());
        kept
    }
}

impl House {
    /// Calls a lost theater, if that was not done lately. Nobody waits for it.
    pub(crate) fn call_lost(self: &Arc<Self>, far: &Far) {
        let Some(address) = far.address else { return };
        let (host, now) = (Host { theater: far.theater, address: far.address }, self.now());
        if self.directory.was_unreached(host, now) {
            return;
        }
        self.directory.note_unreached(host, now.saturating_add(self.settings.lost_after));
        let callee = Callee { address, theater: Some(far.theater) };
        self.reach_later(callee, self.call_limit(), Box::new(drop));
    }
}
