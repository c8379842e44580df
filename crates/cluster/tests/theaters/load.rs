//! Members whose link is full of other messages.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use playhouse_actor::wire::WireForm;
use playhouse_actor::{Actor, Context, Handler, Message, remote};
use playhouse_cluster::{Cluster, ClusterOptions};
use playhouse_toolbox::durable::MemoryStore;
use serde::{Deserialize, Serialize};

use crate::together::{LIMIT, theater, until};

/// A message of a size at which few fit into the window of a link.
#[derive(Debug, Serialize, Deserialize)]
struct Bulk(Vec<u8>);

impl Message for Bulk {
    type Reply = ();
    const WIRE: Option<WireForm<Bulk>> = Some(WireForm::of());
}

/// Takes messages, each for this time.
struct Sink(Duration);

impl Actor for Sink {}

impl Handler<Bulk> for Sink {
    fn handle(&mut self, _: Bulk, _: &mut Context<Self>) {
        let begun = Instant::now();
        while begun.elapsed() < self.0 {
            std::thread::park_timeout(self.0);
        }
    }
}

remote!(Sink: Bulk);

/// Fills the link with messages of this size, which take this time each, and checks that the members go on.
fn flood(size: usize, time: Duration) {
    let (ledger, theaters) = (MemoryStore::new(), [theater(), theater()]);
    let join = |at: usize| {
        let cluster = Cluster::join(&theaters[at], ledger.clone(), ClusterOptions::new().slots(8)).unwrap();
        cluster.activated().within(LIMIT).wait().unwrap();
        cluster
    };
    let clusters = [join(0), join(1)];
    let is_level = || clusters.iter().all(|cluster| cluster.state().open == 4);
    until("both run as many slots, and know the same view", || is_level() && clusters[0].view() == clusters[1].view());
    let view = clusters[0].view();
    let receiver = theaters[1].system().spawn(Sink(time));
    theaters[1].publish("sink", receiver).unwrap();
    let name = format!("playhouse://{}/sink", theaters[1].address().unwrap());
    let sink = theaters[0].find::<Sink>(&name).wait().unwrap();
    let is_done = Arc::new(AtomicBool::new(false));
    let senders = [(); 2].map(|()| {
        let is_done = Arc::clone(&is_done);
        std::thread::spawn(move || {
            while !is_done.load(Ordering::Relaxed) {
                sink.tell(Bulk(vec![0; size]));
            }
        })
    });
    // Longer than a lease: asks that found no room had no answer in that time.
    let begun = Instant::now();
    until("the time has passed", || begun.elapsed() > Duration::from_secs(5));
    let views = [clusters[0].view(), clusters[1].view()];
    is_done.store(true, Ordering::Relaxed);
    receiver.kill();
    senders.into_iter().for_each(|sender| sender.join().unwrap());
    assert_eq!(views, [view.clone(), view]);
    theaters.into_iter().for_each(|theater| _ = theater.shutdown().unwrap());
}

// GUARANTEE: A full link ends no member
#[test]
fn a_full_link_ends_no_member() {
    flood(100_000, Duration::ZERO);
}

// GUARANTEE: A full link ends no member
#[test]
fn a_slow_receiver_ends_no_member() {
    flood(1_000, Duration::from_millis(20));
}
