//! The links of a theater: one for each theater that it has called, or that has called it.
//!
//! The state machine in [`crate::node::calling`] decides which calls make links and which continue them.

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use crate::error::TheaterError;
use crate::link::Link;
use crate::link::frame::{Hello, Resume, THEATERS_MAX};
use crate::link::node::Callee;
use crate::lock::lock;
use crate::node::backoff::Backoff;
use crate::node::calling::{Calling, Sight};
use crate::node::core::TheaterCore;
use crate::node::identity::Word32;

/// Interval at which the housekeeper checks the links.
pub(crate) const TICK: Duration = Duration::from_millis(50);
/// The reason for refusing a theater with a changed certificate, behind its name. No theater changes its certificate during an incarnation.
pub(super) const OTHER_CERTIFICATE: &str = "shows another certificate than at the beginning of its link";

/// The result of a call, shared by all threads that wait for it.
pub(crate) type Called = Arc<OnceLock<Result<Arc<Link>, TheaterError>>>;

#[derive(Default)]
pub(crate) struct Links {
    pub(super) by_incarnation: BTreeMap<u64, KnownTheater>,
    /// Addresses that are called for the first time, with the result for other threads that want the same link.
    pub(crate) calling: HashMap<SocketAddr, Called>,
    /// Further addresses at which theaters were called.
    pub(super) aliases: HashMap<SocketAddr, u64>,
    next_number: u64,
    /// A thread holds the listener.
    pub(super) is_open: bool,
    /// The time of the housekeeper's last tick, in the system's time.
    pub(super) looked_at: Duration,
}

impl Links {
    pub(super) fn new(is_open: bool) -> Links {
        Links { is_open, ..Links::default() }
    }

    /// Returns the link with this theater. (The link with a theater that has ended may not have been given up yet.)
    ///
    /// An address alone means an address that this theater has called, because the listening address that a caller states is only
    /// its claim. Of several theaters that were called at the address, the connected one is meant, and of those the latest.
    pub(crate) fn at(&self, Callee { address, theater, anew }: Callee) -> Option<&Arc<Link>> {
        if anew {
            return None;
        }
        if let Some(theater) = theater {
            return self.by_incarnation.get(&theater).map(|known| &known.link).filter(|link| !link.is_lost());
        }
        let alias = self.aliases.get(&address);
        let is_there =
            |known: &&KnownTheater| alias == Some(&known.link.incarnation) || known.called_at == Some(address);
        let links = self.by_incarnation.values().filter(is_there).map(|known| &known.link);
        links.filter(|link| !link.is_lost()).max_by_key(|link| (link.connection().is_some(), link.number()))
    }

    /// Makes room for one more link. The table is full only if callers make links that they do not use. In that case the oldest
    /// link that has received nothing is returned; the caller gives it up.
    ///
    /// # Errors
    /// There is no room: the reason, behind the name of this theater.
    pub(super) fn make_room(&mut self) -> Result<Option<Arc<Link>>, String> {
        if self.by_incarnation.len() < THEATERS_MAX {
            return Ok(None);
        }
        let unused =
            self.by_incarnation.values().filter(|known| known.called_at.is_none() && !known.link.has_received());
        let oldest = unused.min_by_key(|known| known.link.number()).map(|known| known.link.incarnation);
        let oldest = oldest.and_then(|theater| self.by_incarnation.remove(&theater));
        oldest
            .map(|known| Some(known.link))
            .ok_or_else(|| format!("has links with {THEATERS_MAX} theaters, and takes no more"))
    }

    /// Returns a number for a new link.
    pub(super) fn number(&mut self) -> u64 {
        self.next_number += 1;
        self.next_number - 1
    }

    /// Returns whether the call of `address` that `outcome` belongs to is in progress.
    pub(super) fn is_called(&self, address: SocketAddr, outcome: &Called) -> bool {
        self.calling.get(&address).is_some_and(|present| Arc::ptr_eq(present, outcome))
    }
}

pub(super) struct KnownTheater {
    pub(super) link: Arc<Link>,
    pub(super) calls: Calling,
    /// The address of this end's first call.
    pub(super) called_at: Option<SocketAddr>,
    /// The digest of the certificate that the other end has shown: the same one on each connection.
    pub(super) certificate: Option<Word32>,
    /// The time without a connection, as counted by the housekeeper.
    pub(super) terminated: Option<Duration>,
    /// The time in which the connection had bytes to write and took none, as counted by the housekeeper.
    pub(super) stuck: Duration,
    /// The pause after a refused call.
    pub(super) backoff: Backoff,
}

impl KnownTheater {
    pub(super) fn sight(&self) -> Sight {
        Sight {
            number: self.link.number(),
            has_received: self.link.has_received(),
            is_connected: self.link.connection().is_some(),
        }
    }
}

