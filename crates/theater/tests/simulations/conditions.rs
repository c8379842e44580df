//! The conditions of a simulation: latencies, networks without a route, pauses, and uneven turns.

use std::cell::RefCell;
use std::time::Duration;

use crate::seeds::Seed;
use playhouse_actor::*;
use playhouse_theater::{NetworkStats, Simulation, Theater};
use serde::{Deserialize, Serialize};

/// The time after which the theaters of these tests lose each other.
const LOST_AFTER: Duration = Duration::from_secs(10);

#[derive(Serialize, Deserialize)]
struct Clock;
#[derive(Serialize, Deserialize)]
struct Ping(Vec<u8>);
remote_message!(Ping -> ());

impl Actor for Clock {}
impl Handler<Ping> for Clock {
    fn handle(&mut self, _: Ping, _: &mut Context<Self>) {}
}
remote!(Clock: Ping);

/// Counts seconds and asks.
struct Beats(u32);
#[derive(Clone)]
struct Beat;
impl Message for Beat {
    type Reply = u32;
}
impl Actor for Beats {
    fn started(&mut self, ctx: &mut Context<Self>) {
        ctx.send_every(Duration::from_secs(1), Beat);
    }
}
impl Handler<Beat> for Beats {
    fn handle(&mut self, _: Beat, _: &mut Context<Self>) -> u32 {
        self.0 += 1;
        self.0
    }
}

fn start(net: &Simulation) -> Theater {
    net.theater(Theater::builder().listen("127.0.0.1:0").lost_after(LOST_AFTER)).unwrap()
}

/// Returns an actor in the theater `there`, as the theater `here` knows it.
fn clock(here: &Theater, there: &Theater) -> ActorRef<Clock> {
    there.replace("clock", there.system().spawn(Clock));
    here.find::<Clock>(&format!("playhouse://{}/clock", there.address().unwrap())).wait().unwrap()
}

// GUARANTEE: Passing time
#[test]
fn one_of_the_theaters_lets_a_time_pass_for_all() {
    let net = Simulation::new(7);
    let [one, other] = [start(&net), start(&net)];
    one.connect(other.address().unwrap()).unwrap();
    for (theater, runs) in [(&one, &one), (&one, &other)] {
        let beats = theater.system().spawn(Beats(0));
        let (before, there) = (theater.system().now(), runs.system().now());
        runs.system().run_for(Duration::from_secs(60));
        let passed = theater.system().now() - before;
        assert!(passed >= Duration::from_secs(60) && passed < Duration::from_millis(60_100), "{passed:?}");
        assert!(runs.system().now() - there >= Duration::from_secs(60));
        assert_eq!(beats.ask(Beat).wait(), Ok(61), "the last one is due at the end");
        beats.stop();
    }
}

// GUARANTEE: Conditions of a simulated network
#[test]
fn each_link_keeps_its_latency_and_some_are_100_times_longer() {
    /// Longer than the network's own delays: each piece takes at most 5 ms in each direction.
    const NEAR: Duration = Duration::from_millis(20);
    let (mut near, mut far) = (0, 0);
    for seed in 0..crate::seeds::or(100) {
        let _seed = Seed(seed);
        let net = Simulation::new(seed);
        net.vary_latencies();
        let (here, there) = (start(&net), start(&net));
        let clock = clock(&here, &there);
        let trip = |bytes| {
            let asked = net.now();
            clock.ask(Ping(vec![0; bytes])).wait().unwrap();
            net.now() - asked
        };
        let trips: Vec<Duration> = (0..20).map(|_| trip(1)).collect();
        let shortest = *trips.iter().min().unwrap();
        let longest = *trips.iter().max().unwrap();
        assert!(longest < shortest + NEAR, "the latency of a link has changed: {trips:?}");
        if shortest < NEAR {
            near += 1;
        } else {
            far += 1;
        }
    }
    assert!(near > 5 * crate::seeds::or(100) / 10 && far > crate::seeds::or(100) / 20, "{near} near, and {far} far");
}

// GUARANTEE: Conditions of a simulated network
#[test]
fn theaters_that_are_kept_apart_never_connect_and_a_third_one_reaches_both() {
    for seed in 0..crate::seeds::or(20) {
        let _seed = Seed(seed);
        let net = Simulation::new(seed);
        let (one, hub, other) = (start(&net), start(&net), start(&net));
        let peer = one.connect(other.address().unwrap()).unwrap();
        net.keep_apart(&one, &other);
        net.heal(&one, &other);
        net.calm();
        net.run_for(3 * LOST_AFTER);
        assert!(peer.is_lost());
        assert!(one.connect(other.address().unwrap()).is_err());
        for end in [&one, &other] {
            assert_eq!(clock(&hub, end).ask(Ping(Vec::new())).wait(), Ok(()));
        }
        assert!(other.connect(one.address().unwrap()).is_err());
    }
}

// GUARANTEE: Conditions of a simulated network
#[test]
fn a_theater_that_pauses_answers_after_its_pause() {
    for seed in 0..crate::seeds::or(20) {
        let _seed = Seed(seed);
        let net = Simulation::new(seed);
        let (here, there) = (start(&net), start(&net));
        let known = clock(&here, &there);
        let peer = here.connect(there.address().unwrap()).unwrap();
        for part in 1..10 {
            let pause = LOST_AFTER * part / 10;
            let asked = net.now();
            net.pause(&there, pause);
            assert_eq!(known.ask(Ping(vec![0; 100_000])).wait(), Ok(()));
            assert!(net.now() - asked >= pause && net.now() - asked < pause + Duration::from_secs(5));
        }
        // A paused theater loses no peer either.
        net.pause(&here, LOST_AFTER * 9 / 10);
        assert_eq!(known.ask(Ping(Vec::new())).wait(), Ok(()));
        assert!(!peer.is_lost());
        assert_eq!(net.happened().pauses, 10);
    }
}

