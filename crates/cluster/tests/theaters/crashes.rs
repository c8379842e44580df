//! A crash of the actor of a member.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;

use playhouse_actor::Actor;
use playhouse_cluster::{Cluster, ClusterState, VirtualActor, VirtualOptions};
use playhouse_toolbox::durable::{Changed, Ledger, LedgerWatch, MemoryStore, Saved, Store, StoreError};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use crate::takeover::Watcher;
use crate::together::{Checker, LIMIT, SLOTS, options, runs, theater, until};

const ERROR: &str = "the error that the log does not take";

/// A ledger that fails on demand.
#[derive(Clone)]
struct Failing(MemoryStore, Arc<AtomicBool>);

impl Store for Failing {
    fn load(&self, key: &str) -> Result<Option<Saved>, StoreError> {
        if self.1.load(Ordering::Relaxed) {
            return Err(StoreError::Io { key: key.to_owned(), error: std::io::Error::other(ERROR) });
        }
        self.0.load(key)
    }

    fn save(&self, key: &str, expected: u64, bytes: &[u8]) -> Result<u64, StoreError> {
        self.0.save(key, expected, bytes)
    }

    fn remove(&self, key: &str, expected: u64) -> Result<(), StoreError> {
        self.0.remove(key, expected)
    }

    fn keys(&self, prefix: &str) -> Result<Vec<String>, StoreError> {
        self.0.keys(prefix)
    }
}

impl Ledger for Failing {
    fn watch(&self, prefix: &str, changed: Changed) -> Result<LedgerWatch, StoreError> {
        self.0.watch(prefix, changed)
    }
}

/// A log that panics at a line with [`ERROR`]: the only code of a program that the actor calls.
struct Log;

impl Subscriber for Log {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        struct Fields;

        impl Visit for Fields {
            fn record_debug(&mut self, _: &Field, value: &dyn fmt::Debug) {
                assert!(!format!("{value:?}").contains(ERROR));
            }
        }

        event.record(&mut Fields);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// An actor of a kind that the member registers.
struct Idle;

impl Actor for Idle {}

impl VirtualActor for Idle {
    const KIND: &'static str = "test.Idle";
}

// GUARANTEE: A crash of a member
#[test]
fn nothing_runs_after_a_crash_of_the_actor_and_the_theater_may_join_again() {
    tracing::subscriber::set_global_default(Log).unwrap();
    let (store, fails) = (MemoryStore::new(), Arc::new(AtomicBool::new(false)));
    let theaters = [theater(), theater()];
    let join = |at: usize, ledger| {
        let cluster = Cluster::join(&theaters[at], ledger, options()).unwrap();
        cluster.activated().within(LIMIT).wait().unwrap();
        cluster
    };
    let unharmed = || Failing(store.clone(), Arc::default());
    let clusters = [join(0, Failing(store.clone(), Arc::clone(&fails))), join(1, unharmed())];
    let is_level = |one: &Cluster, other: &Cluster| [one, other].map(runs) == [SLOTS / 2; 2];
    until("the members run equal numbers of slots", || is_level(&clusters[0], &clusters[1]));
    clusters[0].register(VirtualOptions::new(), |_| Idle).unwrap();
    let checker = Checker::of(clusters.to_vec());
    let (states, received) = mpsc::channel::<ClusterState>();
    clusters[0].watch(theaters[0].system().spawn(Watcher(states)));
    assert_eq!(received.recv_timeout(LIMIT).unwrap().open, SLOTS / 2);

    fails.store(true, Ordering::Relaxed);
    while received.recv_timeout(LIMIT).unwrap().open > 0 {}
    assert_eq!(runs(&clusters[0]), 0);
    assert!(clusters[0].leave().within(LIMIT).wait().is_err());
    until("the other member takes over", || runs(&clusters[1]) == SLOTS);
    checker.finish();
    let again = join(0, unharmed());
    until("the kind can be registered again", || again.register(VirtualOptions::new(), |_| Idle).is_ok());
    until("the members run equal numbers of slots again", || is_level(&again, &clusters[1]));
    theaters.into_iter().for_each(|theater| _ = theater.shutdown().unwrap());
}
