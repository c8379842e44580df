//! Stubs of actors in theaters that links were lost with.
//!
//! The other theater may live on: it was paused, or the two were disconnected. Therefore the stubs of its actors that do not migrate are kept, if it
//! has not announced its shutdown. Mail for such a stub fails at once with the reason that the theater is lost, and has the theater called at
//! intervals. After a new link is made, the stub leads to the theater again ([`PendingProxy`]). References to the actor stay equal.
//!
//! The number of kept stubs is bounded. Beyond the bound, stubs of the lost theater with the most are given up. Therefore a large theater does not
//! cost a small one its stubs.
//!
//! Mobile actors are located instead, and stubs of unknown ones are given up. Such an actor may have gone on, or may have been lost on its way to
//! this theater. In the second case its old route leads back to this theater.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use playhouse_actor::ActorId;

use crate::link::frame::THEATERS_MAX;
use crate::link::node::Callee;
use crate::lock::lock;
use crate::naming::directory::{Directory, LOST_MAX};
use crate::naming::known::KnownActors;
use crate::naming::names::{Host, Key, RemoteActorId};
use crate::proxy::pending::PendingProxy;

/// Most stubs of actors of lost theaters that are kept. Each takes about half a KiB.
pub(crate) const APART_MAX: usize = if cfg!(test) { 512 } else { 64 * 1024 };

/// Most lost theaters that are called within `lost_after`.
const CALLED_MAX: usize = 256;

/// A theater that the link was lost with.
struct Lost {
    theater: u64,
    /// The other end's number of the link, if it was known.
    peer_number: Option<u64>,
    /// The stubs of its actors that do not migrate, if it has not announced its shutdown.
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

    /// Returns the other end's number of the link with this theater, if one was lost.
    pub(super) fn peer_number(&self, theater: u64) -> Option<Option<u64>> {
        self.0.iter().find(|lost| lost.theater == theater).map(|lost| lost.peer_number)
    }

    /// Removes this theater, because there is a link with it.
    pub(super) fn remove(&mut self, theater: u64) {
        self.0.retain(|lost| lost.theater != theater);
    }

    /// Notes a theater. Returns the stubs that are to be given up.
    fn add(&mut self, (theater, peer_number): (u64, Option<u64>), kept: Vec<ActorId>) -> Vec<ActorId> {
        self.0.push_front(Lost { theater, peer_number, kept });
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
    /// Forgets the actors of this theater that do not migrate, except for `keeps` of them. Returns the stubs of the kept ones, and of the forgotten
    /// ones.
    fn split(&mut self, theater: u64, keeps: usize, is_mobile: impl Fn(ActorId) -> bool) -> [Vec<ActorId>; 2] {
        let is_there = |id: ActorId, remote: &RemoteActorId| {
            remote.theater == theater && !self.moved.contains_key(&id) && !is_mobile(id)
        };
        let there = self.names.iter().filter(|(id, remote)| is_there(**id, remote));
        let (mut lives, mut forgotten): (Vec<(Key, ActorId)>, Vec<_>) =
            there.map(|(id, remote)| (remote.key(), *id)).partition(|(_, id)| keeps > 0 && !id.address().is_stale());
        if lives.len() > keeps {
            // The order does not depend on positions in memory.
            lives.sort_unstable();
            forgotten.extend(lives.split_off(keeps));
        }
        forgotten.iter().for_each(|(_, id)| self.forget(*id));
        [lives, forgotten].map(|stubs| stubs.into_iter().map(|(_, id)| id).collect())
    }
}

impl Directory {
    /// Handles the loss of a theater; there is no new link with it before this returns. The link had the number `peer_number` at the other end.
    /// Keeps the stubs of its actors that do not migrate, if it has not announced its shutdown, and returns them. Called without the lock of the
    /// incoming actors.
    pub(super) fn keep_apart(
        self: &Arc<Self>,
        (theater, peer_number): (u64, Option<u64>),
        has_left: bool,
        is_mobile: impl Fn(ActorId) -> bool,
    ) -> Vec<ActorId> {
        let keeps = if has_left { 0 } else { APART_MAX };
        let [kept, mut given_up] = self.known().split(theater, keeps, is_mobile);
        let mut surplus = lock(&self.lost).add((theater, peer_number), kept.clone());
        // There may be a link again with some of the theaters.
        let linked = self.linked();
        {
            let mut known = self.known();
            surplus.retain(|id| known.names.get(id).is_none_or(|remote| !linked.contains(&remote.theater)));
            surplus.iter().for_each(|id| known.forget(*id));
        }
        given_up.extend(surplus);
        let Some(node) = self.node() else { return kept };
        for id in &given_up {
            if let Some(controls) = node.registry().controls(*id) {
                (controls.forget)(*id);
            }
        }
        for id in &kept {
            if let Some(controls) = node.registry().controls(*id) {
                PendingProxy::take_over(self, *id, controls);
            }
        }
        kept
    }
}

impl Directory {
    /// Calls a lost theater, if that was not done lately. No thread waits for it.
    pub(crate) fn call_lost(&self, remote: &RemoteActorId) {
        let (Some(address), Some(node)) = (remote.address, self.node()) else { return };
        let (host, now) = (Host { theater: remote.theater, address: remote.address }, self.core.now());
        {
            let mut called = lock(&self.called);
            called.retain(|(_, until)| *until > now);
            if called.len() >= CALLED_MAX || called.iter().any(|(other, _)| *other == host) {
                return;
            }
            called.push((host, now.saturating_add(node.lost_after())));
        }
        let callee = Callee { address, theater: Some(remote.theater) };
        // One attempt.
        node.reach_later(callee, Duration::from_millis(1), Box::new(drop));
    }
}
