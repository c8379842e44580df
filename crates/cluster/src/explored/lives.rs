//! Members that join, leave and die at inconvenient times.

use std::sync::Arc;

use super::scenes::{ACTIVE, acknowledge, cluster, cut, machine, ms, next, read, reads, view, written};
use super::world::{Fate, MS, World, config};
use crate::{
    Accusation, Config, Effect, End, Holder, Input, MemberId, Membership, Message, Outcome, RequestId, Slot, Status,
    Time, Timing, View,
};

/// Each request takes 10 ms to the ledger, and 10 ms back.
const SLOW: Fate = Fate { effect: Some(10 * MS), result: Some(20 * MS), is_unknown: false };

#[test]
fn a_place_that_leaves_before_it_has_joined_ends_without_a_row() {
    // The ledger is empty.
    let mut world = World::new(config(1));
    world.fate = Box::new(|| SLOW);
    let a = world.start();
    world.step(a, Input::Leave);
    world.run(100);
    assert_eq!((world.place(a).ended, world.stored.is_some()), (Some(End::Left), false));
    // The write is on its way.
    for is_first in [true, false] {
        let mut world = if is_first { World::new(config(1)) } else { cluster::<1>(1).0 };
        world.fate = Box::new(|| SLOW);
        let id = world.start();
        world.run(25);
        assert_eq!(world.status(id), None);
        assert!(world.requests.iter().any(|request| request.from == id));
        world.step(id, Input::Leave);
        world.run(300);
        assert_eq!((world.place(id).ended, world.status(id)), (Some(End::Left), None));
        assert!(world.stored.as_ref().unwrap().0.version > 2, "the write took effect");
    }
}

#[test]
fn all_members_leave_at_once() {
    let (mut world, ids) = cluster::<3>(3);
    ids.iter().for_each(|id| world.step(*id, Input::Leave));
    world.run(1000);
    assert_eq!(ids.map(|id| world.place(id).ended), [Some(End::Left); 3]);
    let d = world.start();
    world.run(50);
    assert_eq!(world.runners(2).first().map(|(id, _)| *id), Some(d), "all slots were closed");
}

#[test]
fn two_members_without_a_third_do_not_wait_for_each_other_to_leave() {
    let (mut world, [a, b, c]) = cluster::<3>(2);
    for id in [a, b] {
        world.place(id).closes = false;
        world.step(id, Input::Leave);
        world.run(50);
    }
    world.crash(c);
    world.step(a, Input::Gone(c));
    world.run(50);
    assert_eq!((world.runners(0), world.runners(1)), (vec![(b, 3)], vec![(a, 2)]));
    for id in [a, b] {
        world.place(id).closes = true;
    }
    world.run(200);
    assert_eq!([a, b].map(|id| world.place(id).ended), [Some(End::Left); 2]);
}

#[test]
fn a_new_view_is_asked_for_at_once() {
    let pair = view(&[(1, ACTIVE), (2, ACTIVE)]);
    let (mut machine, _) = machine(1, &pair);
    let newer = next(&pair, |_| {});
    let message = Message::View(Arc::new(newer.clone()));
    let effects = machine.step(ms(10), Input::Received { from: MemberId(2), message });
    let message = Message::Ask { version: 2, fingerprint: newer.fingerprint(), at: ms(10) };
    assert!(effects.contains(&Effect::Send { to: MemberId(2), message }), "{effects:?}");
}

#[test]
fn an_heir_that_leaves_while_it_waits_hands_nothing_over() {
    let (mut world, [a, b, c]) = cluster::<3>(1);
    cut(&mut world, a, b);
    cut(&mut world, a, c);
    world.place(a).has_ledger = false;
    world.place(b).closes = false;
    world.step(b, Input::Gone(a));
    world.run(20);
    assert_eq!((world.status(a), world.runners(0)), (None, vec![(a, 1)]));
    world.step(b, Input::Leave);
    world.run(20);
    // A cancelled hand-over gives the slot back without a wait.
    world.crash(c);
    world.step(b, Input::Gone(c));
    world.run(100);
    assert_eq!(world.runners(0), [(a, 1)]);
    world.run(500);
    assert_eq!(world.runners(0), [(b, 2)]);
}

