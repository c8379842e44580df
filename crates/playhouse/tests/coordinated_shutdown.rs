//! Phases come in order, deadlines hold, and the report names each step that did not finish.

mod support;

use std::sync::mpsc::channel;
use std::time::Duration;

use playhouse::prelude::*;
use playhouse::shutdown::{CoordinatedShutdown, Outcome};
use support::{Do, LIMIT, Log, Mourn, Mourner, Puppet, Scribe, Write, finishes, quiet_panics, simulated, threads};

const SECOND: Duration = Duration::from_secs(1);

fn outcomes(report: &playhouse::shutdown::Report) -> Vec<(&str, &str, &Outcome)> {
    let tasks = report.phases.iter().flat_map(|phase| phase.tasks.iter().map(move |task| (phase, task)));
    tasks.map(|(phase, task)| (&*phase.name, &*task.name, &task.outcome)).collect()
}

// GUARANTEE: Coordinated shutdown
#[test]
fn phases_come_in_order_whenever_their_tasks_were_registered() {
    finishes(|| {
        let system = threads(1);
        let shutdown = CoordinatedShutdown::new(&system);
        let log = Log::new();
        let phases = ["doors", "work", "end"].map(|name| shutdown.phase(name, LIMIT));
        for (number, phase) in phases.iter().enumerate().rev() {
            for task in ["one", "two"] {
                let log = log.clone();
                let task_of_it = move || {
                    log.push(number);
                    Ok(())
                };
                phase.task(task, task_of_it).unwrap();
            }
        }
        let report = shutdown.run();
        assert_eq!(log.take(), [0, 0, 1, 1, 2, 2]);
        assert!(report.is_clean());
        assert_eq!(report.to_string(), "6 of 6 shutdown tasks finished");
        assert_eq!(report.phases.iter().map(|phase| &*phase.name).collect::<Vec<_>>(), ["doors", "work", "end"]);
        // A shutdown runs once.
        assert_eq!(shutdown.run().phases, []);
        let error = phases[1].task("late", || Ok(())).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the shutdown task \"late\" is too late: the phase \"work\" has begun; register tasks before `run`"
        );
        system.shutdown().unwrap();
    });
}

// GUARANTEE: Coordinated shutdown
#[test]
fn actors_are_drained_before_the_next_phase_begins() {
    for seed in 0..50 {
        let system = simulated(seed);
        let shutdown = CoordinatedShutdown::new(&system);
        let log = Log::new();
        let scribes = [0, 1].map(|_| system.spawn(Scribe(log.clone())));
        let work = shutdown.phase("work", SECOND);
        for scribe in scribes {
            (0..100).for_each(|number| scribe.tell(Write(number)));
            work.drain("scribe", scribe).unwrap();
        }
        let seen = log.clone();
        let end = move || {
            let handled = seen.lock().len() as u64;
            seen.push(1000 + handled);
            Ok(())
        };
        shutdown.phase("end", SECOND).task("count", end).unwrap();
        let report = shutdown.run();
        assert!(report.is_clean(), "seed {seed}: {report}");
        assert_eq!(log.take().pop(), Some(1200), "seed {seed}");
        assert!(scribes.iter().all(|scribe| scribe.is_stopped()));
        assert_eq!(system.now(), Duration::ZERO, "nobody waited for a deadline");
    }
}

// GUARANTEE: Coordinated shutdown
#[test]
fn an_unfinished_task_is_named_and_delays_only_its_own_phase() {
    quiet_panics();
    for seed in 0..20 {
        let system = simulated(seed);
        let shutdown = CoordinatedShutdown::new(&system);
        let work = shutdown.phase("work", SECOND * 2);
        // Handles a message that never ends. A drain would end it after that message.
        struct Stuck;
        impl Actor for Stuck {}
        #[derive(Message)]
        struct Never;
        impl AsyncHandler<Never> for Stuck {
            async fn handle(&mut self, _: Never, _: &mut Context<Self>) {
                std::future::pending().await
            }
        }
        let stuck = system.spawn(Stuck);
        stuck.tell(Never);
        let broken = system.spawn(Puppet);
        broken.tell(Do::this(|_| panic!("meant: the pump broke")));
        let gone = system.spawn(Puppet);
        gone.kill();
        work.drain("stuck", stuck).unwrap();
        work.drain("broken", broken).unwrap();
        work.drain("gone", gone).unwrap();
        work.task("files", || Err("the disk is full".into())).unwrap();
        work.task("pipes", || panic!("meant: no water")).unwrap();
        shutdown.phase("end", SECOND).task("lights", || Ok(())).unwrap();
        let report = shutdown.run();
        assert_eq!(report.phases[0].took, SECOND * 2, "seed {seed}");
        let failed = |why: &str| Outcome::Failed(why.to_owned());
        // The crash may have come before the watch.
        let broken = [failed("it panicked: meant: the pump broke"), Outcome::Finished];
        assert!(broken.contains(&report.phases[0].tasks[1].outcome), "seed {seed}: {report}");
        assert_eq!(
            outcomes(&report)[2..],
            [
                ("work", "gone", &Outcome::Finished),
                ("work", "files", &failed("the disk is full")),
                ("work", "pipes", &failed("it panicked: meant: no water")),
                ("end", "lights", &Outcome::Finished),
            ]
        );
        assert_eq!(outcomes(&report)[0], ("work", "stuck", &Outcome::Unfinished));
        assert!(!report.is_clean());
        let text = report.to_string();
        assert!(text.contains("\n\"work\": \"stuck\" did not finish in time\n"), "{text}");
        assert!(text.contains("\n\"work\": \"files\" failed: the disk is full"), "{text}");
    }
}

#[test]
fn a_closure_that_blocks_is_left_behind() {
    finishes(|| {
        let system = threads(1);
        let shutdown = CoordinatedShutdown::new(&system);
        let (open, gate) = channel::<()>();
        let work = shutdown.phase("work", Duration::from_millis(20));
        let blocks = move || {
            let _closed = gate.recv();
            Ok(())
        };
        work.task("stuck", blocks).unwrap();
        work.task("quick", || Ok(())).unwrap();
        let report = shutdown.run();
        assert_eq!(outcomes(&report), [("work", "stuck", &Outcome::Unfinished), ("work", "quick", &Outcome::Finished)]);
        assert_eq!(report.to_string(), "1 of 2 shutdown tasks finished\n\"work\": \"stuck\" did not finish in time");
        drop(open);
        system.shutdown().unwrap();
    });
}

#[test]
fn a_coordinated_shutdown_is_not_run_by_an_actor() {
    let system = simulated(1);
    let shutdown = CoordinatedShutdown::new(&system);
    let puppet = system.spawn(Puppet);
    let log = Log::new();
    let mourner = system.spawn(Mourner(log.clone()));
    mourner.ask(Mourn(puppet)).wait().unwrap();
    puppet.tell(Do::this(move |_| drop(shutdown.run())));
    system.run_until_idle();
    let terminated = log.take().pop().unwrap();
    assert!(
        matches!(&terminated.reason, StopReason::Panicked(why) if why.contains("run it in the main thread")),
        "{terminated}"
    );
}
