//! Virtual actors in simulated members.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use playhouse_actor::AskError;
use playhouse_cluster::{Activation, PassivationReason, VirtualOptions};

use crate::virtual_world::{Broken, Count, Did, Plain, Unloaded, VirtualWorld};
use crate::world::{World, s};

fn options() -> VirtualOptions {
    VirtualOptions::new().wait(s(20))
}

// GUARANTEE: One activation of a key
#[test]
fn all_members_reach_one_activation_of_each_key() {
    let mut test = VirtualWorld::of(21, 3, options());
    let mut calls = Vec::new();
    // All first calls meet.
    for key in 0..12 {
        (0..3).for_each(|node| calls.push(test.call(node, key, true)));
    }
    for call in calls {
        test.answer(s(5), call).unwrap();
    }
    for key in 0..12 {
        let key = key.to_string();
        let begun = test.events(&key).into_iter().filter(|did| *did == Did::Begin).count();
        assert_eq!((begun, test.events(&key).len()), (1, 4));
        assert_eq!(test.ask(s(5), 0, &key), Ok(4));
        test.call(1, &key, false);
        test.world.run(s(1));
        assert_eq!(test.ask(s(5), 2, &key), Ok(6));
    }
    test.check();
}

// GUARANTEE: Calls of virtual actors
#[test]
fn calls_to_a_killed_member_go_on_at_the_next_owner() {
    let mut test = VirtualWorld::of(22, 3, options());
    assert_eq!(test.ask(s(5), 0, "a"), Ok(1));
    let home = test.home("a");
    let caller = (home + 1) % 3;
    assert_eq!(test.ask(s(5), caller, "a"), Ok(2));
    test.world.kill(home);
    let begun = test.world.net.now();
    // Calls that were under way fail with an error. The others wait for the takeover.
    let mut result = test.ask(s(20), caller, "a");
    while let Err(error) = result {
        assert!(matches!(error, AskError::TheaterLost { .. } | AskError::Unreachable(_)), "{error:?}");
        result = test.ask(s(20), caller, "a");
    }
    assert_eq!(result, Ok(3), "the state was saved");
    assert!(test.world.net.now() - begun < s(6), "{:?}", test.world.net.now() - begun);
    test.check();
}

// GUARANTEE: Calls of virtual actors
// GUARANTEE: Passivation
#[test]
fn a_member_that_leaves_passivates_its_actors_and_no_call_fails() {
    let mut test = VirtualWorld::of(23, 3, options());
    for key in 0..12 {
        test.ask(s(5), 0, key).unwrap();
    }
    let home = test.home("0");
    let leave = test.world.nodes[home].cluster.leave();
    let node = test.world.nodes[home].cluster.clone();
    let others: Vec<usize> = (0..3).filter(|node| *node != home).collect();
    let system = test.world.nodes[home].theater.system().clone();
    let left = Arc::new(AtomicBool::new(false));
    let has_left = Arc::clone(&left);
    system.spawn(Leaver(Some(leave), has_left));
    let mut calls = Vec::new();
    let mut round = 0;
    while !left.load(Ordering::Relaxed) || round < 50 {
        for key in 0..12 {
            calls.push(test.call(others[key % 2], key, true));
        }
        test.world.run(Duration::from_millis(20));
        round += 1;
        assert!(round < 500, "{node:?}");
    }
    test.world.nodes[home].lives = false;
    for call in calls {
        let result = test.answer(s(5), call);
        assert!(result.is_ok(), "{call}: {result:?}");
    }
    let moved = (0..12).filter(|key| {
        let events = test.events(&key.to_string());
        let passivated = events.iter().position(|did| *did == Did::Passivate(PassivationReason::HandOver));
        passivated.is_some_and(|at| matches!(events[at..], [_, Did::End, Did::Begin, Did::Handle(_), ..]))
    });
    assert!(moved.count() > 1);
    test.check();
}

/// Leaves, and notes that it has.
struct Leaver(Option<playhouse_actor::Ask<playhouse_cluster::Leave>>, Arc<AtomicBool>);