#[test]
fn a_leaving_member_whose_target_dies_takes_another_without_a_wait() {
    let (mut world, [a, b, c]) = cluster::<3>(1);
    world.place(a).closes = false;
    world.step(a, Input::Leave);
    world.run(50);
    let (target, other) = if world.machine(a).unwrap().view().unwrap().loads()[&b] == 1 { (b, c) } else { (c, b) };
    world.crash(target);
    world.step(a, Input::Gone(target));
    world.run(20);
    world.place(a).closes = true;
    world.run(100);
    assert_eq!((world.runners(0), world.place(a).ended), (vec![(other, 3)], Some(End::Left)));
}

#[test]
fn a_silent_member_is_removed_from_a_busy_cluster() {
    let (mut world, [a, b, c]) = cluster::<3>(1);
    world.crash(c);
    world.step(a, Input::Suspect(c));
    for _ in 0..6 {
        for (from, to) in [(a, b), (b, a)] {
            world.step(from, Input::HandOver { slot: 0, to });
            world.run(50);
        }
    }
    assert_eq!(world.status(c), None);
}

#[test]
fn a_refuted_accusation_is_repeated_in_a_busy_cluster() {
    let (mut world, [a, b, c]) = cluster::<3>(1);
    world.step(a, Input::Suspect(c));
    world.run(100);
    world.crash(c);
    for _ in 0..40 {
        for (from, to) in [(a, b), (b, a)] {
            world.step(from, Input::HandOver { slot: 0, to });
            world.run(60);
        }
    }
    assert_eq!(world.status(c), None);
}

#[test]
fn a_second_accusation_is_not_as_old_as_the_first() {
    let accused = |view: &mut View, version| {
        let accusation = Accusation { version, is_refuted: false };
        view.members.get_mut(&MemberId(2)).unwrap().accusations.insert(MemberId(1), accusation);
    };
    let first = next(&view(&[(3, ACTIVE), (1, ACTIVE), (2, ACTIVE)]), |view| accused(view, 2));
    let (mut machine, _) = machine(3, &first);
    // The refutation lies between the two views.
    let second = next(&next(&first, |_| {}), |view| accused(view, 4));
    machine.step(ms(390), Input::Tick);
    machine.step(ms(391), read(2, &second, 4));
    assert_eq!(written(&machine.step(ms(450), Input::Tick)), None);
    let effects = machine.step(ms(451), Input::Suspect(MemberId(1)));
    let accused = written(&effects).expect("an accusation");
    assert_eq!(accused.members[&MemberId(1)].accusations[&MemberId(3)].version, accused.version);
}

#[test]
fn the_result_of_a_read_that_was_given_up_proves_nothing() {
    let pair = view(&[(1, ACTIVE), (2, ACTIVE)]);
    let (mut machine, _) = machine(1, &pair);
    assert!(reads(&machine.step(ms(100), Input::Tick)));
    machine.step(ms(500), Input::Tick);
    assert!(reads(&machine.step(ms(525), Input::Tick)));
    machine.step(ms(530), read(2, &pair, 1));
    assert_eq!(machine.lease_end(), Some(ms(400)));
    machine.step(ms(531), read(3, &pair, 1));
    assert_eq!(machine.lease_end(), Some(ms(925)));
}

#[test]
fn a_ledger_that_is_slower_than_the_period_of_reads_is_read_and_written() {
    let (mut world, [a, b, c]) = cluster::<3>(3);
    world.fate = Box::new(|| Fate { effect: Some(100 * MS), result: Some(250 * MS), is_unknown: false });
    let d = world.start();
    world.run(3_000);
    assert_eq!((world.status(d), world.flaw()), (Some(ACTIVE), None));
    world.crash(b);
    world.step(c, Input::Gone(b));
    world.run(2_000);
    assert_eq!((world.status(b), world.flaw()), (None, None));
    // For longer than the outage.
    let runners = [0, 1, 2].map(|slot| world.runners(slot));
    for _ in 0..40 {
        world.run(50);
        assert_eq!([0, 1, 2].map(|slot| world.runners(slot)), runners);
    }
    world.step(a, Input::Leave);
    world.run(3_000);
    assert_eq!((world.place(a).ended, world.flaw()), (Some(End::Left), None));
}

