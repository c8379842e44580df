//! How systems are built, live side by side, and end.

mod support;

use std::time::Duration;

use playhouse::prelude::*;
use support::{Adder, Do, Increment, Log, Puppet, Scribe, Write, finishes, simulated, threads};

#[test]
fn shutdown_handles_what_is_queued_and_counts_who_lived() {
    finishes(|| {
        let system = threads(2);
        let log = Log::new();
        let scribes: Vec<_> = (0..10).map(|_| system.spawn(Scribe(log.clone()))).collect();
        for n in 0..1000 {
            for scribe in &scribes {
                scribe.tell(Write(n));
            }
        }
        let report = system.shutdown().unwrap();
        assert_eq!(log.take().len(), 10_000);
        assert_eq!((report.actors_stopped, report.undelivered), (10, 0));
    });
}

/// Sends itself messages for ever.
struct Restless;

impl Actor for Restless {}

#[derive(Message)]
struct Again;

impl Handler<Again> for Restless {
    fn handle(&mut self, _: Again, ctx: &mut Context<Self>) {
        ctx.this().tell(Again);
    }
}

#[test]
fn shutdown_ends_a_system_that_never_rests_and_reports_what_was_undelivered() {
    finishes(|| {
        for system in [threads(2), simulated(0)] {
            system.spawn(Restless).tell(Again);
            let report = system.shutdown_within(Duration::from_millis(500)).expect("no handler is stuck");
            assert_eq!((report.actors_stopped, report.undelivered), (1, 1));
        }
    });
}

#[test]
fn a_message_to_a_system_that_was_shut_down_is_refused_and_an_ask_says_so() {
    finishes(|| {
        let system = threads(1);
        let adder = system.spawn(Adder);
        system.shutdown().unwrap();
        adder.tell(Increment(1));
        adder.stop();
        assert!(adder.try_tell(Increment(1)).is_err());
        assert_eq!(adder.ask(Increment(1)).wait(), Err(AskError::Shutdown));
        // Whatever system comes next must not get it either.
        let next = threads(1);
        let other = next.spawn(Adder);
        adder.tell(Increment(1));
        assert!(matches!(adder.ask(Increment(1)).wait(), Err(AskError::Shutdown | AskError::Stopped)));
        assert_eq!(other.ask(Increment(1)).wait(), Ok(2));
        next.shutdown().unwrap();
    });
}

#[test]
fn spawning_in_a_system_that_was_shut_down_is_an_error() {
    finishes(|| {
        let system = threads(1);
        let handle = system.clone();
        system.shutdown().unwrap();
        assert!(handle.try_spawn_with(SpawnOptions::new(), Adder).is_err());
    });
}

#[test]
fn systems_live_side_by_side_and_their_actors_talk() {
    finishes(|| {
        let systems: Vec<System> = (0..4).map(|_| threads(2)).collect();
        let log = Log::new();
        let scribes: Vec<_> = systems.iter().map(|system| system.spawn(Scribe(log.clone()))).collect();
        for system in &systems {
            let scribes = scribes.clone();
            system.spawn(Puppet).tell(Do::this(move |_| {
                for n in 0..100 {
                    scribes.iter().for_each(|scribe| scribe.tell(Write(n)));
                }
            }));
        }
        for system in &systems {
            system.run_until_idle();
        }
        // A message may have come from a system that was waited for later: once more.
        for system in systems {
            system.run_until_idle();
            system.shutdown().unwrap();
        }
        assert_eq!(log.take().len(), 4 * 4 * 100);
    });
}

#[test]
fn all_wrong_settings_are_reported_at_once() {
    let error = System::builder().workers(0).stages(100_000).throughput(0).start().unwrap_err();
    assert_eq!(error.problems().len(), 3, "{error}");
    let error = System::builder().workers(4).stages(3).start().unwrap_err();
    assert!(error.to_string().contains("stages = 3"), "{error}");
}

#[test]
fn a_stage_that_does_not_exist_is_refused_in_words() {
    let system = System::builder().workers(1).stages(4).simulated(0).start().unwrap();
    let error = system.try_spawn_with(support::on_stage(4), Adder).unwrap_err();
    assert!(error.to_string().contains("stage 4"), "{error}");
}

#[test]
fn what_nobody_sets_has_a_default_that_follows_from_the_rest() {
    let cores = std::thread::available_parallelism().unwrap().get();
    let size = |builder: playhouse::SystemBuilder| {
        let system = builder.start().unwrap();
        let size = (system.workers(), system.stages());
        system.shutdown().unwrap();
        size
    };
    assert_eq!(size(System::builder()), (cores, 16 * cores));
    assert_eq!(size(System::builder().workers(3)), (3, 48));
    assert_eq!(size(System::builder().stages(5).workers(3)), (3, 5));
    // On whatever machine, or a seed would be another run on another one.
    assert_eq!(size(System::builder().simulated(7)), (4, 64));
    assert_eq!(size(System::builder().workers(2).simulated(7)), (2, 32));
}
