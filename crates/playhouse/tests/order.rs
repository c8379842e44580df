//! One actor's messages to another are handled in the order of the sends, each exactly once.

mod support;

use playhouse::prelude::*;
use support::graph::{Outcome, Plan, play};
use support::{Log, Scribe, Write, finishes, on_stage, threads};

fn check(what: &str, outcome: &Outcome) {
    let wrong = &outcome.wrong;
    assert!(wrong.is_empty(), "{what}: {} faults, the first: {:#?}", wrong.len(), &wrong[..wrong.len().min(5)]);
}

fn random_graphs_on_threads(stealing: Stealing, stops: bool, urgent: bool) {
    let mut seed = 0;
    for workers in [1, 2, 4] {
        for throughput in [1, 7, 64] {
            seed += 1;
            let system = System::builder()
                .workers(workers)
                .stages(3 * workers)
                .stealing(stealing)
                .throughput(throughput)
                .start()
                .unwrap();
            let outcome = play(system, Plan { seed, nodes: 30, fuel: 8_000, stops, urgent, outsiders: 3 });
            check(&format!("{workers} workers, {throughput} per gulp"), &outcome);
        }
    }
}

// GUARANTEE: Order
#[test]
fn pairs_keep_their_order_on_threads_with_longest_victim_stealing() {
    finishes(|| random_graphs_on_threads(Stealing::LongestVictim, false, false));
}

#[test]
fn pairs_keep_their_order_on_threads_with_random_stealing() {
    finishes(|| random_graphs_on_threads(Stealing::Random, false, false));
}

#[test]
fn pairs_keep_their_order_on_threads_without_stealing() {
    finishes(|| random_graphs_on_threads(Stealing::None, false, false));
}

// GUARANTEE: Delivery
#[test]
fn every_message_is_handled_or_a_dead_letter_while_actors_end_on_threads() {
    finishes(|| random_graphs_on_threads(Stealing::LongestVictim, true, false));
}

// GUARANTEE: Order
#[test]
fn pairs_keep_their_order_in_each_lane_on_threads() {
    finishes(|| random_graphs_on_threads(Stealing::Random, true, true));
}

/// The seeds are divided over a few tests that run side by side.
fn random_graphs_simulated(seeds: std::ops::Range<u64>, urgent: bool) {
    let (mut steals, mut adoptions, mut dead) = (0, 0, 0);
    for seed in seeds {
        let workers = [1, 2, 3, 4][seed as usize % 4];
        let stages = workers * [1, 2, 5][seed as usize % 3];
        let stealing = [Stealing::LongestVictim, Stealing::Random, Stealing::None][seed as usize / 4 % 3];
        let system =
            System::builder().workers(workers).stages(stages).stealing(stealing).simulated(seed).start().unwrap();
        let outcome = play(system, Plan { seed, nodes: 8, fuel: 300, stops: seed % 2 == 1, urgent, outsiders: 0 });
        check(&format!("seed {seed}, {workers} workers, {stages} stages, {stealing:?}"), &outcome);
        steals += outcome.counters.steals;
        adoptions += outcome.counters.adoptions;
        dead += outcome.dead;
    }
    assert!(steals > 0 && adoptions > 0 && dead > 0, "{steals} steals, {adoptions} adoptions, {dead} dead letters");
}

// GUARANTEE: Order
#[test]
fn pairs_keep_their_order_under_every_seed_1() {
    random_graphs_simulated(0..500, false);
}

#[test]
fn pairs_keep_their_order_under_every_seed_2() {
    random_graphs_simulated(500..1000, false);
}

#[test]
fn pairs_keep_their_order_under_every_seed_in_each_lane() {
    random_graphs_simulated(1000..1500, true);
}

// GUARANTEE: Start and end
#[test]
fn started_comes_before_every_message_under_every_seed() {
    for seed in 0..300 {
        let system = System::builder().workers(4).stages(8).simulated(seed).start().unwrap();
        let outcome = play(system, Plan { seed, nodes: 6, fuel: 300, stops: false, urgent: false, outsiders: 0 });
        assert_eq!(outcome.unstarted, 0, "seed {seed}: messages handled before `started`");
    }
}

