//! `#[playhouse::main]` and `#[playhouse::test]`.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use playhouse::prelude::*;

#[derive(Default)]
struct Counter {
    n: u64,
}

#[actor]
impl Counter {
    #[message]
    fn add(&mut self, by: u64) {
        self.n += by;
    }

    #[message]
    async fn get(&mut self, after: Duration, ctx: &mut Context<Self>) -> u64 {
        ctx.sleep(after).await;
        self.n
    }

    #[stopped]
    fn end(&mut self) {
        ENDED.fetch_add(1, Ordering::Relaxed);
    }
}

static ENDED: AtomicU64 = AtomicU64::new(0);

#[playhouse::main(workers = 2)]
async fn program(system: &System) -> Result<usize, AskError> {
    let counter = system.spawn(Counter::default());
    counter.tell(Add(7));
    assert_eq!(counter.ask(Get(Duration::from_millis(1))).await?, 7);
    Ok(system.workers())
}

#[playhouse::main]
fn without_async(system: &System) -> u64 {
    system.spawn(Counter { n: 9 }).ask(Get(Duration::ZERO)).wait().unwrap_or(0)
}

// GUARANTEE: Functions with a system
#[test]
fn a_main_function_is_given_a_system_that_ends_after_it() {
    let before = ENDED.load(Ordering::Relaxed);
    assert_eq!(program(), Ok(2));
    assert_eq!(without_async(), 9);
    assert!(ENDED.load(Ordering::Relaxed) >= before + 2);
}

#[playhouse::test]
async fn a_test_runs_in_virtual_time(system: &System) -> playhouse::Result<()> {
    let began = Instant::now();
    let counter = system.spawn(Counter { n: 1 });
    assert_eq!(counter.ask(Get(Duration::from_secs(3_600))).await?, 1);
    assert!(began.elapsed() < Duration::from_secs(60));
    Ok(())
}

/// The actor of the guide's example.
#[derive(Default)]
struct Meter {
    seconds: u64,
}

#[actor]
impl Meter {
    #[started]
    fn begin(&mut self, ctx: &mut Context<Self>) {
        ctx.send_every(Duration::from_secs(1), Second);
    }
    #[message(derive(Clone))]
    fn second(&mut self) {
        self.seconds += 1;
    }
    #[message]
    fn read(&self) -> u64 {
        self.seconds
    }
}

#[playhouse::test]
fn a_test_lets_time_pass(system: &System) -> playhouse::Result<()> {
    let meter = system.spawn(Meter::default());
    system.run_for(Duration::from_secs(3_600));
    assert_eq!(meter.ask(Read).wait()?, 3_600);
    Ok(())
}

#[playhouse::test(seeds = 100, workers = 2)]
async fn an_async_test_lets_time_pass(system: &System) {
    let before = system.now();
    let meter = system.spawn(Meter::default());
    assert_eq!(meter.ask(Read).await, Ok(0));
    system.run_for(Duration::from_secs(60));
    assert_eq!(system.now() - before, Duration::from_secs(60));
    assert_eq!(meter.ask(Read).await, Ok(60));
}

#[playhouse::test(seeds = 1)]
#[should_panic = "at once"]
async fn a_test_that_only_panics_compiles_without_a_warning(_: &System) {
    panic!("at once");
}

#[playhouse::test(threads, workers = 1)]
fn a_test_runs_on_threads(system: &System) {
    assert_eq!(system.workers(), 1);
    assert_eq!(system.spawn(Counter { n: 2 }).ask(Get(Duration::ZERO)).wait(), Ok(2));
}

static RUNS: AtomicU64 = AtomicU64::new(0);

// Not a test by itself: the test below calls it.
mod counted {
    use super::*;

    #[playhouse::test(seeds = 5)]
    fn runs(system: &System) {
        system.run_until_idle();
        RUNS.fetch_add(1, Ordering::Relaxed);
    }

    #[playhouse::test(seeds = 5)]
    #[should_panic = "at the third"]
    fn panics(_: &System) {
        static RUN: AtomicU64 = AtomicU64::new(0);
        assert!(RUN.fetch_add(1, Ordering::Relaxed) < 2, "at the third");
    }

    #[playhouse::test(seed = 3)]
    #[should_panic = "waits forever"]
    async fn waits_for_ever(_: &System) {
        std::future::pending::<()>().await;
    }
}

// GUARANTEE: Functions with a system
#[test]
fn a_test_runs_once_for_each_seed() {
    playhouse::__macros::entry::test(System::builder, 0..=4, |system| {
        RUNS.fetch_add(1, Ordering::Relaxed);
        system.spawn(Counter::default());
    });
    assert!([5, 6, 7, 8, 9, 10].contains(&RUNS.load(Ordering::Relaxed)));
    let runs = AtomicU64::new(0);
    let failed = playhouse::__macros::entry::test(System::builder, 0..=4, |_| {
        if runs.fetch_add(1, Ordering::Relaxed) < 2 { Ok(()) } else { Err("at the third") }
    });
    assert_eq!((failed, runs.into_inner()), (Err("at the third"), 3));
}

/// Only the attribute uses the import.
mod imports {
    #![deny(unused_imports)]

    use playhouse::System;

    #[playhouse::test]
    fn the_import_of_the_system_is_used(system: &System) {
        assert!(system.workers() > 0);
    }
}
