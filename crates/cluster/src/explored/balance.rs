//! Hand-overs that level the loads.

use std::collections::BTreeSet;

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use super::scenes::{ACTIVE, cluster, machine, ms, next, read, view, written};
use super::world::{World, config};
use crate::{Accusation, Holder, Input, MemberId, Outcome, RequestId, Slot, Status, View};

/// Returns a view in which these members own these numbers of slots.
fn loaded(loads: &[usize]) -> View {
    let members: Vec<(u64, Status)> = (1..).zip(loads).map(|(id, _)| (id, ACTIVE)).collect();
    let mut view = view(&members);
    let owners = (1..).zip(loads).flat_map(|(id, load)| std::iter::repeat_n(MemberId(id), *load));
    view.slots = owners.map(|owner| Slot { epoch: 1, holder: Holder::Owned(owner) }).collect();
    view.check().expect("a view");
    view
}

/// Returns the targets of the slots that move in the first write of this member.
fn moves(id: u64, view: &View) -> Vec<MemberId> {
    let effects = machine(id, view).1;
    let slots = written(&effects).map_or(&[][..], |view| &view.slots);
    let target = |slot: &Slot| if let Holder::Moving { to, .. } = slot.holder { Some(to) } else { None };
    slots.iter().filter_map(target).collect()
}

#[test]
fn members_that_join_get_their_shares_and_then_nobody_writes() {
    let (mut world, ids) = cluster::<5>(22);
    world.run(1_000);
    let loads = world.stored.as_ref().unwrap().0.loads();
    let mut loads: Vec<usize> = ids.iter().map(|id| loads[id]).collect();
    loads.sort_unstable();
    assert_eq!((loads, world.flaw()), (vec![4, 4, 4, 5, 5], None));
    let writes = world.writes;
    world.run(5_000);
    assert_eq!(world.writes, writes);
}

#[test]
fn a_sixteenth_of_the_slots_moves_at_a_time_in_one_write() {
    let (mut world, [a, b]) = cluster::<2>(64);
    world.run(500);
    let loads = world.stored.as_ref().unwrap().0.loads();
    assert_eq!((loads[&a], loads[&b]), (32, 32));
    let moving = |view: &View| view.slots.iter().filter(|slot| matches!(slot.holder, Holder::Moving { .. })).count();
    let counts: Vec<usize> = world.history.iter().map(|(view, _)| moving(view)).collect();
    // The first view, the row of the joining member, its activation, 8 rounds that each finish the one before, and the end.
    assert_eq!(counts, [vec![0; 3], vec![4; 8], vec![0]].concat());
}

#[test]
fn slots_that_do_not_close_hold_up_those_that_would_follow() {
    let (mut world, [a]) = cluster::<1>(64);
    world.place(a).closes = false;
    world.start();
    world.run(500);
    let (slot, epoch) = world.place(a).closing[0];
    assert_eq!(world.place(a).closing.len(), 4);
    world.closed(a, slot, epoch);
    world.run(100);
    assert_eq!(world.place(a).closing.len(), 5, "another one takes its place");
}

#[test]
fn an_uneven_view_is_levelled_unless_it_will_change() {
    let uneven = loaded(&[40, 8, 0]);
    assert_eq!(moves(1, &uneven), [MemberId(3); 3]);
    assert_eq!(moves(2, &uneven), []);
    let changes: [fn(&mut View); 5] = [
        |view| view.members.get_mut(&MemberId(3)).unwrap().status = Status::Joining,
        |view| view.members.get_mut(&MemberId(3)).unwrap().status = Status::Leaving,
        |view| view.members.get_mut(&MemberId(3)).unwrap().program = 2,
        |view| {
            let accusation = Accusation { version: 1, is_refuted: true };
            view.members.get_mut(&MemberId(3)).unwrap().accusations.insert(MemberId(2), accusation);
        },
        // The budget is used up.
        |view| (0..3).for_each(|slot| view.slots[slot].holder = Holder::Moving { from: MemberId(1), to: MemberId(3) }),
    ];
    for change in changes {
        let changed = next(&uneven, change);
        let before = changed.slots.iter().filter(|slot| matches!(slot.holder, Holder::Moving { .. })).count();
        assert!([0, before].contains(&moves(1, &changed).len()), "{:?}", changed.members);
    }
    // A suspicion that is not written yet is written alone.
    let (mut suspicious, _) = machine(1, &uneven);
    suspicious.step(ms(1), Input::Suspect(MemberId(2)));
    suspicious.step(ms(2), Input::Wrote { id: RequestId(2), outcome: Outcome::Conflict });
    let other = next(&uneven, |_| {});
    let effects = suspicious.step(ms(3), read(3, &other, 2));
    let view = written(&effects).expect("the accusation");
    assert!(view.members[&MemberId(2)].accusations.contains_key(&MemberId(1)));
    assert_eq!(view.slots, other.slots);
}