impl playhouse_actor::Actor for Leaver {
    fn started(&mut self, ctx: &mut playhouse_actor::Context<Self>) {
        ctx.this().tell(Begin);
    }
}

struct Begin;

impl playhouse_actor::Message for Begin {
    type Reply = ();
}

impl playhouse_actor::AsyncHandler<Begin> for Leaver {
    async fn handle(&mut self, _: Begin, _: &mut playhouse_actor::Context<Self>) {
        self.0.take().unwrap().await.unwrap();
        self.1.store(true, Ordering::Relaxed);
    }
}

// GUARANTEE: One activation of a key
// GUARANTEE: Calls of virtual actors
#[test]
fn a_paused_member_runs_no_calls_and_goes_on_with_its_state() {
    let mut test = VirtualWorld::of(24, 3, VirtualOptions::new().wait(s(5)));
    test.ask(s(5), 0, "a").unwrap();
    let home = test.home("a");
    // The caller knows the activation by now.
    assert_eq!(test.ask(s(5), home, "a"), Ok(2));
    let others: Vec<usize> = (0..3).filter(|node| *node != home).collect();
    test.world.ledger(&[0, 1, 2], true);
    test.world.links(&[home], &others, true);
    assert!(test.world.until(s(4), |world| world.runs(home).is_empty()));
    let early = test.call(home, "a", true);
    test.call(home, "a", false);
    test.world.run(s(3));
    assert_eq!(test.events("a").len(), 3, "{:?}", test.events("a"));
    let late = test.call(home, "a", true);
    // The first one fails after its wait.
    let error = test.answer(s(3), early).unwrap_err();
    assert!(
        matches!(&error, AskError::Unreachable(why) if why.contains("the lease of its member has ended")),
        "{error:?}"
    );
    test.world.links(&[home], &others, false);
    test.world.ledger(&[0, 1, 2], false);
    assert_eq!(test.answer(s(4), late), Ok(3), "the tell has become a dead letter");
    assert_eq!(test.events("a").iter().filter(|did| **did == Did::Begin).count(), 1, "it keeps its state");
    test.check();
}

// GUARANTEE: Calls of virtual actors
// GUARANTEE: Passivation
#[test]
fn an_idle_actor_is_passivated_and_no_call_is_lost_in_the_race() {
    for seed in 0..20 {
        let mut test = VirtualWorld::of(seed, 2, options().idle(Duration::from_millis(200)));
        test.ask(s(5), 0, "a").unwrap();
        let mut calls = Vec::new();
        for _ in 0..40 {
            // Around the idle time and the looks at it.
            let pause = 150 + test.world.net.choose(150) as u64;
            test.world.run(Duration::from_millis(pause));
            (0..3).for_each(|call| calls.push(test.call(call % 2, "a", true)));
            test.call(1, "a", false);
        }
        for call in calls.iter() {
            assert!(test.answer(s(5), *call).is_ok());
        }
        test.world.run(s(1));
        assert_eq!(test.ask(s(5), 0, "a"), Ok(1 + 40 * 4 + 1), "no tell is lost");
        let events = test.events("a");
        let passivated = events.iter().filter(|did| **did == Did::Passivate(PassivationReason::Idle)).count();
        assert!(passivated > 5, "{passivated}");
        test.check();
    }
}

// GUARANTEE: Calls of virtual actors
#[test]
fn an_ask_without_an_owner_fails_after_its_wait_and_too_many_fail_at_once() {
    let mut test = VirtualWorld::new(25, VirtualOptions::new().wait(s(2)).waiting_max(3));
    let node = test.start("127.0.0.1:0");
    // No member can join.
    test.world.ledger(&[node], true);
    let begun = test.world.net.now();
    let calls: Vec<u64> = (0..5).map(|key| test.call(node, key, true)).collect();
    for call in &calls[3..] {
        let error = test.answer(s(1), *call).unwrap_err();
        assert!(error.to_string().contains("3 calls wait already"), "{error}");
    }
    for call in &calls[..3] {
        let error = test.answer(s(3), *call).unwrap_err();
        assert!(error.to_string().contains("its theater has no view of the cluster"), "{error}");
    }
    assert!(test.world.net.now() - begun >= s(2));
}

