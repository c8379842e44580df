//! Members in several processes, with a ledger in SQLite. The other processes are this program, started again.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use playhouse_actor::AskError;
use playhouse_cluster::{Cluster, ClusterOptions, VirtualOptions};
use playhouse_sqlite::SqliteStore;

use crate::together::{LIMIT, theater, until};
use crate::virtual_actors::{Account, Deposit, register};

/// The file of the ledger, for the other process.
const LEDGER: &str = "PLAYHOUSE_TEST_LEDGER";
/// The number of kills, for measurements by hand.
const KILLS: &str = "PLAYHOUSE_CLUSTER_KILLS";
const SLOTS: usize = 4_096;

fn options() -> ClusterOptions {
    // With more kills this is a measurement of the defaults.
    let lease = if std::env::var_os(KILLS).is_some() { 3_000 } else { 900 };
    ClusterOptions::new().lease(Duration::from_millis(lease))
}

/// The main function of the other process, which ends by a signal. In the tests' own process it does nothing.
#[test]
fn the_other_process() {
    let Some(ledger) = std::env::var_os(LEDGER) else { return };
    let theater = theater();
    let begun = Instant::now();
    let store = SqliteStore::open(ledger).unwrap();
    let cluster = Cluster::join(&theater, store.clone(), options()).unwrap();
    register(&cluster, theater.system(), Arc::new(store), VirtualOptions::new());
    cluster.activated().within(LIMIT).wait().unwrap();
    println!("\nactive after {} us", begun.elapsed().as_micros());
    loop {
        std::thread::park();
    }
}

struct Other(Child);

impl Other {
    /// Starts a process, and waits until it is an active member. Returns the time of its join.
    fn start(ledger: &Path) -> (Other, Duration) {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["processes::the_other_process", "--exact", "--nocapture"]).env(LEDGER, ledger);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let other = Other(child);
        let took = |line: std::io::Result<String>| {
            let line = line.unwrap();
            line.strip_prefix("active after ")?.strip_suffix(" us")?.parse().ok()
        };
        let us = lines.into_iter().find_map(took).expect("it becomes active");
        (other, Duration::from_micros(us))
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        // It has ended already, or ends now.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A file that is removed at the end.
struct File(PathBuf);

impl Drop for File {
    fn drop(&mut self) {
        for end in ["", "-wal", "-shm"] {
            let _ = std::fs::remove_file(format!("{}{end}", self.0.display()));
        }
    }
}

/// Returns the times from the kill of the other process until all slots run in this one, fenced and exclusively, the time of its join, and the time
/// until this one has its half of the slots.
fn kill_once(number: usize) -> [Duration; 4] {
    let name = format!("playhouse-cluster-{}-{number}.sqlite", std::process::id());
    let file = File(std::env::temp_dir().join(name));
    let (owner, joined) = Other::start(&file.0);
    let theater = theater();
    let cluster = Cluster::join(&theater, SqliteStore::open(&file.0).unwrap(), options()).unwrap();
    cluster.activated().within(LIMIT).wait().unwrap();
    let begun = Instant::now();
    until("half of the slots run here", || cluster.state().open == SLOTS / 2);
    let levelled = begun.elapsed();
    let begun = Instant::now();
    drop(owner);
    until("the slots run here, fenced", || (0..SLOTS).all(|slot| cluster.runs_fenced(slot) == Some(2)));
    let fenced = begun.elapsed();
    until("the slots run here", || cluster.state().open == SLOTS);
    let took = begun.elapsed();
    assert!((0..SLOTS).all(|slot| cluster.runs(slot) == Some(2)));
    // Nothing waits for the killed process.
    let begun = Instant::now();
    theater.shutdown().unwrap();
    assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
    [fenced, took, joined, levelled]
}

// GUARANTEE: Slots of a lost member
#[test]
fn a_virtual_actor_goes_on_with_its_state_after_the_kill_of_its_process() {
    let name = format!("playhouse-cluster-{}-virtual.sqlite", std::process::id());
    let file = File(std::env::temp_dir().join(name));
    let (owner, _) = Other::start(&file.0);
    let theater = theater();
    let store = SqliteStore::open(&file.0).unwrap();
    let cluster = Cluster::join(&theater, store.clone(), options()).unwrap();
    register(&cluster, theater.system(), Arc::new(store), VirtualOptions::new().wait(LIMIT));
    cluster.activated().within(LIMIT).wait().unwrap();
    let account = cluster.actor::<Account>("42");
    assert_eq!(account.ask(Deposit(5)).within(LIMIT).wait(), Ok(Ok(5)));
    assert_eq!(account.ask(Deposit(5)).within(LIMIT).wait(), Ok(Ok(10)));
    assert_eq!(cluster.state().open, 0, "the other process runs it");
    drop(owner);
    // An ask on the lost link fails. Those behind it wait for the takeover.
    let begun = Instant::now();
    let sum = loop {
        match account.ask(Deposit(1)).within(LIMIT).wait() {
            Ok(sum) => break sum.unwrap(),
            Err(error) => assert!(matches!(error, AskError::TheaterLost { .. }), "{error:?}"),
        }
    };
    println!("the next owner has answered {:?} after the kill", begun.elapsed());
    // The lost asks were not handled before the kill.
    assert_eq!(sum, 11);
    theater.shutdown().unwrap();
}

#[test]
fn the_slots_of_a_killed_process_run_in_another_one() {
    let kills = std::env::var(KILLS).map_or(1, |kills| kills.parse().expect("a number"));
    let mut times: [Vec<Duration>; 4] = Default::default();
    for number in 0..kills {
        kill_once(number).into_iter().zip(&mut times).for_each(|(time, times)| times.push(time));
    }
    for (times, what) in times.iter_mut().zip(["taken over, fenced", "taken over", "joined", "levelled"]) {
        times.sort();
        let at = |share: f64| times[((times.len() - 1) as f64 * share).round() as usize];
        println!("{what}: median {:?}, p99 {:?} of {kills}", at(0.5), at(0.99));
    }
}
