//! Theaters of one process, and the check of their slots.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use playhouse_actor::System;
use playhouse_cluster::{Cluster, ClusterOptions};
use playhouse_theater::Theater;

/// Longer than any step of these tests takes without a hang.
pub const LIMIT: Duration = Duration::from_secs(120);
pub const SLOTS: usize = 64;

/// A short lease, because the tests wait for several.
pub fn options() -> ClusterOptions {
    ClusterOptions::new().slots(SLOTS as u32).lease(Duration::from_millis(900))
}

pub fn theater() -> Theater {
    Theater::builder().listen("127.0.0.1:0").system(System::builder().workers(2)).start().unwrap()
}

/// Lets other threads run, also on a machine with few cores.
fn give_way() {
    std::thread::park_timeout(Duration::from_millis(1));
}

/// Waits until `done`.
///
/// # Panics
/// It takes longer than [`LIMIT`].
pub fn until(what: &str, done: impl Fn() -> bool) {
    let begun = Instant::now();
    while !done() {
        assert!(begun.elapsed() < LIMIT, "{what}");
        give_way();
    }
}

/// Returns the number of slots that a member runs.
pub fn runs(cluster: &Cluster) -> usize {
    (0..SLOTS).filter(|slot| cluster.runs(*slot).is_some()).count()
}

/// Looks for slots that run at two members, on a thread of its own.
pub struct Checker {
    is_done: Arc<AtomicBool>,
    thread: JoinHandle<u64>,
}

impl Checker {
    pub fn of(clusters: Vec<Cluster>) -> Checker {
        let is_done = Arc::new(AtomicBool::new(false));
        let done = Arc::clone(&is_done);
        let check = move || {
            let mut looks = 0;
            while !done.load(Ordering::Relaxed) {
                for slot in 0..SLOTS {
                    check(&clusters, slot);
                }
                looks += 1;
                give_way();
            }
            looks
        };
        Checker { is_done, thread: std::thread::spawn(check) }
    }

    /// Ends the check.
    pub fn finish(self) {
        self.is_done.store(true, Ordering::Relaxed);
        assert!(self.thread.join().expect("no slot runs twice") > 0);
    }
}

fn check(clusters: &[Cluster], slot: usize) {
    for (index, one) in clusters.iter().enumerate() {
        let Some(epoch) = one.runs(slot) else { continue };
        let other = clusters.iter().enumerate().find_map(|(at, other)| other.runs(slot).filter(|_| at != index));
        // It ran here before and after it ran there.
        let is_twice = other.is_some() && one.runs(slot) == Some(epoch);
        assert!(!is_twice, "slot {slot} runs at {one:?} in epoch {epoch}, and in {other:?}");
    }
}