#[test]
fn many_views_during_one_read_freeze_nothing() {
    let pair = view(&[(1, ACTIVE), (2, ACTIVE)]);
    let (mut machine, _) = machine(1, &pair);
    assert!(reads(&machine.step(ms(1), Input::Changed)));
    let mut far = pair.clone();
    for _ in 0..70 {
        far = next(&far, |_| {});
        machine.step(ms(2), Input::Received { from: MemberId(2), message: Message::View(Arc::new(far.clone())) });
    }
    let effects = machine.step(ms(3), read(2, &next(&pair, |_| {}), 2));
    assert!(reads(&effects) && !effects.contains(&Effect::Frozen), "{effects:?}");
    assert_eq!(machine.lease_end(), Some(ms(400)), "the view could be that of another lineage");
    // The next read began at the last view.
    let effects = machine.step(ms(4), read(3, &next(&pair, |_| {}), 2));
    assert!(effects.contains(&Effect::Frozen), "{effects:?}");
}

#[test]
fn an_ask_at_a_newer_version_causes_a_read() {
    let pair = view(&[(1, ACTIVE), (2, ACTIVE)]);
    let (mut machine, _) = machine(1, &pair);
    for (version, is_read) in [(pair.version, false), (pair.version + 1, true)] {
        let message = Message::Ask { version, fingerprint: 0, at: ms(1) };
        assert_eq!(reads(&machine.step(ms(1), Input::Received { from: MemberId(2), message })), is_read);
    }
}

#[test]
fn a_report_of_a_slot_that_does_not_close_changes_nothing() {
    let (mut world, [a]) = cluster::<1>(1);
    world.closed(a, 0, 1);
    assert_eq!(world.runners(0), [(a, 1)]);
}

#[test]
fn a_suspicion_ends_with_the_member() {
    let pair = view(&[(1, ACTIVE), (2, ACTIVE)]);
    let three = next(&pair, |view| {
        let member = view.members[&MemberId(2)].clone();
        view.members.insert(MemberId(3), member);
    });
    let (mut machine, _) = machine(1, &three);
    machine.step(ms(1), Input::Gone(MemberId(3)));
    let two = next(&three, |view| view.remove(&[MemberId(3)].into()));
    let again = next(&two, |view| view.members = three.members.clone());
    for view in [two, again] {
        machine.step(ms(2), Input::Received { from: MemberId(2), message: Message::View(Arc::new(view)) });
    }
    assert!(reads(&machine.step(ms(2), Input::Wrote { id: RequestId(2), outcome: Outcome::Conflict })));
    let effects = machine.step(ms(31), read(3, machine.view().unwrap().clone().as_ref(), 9));
    assert_eq!(written(&effects), None);
}

#[test]
fn a_ledger_that_is_back_is_written_again() {
    let (mut world, [a, b, c]) = cluster::<3>(1);
    for round in 1..=2 {
        let newest = world.stored.replace(world.history[0].clone());
        world.run(300);
        assert_eq!((world.place(a).frozen, world.place(b).frozen), (round, round));
        world.stored = newest;
        world.run(200);
    }
    world.step(a, Input::HandOver { slot: 0, to: c });
    world.run(100);
    assert_eq!(world.runners(0), [(c, 2)]);
}

#[test]
fn a_thread_with_an_earlier_time_runs_nothing_after_the_lease() {
    let (mut world, [a]) = cluster::<1>(1);
    world.place(a).has_ledger = false;
    let earlier = world.clock(a);
    world.run(2000);
    assert_eq!(world.machine(a).unwrap().runs(0, earlier), None);
}

#[test]
fn a_leaving_member_hands_over_to_a_joining_one() {
    let (mut world, [a]) = cluster::<1>(1);
    world.latency = Box::new(|| Some(50 * MS));
    let b = world.start();
    world.run(20);
    world.step(a, Input::Leave);
    world.run(100);
    assert_eq!((world.status(b), world.runners(0)), (Some(Status::Joining), vec![(a, 1)]));
    world.run(300);
    assert_eq!((world.place(a).ended, world.runners(0)), (Some(End::Left), vec![(b, 2)]));
}

/// Steps the machine at each of its ticks, and returns the time of the first effect that is wanted. Writes fail.
fn first(machine: &mut Membership, is_wanted: impl Fn(&Effect) -> bool, view: &View) -> Time {
    let mut request = 0;
    loop {
        let now = machine.next_tick().expect("it has not ended");
        let mut effects = machine.step(now, Input::Tick);
        while let Some(effect) = effects.pop() {
            match effect {
                effect if is_wanted(&effect) => return now,
                Effect::Read { id } => {
                    request = id.0;
                    effects.extend(machine.step(now, read(request, view, 1)));
                }
                _ => {}
            }
        }
        assert!(now < ms(10_000), "request {request}");
    }
}

