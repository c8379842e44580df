//! The links of a theater, and the state that they share.

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, Weak};

use playhouse_executor::SystemCore;
use rustc_hash::FxHashMap;

use crate::link::node::Node;
use crate::link::registry::Registry;
use crate::link::stubs_of_lost_theaters::LostTheaters;
use crate::link::traffic::Traffic;
use crate::link::turnstiles::Turnstiles;
use crate::link::{Link, MigrationSlot};
use crate::lock::lock;
use crate::naming::Directory;

/// The links of a theater, and the state that they share.
pub(crate) struct LinkTable {
    pub(crate) core: Arc<SystemCore>,
    pub(crate) registry: Arc<Registry>,
    pub(crate) directory: Arc<Directory>,
    node: Weak<dyn Node>,
    /// Makes the state that migrations keep at a link.
    pub(super) new_migration_slot: fn() -> Box<dyn MigrationSlot>,
    by_theater: Mutex<FxHashMap<u64, Weak<Link>>>,
    /// Theaters that links were lost with, the latest first.
    pub(super) lost: Mutex<LostTheaters>,
    pub(crate) traffic: Traffic,
    pub(crate) turnstiles: Turnstiles,
    /// The number of times that others were told that actors have moved.
    pub(crate) told_moved: AtomicU64,
    /// The number of times that room was made on a link with a full window.
    pub(crate) room_made: AtomicU64,
}

impl LinkTable {
    pub(crate) fn new(
        directory: Directory,
        registry: Registry,
        node: Weak<dyn Node>,
        new_migration_slot: fn() -> Box<dyn MigrationSlot>,
    ) -> LinkTable {
        LinkTable {
            core: Arc::clone(&directory.core),
            registry: Arc::new(registry),
            directory: Arc::new(directory),
            node,
            new_migration_slot,
            by_theater: Mutex::default(),
            lost: Mutex::default(),
            traffic: Traffic::default(),
            turnstiles: Turnstiles::default(),
            told_moved: AtomicU64::new(0),
            room_made: AtomicU64::new(0),
        }
    }

    /// Returns the theater of the links, unless it has ended.
    pub(crate) fn node(&self) -> Option<Arc<dyn Node>> {
        self.node.upgrade()
    }

    pub(super) fn by_theater(&self) -> MutexGuard<'_, FxHashMap<u64, Weak<Link>>> {
        lock(&self.by_theater)
    }

    /// Notes that a link with `theater` was made.
    pub(crate) fn add_link(&self, theater: u64, link: &Arc<Link>) {
        lock(&self.lost).remove(theater);
        self.by_theater().insert(theater, Arc::downgrade(link));
    }

    /// Returns the link with `theater`, if there is one.
    pub(crate) fn link(&self, theater: u64) -> Option<Arc<Link>> {
        self.by_theater().get(&theater)?.upgrade().filter(|link| !link.is_lost())
    }

    /// Returns all links that are not lost. Also called by threads that read a link: they must not wait for the theater's lock, because its owner
    /// waits for readers.
    pub(crate) fn all_links(&self) -> Vec<Arc<Link>> {
        self.by_theater().values().filter_map(Weak::upgrade).filter(|link| !link.is_lost()).collect()
    }

    /// Returns the theaters with a link.
    pub(crate) fn linked(&self) -> Vec<u64> {
        self.all_links().iter().map(|link| link.incarnation).collect()
    }

    /// Returns whether the link with `theater` is lost, and not all is forgotten yet. Until then there is no other one.
    pub(crate) fn is_forgetting(&self, theater: u64) -> bool {
        self.by_theater().get(&theater).and_then(Weak::upgrade).is_some_and(|link| link.is_lost())
    }
}