#[test]
fn few_moves_level_all_loads() {
    let mut dice = SmallRng::seed_from_u64(7);
    for _ in 0..200 {
        let mut loads: Vec<usize> = (0..dice.random_range(1..7)).map(|_| dice.random_range(0..12)).collect();
        loads[0] += 1;
        let mut view = loaded(&loads);
        let (slots, members) = (view.slots.len(), loads.len());
        let mut sorted = loads.clone();
        sorted.sort_unstable_by(|one, other| other.cmp(one));
        let level = |place: usize| slots / members + usize::from(place < slots % members);
        let shortest: usize = sorted.iter().enumerate().map(|(place, load)| load.saturating_sub(level(place))).sum();
        let squares = |view: &View| view.loads().values().map(|load| load * load).sum::<usize>();
        let mut moved = 0;
        // The owners write in any order.
        let mut idle = BTreeSet::new();
        while idle.len() < members {
            let id = dice.random_range(1..=members as u64);
            let targets = moves(id, &view);
            let before = squares(&view);
            if targets.is_empty() {
                idle.insert(id);
                continue;
            }
            idle.clear();
            moved += targets.len();
            view = written(&machine(id, &view).1).unwrap().clone();
            assert!(squares(&view) < before);
            // The slots close, and their targets own them.
            view = next(&view, |view| {
                for slot in &mut view.slots {
                    if let Holder::Moving { to, .. } = slot.holder {
                        *slot = Slot { epoch: slot.epoch + 1, holder: Holder::Owned(to) };
                    }
                }
            });
        }
        let loads = view.loads();
        assert!(loads.values().max().unwrap() - loads.values().min().unwrap() <= 1, "{loads:?}");
        assert_eq!(moved, shortest, "{sorted:?}");
    }
}

#[test]
fn another_slot_comes_back_for_one_that_the_program_hands_over() {
    let (mut world, [a, b]) = cluster::<2>(8);
    world.run(500);
    assert_eq!(world.runners(0), [(b, 2)]);
    world.step(b, Input::HandOver { slot: 0, to: a });
    world.run(500);
    assert_eq!(world.runners(0), [(a, 3)]);
    assert_eq!(world.flaw(), None);
}

#[test]
fn a_leaving_member_prefers_programs_that_are_not_older() {
    let mut three = loaded(&[6, 0, 0]);
    let program = |view: &mut View, id, program| view.members.get_mut(&MemberId(id)).unwrap().program = program;
    program(&mut three, 1, 2);
    program(&mut three, 2, 2);
    let leave = |view: &View| {
        let (mut machine, _) = machine(1, view);
        let effects = machine.step(ms(1), Input::Leave);
        written(&effects).unwrap().loads()
    };
    assert_eq!(leave(&three), [(MemberId(2), 6), (MemberId(3), 0)].into());
    program(&mut three, 2, 1);
    assert_eq!(leave(&three), [(MemberId(2), 3), (MemberId(3), 3)].into());
    program(&mut three, 2, 3);
    program(&mut three, 3, 2);
    assert_eq!(leave(&three), [(MemberId(2), 3), (MemberId(3), 3)].into());
}

#[test]
fn a_member_that_joins_twenty_others_gets_its_share_soon() {
    let mut world = World::new(config(84));
    (0..20).for_each(|_| _ = world.start());
    world.run(3_000);
    assert_eq!(world.flaw(), None);
    let (writes, views) = (world.writes, world.history.len());
    world.start();
    world.run(1_500);
    assert_eq!(world.flaw(), None);
    println!("{} writes, {} views", world.writes - writes, world.history.len() - views);
}
