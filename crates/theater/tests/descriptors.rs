//! What theaters leave behind. In a process of its own: it counts what that has open.
#![cfg(target_os = "linux")]

mod support;

use support::theater;

fn open_descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

#[test]
fn theaters_that_have_ended_keep_no_connections() {
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
    // The threads of the last ones may still be on their way out.
    let deadline = std::time::Instant::now() + support::LIMIT / 6;
    while open_descriptors() > before + 4 {
        assert!(std::time::Instant::now() < deadline, "{} descriptors, and {before} before", open_descriptors());
        std::thread::yield_now();
    }
}