#[test]
fn an_actor_that_does_not_start_is_not_activated_without_end() {
    let test = VirtualWorld::of(26, 1, VirtualOptions::new());
    let cluster = &test.world.nodes[0].cluster;
    let activations = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&activations);
    cluster.register(VirtualOptions::new(), move |_| Broken(Arc::clone(&counted))).unwrap();
    let broken = cluster.actor::<Broken>("a");
    for _ in 0..100 {
        let ask = broken.ask(Count(1)).wait();
        assert!(
            matches!(&ask, Err(AskError::Unreachable(why)) if why.contains("ended before its first call")),
            "{ask:?}"
        );
    }
    assert_eq!(activations.load(Ordering::Relaxed), 1);
    test.world.net.run_for(s(1));
    broken.ask(Count(1)).wait().unwrap_err();
    assert_eq!(activations.load(Ordering::Relaxed), 2);
}

#[test]
fn an_actor_that_does_not_load_fails_its_calls() {
    let test = VirtualWorld::of(27, 1, VirtualOptions::new());
    let cluster = &test.world.nodes[0].cluster;
    let activations = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&activations);
    cluster.register(VirtualOptions::new(), move |_| Unloaded(Arc::clone(&counted))).unwrap();
    let unloaded = cluster.actor::<Unloaded>("a");
    for _ in 0..10 {
        let ask = unloaded.ask(Count(1)).within(s(5)).wait();
        assert!(
            matches!(&ask, Err(AskError::Unreachable(why)) if why.contains("ended before its first call")),
            "{ask:?}"
        );
    }
    assert_eq!(activations.load(Ordering::Relaxed), 1);
}

/// A panic whose payload panics when it is dropped.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("the payload of a panic panics");
    }
}

#[test]
fn a_directory_that_crashes_ends_its_activations_and_its_member_can_leave() {
    let test = VirtualWorld::of(28, 1, VirtualOptions::new());
    let cluster = &test.world.nodes[0].cluster;
    let ended = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&ended);
    let factory = move |activation: &Activation| {
        if activation.key() == "bomb" {
            std::panic::panic_any(Bomb);
        }
        Plain(Arc::clone(&counted))
    };
    cluster.register(VirtualOptions::new(), factory).unwrap();
    let plain = cluster.actor::<Plain>("a");
    assert_eq!(plain.ask(Count(1)).wait(), Ok(1));
    assert!(cluster.actor::<Plain>("bomb").ask(Count(1)).within(s(5)).wait().is_err());
    test.world.net.run_for(s(1));
    assert_eq!(ended.load(Ordering::Relaxed), 1, "no activation stays without its directory");
    assert!(plain.ask(Count(1)).within(s(5)).wait().is_err());
    cluster.leave().within(s(20)).wait().unwrap();
}

