//! Joins, hand-overs and ends.

use playhouse_actor::System;
use playhouse_cluster::{ANCESTORS_MAX, Cluster, ClusterOptions, End, JoinError, Status, View};
use playhouse_theater::Theater;
use playhouse_toolbox::durable::Store;

use crate::world::{SLOTS, World, s};

#[test]
fn each_slot_runs_once_after_joins() {
    for members in [1, 3, 5] {
        let world = World::of(1, members);
        let loads: Vec<usize> = world.living().map(|node| world.runs(node).len()).collect();
        assert_eq!((loads.len(), loads.iter().sum::<usize>()), (members, SLOTS));
        assert!(loads.iter().all(|load| load.abs_diff(SLOTS / members) <= 1), "{loads:?}");
        assert!(world.net.now() < s(3), "{members} members are active after {:?}", world.net.now());
    }
}

// GUARANTEE: A quiet cluster writes nothing
#[test]
fn a_quiet_cluster_writes_nothing() {
    let mut world = World::of(2, 3);
    world.run(s(1));
    let writes = world.writes();
    world.always(s(60), World::is_whole);
    assert_eq!(world.writes(), writes);
}

// GUARANTEE: A leave hands the slots over
#[test]
fn a_leaving_member_hands_its_slots_over() {
    let mut world = World::of(3, 3);
    let owner = world.living().find(|node| !world.runs(*node).is_empty()).unwrap();
    let epochs: Vec<Option<u64>> = (0..SLOTS).map(|slot| world.nodes[owner].cluster.runs(slot)).collect();
    let begun = world.net.now();
    let leave = world.nodes[owner].cluster.leave();
    leave.within(s(30)).wait().unwrap();
    assert!(world.runs(owner).is_empty());
    world.nodes[owner].lives = false;
    world.until_whole(s(1));
    assert!(world.net.now() - begun < s(1), "no slot waits for a lease: {:?}", world.net.now() - begun);
    for (slot, epoch) in epochs.into_iter().enumerate() {
        let now = world.living().find_map(|node| world.nodes[node].cluster.runs(slot));
        assert!(epoch.is_none() || now > epoch, "slot {slot}: {now:?} after {epoch:?}");
    }
    // The theater may join again.
    let node = &world.nodes[owner];
    assert_eq!(node.cluster.leave().wait(), Err(playhouse_actor::AskError::Stopped));
    let again = Cluster::join(&node.theater, node.way.clone(), world.options.clone()).unwrap();
    again.activated().wait().unwrap();
}

// GUARANTEE: Slots of a lost member
#[test]
fn the_slots_of_a_killed_member_run_at_the_others_after_a_lease() {
    let mut world = World::of(4, 3);
    let killed = world.living().find(|node| !world.runs(*node).is_empty()).unwrap();
    let begun = world.net.now();
    world.kill(killed);
    let all_fenced = |world: &World| world.living().map(|node| world.runs_fenced(node).len()).sum::<usize>() == SLOTS;
    assert!(world.until(s(20), all_fenced));
    // Epochs protect the slots as soon as the heirs know the view.
    let took = world.net.now() - begun;
    assert!(took < s(1) / 2 && !world.is_whole(), "{took:?}");
    world.until_whole(s(20));
    let took = world.net.now() - begun;
    // The refused call declares it dead at once, and the heirs wait for 3.3 s.
    assert!(took > s(3) && took < s(3) + s(1), "{took:?}");
}

// GUARANTEE: Slots of a lost member
#[test]
fn a_member_that_is_started_again_at_its_address_is_another_one() {
    let mut world = World::of(5, 3);
    let owner = world.living().find(|node| !world.runs(*node).is_empty()).unwrap();
    let former = world.id(owner);
    world.kill(owner);
    let again = world.restart(owner);
    assert_ne!(world.id(again), former);
    let begun = world.net.now();
    world.until_whole(s(20));
    // Its address answers, and the answer says that the former life has ended.
    let took = world.net.now() - begun;
    assert!(took < s(4) + s(1) / 2, "{took:?}");
    assert_eq!(world.status(again, again), Some(Status::Active));
}

// GUARANTEE: Slots of a lost member
#[test]
fn the_first_member_after_the_loss_of_all_waits_for_an_outage_and_a_lease() {
    let mut world = World::of(6, 3);
    world.run(s(5));
    let begun = world.net.now();
    (0..3).for_each(|node| world.kill(node));
    world.start();
    world.until_whole(s(60));
    let took = world.net.now() - begun;
    assert!(took > s(14) && took < s(16), "{took:?}");
}

#[test]
fn a_theater_is_a_member_once_and_needs_an_address() {
    let world = World::of(7, 1);
    let node = &world.nodes[0];
    let second = Cluster::join(&node.theater, node.way.clone(), world.options.clone());
    assert!(matches!(second, Err(JoinError::Member(_))), "{second:?}");
    let guest = world.net.theater(Theater::builder()).unwrap();
    let joined = Cluster::join(&guest, node.way.clone(), world.options.clone());
    assert!(matches!(joined, Err(JoinError::NoAddress)), "{joined:?}");
    let joined = Cluster::join(&guest, node.way.clone(), ClusterOptions::new().slots(0));
    assert!(matches!(joined, Err(JoinError::NoAddress)), "{joined:?}");
    let third = world.net.theater(Theater::builder().listen("127.0.0.1:0")).unwrap();
    for options in [ClusterOptions::new().slots(0), ClusterOptions::new().lease(std::time::Duration::MAX)] {
        let joined = Cluster::join(&third, node.way.clone(), options);
        assert!(matches!(joined, Err(JoinError::Options(_))), "{joined:?}");
    }
}

