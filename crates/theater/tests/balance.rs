//! Theaters that migrate their mobile actors by themselves.

#[allow(dead_code, reason = "other tests use all of it")]
mod faulty;
#[macro_use]
mod messages;
mod support;

use std::time::{Duration, Instant};

use faulty::eventually;
use playhouse_actor::*;
use playhouse_theater::{Rebalance, Theater};
use serde::{Deserialize, Serialize};
use support::{LIMIT, theater};

const LOOK: Duration = Duration::from_millis(50);

/// Counts the theaters that it has been in.
#[derive(Serialize, Deserialize, Default)]
struct Nomad {
    heard: u64,
    arrivals: u32,
    /// The actor that it answers with every message.
    partner: Option<ActorRef<Nomad>>,
}

#[derive(Serialize, Deserialize)]
struct Talk;
remote_message!(Talk -> ());

#[derive(Serialize, Deserialize)]
struct Work;
remote_message!(Work -> ());

#[derive(Serialize, Deserialize)]
struct Meet(ActorRef<Nomad>);
remote_message!(Meet -> ());

/// Number of messages received, and of migrations.
#[derive(Serialize, Deserialize)]
struct Tell;
remote_message!(Tell -> (u64, u32));

impl Actor for Nomad {
    fn migrated(&mut self, _: &mut Context<Self>) {
        self.arrivals += 1;
    }
}
impl Handler<Talk> for Nomad {
    fn handle(&mut self, _: Talk, _: &mut Context<Self>) {
        self.heard += 1;
        if let Some(partner) = self.partner {
            partner.tell(Talk);
        }
    }
}
impl Handler<Work> for Nomad {
    fn handle(&mut self, _: Work, ctx: &mut Context<Self>) {
        self.heard += 1;
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_micros(20) {}
        ctx.this().tell(Work);
    }
}
impl Handler<Meet> for Nomad {
    fn handle(&mut self, Meet(partner): Meet, _: &mut Context<Self>) {
        self.partner = Some(partner);
    }
}
impl Handler<Tell> for Nomad {
    fn handle(&mut self, _: Tell, _: &mut Context<Self>) -> (u64, u32) {
        (self.heard, self.arrivals)
    }
}
remote!(mobile Nomad: Talk, Work, Meet, Tell);

fn two() -> [Theater; 2] {
    let theaters = [theater(), theater()];
    theaters[0].connect(theaters[1].address().unwrap()).unwrap();
    theaters
}

fn known_in(theater: &Theater, home: &Theater, name: &str) -> ActorRef<Nomad> {
    theater.find(&format!("playhouse://{}/{name}", home.address().unwrap())).wait().unwrap()
}

fn told(nomad: ActorRef<Nomad>) -> (u64, u32) {
    nomad.ask(Tell).within(LIMIT).wait().unwrap()
}

/// Returns the number of migrations of each actor, once none has migrated for some looks.
fn settled(nomads: &[ActorRef<Nomad>]) -> Vec<u32> {
    let arrivals = || nomads.iter().map(|nomad| told(*nomad).1).collect::<Vec<_>>();
    let mut known = (arrivals(), Instant::now());
    eventually(|| {
        let now = arrivals();
        if now != known.0 {
            known = (now, Instant::now());
        }
        (known.1.elapsed() > 20 * LOOK).then(|| known.0.clone())
    })
}

// GUARANTEE: Rebalancing settles
#[test]
fn load_is_evened_and_then_all_stay() {
    const NOMADS: usize = 40;
    let [busy, idle] = two();
    let nomads: Vec<_> = (0..NOMADS).map(|_| busy.system().spawn(Nomad::default())).collect();
    nomads.iter().for_each(|nomad| nomad.tell(Work));
    // No actor migrates without rebalancing.
    assert_eq!(settled(&nomads), [0; NOMADS]);
    let balances = [&busy, &idle].map(|theater| theater.rebalance(Rebalance::load().every(LOOK).moves_max(8)));
    eventually(|| (nomads.iter().filter(|nomad| told(**nomad).1 > 0).count() > 0).then_some(()));
    let moves = settled(&nomads);
    let moved = moves.iter().filter(|moves| **moves > 0).count();
    assert!((1..NOMADS).contains(&moved), "{moved} have moved");
    assert!(moves.iter().sum::<u32>() < 3 * NOMADS as u32, "they go to and fro: {moves:?}");
    // All of them work in both theaters.
    let before: Vec<_> = nomads.iter().map(|nomad| told(*nomad).0).collect();
    eventually(|| nomads.iter().zip(&before).all(|(nomad, before)| told(*nomad).0 > *before).then_some(()));
    drop(balances);
    nomads.iter().for_each(|nomad| nomad.kill());
}

// GUARANTEE: Rebalancing settles
#[test]
fn actors_that_talk_are_brought_together_and_stay() {
    let theaters = two();
    let [a, b] = &theaters;
    let (x, y) = (a.system().spawn(Nomad::default()), b.system().spawn(Nomad::default()));
    a.publish("x", x).unwrap();
    b.publish("y", y).unwrap();
    x.ask(Meet(known_in(a, b, "y"))).wait().unwrap();
    y.ask(Meet(known_in(b, a, "x"))).wait().unwrap();
    for _ in 0..50 {
        x.tell(Talk);
    }
    let _balances = [a, b].map(|theater| theater.rebalance(Rebalance::by_traffic().every(LOOK)));
    eventually(|| (told(x).1 + told(y).1 > 0).then_some(()));
    let moves = settled(&[x, y]);
    assert_eq!(moves.iter().sum::<u32>() % 2, 1, "they are in two theaters after {moves:?} moves");
}

// GUARANTEE: Rebalancing settles
#[test]
fn an_actor_with_more_local_traffic_stays_in_its_theater() {
    let theaters = two();
    let [a, b] = &theaters;
    let (x, y) = (a.system().spawn(Nomad::default()), b.system().spawn(Nomad::default()));
    a.publish("x", x).unwrap();
    // Ten local actors talk to it all the time, and one remote one.
    let others: Vec<_> = (0..10).map(|_| a.system().spawn(Nomad::default())).collect();
    for other in &others {
        other.ask(Meet(x)).wait().unwrap();
        x.ask(Meet(*other)).wait().unwrap();
        other.tell(Talk);
    }
    y.ask(Meet(known_in(b, a, "x"))).wait().unwrap();
    let _balance = a.rebalance(Rebalance::by_traffic().every(LOOK));
    let begun = Instant::now();
    while begun.elapsed() < 20 * LOOK {
        y.tell(Talk);
        y.ask(Tell).wait().unwrap();
    }
    let (heard, arrivals) = told(x);
    assert!(heard > 100 && arrivals == 0, "it has moved {arrivals} times, and has heard {heard}");
}
