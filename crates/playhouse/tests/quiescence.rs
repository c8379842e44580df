//! A system detects that it is done: nothing queued, nothing handled, no timer, no handler that waits.

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use playhouse::prelude::*;
use support::{Dice, Do, Log, Puppet, finishes, simulated, threads};
use tokio::sync::oneshot;

/// Passes a token on to a random actor, a number of times.
struct Hopper {
    others: Vec<ActorRef<Hopper>>,
    dice: Dice,
    hops: Arc<AtomicU64>,
    timers: bool,
}

impl Actor for Hopper {}

#[derive(Message)]
struct Others(Vec<ActorRef<Hopper>>);

#[derive(Message)]
struct Hop(u64);

impl Handler<Others> for Hopper {
    fn handle(&mut self, Others(others): Others, _: &mut Context<Self>) {
        self.others = others;
    }
}

impl Handler<Hop> for Hopper {
    fn handle(&mut self, Hop(left): Hop, ctx: &mut Context<Self>) {
        self.hops.fetch_add(1, Ordering::SeqCst);
        if left == 0 {
            return;
        }
        if self.timers && self.dice.one_in(16) {
            ctx.send_after(Duration::from_millis(1), Hop(left - 1));
        } else {
            self.others[self.dice.below(self.others.len())].tell(Hop(left - 1));
        }
    }
}

fn hoppers(system: &System, n: u64, timers: bool) -> (Vec<ActorRef<Hopper>>, Arc<AtomicU64>) {
    let hops = Arc::new(AtomicU64::new(0));
    let all: Vec<_> = (0..n)
        .map(|i| system.spawn(Hopper { others: Vec::new(), dice: Dice(i), hops: Arc::clone(&hops), timers }))
        .collect();
    for hopper in &all {
        hopper.tell(Others(all.clone()));
    }
    (all, hops)
}

// GUARANTEE: Quiescence
#[test]
fn idle_means_that_every_message_was_handled() {
    finishes(|| {
        for workers in [1, 2, 4] {
            let system = threads(workers);
            let (all, hops) = hoppers(&system, 20, false);
            for round in 1..=200 {
                all[round as usize % 20].tell(Hop(99));
                system.run_until_idle();
                assert_eq!(hops.load(Ordering::SeqCst), 100 * round, "{workers} workers");
            }
            system.shutdown().unwrap();
        }
    });
}

// GUARANTEE: Quiescence
#[test]
fn idle_means_that_every_timer_has_fired() {
    finishes(|| {
        for workers in [1, 3] {
            let system = threads(workers);
            let (all, hops) = hoppers(&system, 20, true);
            for round in 1..=20 {
                all[round as usize % 20].tell(Hop(99));
                system.run_until_idle();
                assert_eq!(hops.load(Ordering::SeqCst), 100 * round, "{workers} workers");
            }
            system.shutdown().unwrap();
        }
    });
}

#[test]
fn idle_under_every_seed_with_timers_and_moving_stages() {
    for seed in 0..300 {
        let system = System::builder().workers(1 + seed as usize % 4).stages(8).simulated(seed).start().unwrap();
        let (all, hops) = hoppers(&system, 8, true);
        for hopper in &all {
            hopper.tell(Hop(49));
        }
        system.run_until_idle();
        assert_eq!(hops.load(Ordering::SeqCst), 400, "seed {seed}");
    }
}

struct Waiter;

impl Actor for Waiter {}

#[derive(Message)]
struct WaitFor(oneshot::Receiver<()>, Log<u64>);

impl AsyncHandler<WaitFor> for Waiter {
    async fn handle(&mut self, WaitFor(until, log): WaitFor, _: &mut Context<Self>) {
        let _ = until.await;
        log.push(1);
    }
}

// GUARANTEE: Quiescence
#[test]
fn idle_means_that_no_handler_waits() {
    finishes(|| {
        let system = threads(2);
        for _ in 0..100 {
            let log = Log::new();
            let waiter = system.spawn(Waiter);
            let (wake, until) = oneshot::channel();
            waiter.tell(WaitFor(until, log.clone()));
            let waking = std::thread::spawn(move || wake.send(()).unwrap());
            system.run_until_idle();
            assert_eq!(log.take(), [1]);
            waking.join().unwrap();
            // A killed handler does not wait any more.
            let (_never, until) = oneshot::channel();
            waiter.tell(WaitFor(until, log));
            waiter.kill();
            system.run_until_idle();
        }
        system.shutdown().unwrap();
    });
}

#[test]
fn a_simulated_system_returns_while_a_handler_waits_for_the_outside() {
    let system = simulated(0);
    let log = Log::new();
    let waiter = system.spawn(Waiter);
    let (wake, until) = oneshot::channel();
    waiter.tell(WaitFor(until, log.clone()));
    system.run_until_idle();
    assert!(log.lock().is_empty());
    wake.send(()).unwrap();
    system.run_until_idle();
    assert_eq!(log.take(), [1]);
}

#[test]
fn an_empty_system_is_idle() {
    finishes(|| {
        for _ in 0..20 {
            let system = threads(2);
            system.run_until_idle();
            system.shutdown().unwrap();
        }
        simulated(0).run_until_idle();
    });
}

#[test]
fn several_threads_wait_for_idleness() {
    finishes(|| {
        let system = threads(2);
        let (all, hops) = hoppers(&system, 10, true);
        for hopper in &all {
            hopper.tell(Hop(199));
        }
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    system.run_until_idle();
                    assert_eq!(hops.load(Ordering::SeqCst), 2000);
                });
            }
        });
        system.shutdown().unwrap();
    });
}

#[test]
fn waiting_for_idleness_inside_an_actor_panics_and_says_why() {
    support::quiet_panics();
    finishes(|| {
        for system in [threads(1), simulated(0)] {
            let log = Log::new();
            let texts = log.clone();
            system.spawn(Puppet).tell(Do::this(move |ctx| {
                let system = ctx.system();
                let waited = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| system.run_until_idle()));
                texts.push(*waited.unwrap_err().downcast::<String>().unwrap());
            }));
            system.run_until_idle();
            assert!(log.take()[0].contains("actor"));
            system.shutdown().unwrap();
        }
    });
}

#[test]
fn counters_are_exact_while_the_system_is_idle() {
    for simulate in [false, true] {
        let builder = System::builder().workers(2);
        let system = if simulate { builder.simulated(4) } else { builder }.start().unwrap();
        let (all, _) = hoppers(&system, 10, false);
        system.run_until_idle();
        let before = system.stats().total.received;
        for hopper in &all {
            hopper.tell(Hop(99));
        }
        system.run_until_idle();
        assert_eq!(system.stats().total.received - before, 1000, "simulated: {simulate}");
        system.shutdown().unwrap();
    }
}
