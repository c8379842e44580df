//! The cuts of a cluster, and the members that run on each side.

use super::scenes::{cluster, cut};
use super::world::{MS, World};
use crate::{End, Input, MemberId, Membership, Status};

/// Cuts all links between these members and those.
fn cut_apart(world: &mut World, these: &[MemberId], those: &[MemberId]) {
    for one in these {
        for other in those {
            cut(world, *one, *other);
        }
    }
}

/// Lets the detectors of these members suspect those.
fn suspect(world: &mut World, these: &[MemberId], those: &[MemberId]) {
    for one in these {
        for other in those {
            world.step(*one, Input::Suspect(*other));
        }
    }
}

fn set_ledger(world: &mut World, these: &[MemberId], has_ledger: bool) {
    for id in these {
        world.place(*id).has_ledger = has_ledger;
    }
}

/// Hands a slot over, and waits until the target runs it.
fn give(world: &mut World, slot: usize, from: MemberId, to: MemberId) {
    world.step(from, Input::HandOver { slot, to });
    world.run(100);
    assert_eq!(world.runners(slot).first().map(|(id, _)| *id), Some(to));
}

#[test]
fn a_member_without_the_ledger_runs_on_acknowledgements_and_changes_nothing() {
    let (mut world, [a, b, _]) = cluster::<3>(1);
    world.place(a).has_ledger = false;
    let view = world.stored.clone();
    world.step(a, Input::Suspect(b));
    world.step(a, Input::HandOver { slot: 0, to: b });
    world.run(3_000);
    assert_eq!((world.runners(0), world.stored.clone()), (vec![(a, 1)], view));
}

#[test]
fn a_member_without_peers_runs_on_reads_until_it_is_declared_dead() {
    let (mut world, [a, b, c]) = cluster::<3>(1);
    cut_apart(&mut world, &[a], &[b, c]);
    world.run(3_000);
    assert_eq!(world.runners(0), [(a, 1)]);
    suspect(&mut world, &[b, c], &[a]);
    world.run(100);
    assert_eq!((world.place(a).ended, world.runners(0)), (Some(End::Removed), vec![]));
    world.run(600);
    assert_eq!(world.runners(0).len(), 1);
}

#[test]
fn a_member_without_peers_and_ledger_pauses_and_resumes_unless_it_is_declared_dead() {
    let (mut world, [a, b, c]) = cluster::<3>(1);
    for is_suspected in [false, true] {
        cut_apart(&mut world, &[a], &[b, c]);
        world.place(a).has_ledger = false;
        world.run(600);
        assert_eq!(world.runners(0), []);
        if is_suspected {
            suspect(&mut world, &[b, c], &[a]);
            world.run(600);
        }
        world.cuts.clear();
        world.place(a).has_ledger = true;
        world.run(200);
        let runners = world.runners(0);
        if is_suspected {
            assert_eq!((world.place(a).ended, runners.len()), (Some(End::Removed), 1));
            assert_ne!(runners[0], (a, 1));
        } else {
            assert_eq!(runners, [(a, 1)], "it has its state");
        }
    }
}

#[test]
fn the_half_without_the_ledger_pauses() {
    for is_suspected in [false, true] {
        let (mut world, [a, b, c, d]) = cluster::<4>(2);
        assert_eq!(world.runners(0), [(b, 2)]);
        give(&mut world, 1, a, c);
        cut_apart(&mut world, &[a, b], &[c, d]);
        set_ledger(&mut world, &[c, d], false);
        world.run(500);
        assert_eq!((world.runners(0), world.runners(1)), (vec![(b, 2)], vec![]));
        if is_suspected {
            suspect(&mut world, &[a, b], &[c, d]);
            suspect(&mut world, &[c, d], &[a, b]);
            world.run(600);
            assert_eq!((world.status(c), world.status(d)), (None, None));
            assert!([a, b].contains(&world.runners(1)[0].0));
        }
        world.cuts.clear();
        set_ledger(&mut world, &[c, d], true);
        world.run(200);
        if is_suspected {
            assert_eq!((world.place(c).ended, world.place(d).ended), (Some(End::Removed), Some(End::Removed)));
        } else {
            assert_eq!(world.runners(1), [(c, 2)]);
        }
    }
}

#[test]
fn the_larger_half_declares_the_other_dead() {
    let (mut world, [a, b, c, d, e]) = cluster::<5>(1);
    // The smaller half has the slot, and accuses first.
    give(&mut world, 0, a, d);
    cut_apart(&mut world, &[a, b, c], &[d, e]);
    suspect(&mut world, &[d, e], &[a, b, c]);
    world.run(50);
    suspect(&mut world, &[a, b, c], &[d, e]);
    world.run(1000);
    let view = &world.stored.as_ref().unwrap().0;
    assert_eq!(view.members.keys().copied().collect::<Vec<_>>(), [a, b, c]);
    assert_eq!(world.flaw(), None);
}

#[test]
fn the_first_write_decides_between_equal_halves() {
    let (mut world, [a, b, c, d]) = cluster::<4>(1);
    cut_apart(&mut world, &[a, b], &[c, d]);
    for (one, other) in [(a, c), (c, a), (b, d), (d, b), (a, d), (d, a), (b, c), (c, b)] {
        world.step(one, Input::Suspect(other));
        world.pass(MS);
    }
    world.run(1000);
    let live = world.live();
    assert!(live == [a, b] || live == [c, d], "{live:?}");
    assert_eq!(world.flaw(), None);
}

#[test]
fn a_joining_member_needs_links_both_ways_to_all() {
    for is_from in [true, false] {
        let (mut world, [_, b]) = cluster::<2>(1);
        let c = MemberId(3);
        world.cuts.insert(if is_from { (c, b) } else { (b, c) });
        assert_eq!(world.start(), c);
        world.run(2000);
        assert_eq!(world.status(c), Some(Status::Joining));
        world.cuts.clear();
        world.run(200);
        assert_eq!(world.status(c), Some(Status::Active));
    }
}

#[test]
fn without_a_ledger_all_run_for_the_outage_and_nobody_joins_or_takes_over() {
    let (mut world, [a, b, c]) = cluster::<3>(2);
    let view = world.stored.clone();
    set_ledger(&mut world, &[a, b, c], false);
    let d = MemberId(4);
    world.fate = {
        let mut fate = std::mem::replace(&mut world.fate, Box::new(|| super::world::PROMPT));
        Box::new(move || super::world::Fate { effect: None, ..fate() })
    };
    world.start();
    let outage = world.config.timing.outage.as_millis() as u64;
    world.run(outage);
    assert_eq!((world.runners(0), world.runners(1)), (vec![(b, 2)], vec![(a, 1)]));
    assert_eq!((world.stored.clone(), world.machine(d).and_then(Membership::view)), (view, None));
    world.run(500);
    assert_eq!((world.runners(0), world.runners(1)), (vec![], vec![]), "the ledger was away for too long");
    world.fate = Box::new(|| super::world::PROMPT);
    set_ledger(&mut world, &[a, b, c], true);
    world.run(300);
    assert_eq!((world.runners(0), world.runners(1)), (vec![(b, 2)], vec![(a, 1)]));
    assert_eq!(world.flaw(), None);
    // A crash while the ledger is away stops all, because the dead member acknowledges nothing.
    set_ledger(&mut world, &[a, b, c, d], false);
    world.crash(c);
    world.step(a, Input::Gone(c));
    world.run(500);
    assert_eq!((world.runners(0), world.runners(1)), (vec![], vec![]));
}