// GUARANTEE: Conditions of a simulated network
#[test]
fn a_theater_that_pauses_for_too_long_is_lost_and_reached_again() {
    for seed in 0..crate::seeds::or(20) {
        let _seed = Seed(seed);
        let net = Simulation::new(seed);
        let (here, there) = (start(&net), start(&net));
        let known = clock(&here, &there);
        let peer = here.connect(there.address().unwrap()).unwrap();
        net.pause(&there, 3 * LOST_AFTER);
        let error = known.ask(Ping(Vec::new())).wait().unwrap_err();
        assert!(matches!(error, AskError::TheaterLost { .. }), "{error:?}");
        assert!(peer.is_lost());
        let rejected_peer = start(&net);
        assert!(rejected_peer.connect(there.address().unwrap()).is_err(), "a theater that pauses has answered a call");
        net.run_for(2 * LOST_AFTER);
        assert_eq!(clock(&here, &there).ask(Ping(Vec::new())).wait(), Ok(()));
    }
}

/// Counts its messages for a given time.
struct Busy {
    at: usize,
}
struct Turn;
impl Message for Turn {
    type Reply = ();
}
thread_local! {
    /// The theater of each turn. A simulation is one thread.
    static TURNS: RefCell<Vec<usize>> = RefCell::default();
}
impl Actor for Busy {}
impl Handler<Turn> for Busy {
    fn handle(&mut self, _: Turn, ctx: &mut Context<Self>) {
        TURNS.with_borrow_mut(|turns| turns.push(self.at));
        ctx.this().tell(Turn);
    }
}

// GUARANTEE: Conditions of a simulated network
#[test]
fn uneven_turns_favour_one_theater_for_a_while() {
    const WINDOW: usize = 200;
    let windows_of_one = |uneven| {
        TURNS.take();
        let net = Simulation::new(1);
        net.uneven_turns(uneven);
        let theaters = [start(&net), start(&net)];
        for (at, theater) in theaters.iter().enumerate() {
            theater.system().spawn(Busy { at }).tell(Turn);
        }
        net.run_for(Duration::from_millis(500));
        let turns = TURNS.take();
        let of_one = turns.chunks(WINDOW).filter(|turns| {
            let first = turns.iter().filter(|at| **at == 0).count();
            !(WINDOW / 20..=WINDOW - WINDOW / 20).contains(&first)
        });
        let total: usize = turns.iter().sum();
        assert!(total > turns.len() / 10 && total < turns.len() * 9 / 10, "{total} of {}", turns.len());
        (of_one.count(), turns.len() / WINDOW)
    };
    let (even, uneven) = (windows_of_one(false), windows_of_one(true));
    assert!(even.0 == 0 && uneven.0 > uneven.1 / 5, "{even:?}, and uneven {uneven:?}");
}

// GUARANTEE: Replay of theaters
#[test]
fn the_same_seed_gives_the_same_run_under_all_conditions() {
    let run = |seed| -> (u64, Duration, NetworkStats) {
        let net = Simulation::new(seed);
        net.vary_latencies();
        net.uneven_turns(true);
        let theaters: Vec<Theater> = (0..3).map(|_| start(&net)).collect();
        net.keep_apart(&theaters[0], &theaters[2]);
        let clocks = [clock(&theaters[0], &theaters[1]), clock(&theaters[2], &theaters[1])];
        net.break_by_chance(Duration::from_millis(200));
        net.pause_by_chance(Duration::from_millis(50), Duration::from_millis(100));
        for _ in 0..20 {
            for clock in clocks {
                assert_eq!(clock.ask(Ping(vec![0; 1000])).wait(), Ok(()));
            }
            net.run_for(Duration::from_millis(10));
        }
        (net.trace(), net.now(), net.happened())
    };
    let first: Vec<_> = (0..50).map(run).collect();
    let again: Vec<_> = (0..50).rev().map(run).collect();
    assert_eq!(first, again.into_iter().rev().collect::<Vec<_>>());
    assert!(first.iter().all(|(.., happened)| happened.pauses > 0), "{first:?}");
    // These runs are the same on each machine. Changes of the theaters' messages, of their order, or of the simulation's draws
    // change the recorded values.
    let recorded = [1_185_573_807_582_278_988, 2_673_133_058_236_044_310];
    assert_eq!(
        first[..2].iter().map(|(trace, ..)| *trace).collect::<Vec<_>>(),
        recorded,
        "see CONTRIBUTING: recorded runs"
    );
}

// GUARANTEE: A theater that ends is lost at once
#[test]
fn a_busy_theater_shuts_down_in_time_and_announces_its_shutdown() {
    const LIMIT: Duration = Duration::from_secs(5);
    let net = Simulation::new(0);
    let (ends, stays) = (start(&net), start(&net));
    let peer = stays.connect(ends.address().unwrap()).unwrap();
    for (at, theater) in [&ends, &stays].into_iter().enumerate() {
        theater.system().spawn(Busy { at }).tell(Turn);
    }
    let began = net.now();
    ends.shutdown_within(LIMIT).unwrap();
    assert!(net.now() - began <= LIMIT + LIMIT / 5, "it took {:?}", net.now() - began);
    assert!(peer.is_lost(), "the other one has not heard the goodbye");
    TURNS.take();
}
