//! Random walks: many places, and everything that can go wrong.

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use super::world::{Fate, MS, PROMPT, World, config};
use crate::{Input, MemberId, View};

/// Milliseconds of true time in which faults happen.
const FAULTY: u64 = 8_000;
const QUANTUM: u64 = 10;
/// Milliseconds after the last fault until everything runs: the wait of a joining place, the repetition of an accusation, and
/// some rounds.
const HEALED: u64 = 9_000;

/// The faults of a walk. Each walk has its own mix.
struct Faults {
    losses: f64,
    delays: u64,
    ledger: f64,
    crashes: f64,
    pauses: f64,
    cuts: f64,
    lies: f64,
    restores: bool,
    leaves: f64,
    /// How often the ledger is away, for each place.
    outages: f64,
}

impl Faults {
    fn draw(dice: &mut SmallRng) -> Faults {
        let mut one_of = |of: &[f64]| of[dice.random_range(0..of.len())];
        Faults {
            losses: one_of(&[0.0, 0.05, 0.3]),
            delays: one_of(&[5.0, 60.0, 700.0]) as u64,
            ledger: one_of(&[0.0, 0.1, 0.5]),
            crashes: one_of(&[0.0, 0.002, 0.006]),
            pauses: one_of(&[0.0, 0.003, 0.01]),
            cuts: one_of(&[0.0, 0.005, 0.02]),
            lies: one_of(&[0.0, 0.002, 0.02]),
            restores: one_of(&[0.0, 0.0, 1.0]) > 0.0,
            leaves: one_of(&[0.0, 0.0005, 0.01]),
            outages: one_of(&[0.0, 0.003, 0.01]),
        }
    }
}

fn start(world: &mut World, dice: &mut SmallRng) -> MemberId {
    let id = world.start_with(dice.random_range(0..50) * 1000 * MS, dice.random_range(955..=1045));
    world.place(id).has_ledger = true;
    id
}

/// Runs a walk, and returns how often the ledger was written.
fn walk(seed: u64, is_told: bool) -> usize {
    let mut dice = SmallRng::seed_from_u64(seed);
    let faults = Faults::draw(&mut dice);
    let shared = Rc::new(RefCell::new((SmallRng::seed_from_u64(!seed), true)));
    let mut world = World::new(config(dice.random_range(1..=4)));
    world.is_told = is_told;
    world.name = format!("walk {seed}");
    world.programs = [1, 1, 1, 2][dice.random_range(0..4)];
    let (losses, delays, ledger) = (faults.losses, faults.delays, faults.ledger);
    let drawn = Rc::clone(&shared);
    world.latency = Box::new(move || {
        let (dice, is_faulty) = &mut *drawn.borrow_mut();
        if !*is_faulty {
            return Some(MS);
        }
        (!dice.random_bool(losses)).then(|| dice.random_range(0..=delays) * MS)
    });
    let drawn = Rc::clone(&shared);
    world.fate = Box::new(move || {
        let (dice, is_faulty) = &mut *drawn.borrow_mut();
        if !*is_faulty || !dice.random_bool(ledger) {
            return PROMPT;
        }
        // Some hang longer than any wait, and have their effect then.
        let mut delay = |often: f64| match dice.random_range(0..4) {
            0 => Some(dice.random_range(0..20) * MS),
            1 => Some(dice.random_range(0..200) * MS),
            2 => Some(dice.random_range(0..2000) * MS),
            _ if dice.random_bool(often) => None,
            _ => Some(0),
        };
        let (effect, more) = (delay(0.5), delay(0.5));
        let is_unknown = dice.random_bool(0.3);
        // A result that says nothing may come before the effect.
        let result = if is_unknown { more } else { effect.zip(more).map(|(effect, more)| effect + more) };
        Fate { effect, result, is_unknown }
    });

    let places = dice.random_range(2..=6);
    for _ in 0..places {
        start(&mut world, &mut dice);
        if dice.random_bool(0.5) {
            world.run(dice.random_range(0..600));
        }
    }
    let mut newest = None;
    let (mut flaw_at, end) = (None, FAULTY + HEALED);
    for at in (0..end).step_by(QUANTUM as usize) {
        let is_faulty = at < FAULTY;
        if is_faulty {
            disturb(&mut world, &faults, &mut dice, places, &mut newest);
        } else if shared.borrow().1 {
            heal(&mut world, &mut dice, &mut newest);
            shared.borrow_mut().1 = false;
        }
        detect(&mut world, if is_faulty { faults.lies } else { 0.0 }, &mut dice);
        restart(&mut world, is_faulty, &mut dice);
        world.pass(QUANTUM * MS);
        if !is_faulty {
            let flaw = world.flaw();
            if flaw.is_none() && at > FAULTY + 2_000 {
                rest(&mut world);
                return world.writes;
            }
            flaw_at = flaw;
        }
    }
    panic!("{flaw_at:?} after {HEALED} ms\n{}", world.story());
}

/// Lets more time pass than a write needs, and checks that a cluster at rest changes nothing.
fn rest(world: &mut World) {
    let views = world.history.len();
    world.run(1_000);
    assert_eq!((world.flaw(), world.history.len()), (None, views), "{}", world.story());
}

/// The state that was in the ledger before an older one was restored.
type Newest = Option<(Arc<View>, u64)>;

