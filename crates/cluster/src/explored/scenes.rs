//! Named cases: each shows a rule, and fails without it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::world::{Fate, MS, PROMPT, World, config};
use crate::{
    Config, ConfigError, Effect, End, Holder, Input, Member, MemberId, Membership, Message, Outcome, RequestId, Status,
    Stored, Time, Timing, View, ViewError,
};

/// Returns a world with this many active places, and their incarnations.
pub(super) fn cluster<const N: usize>(slots: u32) -> (World, [MemberId; N]) {
    let mut world = World::new(config(slots));
    let ids = [(); N].map(|()| {
        let id = world.start();
        world.run(300);
        assert_eq!(world.status(id), Some(Status::Active));
        id
    });
    (world, ids)
}

pub(super) fn cut(world: &mut World, one: MemberId, other: MemberId) {
    world.cuts.extend([(one, other), (other, one)]);
}

pub(super) fn ms(milliseconds: u64) -> Time {
    Duration::from_millis(milliseconds)
}

/// Returns the first view of a cluster with these members, the first of which owns the slot.
pub(super) fn view(members: &[(u64, Status)]) -> View {
    let mut view = View::first(1, config(1).timing, 1);
    for (id, status) in members {
        let member = Member { address: String::new(), status: *status, program: 1, accusations: BTreeMap::new() };
        view.members.insert(MemberId(*id), member);
    }
    view.take_free_slots(MemberId(members[0].0));
    view
}

pub(super) fn next(view: &View, change: impl FnOnce(&mut View)) -> View {
    let mut next = view.successor(view.fingerprint()).expect("it is not the last one");
    change(&mut next);
    next.check().expect("a view");
    next
}

/// Returns a machine that has read this view at time 0.
pub(super) fn machine(id: u64, view: &View) -> (Membership, Vec<Effect>) {
    let mut machine = Membership::new(MemberId(id), String::new(), 1, config(1)).expect("the settings are possible");
    assert_eq!(machine.step(ms(0), Input::Tick), [Effect::Read { id: RequestId(1) }]);
    let effects = machine.step(ms(0), read(1, view, 1));
    (machine, effects)
}

pub(super) fn read(id: u64, view: &View, revision: u64) -> Input {
    Input::Read { id: RequestId(id), result: Ok(Some(Stored { view: Arc::new(view.clone()), revision })) }
}

pub(super) fn acknowledge(from: u64, view: &View, at: Time) -> Input {
    let (version, fingerprint) = (view.version, view.fingerprint());
    let message = Message::Acknowledge { version, fingerprint, at, read_age: Some(ms(0)) };
    Input::Received { from: MemberId(from), message }
}

pub(super) fn written(effects: &[Effect]) -> Option<&View> {
    effects.iter().find_map(|effect| if let Effect::Write { view, .. } = effect { Some(&**view) } else { None })
}

pub(super) fn reads(effects: &[Effect]) -> bool {
    effects.iter().any(|effect| matches!(effect, Effect::Read { .. }))
}

pub(super) const ACTIVE: Status = Status::Active;

#[test]
fn a_lease_counts_from_before_the_read_or_the_ask() {
    let pair = view(&[(1, ACTIVE), (2, ACTIVE)]);
    let (mut machine, _) = machine(1, &pair);
    assert_eq!(machine.lease_end(), Some(ms(400)));
    assert!(reads(&machine.step(ms(100), Input::Tick)));
    machine.step(ms(190), read(2, &pair, 1));
    assert_eq!(machine.lease_end(), Some(ms(500)));
    machine.step(ms(200), acknowledge(2, &pair, ms(150)));
    assert_eq!(machine.lease_end(), Some(ms(550)));
    let (stranger, _) = self::machine(3, &pair);
    assert_eq!(stranger.lease_end(), None, "it does not live in the view");
}

