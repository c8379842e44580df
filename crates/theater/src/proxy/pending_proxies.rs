//! The routes of a theater to actors of theaters without a link, and the state that they share.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::Duration;

use crate::link::link_table::LinkTable;
use crate::link::node::Callee;
use crate::lock::lock;
use crate::naming::{Directory, Host, RemoteActorId};
use crate::proxy::pending_proxy::PendingProxy;

/// Most lost theaters that are called within `lost_after`.
const CALLED_MAX: usize = 256;

/// The routes of a theater to actors of theaters without a link, and the state that they share.
pub(crate) struct PendingProxies {
    pub(super) directory: Arc<Directory>,
    pub(super) link_table: Arc<LinkTable>,
    /// The routes in the order in which they were made, except for the oldest. Nothing may have been sent along them.
    unlinked: Mutex<VecDeque<Weak<PendingProxy>>>,
    keeping: Mutex<Keeping>,
    /// Lost theaters that were called because something was sent to their actors, and the ends of the pauses before the next call.
    called: Mutex<Vec<(Host, Duration)>>,
}

/// Routes that keep mail, or have kept some.
#[derive(Default)]
struct Keeping {
    routes: Vec<Weak<PendingProxy>>,
    /// The number of routes at which those that keep nothing any more are dropped.
    many: usize,
}

impl PendingProxies {
    pub(crate) fn new(link_table: &Arc<LinkTable>) -> PendingProxies {
        PendingProxies {
            directory: Arc::clone(&link_table.directory),
            link_table: Arc::clone(link_table),
            unlinked: Mutex::default(),
            keeping: Mutex::default(),
            called: Mutex::default(),
        }
    }

    /// Notes a route to an actor of a theater without a link.
    pub(super) fn note_unlinked(&self, route: Weak<PendingProxy>) {
        lock(&self.unlinked).push_back(route);
    }

    /// Takes the oldest routes to actors of theaters without a link, except for the youngest ones.
    pub(crate) fn take_unlinked(&self) -> Vec<Arc<PendingProxy>> {
        /// Without a link, no theater tells that an actor has ended, and its stub stays. This number of stubs costs little; with more, a link is
        /// worth its cost.
        const UNLINKED_MAX: usize = 1_024;
        let mut unlinked = lock(&self.unlinked);
        let too_many = unlinked.len().saturating_sub(UNLINKED_MAX);
        unlinked.drain(..too_many).filter_map(|route| route.upgrade()).collect()
    }

    fn keeping(&self) -> MutexGuard<'_, Keeping> {
        lock(&self.keeping)
    }

    /// Notes that this route keeps mail from now on.
    pub(super) fn note_keeping(&self, route: Weak<PendingProxy>) {
        const FEW: usize = 16;
        // They are dropped after the lock, because such a reference may be the last one of its route.
        let mut looked_at = Vec::new();
        let mut keeping = self.keeping();
        let Keeping { routes, many } = &mut *keeping;
        if routes.len() >= FEW.max(*many) {
            routes.retain(|route| {
                route.upgrade().is_some_and(|route| {
                    let keeps = route.keeps_anything();
                    looked_at.push(route);
                    keeps
                })
            });
            *many = 2 * routes.len();
        }
        routes.push(route);
        drop(keeping);
    }

    /// Returns the routes that keep mail, and some that have kept mail before.
    pub(crate) fn keeping_mail(&self) -> Vec<Arc<PendingProxy>> {
        self.keeping().routes.iter().filter_map(Weak::upgrade).collect()
    }

    /// Reports the mail that waits for a call to another theater, or for a located actor, because this theater ends.
    pub(crate) fn report_kept(&self) {
        self.keeping_mail().into_iter().for_each(|route| route.give_up());
    }

    /// Calls a lost theater, if that was not done lately. No thread waits for it.
    pub(super) fn call_lost(&self, remote: &RemoteActorId) {
        let (Some(address), Some(node)) = (remote.address, self.link_table.node()) else { return };
        let (host, now) = (Host { theater: remote.theater, address: remote.address }, self.directory.core.now());
        {
            let mut called = lock(&self.called);
            called.retain(|(_, until)| *until > now);
            if called.len() >= CALLED_MAX || called.iter().any(|(other, _)| *other == host) {
                return;
            }
            called.push((host, now.saturating_add(node.lost_after())));
        }
        let callee = Callee::of(address, remote.theater);
        // One attempt.
        node.reach_later(callee, Duration::from_millis(1), Box::new(drop));
    }
}