impl TheaterCore {
    pub(crate) fn links(&self) -> MutexGuard<'_, Links> {
        lock(&self.links)
    }

    /// Returns all links, and prevents new ones. Before, it prevents new calls and waits until `deadline` for those in progress: the other theaters
    /// may have accepted them, and would consider this one lost only after a time.
    pub(crate) fn last_links(&self, deadline: Duration) -> Vec<Arc<Link>> {
        let mut links = self.links();
        // Relaxed: it is read under the lock of the links, which this thread holds.
        self.calls_no_more.store(true, Ordering::Relaxed);
        while !links.calling.is_empty() && self.now() < deadline {
            drop(links);
            let before = self.now();
            self.pause(Duration::from_millis(1));
            links = self.links();
            if self.now() == before {
                // A simulation in which nothing is left to do.
                break;
            }
        }
        // Relaxed: it is read under the lock of the links, which this thread holds.
        self.leaving.store(true, Ordering::Relaxed);
        links.by_incarnation.values().map(|known| Arc::clone(&known.link)).collect()
    }

    /// Returns all links that are not lost.
    pub(crate) fn all_links(&self) -> Vec<Arc<Link>> {
        self.links().by_incarnation.values().map(|known| Arc::clone(&known.link)).collect()
    }

    /// Returns whether the theater is being called again.
    pub(crate) fn calls_again(&self, theater: u64) -> bool {
        self.links().by_incarnation.get(&theater).is_some_and(|known| known.calls.calls_again)
    }

    /// Returns the link with the theater at `address`, if there is one.
    pub(crate) fn known_link(&self, address: SocketAddr) -> Option<Arc<Link>> {
        self.links().at(address.into()).map(Arc::clone)
    }

    /// Wakes the threads that wait for a change of the links.
    pub(crate) fn note_changed(&self) {
        self.changed.notify_all();
    }

    pub(crate) fn hello(&self, resumes: Option<Resume>) -> Hello {
        Hello {
            cluster: self.settings.cluster.clone(),
            incarnation: self.incarnation,
            listens: self.listens,
            resumes,
            knows: match resumes {
                Some(_) => Vec::new(),
                None => self.link_table.linked(),
            },
            lost: match resumes {
                Some(_) => Vec::new(),
                None => self.link_table.lost(),
            },
            kinds: self.registry.kinds().to_vec(),
            link: None,
        }
    }

    /// Returns the greeting of a first call, for a link with a number of its own.
    pub(crate) fn first_hello(&self) -> Hello {
        let number = self.links().number();
        Hello { link: Some(number), ..self.hello(None) }
    }

    /// Makes a link that is about to have its first connection, which is prepared with the lock held. As soon as other threads
    /// know of the link, the housekeeper may call again, and connection 2 may exist before this thread continues. Connection 1,
    /// if prepared after that, would replace connection 2, with the count of packets that the other end had received at the
    /// start.
    pub(super) fn new_link(
        &self,
        links: &mut Links,
        number: u64,
        hello: &Hello,
        called: Option<SocketAddr>,
        certificate: Option<Word32>,
    ) -> Arc<Link> {
        let peer = (hello.incarnation, called, hello.listens);
        let shutdown_waker = Arc::clone(&self.changed);
        let link = Link::new(&self.link_table, number, peer, &hello.kinds, (self.settings.window, shutdown_waker));
        link.note_remote_number(hello.link);
        self.link_table.add_link(hello.incarnation, &link);
        let known = KnownTheater {
            link: Arc::clone(&link),
            calls: Calling::new(called.is_some(), hello.link),
            called_at: called,
            certificate,
            terminated: None,
            stuck: Duration::ZERO,
            backoff: Backoff::default(),
        };
        links.by_incarnation.insert(hello.incarnation, known);
        link.prepare(1);
        link
    }

    pub(crate) fn wait<'a>(&self, links: MutexGuard<'a, Links>) -> MutexGuard<'a, Links> {
        self.changed.wait_timeout(links, TICK).unwrap_or_else(PoisonError::into_inner).0
    }
}

#[cfg(test)]
mod tests {
    use crate::Theater;

    /// Without the lock, a slow thread would prepare connection 1 after connection 2.
    #[test]
    fn the_first_connection_of_a_link_is_prepared_before_others_know_of_the_link() {
        let start = || Theater::builder().listen("127.0.0.1:0").start().unwrap();
        let (theater, peer) = (start(), start());
        let hello = peer.theater_core.first_hello();
        let link = {
            let mut links = theater.theater_core.links();
            let number = links.number();
            let link = theater.theater_core.new_link(&mut links, number, &hello, peer.address(), None);
            assert_eq!(link.prepared(), 1);
            link
        };
        link.lose();
        peer.shutdown().unwrap();
        theater.shutdown().unwrap();
    }
}