#[test]
fn an_acknowledgement_of_another_version_an_unknown_member_or_a_time_to_come_does_not_count() {
    let pair = view(&[(1, ACTIVE), (2, ACTIVE)]);
    let (mut machine, _) = machine(1, &pair);
    let end = machine.lease_end();
    let other = next(&pair, |_| {});
    for input in [acknowledge(2, &other, ms(90)), acknowledge(3, &pair, ms(90)), acknowledge(2, &pair, ms(91))] {
        machine.step(ms(90), input);
        assert_eq!(machine.lease_end(), end);
    }
    machine.step(ms(90), acknowledge(2, &pair, ms(90)));
    assert_eq!(machine.lease_end(), Some(ms(490)));
    // Nor does the read of an unknown member extend the time without a ledger.
    machine.step(ms(1500), acknowledge(3, &pair, ms(1500)));
    let (version, fingerprint) = (pair.version, pair.fingerprint());
    let message = Message::Acknowledge { version, fingerprint, at: ms(1500), read_age: Some(ms(300)) };
    machine.step(ms(1500), Input::Received { from: MemberId(2), message });
    assert_eq!(machine.lease_end(), Some(ms(1900)));
    machine.step(ms(2400), acknowledge(3, &pair, ms(2400)));
    let message = Message::Acknowledge { version, fingerprint, at: ms(2400), read_age: Some(ms(1300)) };
    machine.step(ms(2400), Input::Received { from: MemberId(2), message });
    // 300 ms of another clock are at most 330 ms of this one: 1500 - 330 + outage + lease.
    assert_eq!(machine.lease_end(), Some(ms(2570)));
}

#[test]
fn a_member_that_has_adopted_a_removal_acknowledges_nothing_to_the_removed_one() {
    let pair = view(&[(1, ACTIVE), (2, ACTIVE)]);
    let alone = next(&pair, |view| view.remove(&[MemberId(1)].into()));
    let ask = Message::Ask { version: pair.version, fingerprint: pair.fingerprint(), at: ms(0) };
    let (mut machine, _) = machine(2, &alone);
    let effects = machine.step(ms(1), Input::Received { from: MemberId(1), message: ask.clone() });
    assert_eq!(effects, [Effect::Send { to: MemberId(1), message: Message::View(Arc::new(alone)) }]);
    // Not even if it lives in the newer view: that view may have members that it did not ask.
    let newer = next(&pair, |view| view.members.get_mut(&MemberId(2)).unwrap().program = 2);
    let (mut machine, _) = self::machine(2, &newer);
    let effects = machine.step(ms(1), Input::Received { from: MemberId(1), message: ask });
    assert_eq!(effects, [Effect::Send { to: MemberId(1), message: Message::View(Arc::new(newer)) }]);
}

#[test]
fn a_member_that_has_gone_on_alone_asks_a_joining_one_too() {
    let (mut world, [a]) = cluster::<1>(1);
    cut(&mut world, a, MemberId(2));
    let b = world.start();
    world.run(150);
    assert!(world.machine(a).and_then(Membership::view).is_some_and(|view| view.members.contains_key(&b)));
    world.place(a).has_ledger = false;
    world.run(500);
    assert_eq!(world.runners(0), [], "the joining member did not acknowledge");
}

#[test]
fn a_sole_member_closes_its_slots_before_it_leaves() {
    let (mut world, [a]) = cluster::<1>(2);
    world.place(a).closes = false;
    world.step(a, Input::Leave);
    world.run(500);
    assert_eq!(world.place(a).closing, [(0, 1), (1, 1)]);
    assert!(world.status(a).is_some() && world.place(a).ended.is_none());
    world.place(a).closes = true;
    world.run(100);
    assert_eq!((world.status(a), world.place(a).ended), (None, Some(End::Left)));
    let b = world.start();
    world.run(50);
    assert_eq!(world.runners(1), [(b, 2)], "closed slots need no wait");
}

#[test]
fn a_leaving_member_hands_its_slots_over_and_removes_nobody_else() {
    let (mut world, [a, b]) = cluster::<2>(3);
    world.step(a, Input::Leave);
    world.run(200);
    assert_eq!((world.place(a).ended, world.runners(2)), (Some(End::Left), vec![(b, 2)]));

    let pair = view(&[(2, ACTIVE), (1, ACTIVE)]);
    let (mut machine, _) = machine(1, &pair);
    machine.step(ms(1), Input::Leave);
    let mut other = Membership::new(MemberId(1), String::new(), 1, config(1)).unwrap();
    other.step(ms(0), Input::Gone(MemberId(2)));
    other.step(ms(0), Input::Leave);
    let effects = other.step(ms(0), read(1, &pair, 1));
    assert_eq!(written(&effects).unwrap().members.keys().collect::<Vec<_>>(), [&MemberId(2)]);
}

