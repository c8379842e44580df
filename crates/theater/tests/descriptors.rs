//! The descriptors, threads and memory of theaters. The test has a process of its own, because it counts those of the process.
#![cfg(target_os = "linux")]

mod support;

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use playhouse_actor::Actor;
use playhouse_theater::FindError;
use playhouse_theater::transport::{Listener, Registration, Tcp, Transport, Wire};
use support::{builder, theater};

/// One test at a time.
static ALONE: Mutex<()> = Mutex::new(());

fn open_descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

/// Returns the names of the threads of theaters.
fn threads() -> Vec<String> {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    // Some threads end during this loop.
    let names = tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("comm")).ok());
    names.filter(|name| name.starts_with("playhouse")).collect()
}

/// Waits for `is_so`, because threads may still be ending.
fn eventually(is_so: impl Fn() -> bool, otherwise: impl Fn() -> String) {
    let deadline = Instant::now() + support::LIMIT / 6;
    while !is_so() {
        assert!(Instant::now() < deadline, "{}", otherwise());
        std::thread::yield_now();
    }
}

#[test]
fn theaters_that_have_ended_keep_no_connections() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let pair = || {
        let (here, there) = (theater(), theater());
        here.connect(there.address().unwrap()).unwrap();
        here.shutdown().unwrap();
        there.shutdown().unwrap();
    };
    pair();
    let before = open_descriptors();
    for _ in 0..20 {
        pair();
    }
    eventually(
        || open_descriptors() <= before + 4,
        || format!("{} descriptors, and {before} before", open_descriptors()),
    );
}

/// Returns the resident bytes that belong to no file.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let kib = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
    kib.trim().strip_suffix(" kB").unwrap().parse::<usize>().unwrap() * 1024
}

struct Absent;

impl Actor for Absent {}

playhouse_actor::remote!(Absent:);

#[test]
fn read_buffers_of_links_take_only_the_memory_that_a_read_fills() {
    const LINKS: usize = 24;
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let here = theater();
    let others: Vec<_> = (0..LINKS).map(|_| theater()).collect();
    let before = resident();
    for other in &others {
        // The answer proves that both ends have read.
        let found = here.find::<Absent>(&format!("playhouse://{}/nobody", other.address().unwrap())).wait();
        assert!(matches!(found, Err(FindError::Unknown(_))), "{found:?}");
    }
    let taken = resident().saturating_sub(before);
    // Each end could read 256 KiB at once.
    assert!(taken < LINKS * 2 * 64 * 1024, "{LINKS} links take {taken} bytes");
    for other in others.into_iter().chain([here]) {
        other.shutdown().unwrap();
    }
}

/// TCP that does not return its listening address.
#[derive(Clone, Debug, Default)]
struct Nowhere(Arc<OnceLock<SocketAddr>>);

struct Hears(Box<dyn Listener>);

impl Transport for Nowhere {
    fn listen(&self, address: SocketAddr) -> io::Result<Box<dyn Listener>> {
        let listener = Tcp.listen(address)?;
        self.0.set(listener.address()?).unwrap();
        Ok(Box::new(Hears(listener)))
    }

    fn connect(&self, address: SocketAddr, limit: Duration) -> io::Result<Box<dyn Wire>> {
        Tcp.connect(address, limit)
    }
}

impl Listener for Hears {
    fn address(&self) -> io::Result<SocketAddr> {
        Err(io::Error::other("it has no sign"))
    }

    fn register(&mut self, registration: Registration<'_>) -> io::Result<()> {
        self.0.register(registration)
    }

    fn accept(&self) -> io::Result<Box<dyn Wire>> {
        self.0.accept()
    }
}

// GUARANTEE: Addresses are released
#[test]
fn a_theater_that_cannot_learn_its_address_leaves_nothing_behind() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let transport = Nowhere::default();
    let before = open_descriptors();
    let error = builder().transport(transport.clone()).start().unwrap_err();
    let words = error.to_string();
    assert!(words.contains("127.0.0.1:0") && words.contains("does not return its address: it has no sign"), "{words}");
    Tcp.listen(*transport.0.get().unwrap()).unwrap();
    assert!(open_descriptors() <= before, "{} descriptors, and {before} before", open_descriptors());
    eventually(|| threads().is_empty(), || format!("{:?}", threads()));
}
