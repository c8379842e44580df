//! Joins, hand-overs and ends.

use playhouse_cluster::{Cluster, ClusterOptions, JoinError, Status};

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

#[test]
fn a_quiet_cluster_writes_nothing() {
    let mut world = World::of(2, 3);
    world.run(s(1));
    let writes = world.writes();
    world.always(s(60), World::is_whole);
    assert_eq!(world.writes(), writes);
}

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
    let guest = world.net.theater(playhouse_theater::Theater::builder()).unwrap();
    let joined = Cluster::join(&guest, node.way.clone(), world.options.clone());
    assert!(matches!(joined, Err(JoinError::NoAddress)), "{joined:?}");
    let joined = Cluster::join(&guest, node.way.clone(), ClusterOptions::new().slots(0));
    assert!(matches!(joined, Err(JoinError::NoAddress)), "{joined:?}");
    let third = world.net.theater(playhouse_theater::Theater::builder().listen("127.0.0.1:0")).unwrap();
    let joined = Cluster::join(&third, node.way.clone(), ClusterOptions::new().slots(0));
    assert!(matches!(joined, Err(JoinError::Options(_))), "{joined:?}");
}