#[test]
fn a_joining_member_needs_new_acknowledgements_after_a_removal() {
    let pair = view(&[(1, ACTIVE), (2, ACTIVE)]);
    let (mut machine, effects) = machine(3, &pair);
    let joined = written(&effects).expect("it joins").clone();
    machine.step(ms(1), Input::Wrote { id: RequestId(2), outcome: Outcome::Written { revision: 2 } });
    machine.step(ms(2), acknowledge(1, &joined, ms(1)));
    let removed = next(&joined, |view| view.remove(&[MemberId(2)].into()));
    assert!(reads(&machine.step(ms(3), Input::Changed)));
    assert_eq!(written(&machine.step(ms(4), read(3, &removed, 3))), None, "1 has not acknowledged the removal");
    let effects = machine.step(ms(5), acknowledge(1, &removed, ms(4)));
    assert_eq!(written(&effects).unwrap().members[&MemberId(3)].status, ACTIVE);
}

#[test]
fn a_report_of_an_earlier_epoch_closes_nothing() {
    let (mut world, [a, b, c]) = cluster::<3>(1);
    world.place(a).closes = false;
    world.step(a, Input::HandOver { slot: 0, to: b });
    world.run(50);
    assert_eq!(world.place(a).closing, [(0, 1)]);
    world.crash(b);
    world.step(c, Input::Gone(b));
    world.run(50);
    assert_eq!(world.runners(0), [(a, 2)], "the owner goes on at a new epoch");
    world.closed(a, 0, 1);
    world.step(a, Input::HandOver { slot: 0, to: c });
    world.run(50);
    world.closed(a, 0, 1);
    world.run(50);
    assert_eq!(world.runners(0), [(a, 2)]);
    world.closed(a, 0, 2);
    world.run(50);
    assert_eq!(world.runners(0), [(c, 3)]);
}

#[test]
fn several_slots_move_in_two_writes() {
    let (mut world, [a, b]) = cluster::<2>(8);
    let writes = world.writes;
    world.fate = Box::new(|| Fate { effect: Some(10 * MS), result: Some(20 * MS), is_unknown: false });
    world.step(a, Input::Leave);
    world.run(200);
    assert_eq!((0..8).map(|slot| world.runners(slot)).collect::<Vec<_>>(), vec![vec![(b, 2)]; 8]);
    // The last write removes the member.
    assert_eq!(world.writes, writes + 3);
}

#[test]
fn the_heir_of_a_member_that_dies_while_it_hands_over_waits() {
    let (mut world, [a, b]) = cluster::<2>(1);
    world.place(a).closes = false;
    world.step(a, Input::HandOver { slot: 0, to: b });
    world.run(50);
    // The owner runs on, and nothing reaches it any more.
    cut(&mut world, a, b);
    world.place(a).has_ledger = false;
    world.step(b, Input::Suspect(a));
    world.run(350);
    assert_eq!(world.status(a), None);
    assert_eq!(world.runners(0), [(a, 1)]);
    world.run(200);
    assert_eq!(world.runners(0), [(b, 2)]);
}

#[test]
fn a_revision_is_taken_over_when_the_version_is_equal() {
    let pair = view(&[(1, ACTIVE), (2, ACTIVE)]);
    let (mut machine, _) = machine(1, &pair);
    let newer = next(&pair, |view| view.members.get_mut(&MemberId(2)).unwrap().program = 2);
    let message = Message::View(Arc::new(newer.clone()));
    assert!(reads(&machine.step(ms(1), Input::Received { from: MemberId(2), message })));
    machine.step(ms(2), read(2, &newer, 7));
    let effects = machine.step(ms(3), Input::Suspect(MemberId(2)));
    assert!(matches!(effects[..], [Effect::Write { expected: 7, .. }]), "{effects:?}");
}

