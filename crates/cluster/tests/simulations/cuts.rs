//! The cuts, and the state that each leads to.

use playhouse_cluster::{MemberId, Status};

use crate::world::{SLOTS, World, s};

/// Returns a member that runs slots, and the others.
fn pick(world: &World) -> (usize, Vec<usize>) {
    let picked = world.living().find(|node| !world.runs(*node).is_empty()).unwrap();
    (picked, world.living().filter(|node| *node != picked).collect())
}

// GUARANTEE: An outage of the ledger
#[test]
fn a_member_without_the_ledger_runs_on() {
    let mut world = World::of(11, 3);
    let (x, _) = pick(&world);
    let (runs, version) = (world.runs(x), world.nodes[x].cluster.view().unwrap().version);
    world.ledger(&[x], true);
    world.always(s(40), |world| world.runs(x) == runs);
    assert_eq!(world.nodes[x].cluster.view().unwrap().version, version);
}

// GUARANTEE: Cuts between members
#[test]
fn a_member_without_its_peers_is_declared_dead_and_joins_again_later() {
    let mut world = World::of(12, 3);
    let (x, others) = pick(&world);
    let former = world.id(x);
    world.links(&[x], &others, true);
    let runs_elsewhere = |world: &World| others.iter().map(|node| world.runs(*node).len()).sum::<usize>() == SLOTS;
    assert!(world.until(s(10), runs_elsewhere), "{:?}", world.clusters());
    world.always(s(20), runs_elsewhere);
    assert_ne!(world.id(x), former);
    assert_ne!(world.status(x, others[0]), Some(Status::Active));
    world.links(&[x], &others, false);
    world.until_whole(s(30));
}

// GUARANTEE: Cuts between members
#[test]
fn a_member_without_both_pauses_and_resumes_with_its_slots() {
    let mut world = World::of(13, 3);
    let (x, others) = pick(&world);
    let (former, runs) = (world.id(x), world.runs(x));
    // The others cannot declare it dead.
    world.ledger(&[0, 1, 2], true);
    world.links(&[x], &others, true);
    assert!(world.until(s(4), |world| world.runs(x).is_empty()), "it pauses within a lease");
    world.always(s(2), |world| world.runs(x).is_empty());
    world.links(&[x], &others, false);
    // The calls that were begun during the cut end.
    world.run(s(3));
    world.ledger(&[0, 1, 2], false);
    assert!(world.until(s(3), |world| world.runs(x) == runs));
    world.always(s(20), |world| world.runs(x) == runs && world.id(x) == former);
    assert!(world.is_whole());
}

// GUARANTEE: Cuts between members
#[test]
fn a_member_without_both_that_was_declared_dead_joins_as_another_one() {
    let mut world = World::of(14, 3);
    let (x, others) = pick(&world);
    let former = world.id(x);
    world.ledger(&[x], true);
    world.links(&[x], &others, true);
    world.run(s(10));
    assert_eq!((world.id(x), world.runs(x)), (former, vec![]));
    assert_eq!(others.iter().map(|node| world.runs(*node).len()).sum::<usize>(), SLOTS);
    world.ledger(&[x], false);
    world.links(&[x], &others, false);
    world.until_whole(s(20));
    assert_ne!(world.id(x), former);
}

// GUARANTEE: Cuts between members
#[test]
fn of_two_halves_the_one_without_the_ledger_pauses() {
    let mut world = World::of(15, 4);
    world.links(&[0, 1], &[2, 3], true);
    world.ledger(&[2, 3], true);
    let moved = |world: &World| world.runs(0).len() + world.runs(1).len() == SLOTS;
    assert!(world.until(s(30), moved), "{:?}", world.clusters());
    world.always(s(20), |world| world.runs(2).is_empty() && world.runs(3).is_empty());
    world.links(&[0, 1], &[2, 3], false);
    world.ledger(&[2, 3], false);
    world.until_whole(s(30));
}

// GUARANTEE: Cuts between members
#[test]
fn of_two_halves_with_the_ledger_the_larger_one_runs() {
    let mut world = World::of(16, 5);
    let ids: Vec<MemberId> = (0..3).map(|node| world.id(node)).collect();
    world.links(&[0, 1, 2], &[3, 4], true);
    let moved = |world: &World| (0..3).map(|node| world.runs(node).len()).sum::<usize>() == SLOTS;
    assert!(world.until(s(30), moved), "{:?}", world.clusters());
    world.always(s(20), moved);
    assert_eq!(ids, (0..3).map(|node| world.id(node)).collect::<Vec<_>>());
    world.links(&[0, 1, 2], &[3, 4], false);
    world.until_whole(s(40));
}

// GUARANTEE: An outage of the ledger
#[test]
fn without_the_ledger_all_run_for_the_outage_and_none_joins() {
    let mut world = World::of(17, 3);
    let ids: Vec<MemberId> = (0..3).map(|node| world.id(node)).collect();
    world.ledger(&[0, 1, 2], true);
    let late = world.start();
    world.ledger(&[late], true);
    let running = |world: &World| (0..3).map(|node| world.runs(node).len()).sum::<usize>();
    world.always(s(9), |world| running(world) == SLOTS);
    assert_eq!(world.status(late, late), None);
    // After the outage and a lease nothing runs, because a start from nothing may have begun.
    assert!(world.until(s(6), |world| running(world) == 0));
    world.always(s(20), |world| running(world) == 0);
    world.ledger(&[0, 1, 2, late], false);
    world.until_whole(s(5));
    assert_eq!(ids, (0..3).map(|node| world.id(node)).collect::<Vec<_>>());
}

// GUARANTEE: An outage of the ledger
#[test]
fn one_member_that_reaches_the_ledger_keeps_all_running_and_joins_over_the_links() {
    let mut world = World::of(18, 2);
    world.ledger(&[0, 1], true);
    let late = world.start();
    // The owners cannot write hand-overs.
    assert!(world.until(s(3), World::runs_all));
    assert_eq!(world.status(late, 0), Some(Status::Active));
    // Longer than the outage.
    world.always(s(40), World::runs_all);
}

// GUARANTEE: An outage of the ledger
#[test]
fn a_member_that_follows_a_view_while_it_pauses_resumes_with_its_slots() {
    let mut world = World::of(19, 1);
    world.ledger(&[0], true);
    assert!(world.until(s(15), |world| world.runs(0).is_empty()), "it pauses after the outage and a lease");
    let late = world.start();
    assert!(world.until(s(2), |world| world.status(late, 0).is_some()));
    assert!(world.runs(0).is_empty());
    // No other view comes: the new member cannot become active, and does not suspect the other one yet.
    world.links(&[late], &[0], true);
    world.ledger(&[0], false);
    let version = world.nodes[0].cluster.view().unwrap().version;
    assert!(world.until(s(1), |world| world.runs(0).len() == SLOTS), "{:?}", world.clusters());
    assert_eq!(world.nodes[0].cluster.view().unwrap().version, version);
}
