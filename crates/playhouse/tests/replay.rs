//! A simulated system is replayable to the last message, and its time is virtual.

mod support;

use std::collections::HashSet;
use std::time::{Duration, Instant};

use playhouse::prelude::*;
use support::graph::{Plan, play};
use support::{Do, Log, Puppet, Scribe, Write};

fn trace_of(seed: u64, plan_seed: u64) -> u64 {
    let system = System::builder().workers(3).stages(9).simulated(seed).start().unwrap();
    let outcome = play(system, Plan { seed: plan_seed, nodes: 10, fuel: 500, stops: true, urgent: true, outsiders: 0 });
    assert!(outcome.handled > 50);
    outcome.trace
}

// GUARANTEE: Replay
#[test]
fn the_same_seed_gives_the_same_run_to_the_last_message() {
    for seed in 0..50 {
        let first = trace_of(seed, 7);
        assert_eq!(first, trace_of(seed, 7), "seed {seed}");
    }
    // These runs are the same on each machine. They change only with the order of the workers' actions, or with the
    // draws of the simulation.
    assert_eq!(
        [trace_of(0, 7), trace_of(1, 7)],
        [5_447_581_536_062_734_173, 1_716_518_599_520_151_020],
        "see CONTRIBUTING: recorded runs"
    );
}

// GUARANTEE: Replay
#[test]
fn different_seeds_give_different_interleavings() {
    let traces: HashSet<u64> = (0..50).map(|seed| trace_of(seed, 7)).collect();
    assert!(traces.len() >= 45, "only {} different runs under 50 seeds", traces.len());
}

/// Two senders and one receiver. Every interleaving of the two is possible, and the seeds must find many.
#[test]
fn seeds_explore_the_interleavings_of_two_senders() {
    let mut seen = HashSet::new();
    for seed in 0..1000 {
        let system = System::builder().workers(3).stages(3).simulated(seed).start().unwrap();
        let log = Log::new();
        let on = support::on_stage;
        let scribe = system.spawn_with(on(0), Scribe(log.clone()));
        for (stage, base) in [(1, 0), (2, 10)] {
            let sender = system.spawn_with(on(stage), Puppet);
            for n in 0..3 {
                sender.tell(Do::this(move |_| scribe.tell(Write(base + n))));
            }
        }
        system.run_until_idle();
        seen.insert(log.take());
        system.shutdown().unwrap();
    }
    // 20 interleavings exist.
    assert!(seen.len() >= 15, "only {} of 20 interleavings under 1000 seeds", seen.len());
}

#[test]
fn a_simulated_hour_takes_no_time() {
    let start = Instant::now();
    let system = support::simulated(1);
    let log = Log::new();
    let (puppet, seen) = (system.spawn(Puppet), log.clone());
    puppet.tell(Do::this(move |ctx| {
        let seen = seen.clone();
        ctx.send_after(Duration::from_secs(3600), Do::this(move |ctx| seen.push(ctx.now())));
    }));
    system.run_until_idle();
    assert_eq!(log.take(), [Duration::from_secs(3600)]);
    assert_eq!(system.now(), Duration::from_secs(3600));
    assert!(start.elapsed() < Duration::from_secs(10));
}

#[test]
fn virtual_time_stands_still_while_messages_wait() {
    let system = support::simulated(3);
    let log = Log::new();
    let puppet = system.spawn(Puppet);
    for _ in 0..1000 {
        let log = log.clone();
        puppet.tell(Do::this(move |ctx| log.push(ctx.now())));
    }
    puppet.tell(Do::this(|ctx| {
        ctx.send_after(Duration::from_millis(1), Do::this(|_| ()));
    }));
    system.run_until_idle();
    assert!(log.take().into_iter().all(|now| now == Duration::ZERO));
}