#[test]
fn a_tick_comes_as_soon_as_something_is_due() {
    // An heir opens its slot.
    let pair = view(&[(1, ACTIVE), (2, ACTIVE)]);
    let heir = next(&pair, |view| view.remove(&[MemberId(1)].into()));
    let (mut waiting, _) = machine(2, &heir);
    assert_eq!(first(&mut waiting, |effect| matches!(effect, Effect::Open { .. }), &heir), ms(440));
    // An accused member is silent.
    let mut accused = view(&[(1, ACTIVE), (2, ACTIVE), (3, ACTIVE)]);
    accused.timing.lease = ms(370);
    let accused = next(&accused, |view| {
        let accusation = Accusation { version: 2, is_refuted: false };
        view.members.get_mut(&MemberId(2)).unwrap().accusations.insert(MemberId(1), accusation);
    });
    let writes = |effect: &Effect| matches!(effect, Effect::Write { .. });
    let (mut accuser, _) = machine(3, &accused);
    assert_eq!(first(&mut accuser, writes, &accused), ms(370));
    // A joining member is alone: after 950 ms of a clock that is slower by a tenth.
    let mut dead = view(&[(1, ACTIVE), (2, Status::Joining)]);
    dead.timing.outage = ms(950);
    let dead = next(&dead, |view| {
        let accusation = Accusation { version: 2, is_refuted: false };
        view.members.get_mut(&MemberId(1)).unwrap().accusations.insert(MemberId(2), accusation);
    });
    let (mut joining, _) = machine(2, &dead);
    joining.step(ms(0), Input::Gone(MemberId(1)));
    let removes = |effect: &Effect| matches!(effect, Effect::Write { view, .. } if view.members.len() == 1);
    assert_eq!(first(&mut joining, removes, &dead), ms(1045));
}

#[test]
fn an_heir_runs_a_slot_fenced_at_once_and_exclusively_after_the_wait() {
    let (mut world, [a, b]) = cluster::<2>(1);
    cut(&mut world, a, b);
    world.place(a).has_ledger = false;
    world.step(b, Input::Gone(a));
    world.run(20);
    // The store decides between the two.
    assert_eq!((world.runners(0), world.fenced(0)), (vec![(a, 1)], vec![(a, 1), (b, 2)]));
    world.run(350);
    assert_eq!((world.runners(0), world.fenced(0)), (vec![], vec![(b, 2)]));
    world.run(100);
    assert_eq!((world.runners(0), world.fenced(0)), (vec![(b, 2)], vec![(b, 2)]));
    // Both end with the lease.
    world.place(b).has_ledger = false;
    world.start();
    world.run(1_500);
    assert_eq!((world.runners(0), world.fenced(0)), (vec![], vec![]));
}

#[test]
fn an_heir_without_a_lease_owns_nothing_until_it_has_one() {
    let three = view(&[(1, ACTIVE), (2, ACTIVE), (3, ACTIVE)]);
    let (mut machine, _) = machine(2, &three);
    let heir = next(&three, |view| view.remove(&[MemberId(1)].into()));
    assert_eq!(heir.slots[0].holder, Holder::Inherited(MemberId(2)));
    let message = Message::View(Arc::new(heir.clone()));
    let effects = machine.step(ms(500), Input::Received { from: MemberId(3), message });
    assert!(!effects.contains(&Effect::Own { slot: 0, epoch: 2 }), "{effects:?}");
    assert_eq!(machine.runs_fenced(0, ms(500)), None);
    assert!(reads(&effects));
    let effects = machine.step(ms(520), read(2, &heir, 2));
    assert_eq!(effects.first(), Some(&Effect::Own { slot: 0, epoch: 2 }), "{effects:?}");
    assert_eq!((machine.runs_fenced(0, ms(520)), machine.runs(0, ms(520))), (Some(2), None));
    let opens = |effects: Vec<Effect>| effects.contains(&Effect::Open { slot: 0, epoch: 2 });
    // The wait began with the adoption.
    assert_eq!([939, 940].map(|time| opens(machine.step(ms(time), acknowledge(3, &heir, ms(time))))), [false, true]);
}

