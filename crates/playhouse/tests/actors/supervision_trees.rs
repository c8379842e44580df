//! Supervisors of supervisors.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::support::{Adder, Do, Increment, Log, Puppet, quiet_panics, simulated};
use playhouse::prelude::*;

/// Returns the top supervisor, a supervisor below it that gives up at the first crash, and the number of its
/// incarnations.
fn nested(system: &System) -> (ActorRef<Supervisor>, ActorRef<Supervisor>, Arc<AtomicU64>) {
    let lives = Arc::new(AtomicU64::new(0));
    let top = system.spawn(Supervisor::new(SupervisionPolicy::one_for_one()));
    let made = Arc::clone(&lives);
    let middle = ChildSpec::new("middle", move || {
        made.fetch_add(1, Ordering::Relaxed);
        Supervisor::new(SupervisionPolicy::one_for_one().max_restarts(0, Duration::from_secs(1)))
    });
    let middle = top.ask(middle).wait().unwrap().unwrap();
    (top, middle, lives)
}

fn fragile(supervisor: ActorRef<Supervisor>) -> ActorRef<Puppet> {
    supervisor.ask(ChildSpec::new("old", || Puppet)).wait().unwrap().unwrap()
}

fn panic() -> Do {
    Do::this(|_| panic!("meant: the end of a child"))
}

#[test]
fn a_nested_supervisor_escalates_and_comes_back_without_its_old_children() {
    quiet_panics();
    for seed in 0..30 {
        let system = simulated(seed);
        let (top, middle, lives) = nested(&system);
        let old = fragile(middle);
        old.tell(panic());
        system.run_until_idle();
        assert!(!top.is_stopped() && !middle.is_stopped() && old.is_stopped(), "seed {seed}");
        assert_eq!(lives.load(Ordering::Relaxed), 2);
        let new = middle.ask(ChildSpec::new("new", || Adder)).wait().unwrap().unwrap();
        assert_eq!(new.ask(Increment(1)).wait(), Ok(2), "seed {seed}");
    }
}

#[test]
fn a_restarted_supervisor_keeps_the_children_of_its_new_incarnation() {
    quiet_panics();
    for seed in 0..300 {
        let system = System::builder().workers(4).stages(4).simulated(seed).start().unwrap();
        let (_, middle, lives) = nested(&system);
        let old = fragile(middle);
        old.tell(panic());
        // The test starts children all the time. Some of these starts come before the report of the old child's end.
        let (born, mut probes) = (Log::new(), Vec::new());
        for number in 0..20 {
            let (lives, born) = (Arc::clone(&lives), born.clone());
            let probe = ChildSpec::new(format!("probe {number}"), move || {
                born.push(lives.load(Ordering::Relaxed));
                Adder
            });
            probes.push(middle.ask(probe).wait().unwrap().unwrap());
        }
        system.run_until_idle();
        for (probe, life) in probes.into_iter().zip(born.take()) {
            assert_eq!(probe.is_stopped(), life == 1, "seed {seed}: a child of life {life}");
        }
    }
}
