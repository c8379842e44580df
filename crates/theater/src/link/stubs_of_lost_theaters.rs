//! Stubs of actors in theaters that links were lost with.
//!
//! The other theater may live on: it was paused, or the two were disconnected. Therefore the stubs of its actors that do not migrate are kept, if it
//! has not announced its shutdown. Mail for such a stub fails at once with the reason that the theater is lost, and has the theater called at
//! intervals. After a new link is made, the stub leads to the theater again (`PendingProxy`). References to the actor stay equal.
//!
//! The number of kept stubs is bounded. Beyond the bound, stubs of the lost theater with the most are given up. Therefore a large theater does not
//! cost a small one its stubs.
//!
//! Mobile actors are located instead, and stubs of unknown ones are given up. Such an actor may have gone on, or may have been lost on its way to
//! this theater. In the second case its old route leads back to this theater.

use std::collections::VecDeque;

use playhouse_actor::ActorId;

use crate::link::frame::THEATERS_MAX;
use crate::link::link_table::LinkTable;
use crate::lock::lock;

/// Most lost theaters that a theater lists. The other end of a lost link gives it up at about the same time; until then at most this number of others
/// are lost.
const LOST_MAX: usize = 256;

/// Most stubs of actors of lost theaters that are kept. Each takes about half a KiB.
pub(crate) const APART_MAX: usize = if cfg!(test) { 512 } else { 64 * 1024 };

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
    fn latest(&self) -> Vec<u64> {
        self.0.iter().map(|lost| lost.theater).take(LOST_MAX).collect()
    }

    /// Returns the other end's number of the link with this theater, if one was lost.
    fn peer_number(&self, theater: u64) -> Option<Option<u64>> {
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

impl LinkTable {
    /// Returns the theaters that links were lost with lately.
    pub(crate) fn lost(&self) -> Vec<u64> {
        lock(&self.lost).latest()
    }

    /// Returns the other end's number of the lost link with `theater`, as far as it was known. Returns `None` if no link was lost, or there was one
    /// since.
    pub(crate) fn lost_link(&self, theater: u64) -> Option<Option<u64>> {
        lock(&self.lost).peer_number(theater)
    }

    /// Forgets all knowledge of the lost `theater`, except for stubs that may still be of use. These are the stubs of mobile actors, and those of its
    /// other actors, if it has not announced its shutdown. Returns the latter. The link had the number `peer_number` at the other end.
    ///
    /// There is no new link with the theater before this returns.
    pub(super) fn lose(
        &self,
        (theater, peer_number): (u64, Option<u64>),
        has_left: bool,
        is_mobile: impl Fn(ActorId) -> bool + Copy,
    ) -> Vec<ActorId> {
        self.directory.lose_routes_to(theater, is_mobile);
        let keeps = if has_left { 0 } else { APART_MAX };
        let [kept, mut given_up] = self.directory.forget_immobile(theater, keeps, is_mobile);
        let surplus = lock(&self.lost).add((theater, peer_number), kept.clone());
        // There may be a link again with some of the theaters.
        given_up.extend(self.directory.forget_except(surplus, &self.linked()));
        if let Some(node) = self.node() {
            for id in given_up {
                if let Some(controls) = self.registry.controls(id) {
                    (controls.forget)(id);
                }
            }
            node.take_over(&kept);
        }
        self.by_theater().remove(&theater);
        kept
    }
}
