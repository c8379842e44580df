//! Actors that gossip and roam between simulated theaters, under many seeds: with uneven turns, connections that break, theaters
//! that pause, and theaters that are killed.
//!
//! `SEEDS` and `FIRST_SEED` select the seeds. `CONDITIONS` adds harder ones, a list separated by commas: `latencies` gives links
//! latencies of their own, `routes` lets some theaters reach each other only over a third one, and `losses` loses theaters during
//! migrations and asks.

use std::time::Duration;

use crate::roamers::{Play, Size};
use crate::seeds::Seed;
use playhouse_actor::System;
use playhouse_executor::Choices;
use playhouse_theater::{Simulation, Theater};

/// Connections break and theaters pause for this time.
const STORM: Duration = Duration::from_millis(500);

/// The bytes of a window that is soon full.
const SMALL_WINDOW: usize = 1_024;

/// Actors move about once in this number of messages.
const MOVES_EVERY: u64 = 3;

/// Returns whether `CONDITIONS` names this condition.
fn is_asked_for(condition: &str) -> bool {
    std::env::var("CONDITIONS").is_ok_and(|all| all.split(',').any(|one| one == condition))
}

/// Theaters, and gossiping actors in them.
struct Stage {
    net: Simulation,
    theaters: Vec<Theater>,
    choices: Choices,
    play: Play,
    _seed: Seed,
}

impl Stage {
    /// Makes a stage. The same seed in another test gives another run.
    fn new(test: u64, seed: u64, moves_every: u64, lost_after: Duration) -> Stage {
        let told = Seed(seed);
        let net = Simulation::new(seed);
        let mut choices = Choices::new(seed);
        let start = |_| {
            let system = System::builder().workers(2).stages(8);
            let mut theater = Theater::builder().listen("127.0.0.1:0").system(system).lost_after(lost_after);
            // Some messages fill it, even while the route to a migrated actor is not known yet.
            if seed % 4 == 3 {
                theater = theater.window(SMALL_WINDOW);
            }
            net.theater(theater).unwrap()
        };
        let theaters: Vec<Theater> = (0..3 + choices.below(2)).map(start).collect();
        if is_asked_for("latencies") && choices.one_in(2) {
            net.vary_latencies();
        }
        if is_asked_for("routes") && choices.one_in(2) {
            net.keep_apart(&theaters[1], &theaters[2]);
        }
        net.uneven_turns(choices.one_in(2));
        let size = Size { actors: 10 + choices.below(21), ttl: 15, moves_every };
        let play = Play::new(2 * seed + test, &theaters, &size, &mut choices);
        play.begin();
        if choices.one_in(2) {
            net.break_by_chance(Duration::from_millis(20));
        }
        Stage { net, theaters, choices, play, _seed: told }
    }

    fn ids(&self) -> Vec<u16> {
        self.theaters.iter().map(|theater| theater.system().core().id()).collect()
    }
}

// GUARANTEE: Order holds while actors migrate
#[test]
fn actors_that_roam_live_once_and_lose_repeat_and_reorder_nothing_under_every_seed() {
    let (mut moves, mut stays, mut crashes, mut asked, mut pauses, mut cuts) = (0, 0, 0, 0, 0, 0);
    let seeds = crate::seeds::range(300);
    for seed in seeds.clone() {
        let mut stage = Stage::new(0, seed, MOVES_EVERY, Duration::from_secs(30));
        if stage.choices.one_in(2) {
            stage.net.pause_by_chance(Duration::from_millis(200), Duration::from_secs(3));
        }
        let Stage { net, play, .. } = &stage;
        net.run_for(STORM);
        net.calm();
        net.run_until_idle();
        play.greet();
        net.run_until_idle();
        let living = play.journal(|journal| journal.living(&stage.ids()));
        play.check_answers(&living);
        play.journal(|journal| {
            journal.check_lives();
            journal.check_each_once();
            journal.check_no_ask_waits(&living);
            journal.check_order();
            moves += journal.moves();
            stays += journal.stays;
            crashes += journal.crashes;
            asked += journal.asked;
        });
        pauses += net.happened().pauses;
        cuts += net.happened().cuts;
    }
    let seeds = seeds.end - seeds.start;
    let happened = [moves / 30, crashes, asked / 30, pauses, cuts];
    assert!(happened.iter().all(|count| *count >= seeds / 2), "{moves} {stays} {crashes} {asked} {pauses} {cuts}");
}

// GUARANTEE: Alive once
#[test]
fn actors_that_roam_while_a_theater_is_lost_live_once_and_the_others_go_on_under_every_seed() {
    const LOST_AFTER: Duration = Duration::from_secs(10);
    let (mut kills, mut pauses, mut lost, mut moves) = (0, 0, 0, 0);
    let seeds = crate::seeds::range(300);
    for seed in seeds.clone() {
        let is_killed = seed.is_multiple_of(2);
        let under_way = is_asked_for("losses");
        // If both ends of a loss survive, each may consider a migrating actor its own.
        let roams = is_killed || under_way;
        let mut stage = Stage::new(1, seed, if roams { MOVES_EVERY } else { 0 }, LOST_AFTER);
        let (after, at) = (stage.choices.below(60_000), 1 + stage.choices.below(stage.theaters.len() - 1));
        let Stage { net, theaters, play, .. } = &stage;
        net.run_for(Duration::from_micros(after as u64));
        if is_killed && !under_way {
            net.calm();
            net.run_until_idle();
        }
        let before = play.journal(|journal| journal.living(&stage.ids()));
        let victim = stage.ids()[at];
        if is_killed {
            play.journal(|journal| journal.killed(victim));
            net.kill(&theaters[at]);
            if !under_way {
                net.run_for(3 * LOST_AFTER);
                play.begin();
            }
        } else {
            net.pause(&theaters[at], 3 * LOST_AFTER);
        }
        net.run_for(STORM);
        net.calm();
        net.run_for(6 * LOST_AFTER);
        net.run_until_idle();
        play.greet();
        net.run_until_idle();
        let others: Vec<u16> = stage.ids().into_iter().filter(|id| *id != victim).collect();
        let living = play.journal(|journal| journal.living(&others));
        play.check_answers(&living);
        play.journal(|journal| {
            journal.check_at_most_once();
            journal.check_those_that_stayed(&living);
            if under_way {
                journal.check_no_ask_waits(&living);
            }
            if is_killed || !roams {
                journal.check_lives();
            }
            lost += before.difference(&living).count() as u64;
            moves += journal.moves();
        });
        kills += net.happened().kills;
        pauses += net.happened().pauses;
    }
    let seeds = seeds.end - seeds.start;
    assert!([kills, pauses, lost, moves].iter().all(|count| *count >= seeds / 4), "{kills} {pauses} {lost} {moves}");
}
