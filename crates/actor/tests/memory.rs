//! What systems and actors take of the machine's memory, as the kernel counts it for a process: so this is a program of its own.
#![cfg(target_os = "linux")]

use playhouse_actor::*;

/// Memory of this process that is not the pages of some file. From the page tables: `status` may be off by some pages per thread.
fn anonymous_kib() -> u64 {
    let rollup = std::fs::read_to_string("/proc/self/smaps_rollup").unwrap();
    let line = rollup.lines().find_map(|line| line.strip_prefix("Anonymous:")).expect("the kernel counts it");
    line.trim().strip_suffix(" kB").expect("it is in KiB").parse().unwrap()
}

struct Wide<const WORDS: usize>([u64; WORDS]);

impl<const WORDS: usize> Actor for Wide<WORDS> {}

struct Sum;

impl Message for Sum {
    type Reply = u64;
}

impl<const WORDS: usize> Handler<Sum> for Wide<WORDS> {
    fn handle(&mut self, _: Sum, _: &mut Context<Self>) -> u64 {
        self.0.iter().sum()
    }
}

fn check<const WORDS: usize>(system: &System) {
    assert_eq!(system.spawn(Wide([1; WORDS])).ask(Sum).wait(), Ok(WORDS as u64));
}

// GUARANTEE: Memory of unused features
#[test]
fn unused_features_take_no_memory() {
    const SYSTEMS: u64 = 16;
    let pages = std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled").unwrap_or_default();
    if pages.contains("[always]") {
        return println!("not measured: where all memory comes in pages of 2 MiB, this would count those");
    }
    let start = || System::builder().workers(1).start().unwrap();
    // What is there once in a process.
    let first = start();
    check::<1>(&first);

    let before = anonymous_kib();
    let systems: Vec<System> = (0..SYSTEMS).map(|_| start()).collect();
    systems.iter().for_each(System::run_until_idle);
    let each = anonymous_kib().saturating_sub(before) / SYSTEMS;
    assert!(each < 192, "a system of one worker and no actors takes {each} KiB");

    // An actor of each of many sizes: a worker has cells of each, of which it uses one.
    let before = anonymous_kib();
    check::<2>(&first);
    check::<3>(&first);
    check::<4>(&first);
    check::<5>(&first);
    check::<6>(&first);
    check::<7>(&first);
    check::<8>(&first);
    check::<9>(&first);
    let each = anonymous_kib().saturating_sub(before) / 8;
    assert!(each < 64, "an actor of another size takes {each} KiB");

    for system in systems.into_iter().chain([first]) {
        system.shutdown().unwrap();
    }
}