// GUARANTEE: The first member sets the options
#[test]
fn a_member_with_other_options_follows_those_of_the_view() {
    let mut world = World::of(8, 1);
    let timing = |world: &World, node: usize| world.nodes[node].cluster.view().unwrap().timing;
    let first = timing(&world, 0);
    world.options = ClusterOptions::new().slots(64).lease(s(30)).outage(s(100));
    let late = world.start();
    world.until_whole(s(3));
    assert_eq!((timing(&world, late), world.nodes[late].cluster.view().unwrap().slots.len()), (first, SLOTS));
    world.nodes[0].cluster.leave().within(s(3)).wait().unwrap();
    world.nodes[0].lives = false;
    world.until_whole(s(3));
    // It is alone, and runs for the outage and the lease of the view without the ledger.
    world.ledger(&[late], true);
    let begun = world.net.now();
    assert!(world.until(s(20), |world| world.runs(late).is_empty()));
    let took = world.net.now() - begun;
    assert!(took > s(12) && took < s(14), "{took:?}");
}

// GUARANTEE: Lost views freeze a cluster
#[test]
fn members_are_frozen_while_the_ledger_lacks_their_view() {
    let mut world = World::of(9, 2);
    let key = "playhouse/view";
    let saved = world.store.load(key).unwrap().unwrap();
    world.store.remove(key, saved.revision).unwrap();
    let is_frozen = |world: &World, node: usize| world.nodes[node].cluster.state().is_frozen;
    assert!(world.until(s(2), |world| is_frozen(world, 0) && is_frozen(world, 1)));
    world.always(s(8), World::is_whole);
    assert!(world.until(s(8), |world| world.runs(0).len() + world.runs(1).len() == 0));
    world.store.save(key, 0, &saved.bytes).unwrap();
    assert!(world.until(s(2), |world| !is_frozen(world, 0) && !is_frozen(world, 1)));
    world.until_whole(s(2));
}

// GUARANTEE: Few views per life
#[test]
fn a_member_that_is_declared_dead_in_each_life_writes_few_views_and_can_leave() {
    let mut world = World::of(10, 1);
    let builder = Theater::builder().listen("127.0.0.1:0").advertise("127.0.0.1:9");
    let theater = world.net.theater(builder.system(System::builder().workers(2))).unwrap();
    let wrong = Cluster::join(&theater, world.nodes[0].way.clone(), world.options.clone()).unwrap();
    wrong.activated().wait().unwrap();
    assert!(world.until(s(10), |world| world.runs(0).len() == SLOTS / 2), "{:?}", world.clusters());
    // Nothing listens at its address: a call that is refused counts as its end.
    world.net.cut(&theater, &world.nodes[0].theater);
    assert!(world.until(s(10), |world| world.runs(0).len() == SLOTS), "{:?}", world.clusters());
    let writes = world.writes();
    world.always(s(60), |world| world.runs(0).len() == SLOTS);
    let writes = world.writes() - writes;
    assert!(writes > 2 && writes < 60, "{writes} writes");
    let is_between_lives = |_: &World| {
        let state = wrong.state();
        state.end.is_some() && state.view.is_some_and(|view| !view.members.contains_key(&state.me))
    };
    assert!(world.until(s(20), is_between_lives));
    wrong.leave().within(s(1)).wait().unwrap();
    world.always(s(20), World::is_whole);
}

// GUARANTEE: Slots of a lost member
#[test]
fn a_member_that_is_too_far_behind_ends_and_says_so() {
    let mut world = World::of(18, 2);
    let behind = world.living().find(|node| !world.runs(*node).is_empty()).unwrap();
    let other = 1 - behind;
    world.net.pause(&world.nodes[behind].theater, s(1));
    // More views than a member can skip, in steps that the other one follows. A read that has begun may return the first ones.
    for _ in 0..3 {
        let saved = world.store.load("playhouse/view").unwrap().unwrap();
        let mut view = View::decode(&saved.bytes).unwrap();
        (0..ANCESTORS_MAX - 10).for_each(|_| view = view.successor(view.fingerprint()).unwrap());
        world.store.save("playhouse/view", saved.revision, &view.encode()).unwrap();
        world.run(s(1) / 4);
    }
    let ended = |world: &World| world.nodes[behind].cluster.state().end == Some(End::Behind);
    assert!(world.until(s(2), ended), "{:?}", world.clusters());
    let begun = world.net.now();
    assert!(world.until(s(10), |world| world.runs(other).len() == SLOTS));
    let took = world.net.now() - begun;
    // The next ask is answered, and the heir waits for 3.3 s. A silent member would be suspected first.
    assert!(took < s(4) + s(1) / 4, "{took:?}");
    world.until_whole(s(30));
}