#[test]
fn a_ledger_that_fails_is_not_asked_in_a_busy_loop() {
    let (mut world, [a, _]) = cluster::<2>(1);
    let failures = [Fate { is_unknown: true, ..PROMPT }, Fate { effect: None, ..PROMPT }];
    for fate in failures {
        world.fate = Box::new(move || fate);
        world.step(a, Input::Suspect(MemberId(2)));
        let before = world.reads + world.writes;
        world.run(1000);
        let requests = world.reads + world.writes - before;
        assert!((10..=90).contains(&requests), "{requests} requests of 2 places in a second");
    }
    // Conflicts: another write always comes first.
    let pair = view(&[(1, ACTIVE), (2, ACTIVE)]);
    let (mut machine, _) = machine(1, &pair);
    assert!(written(&machine.step(ms(1), Input::Suspect(MemberId(2)))).is_some());
    let conflict = |id| Input::Wrote { id: RequestId(id), outcome: Outcome::Conflict };
    assert!(reads(&machine.step(ms(2), conflict(2))), "the first conflict brings the view of another member");
    assert!(written(&machine.step(ms(2), read(3, &pair, 2))).is_some());
    assert_eq!(machine.step(ms(2), conflict(4)), []);
    assert_eq!(machine.next_tick(), Some(ms(27)));
    assert!(reads(&machine.step(ms(27), Input::Tick)));
    // A write that succeeds begins anew.
    assert!(written(&machine.step(ms(27), read(5, &pair, 2))).is_some());
    let effects = machine.step(ms(27), Input::Wrote { id: RequestId(6), outcome: Outcome::Written { revision: 3 } });
    assert!(written(&effects).is_some_and(|view| view.members.len() == 1), "the accused member is outvoted");
    assert!(reads(&machine.step(ms(28), conflict(7))));
}

#[test]
fn a_write_that_took_effect_unseen_is_found_and_not_repeated() {
    let (mut world, [a, b]) = cluster::<2>(1);
    world.fate = Box::new(|| Fate { is_unknown: true, ..PROMPT });
    world.step(a, Input::HandOver { slot: 0, to: b });
    world.pass(5 * MS);
    world.fate = Box::new(|| PROMPT);
    world.run(200);
    assert_eq!(world.runners(0), [(b, 2)]);
}

#[test]
fn an_older_ledger_freezes_changes_and_another_lineage_too() {
    let (mut world, [a, b]) = cluster::<2>(1);
    let newest = world.stored.replace(world.history[0].clone());
    let writes = world.writes;
    world.step(a, Input::Suspect(b));
    world.run(600);
    assert_eq!((world.place(a).frozen, world.place(b).frozen), (1, 1));
    assert!(world.writes <= writes + 1, "the write before the first read may fail");
    assert_eq!(world.runners(0), [(a, 1)], "acknowledgements go on");
    world.run(1500);
    assert_eq!(world.runners(0), [], "the ledger was away for longer than `outage`");
    world.stored = newest;
    world.run(200);
    assert_eq!(world.runners(0), [(a, 1)]);

    // A higher version of another lineage, and an empty ledger.
    let pair = view(&[(1, ACTIVE), (2, ACTIVE)]);
    let (own, other) = (next(&pair, |_| {}), next(&next(&pair, |view| view.slots[0].epoch += 1), |_| {}));
    for stored in [Some(Stored { view: Arc::new(other), revision: 9 }), None] {
        let (mut machine, _) = machine(1, &own);
        machine.step(ms(100), Input::Tick);
        assert_eq!(machine.step(ms(101), Input::Read { id: RequestId(2), result: Ok(stored) }), [Effect::Frozen]);
        assert_eq!(machine.lease_end(), Some(ms(400)));
        assert_eq!(written(&machine.step(ms(102), Input::Suspect(MemberId(2)))), None);
        let effects = machine.step(ms(130), Input::Tick);
        assert!(reads(&effects) && written(&effects).is_none(), "{effects:?}");
    }
}

