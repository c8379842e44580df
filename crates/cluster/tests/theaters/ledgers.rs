//! Ledgers that hang, fail or panic.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use playhouse_cluster::Cluster;
use playhouse_toolbox::durable::{Changed, Ledger, LedgerWatch, MemoryStore, Saved, Store, StoreError};

use crate::together::{Checker, LIMIT, SLOTS, options, runs, theater, until};

#[derive(Clone, Copy, PartialEq)]
enum Mood {
    Well,
    Hangs,
    Fails,
    Panics,
}

/// A ledger with moods. Its clones are the same ledger.
#[derive(Clone)]
struct Moody {
    store: MemoryStore,
    mood: Arc<(Mutex<Mood>, Condvar)>,
    /// The number of requests that hang.
    hanging: Arc<AtomicUsize>,
}

impl Moody {
    fn new(mood: Mood) -> Moody {
        Moody { store: MemoryStore::new(), mood: Arc::new((Mutex::new(mood), Condvar::new())), hanging: Arc::default() }
    }

    fn set(&self, mood: Mood) {
        *self.mood.0.lock().unwrap() = mood;
        self.mood.1.notify_all();
    }

    fn check(&self, key: &str) -> Result<(), StoreError> {
        let mood = self.mood.0.lock().unwrap();
        self.hanging.fetch_add(1, Ordering::Relaxed);
        let mood = *self.mood.1.wait_while(mood, |mood| *mood == Mood::Hangs).unwrap();
        self.hanging.fetch_sub(1, Ordering::Relaxed);
        match mood {
            Mood::Well | Mood::Hangs => Ok(()),
            Mood::Fails => Err(StoreError::Io { key: key.to_owned(), error: std::io::ErrorKind::TimedOut.into() }),
            Mood::Panics => panic!("this ledger panics"),
        }
    }
}

impl Store for Moody {
    fn load(&self, key: &str) -> Result<Option<Saved>, StoreError> {
        self.check(key)?;
        self.store.load(key)
    }

    fn save(&self, key: &str, expected: u64, bytes: &[u8]) -> Result<u64, StoreError> {
        self.check(key)?;
        self.store.save(key, expected, bytes)
    }

    fn remove(&self, key: &str, expected: u64) -> Result<(), StoreError> {
        self.store.remove(key, expected)
    }

    fn keys(&self, prefix: &str) -> Result<Vec<String>, StoreError> {
        self.store.keys(prefix)
    }
}

impl Ledger for Moody {
    fn watch(&self, prefix: &str, changed: Changed) -> Result<LedgerWatch, StoreError> {
        self.check(prefix)?;
        let watch = self.store.watch(prefix, changed)?;
        Ok(LedgerWatch::new(Watching { _watch: watch, ledger: self.clone() }))
    }
}

/// A watch whose end hangs with the ledger.
struct Watching {
    _watch: LedgerWatch,
    ledger: Moody,
}

impl Drop for Watching {
    fn drop(&mut self) {
        let (mood, changed) = &*self.ledger.mood;
        let _well = changed.wait_while(mood.lock().unwrap(), |mood| *mood == Mood::Hangs).unwrap();
    }
}

// GUARANTEE: A ledger that hangs or fails
#[test]
fn a_theater_ends_promptly_beside_a_ledger_that_hangs_or_fails() {
    for mood in [Mood::Hangs, Mood::Fails, Mood::Panics] {
        let ledger = Moody::new(mood);
        let theater = theater();
        let cluster = Cluster::join(&theater, ledger.clone(), options()).unwrap();
        let activated = cluster.activated().within(Duration::from_millis(500)).wait();
        assert!(activated.is_err(), "{activated:?}");
        // One read, and the start of the watch.
        assert!(ledger.hanging.load(Ordering::Relaxed) <= 2, "requests pile up");
        let begun = Instant::now();
        theater.shutdown().unwrap();
        assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
        ledger.set(Mood::Well);
    }
}

// GUARANTEE: An outage of the ledger
// GUARANTEE: A ledger that hangs or fails
#[test]
fn members_run_on_while_the_ledger_is_away_and_end_promptly() {
    for mood in [Mood::Hangs, Mood::Fails, Mood::Panics] {
        let ledger = Moody::new(Mood::Well);
        let theaters = [theater(), theater()];
        let clusters: Vec<Cluster> =
            theaters.iter().map(|theater| Cluster::join(theater, ledger.clone(), options()).unwrap()).collect();
        clusters.iter().for_each(|cluster| _ = cluster.activated().within(LIMIT).wait().unwrap());
        let all_run = || clusters.iter().all(|cluster| runs(cluster) == SLOTS / 2);
        until("all slots run", || all_run() && clusters[0].view() == clusters[1].view());
        let checker = Checker::of(clusters.clone());
        ledger.set(mood);
        let epochs = || (0..SLOTS).map(|slot| clusters.iter().map(|cluster| cluster.runs(slot)).collect()).collect();
        let before: Vec<Vec<Option<u64>>> = epochs();
        // Several leases. A loaded machine may pause a member for a moment, but without letters it would pause for good.
        let begun = Instant::now();
        until("the time has passed", || begun.elapsed() > Duration::from_secs(3));
        until("the same members run the same slots", || epochs() == before);
        let [first, second] = theaters;
        let begun = Instant::now();
        first.shutdown().unwrap();
        assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
        ledger.set(Mood::Well);
        until("the other one takes over", || runs(&clusters[1]) == SLOTS);
        checker.finish();
        second.shutdown().unwrap();
    }
}

// GUARANTEE: A ledger that hangs or fails
#[test]
fn a_member_joins_when_the_ledger_comes_back() {
    let ledger = Moody::new(Mood::Hangs);
    let theater = theater();
    let cluster = Cluster::join(&theater, ledger.clone(), options()).unwrap();
    assert!(cluster.activated().within(Duration::from_millis(300)).wait().is_err());
    ledger.set(Mood::Panics);
    assert!(cluster.activated().within(Duration::from_millis(300)).wait().is_err());
    ledger.set(Mood::Well);
    cluster.activated().within(LIMIT).wait().unwrap();
    until("all slots run", || runs(&cluster) == SLOTS);
    theater.shutdown().unwrap();
}