/// Runs calls and faults for some time, heals the members, and checks what has become of the calls.
fn walk(seed: u64) -> [usize; 3] {
    let mut test = VirtualWorld::new(seed, VirtualOptions::new().wait(s(8)).idle(Duration::from_millis(700)));
    let members = 3 + test.world.net.choose(3);
    (0..members).for_each(|_| _ = test.start("127.0.0.1:0"));
    test.world.until_whole(s(60));
    if test.world.net.choose(2) == 0 {
        test.world.net.break_by_chance(s(2));
    }
    let end = test.world.net.now() + s(12);
    while test.world.net.now() < end {
        disturb(&mut test, members);
        for _ in 0..test.world.net.choose(8) {
            let living: Vec<usize> = test.world.living().collect();
            let (node, key) = (living[test.world.net.choose(living.len())], test.world.net.choose(8));
            let is_ask = test.world.net.choose(4) != 0;
            test.call(node, key, is_ask);
        }
        let time = test.world.net.choose(600) as u64;
        test.world.run(Duration::from_millis(time));
    }
    test.world.net.calm();
    let living: Vec<usize> = test.world.living().collect();
    test.world.ledger(&living, false);
    for node in &living {
        let others: Vec<usize> = living.iter().copied().filter(|other| other != node).collect();
        test.world.links(&[*node], &others, false);
    }
    test.world.until_whole(s(60));
    // Each key answers soon at each member.
    for key in 0..8 {
        for node in living.clone() {
            // A link that was lost is called again by the second ask.
            let answered = (0..3).any(|_| test.ask(s(40), node, key).is_ok());
            assert!(answered, "the key {key} does not answer at {node}");
        }
    }
    // Links are given up after 30 s.
    let (asks, results) = (test.asks.clone(), Arc::clone(&test.shared.results));
    let lives = |world: &World, node: &usize| world.nodes[*node].lives;
    let ended = test.world.until(s(60), |world| {
        let results = results.lock().unwrap();
        asks.iter().all(|(ask, node)| !lives(world, node) || results.contains_key(ask))
    });
    let results = results.lock().unwrap().clone();
    let pending: Vec<_> = asks.iter().filter(|(ask, _)| !results.contains_key(ask)).collect();
    assert!(ended, "asks have not ended: {pending:?}");
    test.check();
    let answered = results.values().filter(|result| result.is_ok()).count();
    let activations = test.shared.log.lock().unwrap().iter().filter(|entry| entry.did == Did::Begin).count();
    [answered, results.len() - answered, activations]
}

/// Lets one fault happen, or heals one.
fn disturb(test: &mut VirtualWorld, members: usize) {
    let world = &mut test.world;
    let living: Vec<usize> = world.living().collect();
    let one = living[world.net.choose(living.len())];
    let others: Vec<usize> = living.iter().copied().filter(|node| *node != one).collect();
    match world.net.choose(16) {
        0 if living.len() > 1 => {
            world.kill(one);
            let address = world.nodes[one].theater.address().unwrap().to_string();
            if world.net.choose(2) == 0 {
                test.start(&address);
            }
        }
        1 if living.len() < members + 1 => _ = test.start("127.0.0.1:0"),
        2 => world.ledger(&[one], true),
        3 => world.ledger(&living, true),
        4 => world.ledger(&living, false),
        5 => world.links(&[one], &others, true),
        6 if !others.is_empty() => world.links(&[one], &[others[world.net.choose(others.len())]], true),
        7 | 8 => world.links(&[one], &others, false),
        9 => {
            let time = world.net.choose(6_000) as u64;
            world.net.pause(&world.nodes[one].theater, Duration::from_millis(time));
        }
        // It pauses, and learns of no takeover. Its callers know its activations.
        10 | 11 => {
            world.ledger(&[one], true);
            world.links(&[one], &others, true);
        }
        _ => {}
    }
}

/// Runs half of the seeds. The two tests below run beside each other.
fn half(number_of_it: u64) {
    let number = |name: &str, default| std::env::var(name).map_or(default, |value| value.parse().expect("a number"));
    let seeds = number("PLAYHOUSE_VIRTUAL_SEEDS", 20) / 2;
    let first = number("FIRST_SEED", 0) + number_of_it * seeds;
    let mut totals = [0; 3];
    for seed in first..first + seeds {
        let _told = crate::faults::Told(seed);
        totals.iter_mut().zip(walk(seed)).for_each(|(total, one)| *total += one);
    }
    println!("{seeds} seeds: {} asks answered, {} failed, {} activations", totals[0], totals[1], totals[2]);
    assert!(totals.iter().all(|total| *total as u64 > seeds), "{totals:?}");
}

// GUARANTEE: One activation of a key
// GUARANTEE: Calls of virtual actors
#[test]
fn no_key_is_active_twice_under_faults_and_each_ask_ends_1() {
    half(0);
}

// GUARANTEE: One activation of a key
// GUARANTEE: Calls of virtual actors
#[test]
fn no_key_is_active_twice_under_faults_and_each_ask_ends_2() {
    half(1);
}
