//! Faults by chance, under many seeds.

use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::world::{World, s};

/// The time in which faults happen.
const FAULTY: Duration = s(10);
/// The time after which a healed cluster is whole: an outage, a lease, the detection, and some rounds.
const HEALED: Duration = s(60);

/// Returns the number in a variable of the environment.
fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |value| value.parse().expect("a number"))
}

/// Runs faults for some time, and returns the numbers of kills and of lives that the others have ended.
fn walk(seed: u64) -> (u64, u64) {
    let mut world = World::new(seed);
    let members = 2 + world.net.choose(4);
    (0..members).for_each(|_| _ = world.start());
    if world.net.choose(2) == 0 {
        world.until_whole(s(60));
    }
    if world.net.choose(2) == 0 {
        world.net.break_by_chance(Duration::from_millis(2_000));
    }
    if world.net.choose(3) == 0 {
        world.net.pause_by_chance(s(2), s(5));
    }
    world.net.uneven_turns(world.net.choose(3) == 0);
    let end = world.net.now() + FAULTY;
    let ids = |world: &World| world.living().map(|node| world.id(node)).collect::<Vec<_>>();
    let (mut kills, mut removed) = (0, 0);
    while world.net.now() < end {
        let before = ids(&world);
        disturb(&mut world, members, &mut kills);
        let time = world.net.choose(1_500) as u64;
        world.run(Duration::from_millis(time));
        removed += before.iter().zip(ids(&world)).filter(|(before, now)| *before != now).count() as u64;
    }
    world.net.calm();
    let living: Vec<usize> = world.living().collect();
    world.ledger(&living, false);
    living.iter().for_each(|node| {
        world.links(&[*node], &living.iter().copied().filter(|other| other != node).collect::<Vec<_>>(), false)
    });
    if living.is_empty() {
        world.start();
    }
    world.until_whole(HEALED);
    (kills, removed)
}

/// Lets one fault happen, or heals one. No clock jumps: a lease depends on the rates of the clocks.
fn disturb(world: &mut World, members: usize, kills: &mut u64) {
    let living: Vec<usize> = world.living().collect();
    let one = living[world.net.choose(living.len())];
    let others: Vec<usize> = living.iter().copied().filter(|node| *node != one).collect();
    match world.net.choose(11) {
        0 if living.len() > 1 => {
            world.kill(one);
            *kills += 1;
            if world.net.choose(2) == 0 {
                world.restart(one);
            }
        }
        1 if living.len() < members + 1 => _ = world.start(),
        2 => world.ledger(&[one], true),
        3 => world.ledger(&living, true),
        4 => world.ledger(&living, false),
        5 => world.links(&[one], &others, true),
        6 if !others.is_empty() => world.links(&[one], &[others[world.net.choose(others.len())]], true),
        7 => world.links(&[one], &others, false),
        8 => {
            let time = world.net.choose(6_000) as u64;
            world.net.pause(&world.nodes[one].theater, Duration::from_millis(time));
        }
        9 => _ = world.nodes[one].way.lost_results.fetch_add(1, Ordering::Relaxed),
        _ => {}
    }
}

/// Runs a quarter of the seeds. The tests below run beside each other.
fn quarter(number_of_it: u64) {
    let seeds = number("PLAYHOUSE_CLUSTER_SEEDS", 200) / 4;
    let first = number("FIRST_SEED", 0) + number_of_it * seeds;
    let mut totals = (0, 0);
    for seed in first..first + seeds {
        let _told = Told(seed);
        let (kills, removed) = walk(seed);
        totals = (totals.0 + kills, totals.1 + removed);
    }
    println!("{seeds} seeds: {} kills, {} lives ended by others", totals.0, totals.1);
    assert!(seeds < 50 || totals.0 > seeds / 2 && totals.1 > seeds / 2, "{totals:?}");
}

/// Prints the seed of a walk that fails.
pub struct Told(pub u64);

impl Drop for Told {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("seed {}", self.0);
        }
    }
}

// Members under faults never run a slot twice, no epoch comes back, and they heal.

// GUARANTEE: One owner of a slot
// GUARANTEE: A cluster heals
#[test]
fn no_slot_runs_twice_under_faults_1() {
    quarter(0);
}

// GUARANTEE: One owner of a slot
// GUARANTEE: A cluster heals
#[test]
fn no_slot_runs_twice_under_faults_2() {
    quarter(1);
}

// GUARANTEE: One owner of a slot
// GUARANTEE: A cluster heals
#[test]
fn no_slot_runs_twice_under_faults_3() {
    quarter(2);
}

// GUARANTEE: One owner of a slot
// GUARANTEE: A cluster heals
#[test]
fn no_slot_runs_twice_under_faults_4() {
    quarter(3);
}