#[test]
fn a_read_that_began_before_a_newer_view_came_is_no_rollback() {
    let pair = view(&[(1, ACTIVE), (2, ACTIVE)]);
    let (mut machine, _) = machine(1, &pair);
    assert!(reads(&machine.step(ms(1), Input::Changed)));
    let newer = Message::View(Arc::new(next(&pair, |_| {})));
    machine.step(ms(2), Input::Received { from: MemberId(2), message: newer });
    let effects = machine.step(ms(3), read(2, &pair, 1));
    assert!(!effects.contains(&Effect::Frozen) && reads(&effects), "{effects:?}");
    assert_eq!(machine.view().unwrap().version, 2);
}

#[test]
fn a_member_far_behind_ends() {
    let mut far = view(&[(1, ACTIVE), (2, ACTIVE)]);
    let (mut machine, _) = machine(1, &far);
    for _ in 0..65 {
        far = next(&far, |_| {});
    }
    machine.step(ms(100), Input::Tick);
    assert_eq!(machine.step(ms(101), read(2, &far, 66)), [Effect::Ended(End::Behind)]);
    assert_eq!((machine.lease_end(), machine.next_tick()), (None, None));
}

#[test]
fn a_change_during_a_read_causes_another_read() {
    let alone = view(&[(1, ACTIVE)]);
    let (mut machine, _) = machine(1, &alone);
    assert!(reads(&machine.step(ms(1), Input::Changed)));
    assert!(!reads(&machine.step(ms(2), Input::Changed)));
    assert!(reads(&machine.step(ms(3), read(2, &alone, 1))));
}

#[test]
fn results_that_hang_longer_than_any_wait_change_nothing_and_block_nothing() {
    let (mut world, [a, b]) = cluster::<2>(1);
    world.fate = Box::new(|| Fate { effect: Some(2000 * MS), result: Some(2000 * MS), is_unknown: false });
    world.step(a, Input::HandOver { slot: 0, to: b });
    world.pass(5 * MS);
    world.fate = Box::new(|| PROMPT);
    world.run(300);
    assert_eq!(world.runners(0), [(b, 2)]);
    world.run(2500);
    assert_eq!(world.runners(0), [(b, 2)]);
}

#[test]
fn the_last_version_has_no_successor_and_breaks_nothing() {
    let mut last = view(&[(1, ACTIVE), (2, ACTIVE)]);
    last.version = u64::MAX;
    last.ancestors = vec![0; 64];
    last.check().unwrap();
    let (mut machine, _) = machine(1, &last);
    assert_eq!(written(&machine.step(ms(1), Input::Suspect(MemberId(2)))), None);
    let ask = Message::Ask { version: u64::MAX, fingerprint: 0, at: Duration::MAX };
    assert_eq!(machine.step(ms(2), Input::Received { from: MemberId(2), message: ask }), []);
    machine.step(Duration::MAX, Input::Tick);
    assert!(machine.next_tick().is_some());
    last.timing.outage = Duration::MAX;
    let mut patient = Membership::new(MemberId(2), String::new(), 1, config(1)).unwrap();
    patient.step(ms(0), Input::Tick);
    patient.step(ms(0), read(1, &last, 1));
    patient.step(ms(1), acknowledge(1, &last, ms(0)));
    assert_eq!(patient.lease_end(), Some(ms(400)));
}

#[test]
fn an_earlier_time_counts_as_the_latest_one() {
    let alone = view(&[(1, ACTIVE)]);
    let (mut machine, _) = machine(1, &alone);
    machine.step(ms(100), Input::Tick);
    assert_eq!(machine.step(ms(50), Input::Tick), []);
    assert_eq!(machine.next_tick(), Some(ms(200)));
}

#[test]
fn one_direction_that_stays_cut_causes_no_storm() {
    let (mut world, [a, b, _]) = cluster::<3>(1);
    world.cuts.insert((b, a));
    world.step(a, Input::Suspect(b));
    let writes = world.writes;
    world.run(10_000);
    let writes = world.writes - writes;
    assert_eq!(world.status(b), Some(ACTIVE));
    assert!((4..=8).contains(&writes), "{writes} writes in 10 s");
}

#[test]
fn a_member_that_dies_after_its_answer_is_still_found() {
    let (mut world, [a, b, c]) = cluster::<3>(1);
    world.step(c, Input::Suspect(a));
    world.run(100);
    assert!(world.stored.as_ref().unwrap().0.members[&a].accusations[&c].is_refuted);
    world.crash(a);
    world.run(6_000);
    assert_eq!((world.status(a), world.runners(0).len()), (None, 1));
    assert_eq!(world.status(b), Some(ACTIVE));
}