fn disturb(world: &mut World, faults: &Faults, dice: &mut SmallRng, places: usize, newest: &mut Newest) {
    let live = world.live();
    world.has_hints = dice.random_bool(0.7);
    for &id in &live {
        let other = live[dice.random_range(0..live.len())];
        if dice.random_bool(faults.crashes) {
            world.crash(id);
        } else if dice.random_bool(faults.pauses) {
            world.place(id).paused_until = world.now + dice.random_range(0..1500) * MS;
        } else if dice.random_bool(faults.cuts) {
            world.cuts.insert((id, other));
            if dice.random_bool(0.5) {
                world.cuts.insert((other, id));
            }
        } else if dice.random_bool(faults.outages) {
            let has_ledger = dice.random_bool(0.4);
            world.place(id).has_ledger = has_ledger;
            // The whole cluster, sometimes.
            for &id in live.iter().filter(|_| dice.random_bool(0.3)) {
                world.place(id).has_ledger = has_ledger;
            }
        } else if dice.random_bool(0.01) {
            world.step(id, Input::HandOver { slot: dice.random_range(0..world.slots()), to: other });
        } else if dice.random_bool(faults.leaves) {
            world.place(id).leaves = true;
            world.step(id, Input::Leave);
        }
        world.place(id).closes = dice.random_bool(0.8);
        // An old packet comes again.
        if faults.delays > 5 && dice.random_bool(0.02) && !world.packets.is_empty() {
            let mut packet = world.packets[dice.random_range(0..world.packets.len())].clone();
            packet.at = world.now + dice.random_range(0..3000) * MS;
            world.packets.push_back(packet);
        }
    }
    if dice.random_bool(faults.cuts) {
        world.cuts.clear();
    }
    if live.len() < places + 2 && dice.random_bool(0.004 + faults.crashes) {
        start(world, dice);
    }
    // An older state, which all running places notice.
    if faults.restores && newest.is_none() && dice.random_bool(0.002) && world.history.len() > 2 {
        let known =
            |id: &MemberId| world.machine(*id).and_then(|machine| machine.view()).map_or(0, |view| view.version);
        let least = live.iter().map(known).min().unwrap_or(0);
        let old = world.history[dice.random_range(0..world.history.len() - 1)].clone();
        // A view without members lets a new place begin at once, beside those that run.
        if old.0.version < least && !old.0.members.is_empty() && world.requests.is_empty() {
            *newest = world.stored.replace(old);
            world.is_restored = true;
        }
    }
}

/// Ends all faults. The dead stay dead.
fn heal(world: &mut World, dice: &mut SmallRng, newest: &mut Newest) {
    world.cuts.clear();
    for id in world.live() {
        let place = world.place(id);
        (place.paused_until, place.has_ledger, place.closes) = (0, true, true);
    }
    world.has_hints = dice.random_bool(0.5);
    // A ledger that was written since stays as it is: its members run on it.
    let is_written = |newest: &(Arc<View>, u64)| world.history.last().is_some_and(|last| last.0 != newest.0);
    if let Some(newest) = newest.take_if(|newest| !is_written(newest)) {
        world.stored = Some(newest);
    }
    if world.live().is_empty() {
        start(world, dice);
    }
}

/// Lets the detectors see what they can: cuts, pauses and crashes, sometimes late, sometimes wrong.
fn detect(world: &mut World, lies: f64, dice: &mut SmallRng) {
    let known: Vec<MemberId> = world.places.iter().map(|(id, _)| *id).collect();
    for id in world.live() {
        let Some(view) = world.machine(id).and_then(|machine| machine.view()).cloned() else { continue };
        // A detector forgets a member that has left the view. It begins anew if the member comes again.
        world.place(id).suspected.retain(|other| view.members.contains_key(other));
        if !world.is_awake(id) || dice.random_bool(0.7) {
            continue;
        }
        for &other in known.iter().filter(|other| **other != id && view.members.contains_key(other)) {
            let is_dead = world.machine(other).is_none() || world.place(other).ended.is_some();
            let is_silent = is_dead || !world.is_awake(other) || world.cuts.contains(&(other, id));
            let is_suspected = world.place(id).suspected.contains(&other);
            let seems_silent = is_silent != dice.random_bool(lies);
            if seems_silent && !is_suspected && dice.random_bool(0.2) {
                world.place(id).suspected.insert(other);
                let is_gone = is_dead && dice.random_bool(0.5) || dice.random_bool(lies / 2.0);
                world.step(id, if is_gone { Input::Gone(other) } else { Input::Suspect(other) });
            } else if !seems_silent && is_suspected {
                world.place(id).suspected.remove(&other);
                world.step(id, Input::Trust(other));
            }
        }
    }
}

/// Starts new lives of places that were declared dead or are frozen, as hosts do.
fn restart(world: &mut World, is_faulty: bool, dice: &mut SmallRng) {
    for id in world.live() {
        if !is_faulty && world.place(id).frozen > 0 && world.is_restored {
            world.crash(id);
            start(world, dice);
        }
    }
    for at in 0..world.places.len() {
        let id = world.places[at].0;
        if world.place(id).ended.is_some() && world.machine(id).is_some() {
            world.crash(id);
            if !world.place(id).leaves {
                start(world, dice);
            }
        }
    }
}

// GUARANTEE: One owner of a slot
// GUARANTEE: A cluster heals
#[test]
fn random_walks_keep_every_slot_at_one_place_and_heal() {
    let number =
        |name: &str, default: u64| std::env::var(name).map_or(default, |value| value.parse().expect("a number"));
    let (first, walks) = (number("FIRST_SEED", 0), number("PLAYHOUSE_CLUSTER_WALKS", 150));
    let writes: usize = (first..first + walks).map(|seed| walk(seed, walks == 1)).sum();
    println!("{walks} walks, {writes} writes");
    assert!(writes as u64 > walks);
}
