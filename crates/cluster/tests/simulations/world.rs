//! Simulated theaters that are members, a ledger that can be cut off, and a check of every step.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use playhouse_actor::System;
use playhouse_cluster::{Cluster, ClusterOptions, Holder, MemberId, Status, View};
use playhouse_theater::{Simulation, Theater};
use playhouse_toolbox::durable::{Changed, Ledger, LedgerWatch, MemoryStore, Saved, Store, StoreError};

/// The number of slots.
pub const SLOTS: usize = 6;

pub const fn s(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// The way of one member to the ledger.
#[derive(Clone)]
pub struct Way {
    store: MemoryStore,
    /// Whether the ledger cannot be reached.
    pub is_cut: Arc<AtomicBool>,
    /// The number of the next writes whose result is lost after they took effect.
    pub lost_results: Arc<AtomicU64>,
    pub writes: Arc<AtomicU64>,
}

impl Way {
    fn check(&self, key: &str) -> Result<(), StoreError> {
        let error = || StoreError::Io { key: key.to_owned(), error: std::io::ErrorKind::TimedOut.into() };
        if self.is_cut.load(Ordering::Relaxed) { Err(error()) } else { Ok(()) }
    }
}

impl Store for Way {
    fn load(&self, key: &str) -> Result<Option<Saved>, StoreError> {
        self.check(key)?;
        self.store.load(key)
    }

    fn save(&self, key: &str, expected: u64, bytes: &[u8]) -> Result<u64, StoreError> {
        self.check(key)?;
        self.writes.fetch_add(1, Ordering::Relaxed);
        let revision = self.store.save(key, expected, bytes)?;
        let is_lost = self.lost_results.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
        match is_lost {
            Ok(_) => Err(StoreError::Io { key: key.to_owned(), error: std::io::ErrorKind::ConnectionReset.into() }),
            Err(_) => Ok(revision),
        }
    }

    fn remove(&self, key: &str, expected: u64) -> Result<(), StoreError> {
        self.store.remove(key, expected)
    }

    fn keys(&self, prefix: &str) -> Result<Vec<String>, StoreError> {
        self.store.keys(prefix)
    }
}

impl Ledger for Way {
    fn watch(&self, prefix: &str, changed: Changed) -> Result<LedgerWatch, StoreError> {
        self.check(prefix)?;
        let is_cut = Arc::clone(&self.is_cut);
        self.store.watch(
            prefix,
            Box::new(move || {
                if !is_cut.load(Ordering::Relaxed) {
                    changed()
                }
            }),
        )
    }
}

/// A theater that is a member.
pub struct Node {
    pub theater: Theater,
    pub cluster: Cluster,
    pub way: Way,
    pub lives: bool,
}

/// A time in which one member ran a slot.
#[derive(Clone, Debug, PartialEq)]
pub struct Interval {
    pub node: usize,
    pub slot: usize,
    pub epoch: u64,
    pub begin: Duration,
    pub end: Duration,
}

pub struct World {
    pub net: Simulation,
    pub store: MemoryStore,
    pub nodes: Vec<Node>,
    pub options: ClusterOptions,
    /// The present or last interval of each slot.
    pub last: BTreeMap<usize, Interval>,
    /// The former intervals.
    pub intervals: Vec<Interval>,
    /// The member that has run a slot at each epoch.
    owners: BTreeMap<(usize, u64), usize>,
    writes: Arc<AtomicU64>,
}

impl World {
    pub fn new(seed: u64) -> World {
        World {
            net: Simulation::new(seed),
            store: MemoryStore::new(),
            nodes: Vec::new(),
            options: ClusterOptions::new().slots(SLOTS as u32),
            last: BTreeMap::new(),
            intervals: Vec::new(),
            owners: BTreeMap::new(),
            writes: Arc::default(),
        }
    }

    /// Returns a world with this many active members.
    pub fn of(seed: u64, members: usize) -> World {
        let mut world = World::new(seed);
        for _ in 0..members {
            world.start();
        }
        world.until_whole(s(60));
        world
    }

    /// Starts a member, and returns its index.
    pub fn start(&mut self) -> usize {
        self.start_at("127.0.0.1:0")
    }

    pub fn start_at(&mut self, address: &str) -> usize {
        let theater =
            self.net.theater(Theater::builder().listen(address).system(System::builder().workers(2))).unwrap();
        let way = Way {
            store: self.store.clone(),
            is_cut: Arc::default(),
            lost_results: Arc::default(),
            writes: Arc::clone(&self.writes),
        };
        let cluster = Cluster::join(&theater, way.clone(), self.options.clone()).unwrap();
        self.nodes.push(Node { theater, cluster, way, lives: true });
        self.nodes.len() - 1
    }

    pub fn kill(&mut self, node: usize) {
        self.net.kill(&self.nodes[node].theater);
        self.nodes[node].lives = false;
    }

    /// Starts a member at the address of a killed one.
    pub fn restart(&mut self, node: usize) -> usize {
        let address = self.nodes[node].theater.address().unwrap().to_string();
        self.start_at(&address)
    }

    /// Cuts or restores the links between the members of two groups.
    pub fn links(&self, one: &[usize], other: &[usize], is_cut: bool) {
        for (a, b) in one.iter().flat_map(|a| other.iter().map(move |b| (*a, *b))) {
            let (a, b) = (&self.nodes[a].theater, &self.nodes[b].theater);
            if is_cut { self.net.cut(a, b) } else { self.net.heal(a, b) }
        }
    }

    /// Cuts members from the ledger, or lets them reach it again.
    pub fn ledger(&self, nodes: &[usize], is_cut: bool) {
        nodes.iter().for_each(|node| self.nodes[*node].way.is_cut.store(is_cut, Ordering::Relaxed));
    }

    pub fn writes(&self) -> u64 {
        self.writes.load(Ordering::Relaxed)
    }

    pub fn living(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.nodes.len()).filter(|node| self.nodes[*node].lives)
    }

    /// Returns the slots that a member runs now.
    pub fn runs(&self, node: usize) -> Vec<usize> {
        (0..SLOTS).filter(|slot| self.nodes[node].cluster.runs(*slot).is_some()).collect()
    }

    /// Returns the slots that a member runs now, or may run because epochs protect them.
    pub fn runs_fenced(&self, node: usize) -> Vec<usize> {
        (0..SLOTS).filter(|slot| self.nodes[node].cluster.runs_fenced(*slot).is_some()).collect()
    }

    pub fn id(&self, node: usize) -> MemberId {
        self.nodes[node].cluster.state().me
    }

    /// Returns the status of a member's present life in the view of another member.
    pub fn status(&self, of: usize, by: usize) -> Option<Status> {
        self.nodes[by].cluster.view()?.members.get(&self.id(of)).map(|member| member.status)
    }

    /// Checks that each slot runs at one member at most, and that no epoch comes back. Beside that member, others run the slot only at higher epochs.
    fn check(&mut self) {
        let now = self.net.now();
        for slot in 0..SLOTS {
            let runs = |node: usize| self.nodes[node].cluster.runs(slot).map(|epoch| (node, epoch));
            let runners: Vec<(usize, u64)> = self.living().filter_map(runs).collect();
            assert!(runners.len() <= 1, "slot {slot} runs twice at {now:?}: {runners:?}");
            let runs = |node: usize| self.nodes[node].cluster.runs_fenced(slot).map(|epoch| (node, epoch));
            let fenced: Vec<(usize, u64)> = self.living().filter_map(runs).collect();
            for (node, epoch) in &fenced {
                let owner = *self.owners.entry((slot, *epoch)).or_insert(*node);
                assert_eq!(owner, *node, "slot {slot}: two owners of epoch {epoch} at {now:?}");
            }
            let is_last = |runner: &(usize, u64)| fenced.iter().all(|other| other == runner || other.1 > runner.1);
            let is_fenced = runners.iter().all(|runner| fenced.contains(runner) && is_last(runner));
            assert!(is_fenced, "slot {slot}: {fenced:?} beside {runners:?} at {now:?}");
            let Some((node, epoch)) = runners.first().copied() else { continue };
            match self.last.get_mut(&slot) {
                Some(last) if last.node == node && last.epoch == epoch => last.end = now,
                former => {
                    if let Some(last) = former {
                        assert!(last.epoch < epoch, "slot {slot}: epoch {epoch} of {node} at {now:?} after {last:?}");
                        self.intervals.push(last.clone());
                    }
                    self.last.insert(slot, Interval { node, slot, epoch, begin: now, end: now });
                }
            }
        }
    }

    /// Runs until `done`, for at most `limit`. Checks each step. Returns whether it is done.
    pub fn until(&mut self, limit: Duration, done: impl Fn(&World) -> bool) -> bool {
        let net = self.net.clone();
        let deadline = net.now() + limit;
        let mut is_done = false;
        net.run_until(|| {
            self.check();
            is_done = done(self);
            is_done || net.now() >= deadline
        });
        is_done
    }

    /// Runs for this time, and checks that `holds` at each step.
    pub fn always(&mut self, time: Duration, holds: impl Fn(&World) -> bool) {
        let fails = self.until(time, |world| !holds(world));
        assert!(!fails, "at {:?}: {:?}", self.net.now(), self.clusters());
    }

    pub fn run(&mut self, time: Duration) {
        self.until(time, |_| false);
    }

    /// Returns whether all living members are active, know the same view without others, and each slot runs.
    pub fn runs_all(&self) -> bool {
        let view = |node: usize| self.nodes[node].cluster.view();
        let Some(first) = self.living().next() else { return true };
        let known = view(first);
        let mut living = self.living();
        let is_active = |node| self.status(node, node) == Some(Status::Active) && view(node) == known;
        living.all(is_active)
            && known.is_some_and(|known| known.members.len() == self.living().count())
            && self.living().map(|node| self.runs(node).len()).sum::<usize>() == SLOTS
    }

    /// Returns whether the members [run all slots](World::runs_all), in level numbers.
    pub fn is_whole(&self) -> bool {
        let view = self.living().next().and_then(|node| self.nodes[node].cluster.view());
        let is_level = |view: &View| {
            let loads = view.loads();
            let moves = view.slots.iter().any(|slot| matches!(slot.holder, Holder::Moving { .. }));
            !moves && loads.values().max().zip(loads.values().min()).is_some_and(|(most, least)| most - least <= 1)
        };
        self.runs_all() && view.is_none_or(|view| is_level(&view))
    }

    pub fn until_whole(&mut self, limit: Duration) {
        assert!(self.until(limit, World::is_whole), "at {:?}: {:?}", self.net.now(), self.clusters());
    }

    pub fn clusters(&self) -> Vec<(usize, &Cluster)> {
        self.living().map(|node| (node, &self.nodes[node].cluster)).collect()
    }
}