#[test]
fn a_retracted_accusation_is_no_refutation() {
    let (mut world, [a, b, _]) = cluster::<3>(1);
    world.place(b).has_ledger = false;
    let accused = |world: &World| !world.stored.as_ref().unwrap().0.members[&b].accusations.is_empty();
    for input in [Input::Suspect(b), Input::Trust(b), Input::Suspect(b)] {
        world.step(a, input.clone());
        world.run(50);
        assert_eq!(accused(&world), input == Input::Suspect(b));
    }
}

#[test]
fn a_suspicion_that_is_younger_than_the_refutation_accuses_at_once() {
    let refuted = next(&view(&[(1, ACTIVE), (2, ACTIVE), (3, ACTIVE)]), |view| {
        let accusation = crate::Accusation { version: 2, is_refuted: true };
        view.members.get_mut(&MemberId(2)).unwrap().accusations.insert(MemberId(1), accusation);
    });
    let (mut machine, effects) = machine(1, &refuted);
    assert!(written(&effects).is_some_and(|view| view.members[&MemberId(2)].accusations.is_empty()));
    machine.step(ms(1), Input::Suspect(MemberId(2)));
    machine.step(ms(2), Input::Wrote { id: RequestId(2), outcome: Outcome::Unknown });
    machine.step(ms(30), Input::Tick);
    let effects = machine.step(ms(31), read(3, &refuted, 1));
    assert!(!written(&effects).expect("an accusation").members[&MemberId(2)].accusations[&MemberId(1)].is_refuted);
}

#[test]
fn a_suspicion_of_a_member_to_come_is_remembered() {
    let (mut world, [a, b]) = cluster::<2>(1);
    world.step(a, Input::Suspect(MemberId(3)));
    world.step(a, Input::HandOver { slot: 0, to: b });
    world.run(50);
    assert_eq!(world.runners(0), [(b, 2)]);
    let c = world.start();
    world.run(20);
    world.crash(c);
    world.run(1000);
    assert_eq!(world.status(c), None);
}

#[test]
fn a_hand_over_that_is_not_possible_is_refused() {
    let (mut world, [a, b]) = cluster::<2>(1);
    for (place, slot, to) in [(b, 0, a), (a, 0, a), (a, 0, MemberId(9)), (a, 7, b)] {
        world.step(place, Input::HandOver { slot, to });
        assert_eq!(world.place(place).refused.pop(), Some((slot, to)));
    }
    let mut fresh = Membership::new(MemberId(9), String::new(), 1, config(1)).unwrap();
    fresh.step(ms(0), Input::HandOver { slot: 0, to: a });
    let effects = fresh.step(ms(0), read(1, &view(&[(1, ACTIVE)]), 1));
    assert!(effects.contains(&Effect::Refused { slot: 0, to: a }));
    // The target is still joining.
    cut(&mut world, b, MemberId(3));
    let c = world.start();
    world.run(100);
    assert_eq!(world.status(c), Some(Status::Joining));
    world.step(a, Input::HandOver { slot: 0, to: c });
    assert_eq!(world.place(a).refused.pop(), Some((0, c)));
    // The target dies before the write.
    world.fate = Box::new(|| Fate { effect: None, ..PROMPT });
    world.step(a, Input::HandOver { slot: 0, to: b });
    world.fate = Box::new(|| PROMPT);
    world.step(a, Input::Gone(b));
    world.run(300);
    assert_eq!(world.place(a).refused.pop(), Some((0, b)));
}

#[test]
fn settings_are_checked() {
    let new = |config| Membership::new(MemberId(1), String::new(), 1, config);
    let timing = config(1).timing;
    let swapped = Timing { lease: ms(440), wait: ms(400), ..timing };
    let new_timing = |timing| new(Config { timing, ..config(1) });
    let text = "renew 100ms, lease 440ms, wait 400ms: 0 < renew < lease < wait must hold";
    assert_eq!(new_timing(swapped).unwrap_err().to_string(), text);
    for broken in [Timing { renew: ms(0), ..timing }, Timing { renew: ms(400), ..timing }] {
        assert!(matches!(new_timing(broken), Err(ConfigError::Order(_))));
    }
    assert_eq!(new(config(0)), Err(ConfigError::Slots { found: 0 }));
    assert_eq!(new(config(70_000)).unwrap_err().to_string(), "70000 slots: from 1 to 65536 are possible");
}