#[test]
fn started_comes_before_urgent_messages_and_before_stopped() {
    for seed in 0..100 {
        let system = System::builder().workers(2).simulated(seed).start().unwrap();
        let log = Log::new();
        let eager = system.spawn(Eager(log.clone()));
        eager.tell_urgent(Write(1));
        system.run_until_idle();
        assert_eq!(log.take(), ["started", "handled"], "seed {seed}");
        eager.stop();
        system.run_until_idle();
        assert_eq!(log.take(), ["stopped"], "seed {seed}");
        // The actor is stopped or drained before its start. It starts all the same, and handles the messages from
        // before the drain.
        for (end, expected) in [
            (ActorRef::stop as fn(ActorRef<Eager>), &["started", "stopped"][..]),
            (ActorRef::drain, &["started", "handled", "stopped"]),
            (ActorRef::kill, &[]),
        ] {
            let eager = system.spawn(Eager(log.clone()));
            eager.tell(Write(1));
            end(eager);
            eager.tell(Write(2));
            system.run_until_idle();
            assert_eq!(log.take(), expected, "seed {seed}");
        }
    }
}

struct Eager(Log<&'static str>);

impl Actor for Eager {
    fn started(&mut self, _: &mut Context<Self>) {
        self.0.push("started");
    }
    fn stopped(&mut self, _: &mut Context<Self>) {
        self.0.push("stopped");
    }
}

impl Handler<Write> for Eager {
    fn handle(&mut self, _: Write, _: &mut Context<Self>) {
        self.0.push("handled");
    }
}

// GUARANTEE: Order
#[test]
fn an_outside_threads_messages_keep_their_order_in_each_lane() {
    finishes(|| {
        let system = threads(2);
        let (normal, urgent) = (Log::new(), Log::new());
        let scribes: Vec<_> = (0..8).map(|i| system.spawn_with(on_stage(i), Scribe(normal.clone()))).collect();
        let urgent_scribe = system.spawn(Scribe(urgent.clone()));
        for n in 0..10_000 {
            for (i, scribe) in scribes.iter().enumerate() {
                scribe.tell(Write(((i as u64) << 32) | n));
            }
            urgent_scribe.tell_urgent(Write(n));
        }
        system.run_until_idle();
        assert!(urgent.take().into_iter().eq(0..10_000));
        let written = normal.take();
        for i in 0..8 {
            let mine = written.iter().filter(|n| **n >> 32 == i).map(|n| n & 0xffff_ffff);
            assert!(mine.eq(0..10_000), "scribe {i}");
        }
        system.shutdown().unwrap();
    });
}

// GUARANTEE: Urgent messages
#[test]
fn urgent_messages_overtake_normal_ones_and_keep_their_own_order() {
    for seed in 0..100 {
        let system = System::builder().workers(2).simulated(seed).start().unwrap();
        let log = Log::new();
        let scribe = system.spawn(Scribe(log.clone()));
        system.run_until_idle();
        for n in 0..20 {
            scribe.tell(Write(100 + n));
        }
        for n in 0..20 {
            scribe.tell_urgent(Write(n));
        }
        system.run_until_idle();
        let expected: Vec<u64> = (0..20).chain(100..120).collect();
        assert_eq!(log.take(), expected, "seed {seed}");
    }
}

struct Relay {
    to: ActorRef<Scribe>,
}

impl Actor for Relay {}

impl Handler<Write> for Relay {
    fn handle(&mut self, Write(n): Write, _: &mut Context<Self>) {
        self.to.tell_urgent(Write(n));
    }
}

#[test]
fn urgent_messages_sent_one_by_one_keep_their_order_under_every_seed() {
    for seed in 0..300 {
        let system = System::builder().workers(3).stages(6).simulated(seed).start().unwrap();
        let log = Log::new();
        let scribe = system.spawn_with(on_stage(0), Scribe(log.clone()));
        let relay = system.spawn_with(on_stage(1), Relay { to: scribe });
        let noise = system.spawn_with(on_stage(3), Scribe(Log::new()));
        for n in 0..50 {
            relay.tell(Write(n));
            noise.tell(Write(n));
        }
        system.run_until_idle();
        assert!(log.take().into_iter().eq(0..50), "seed {seed}");
    }
}

#[test]
fn actors_of_a_group_share_a_stage_and_keep_their_order() {
    finishes(|| {
        let system = threads(2);
        let log = Log::new();
        let group = Group::new(&system);
        let options = || SpawnOptions::new().placement(Placement::Group(group));
        let scribes: Vec<_> = (0..4).map(|_| system.spawn_with(options(), Scribe(log.clone()))).collect();
        // A stage is one thread of control: one sender's order holds even across the actors of a group.
        for n in 0..4_000 {
            scribes[n % 4].tell(Write(n as u64));
        }
        system.run_until_idle();
        assert!(log.take().into_iter().eq(0..4_000));
        system.shutdown().unwrap();
    });
}
