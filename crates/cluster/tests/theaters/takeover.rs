//! Joins, ends and hand-overs of theaters in one process.

use std::sync::mpsc;
use std::time::{Duration, Instant};

use playhouse_actor::{Actor, Context, Handler};
use playhouse_cluster::{Cluster, ClusterState, Status};
use playhouse_toolbox::durable::{MemoryStore, Store};

use crate::together::{Checker, LIMIT, SLOTS, options, runs, theater, until};

/// Passes on the states that it is sent.
pub struct Watcher(pub mpsc::Sender<ClusterState>);

impl Actor for Watcher {}

impl Handler<ClusterState> for Watcher {
    fn handle(&mut self, state: ClusterState, _: &mut Context<Self>) {
        // At the end of the test nothing receives.
        let _ = self.0.send(state);
    }
}

// GUARANTEE: One owner of a slot
// GUARANTEE: A leave hands the slots over
#[test]
fn theaters_join_take_over_and_leave() {
    let ledger = MemoryStore::new();
    let theaters = [theater(), theater(), theater()];
    let join = |at: usize| {
        let cluster = Cluster::join(&theaters[at], ledger.clone(), options()).unwrap();
        cluster.activated().within(LIMIT).wait().unwrap();
        cluster
    };
    let clusters = [join(0), join(1), join(2)];
    let checker = Checker::of(clusters.to_vec());
    let (states, received) = mpsc::channel();
    clusters[1].watch(theaters[1].system().spawn(Watcher(states)));
    let all_active = || clusters[2].members().iter().filter(|(_, member)| member.status == Status::Active).count() == 3;
    until("the last member knows that all are active", all_active);
    let is_level = || {
        let loads = [0, 1, 2].map(|at| runs(&clusters[at]));
        loads.iter().sum::<usize>() == SLOTS && loads.iter().all(|load| *load >= SLOTS / 3)
    };
    until("the members run equal numbers of slots", is_level);

    let [first, second, third] = theaters;
    first.shutdown().unwrap();
    assert_eq!(runs(&clusters[0]), 0, "nothing runs after the end of a theater");
    until("the others run the slots", || runs(&clusters[1]) + runs(&clusters[2]) == SLOTS);
    let heir = |states: &mpsc::Receiver<ClusterState>| states.recv_timeout(LIMIT).unwrap();
    while heir(&received).open != runs(&clusters[1]) {}

    let epochs: Vec<Option<u64>> = (0..SLOTS).map(|slot| clusters[1].runs(slot)).collect();
    clusters[1].leave().within(LIMIT).wait().unwrap();
    assert_eq!(runs(&clusters[1]), 0);
    until("the last member runs the slots", || runs(&clusters[2]) == SLOTS);
    for (slot, epoch) in epochs.into_iter().enumerate() {
        assert!(epoch.is_none() || clusters[2].runs(slot) > epoch, "slot {slot}");
    }
    checker.finish();
    second.shutdown().unwrap();
    third.shutdown().unwrap();
}

// GUARANTEE: A quiet cluster writes nothing
#[test]
fn a_quiet_cluster_writes_nothing() {
    let ledger = MemoryStore::new();
    let theaters = [theater(), theater()];
    let clusters: Vec<Cluster> =
        theaters.iter().map(|theater| Cluster::join(theater, ledger.clone(), options()).unwrap()).collect();
    clusters.iter().for_each(|cluster| _ = cluster.activated().within(LIMIT).wait().unwrap());
    let is_quiet =
        || clusters[0].view() == clusters[1].view() && clusters.iter().all(|cluster| runs(cluster) == SLOTS / 2);
    until("both know the same view", is_quiet);
    let revision = || ledger.load("playhouse/view").unwrap().unwrap().revision;
    let (before, begun) = (revision(), Instant::now());
    // Several leases.
    until("the time has passed", || begun.elapsed() > Duration::from_secs(3));
    assert_eq!(revision(), before);
    assert!(is_quiet());
    theaters.into_iter().for_each(|theater| _ = theater.shutdown().unwrap());
}

// GUARANTEE: A leave hands the slots over
#[test]
fn a_theater_joins_again_as_soon_as_it_has_left() {
    let (ledger, theater) = (MemoryStore::new(), theater());
    for _ in 0..50 {
        let cluster = Cluster::join(&theater, ledger.clone(), options()).unwrap();
        cluster.activated().within(LIMIT).wait().unwrap();
        cluster.leave().within(LIMIT).wait().unwrap();
    }
    theater.shutdown().unwrap();
}