#[test]
fn a_cold_start_beside_dead_members_ends() {
    for dead in 1..=2 {
        let (mut world, [a]) = cluster::<1>(2);
        if dead == 2 {
            world.start();
            world.run(300);
        }
        for id in world.live() {
            world.crash(id);
        }
        let b = world.start();
        world.run(50);
        world.step(b, Input::Suspect(a));
        world.step(b, Input::Suspect(MemberId(2)));
        world.run(2_500);
        assert_eq!(world.runners(0).first().map(|(id, _)| *id), Some(b));
        assert_eq!(world.flaw(), None);
    }
}

#[test]
fn a_pair_without_a_ledger_pauses_before_a_joining_member_takes_over() {
    // The clocks of the pair are as slow as they may be beside that of the joining member.
    let mut world = World::new(config(1));
    let [a, b] = [(); 2].map(|()| {
        let id = world.start_with(0, 954);
        world.run(300);
        id
    });
    assert_eq!(world.flaw(), None);
    // The last read is recent.
    world.step(a, Input::Changed);
    world.run(5);
    for id in [a, b] {
        world.place(id).has_ledger = false;
    }
    let c = MemberId(3);
    cut(&mut world, a, c);
    cut(&mut world, b, c);
    world.start_with(0, 1046);
    world.run(10);
    world.step(c, Input::Gone(a));
    world.step(c, Input::Gone(b));
    world.run(900);
    assert_eq!(
        world.runners(0),
        [(a, 1)],
        "an outage of the ledger stops no actor for {:?}",
        world.config.timing.outage
    );
    world.run(1500);
    assert_eq!(world.runners(0), [(c, 2)]);
}

#[test]
fn joining_accusers_have_no_vote() {
    let (mut world, [a, b]) = cluster::<2>(1);
    world.place(b).has_ledger = false;
    // The links of the joining ones are cut, and they stay so.
    let joining = [MemberId(3), MemberId(4)];
    for id in joining {
        cut(&mut world, a, id);
        cut(&mut world, b, id);
        world.start();
        world.run(100);
        world.step(id, Input::Suspect(b));
    }
    world.run(100);
    let accused = |world: &World| world.stored.as_ref().unwrap().0.members.get(&b).map(|b| b.accusations.len());
    assert_eq!(accused(&world), Some(2));
    world.run(500);
    assert_eq!(accused(&world), None, "it has not answered for as long as a lease");
}

#[test]
fn a_joining_member_on_the_wrong_network_removes_nobody() {
    let (mut world, [a, b, _c]) = cluster::<3>(1);
    let joining = world.start();
    for id in [a, b] {
        cut(&mut world, id, joining);
        world.step(joining, Input::Gone(id));
    }
    // Longer than an outage.
    let members = |world: &World| [a, b].map(|id| world.status(id));
    for _ in 0..40 {
        world.run(100);
        assert_eq!(
            members(&world),
            [Some(ACTIVE); 2],
            "they answer the accusations of the one that does not reach them"
        );
    }
}

#[test]
fn two_joining_members_that_do_not_reach_each_other_do_not_join_for_ever() {
    let (mut world, [a]) = cluster::<1>(1);
    world.crash(a);
    let [b, c] = [(); 2].map(|()| world.start());
    cut(&mut world, b, c);
    for (id, other) in [(b, c), (c, b)] {
        world.step(id, Input::Suspect(a));
        world.step(id, Input::Suspect(other));
    }
    world.run(5000);
    assert_eq!(world.runners(0).len(), 1, "one of them removes the other, because no member has joined");
}