#[test]
fn a_member_with_other_settings_follows_those_of_the_cluster() {
    let (mut world, [a]) = cluster::<1>(1);
    // With its own settings the new member would open the slot at once.
    let short = Timing { renew: ms(1), lease: ms(2), wait: ms(3), outage: ms(0) };
    world.config = Config { timing: short, ..config(1) };
    let b = world.start();
    world.run(100);
    cut(&mut world, a, b);
    world.place(a).has_ledger = false;
    world.step(b, Input::Gone(a));
    world.run(200);
    assert_eq!((world.status(a), world.runners(0)), (None, vec![(a, 1)]));
    world.run(400);
    assert_eq!(world.runners(0), [(b, 2)]);
}

#[test]
fn a_leaving_member_removes_a_dead_one_that_cannot_take_its_slots() {
    let (mut world, [a, b]) = cluster::<2>(1);
    world.crash(b);
    world.step(a, Input::Leave);
    world.step(a, Input::Gone(b));
    world.run(200);
    assert_eq!((world.place(a).ended, world.status(a), world.status(b)), (Some(End::Left), None, None));
}

#[test]
fn the_third_member_inherits_a_slot_that_moves_between_two_dead_ones() {
    let [one, two, three] = [MemberId(1), MemberId(2), MemberId(3)];
    let moving = next(&view(&[(1, ACTIVE), (2, ACTIVE), (3, ACTIVE)]), |view| {
        view.slots[0].holder = Holder::Moving { from: one, to: two };
    });
    let third = next(&moving, |view| view.remove(&[one, two].into()));
    assert_eq!(third.slots, [Slot { epoch: 2, holder: Holder::Inherited(three) }]);
}

#[test]
fn slots_on_their_way_count_at_their_target() {
    let moving = next(&view(&[(1, ACTIVE), (2, ACTIVE)]), |view| {
        view.slots[0].holder = Holder::Moving { from: MemberId(1), to: MemberId(2) };
    });
    assert_eq!(moving.loads(), [(MemberId(1), 0), (MemberId(2), 1)].into());
}

#[test]
fn a_slot_of_another_member_does_not_run() {
    let pair = view(&[(1, ACTIVE), (2, ACTIVE)]);
    let (mut machine, _) = machine(1, &pair);
    assert_eq!(machine.runs(0, ms(1)), Some(1));
    // A correct owner closes the slot first.
    let other =
        next(&next(&pair, |_| {}), |view| view.slots[0] = Slot { epoch: 2, holder: Holder::Owned(MemberId(2)) });
    let message = Message::View(Arc::new(other));
    machine.step(ms(1), Input::Received { from: MemberId(2), message });
    assert_eq!(machine.runs(0, ms(1)), None);
}

#[test]
fn five_members_that_were_killed_are_back_within_five_seconds() {
    let mut world = World::new(config(8));
    world.config.timing = Timing { renew: ms(500), lease: ms(2000), wait: ms(2200), outage: ms(2000) };
    for _ in 0..5 {
        world.start();
        world.run(300);
    }
    let dead = world.live();
    dead.iter().for_each(|id| world.crash(*id));
    let new: Vec<MemberId> = dead.iter().map(|_| world.start()).collect();
    world.run(500);
    for (one, other) in new.iter().flat_map(|one| dead.iter().map(move |other| (*one, *other))) {
        world.step(one, Input::Suspect(other));
    }
    // The suspicion, the lease, the wait, and a few writes.
    world.run(4500);
    assert_eq!((world.live(), world.flaw()), (new, None));
}

#[test]
fn twenty_places_start_at_once() {
    let mut world = World::new(config(8));
    (0..20).for_each(|_| _ = world.start());
    world.run(1_500);
    assert_eq!((world.live().len(), world.flaw()), (20, None));
    // Six of them die, and each of the others notices.
    let live = world.live();
    let (dead, others) = live.split_at(6);
    dead.iter().for_each(|id| world.crash(*id));
    for (one, other) in others.iter().flat_map(|one| dead.iter().map(move |other| (*one, *other))) {
        world.step(one, Input::Suspect(other));
    }
    world.run(1000);
    assert_eq!(world.flaw(), None);
}