#[test]
fn half_of_the_voters_are_enough() {
    let (mut world, [a, b, c, d]) = cluster::<4>(1);
    world.crash(a);
    world.step(b, Input::Suspect(a));
    world.run(100);
    assert_eq!(world.status(a), Some(ACTIVE));
    world.step(c, Input::Suspect(a));
    world.run(100);
    assert_eq!((world.status(a), world.status(d)), (None, Some(ACTIVE)));
}

#[test]
fn the_heir_of_a_member_that_is_gone_waits_too() {
    let (mut world, [a, b]) = cluster::<2>(1);
    // A refused connection, although the member runs.
    cut(&mut world, a, b);
    world.place(a).has_ledger = false;
    world.step(b, Input::Gone(a));
    world.run(300);
    assert_eq!((world.status(a), world.runners(0)), (None, vec![(a, 1)]));
    world.run(300);
    assert_eq!(world.runners(0), [(b, 2)]);
}

#[test]
fn a_member_without_a_lease_opens_nothing() {
    let pair = view(&[(1, ACTIVE), (2, ACTIVE)]);
    let (mut machine, _) = machine(2, &pair);
    let alone = Message::View(Arc::new(next(&pair, |view| view.remove(&[MemberId(1)].into()))));
    machine.step(ms(1), Input::Received { from: MemberId(1), message: alone });
    let effects = machine.step(ms(2000), Input::Tick);
    assert!(!effects.iter().any(|effect| matches!(effect, Effect::Open { .. })), "{effects:?}");
}

#[test]
fn a_quiet_cluster_writes_nothing() {
    let (mut world, _) = cluster::<4>(8);
    let writes = world.writes;
    world.run(5_000);
    assert_eq!(world.writes, writes);
}

#[test]
fn bytes_are_short_and_bad_ones_are_refused() {
    let mut large = View::first(7, config(1).timing, 4096);
    for id in 0..8 {
        let member =
            Member { address: "10.0.0.1:7000".into(), status: ACTIVE, program: 1, accusations: BTreeMap::new() };
        large.members.insert(MemberId(u64::MAX - id), member);
    }
    large.take_free_slots(MemberId(u64::MAX));
    let bytes = large.encode();
    assert!(bytes.len() < 20_000, "{} bytes", bytes.len());
    assert_eq!(View::decode(&bytes), Ok(large));

    let pair = view(&[(1, ACTIVE), (2, ACTIVE)]);
    let bytes = pair.encode();
    for end in 0..bytes.len() {
        View::decode(&bytes[..end]).unwrap_err();
        for flip in 1..=255 {
            let mut other = bytes.clone();
            other[end] ^= flip;
            if let Ok(view) = View::decode(&other) {
                view.check().expect("what is read keeps the rules");
            }
        }
    }
    assert_eq!(View::decode(&[]).unwrap_err().to_string(), "a view of 0 bytes: it begins with its format, 1");
    assert_eq!(View::decode(&[9]).unwrap_err(), ViewError::Format { found: Some(9) });
    type Change = fn(&mut View);
    let changes: [(&str, Change); 10] = [
        ("must hold", |view| view.timing.wait = view.timing.lease),
        ("version 0", |view| view.version = 0),
        ("1 ancestors", |view| view.ancestors.push(0)),
        ("0 slots", |view| view.slots.clear()),
        ("above the version", |view| view.slots[0].epoch = 2),
        ("no epoch", |view| view.slots[0].epoch = 0),
        ("has not been active", |view| view.slots[0].holder = Holder::Owned(MemberId(9))),
        ("it moves to", |view| view.slots[0].holder = Holder::Moving { from: MemberId(1), to: MemberId(1) }),
        ("must be another member", |view| {
            let accusation = crate::Accusation { version: 1, is_refuted: false };
            view.members.get_mut(&MemberId(1)).unwrap().accusations.insert(MemberId(1), accusation);
        }),
        ("a later version", |view| {
            let accusation = crate::Accusation { version: 2, is_refuted: false };
            view.members.get_mut(&MemberId(1)).unwrap().accusations.insert(MemberId(2), accusation);
        }),
    ];
    for (rule, change) in changes {
        let mut broken = pair.clone();
        change(&mut broken);
        let error = broken.check().unwrap_err().to_string();
        assert!(error.contains(rule), "{error}");
    }
}
