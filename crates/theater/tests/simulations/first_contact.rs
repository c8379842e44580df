//! Theaters without links: actors gossip and roam, and the first message or migration makes the link. It loses nothing.

use std::net::SocketAddr;
use std::time::Duration;

use crate::seeds::Seed;
use playhouse_actor::*;
use playhouse_executor::Choices;
use playhouse_theater::{LinkState, Simulation, Theater};
use serde::{Deserialize, Serialize};

const THEATERS: usize = 3;
const NODES: usize = 12;
/// The number of times that each token is passed on.
const HOPS: u32 = 30;
/// An actor migrates about once in this number of messages.
const MOVES_EVERY: u64 = 8;

/// Passes each token on to one of its peers, and roams.
#[derive(Serialize, Deserialize)]
struct Node {
    peers: Vec<ActorRef<Node>>,
    handled: u64,
    dice: u64,
    theaters: Vec<SocketAddr>,
}

#[derive(Serialize, Deserialize)]
struct Meet(Vec<ActorRef<Node>>);
remote_message!(Meet -> ());

#[derive(Serialize, Deserialize)]
struct Token {
    left: u32,
}
remote_message!(Token -> ());

#[derive(Serialize, Deserialize)]
struct Handled;
remote_message!(Handled -> u64);

impl Node {
    fn roll(&mut self, sides: u64) -> u64 {
        let mut choices = Choices::new(self.dice);
        self.dice = choices.next();
        self.dice % sides
    }
}

impl Actor for Node {}

impl Handler<Meet> for Node {
    fn handle(&mut self, Meet(peers): Meet, _: &mut Context<Self>) {
        self.peers = peers;
    }
}

impl Handler<Token> for Node {
    fn handle(&mut self, Token { left }: Token, ctx: &mut Context<Self>) {
        self.handled += 1;
        if left > 0 {
            let next = self.roll(self.peers.len() as u64) as usize;
            self.peers[next].tell(Token { left: left - 1 });
        }
        if self.roll(MOVES_EVERY) == 0 {
            let to = self.roll(self.theaters.len() as u64) as usize;
            ctx.migrate_to(self.theaters[to]);
        }
    }
}

impl Handler<Handled> for Node {
    fn handle(&mut self, _: Handled, _: &mut Context<Self>) -> u64 {
        self.handled
    }
}
remote!(mobile Node: Meet, Token, Handled);

/// Returns theaters, and their actors, which are about to roam.
fn begin(simulation: &Simulation, seed: u64) -> (Vec<Theater>, Vec<ActorRef<Node>>) {
    let theaters: Vec<_> =
        (0..THEATERS).map(|_| simulation.theater(Theater::builder().listen("127.0.0.1:0")).unwrap()).collect();
    let addresses: Vec<_> = theaters.iter().map(|theater| theater.address().unwrap()).collect();
    let node = |at: usize| {
        let dice = seed * NODES as u64 + at as u64 + 1;
        Node { peers: Vec::new(), handled: 0, dice, theaters: addresses.clone() }
    };
    let nodes: Vec<_> = (0..NODES).map(|at| theaters[0].system().spawn(node(at))).collect();
    for (at, node) in nodes.iter().enumerate() {
        node.tell(Meet([1, 2, 5].iter().map(|by| nodes[(at + by) % NODES]).collect()));
    }
    nodes.iter().for_each(|node| node.tell(Token { left: HOPS }));
    (theaters, nodes)
}

/// Checks that nothing was lost.
fn check(theaters: &[Theater], nodes: &[ActorRef<Node>]) {
    let handled: u64 = nodes.iter().map(|node| node.ask(Handled).wait().unwrap()).sum();
    let dead: u64 = theaters.iter().map(|theater| theater.system().stats().total.dead_letters).sum();
    assert_eq!((handled, dead), (NODES as u64 * u64::from(HOPS + 1), 0), "handled, and dead letters");
}

#[test]
fn actors_that_roam_between_theaters_that_never_met_lose_nothing() {
    for seed in crate::seeds::range(200) {
        let _seed = Seed(seed);
        let simulation = Simulation::new(seed);
        let (theaters, nodes) = begin(&simulation, seed);
        simulation.run_until_idle();
        check(&theaters, &nodes);
    }
}

// GUARANTEE: A network failure is a broken connection
#[test]
fn theaters_that_meet_while_connections_break_are_linked_soon_after_that() {
    /// Longer than the sum of three times: until a silent connection is given up, until an unanswered call is, and until the next
    /// call.
    const SOON: Duration = Duration::from_secs(10);
    let mut links = 0;
    for seed in crate::seeds::range(200) {
        let _seed = Seed(seed);
        let simulation = Simulation::new(seed);
        simulation.break_by_chance(Duration::from_millis(2));
        let (theaters, nodes) = begin(&simulation, seed);
        simulation.run_for(Duration::from_millis(200));
        simulation.calm();
        let calm = simulation.now();
        let is_linked = |theater: &Theater| theater.peers().iter().all(|peer| peer.state().link == LinkState::Linked);
        simulation.run_until(|| theaters.iter().all(is_linked) || simulation.now() > calm + SOON);
        for theater in &theaters {
            let links: Vec<_> = theater.peers().iter().map(|peer| peer.state().link).collect();
            assert!(is_linked(theater), "{links:?}");
        }
        simulation.run_until_idle();
        check(&theaters, &nodes);
        links += theaters.iter().map(|theater| theater.peers().len() as u64).sum::<u64>();
    }
    assert!(links > 4 * crate::seeds::or(200), "{links} links");
}

// -- senders that are slowed before the route is known ------------------------------------------------------------------

/// A window of some messages, a quarter of which slows senders while the route is not known yet.
const WINDOW: usize = 1_024;
const LISTENERS: usize = 3;
const SPEAKERS: usize = 4;
/// The number of messages from each speaker to each listener.
const WORDS: u64 = 60;

#[derive(Serialize, Deserialize)]
struct Word {
    by: usize,
    number: u64,
    text: String,
}
remote_message!(Word -> ());

#[derive(Serialize, Deserialize)]
struct Heard;
remote_message!(Heard -> Vec<u64>);

/// Receives all words in order, and migrates to other theaters in between.
#[derive(Serialize, Deserialize)]
struct Listener {
    heard: Vec<u64>,
    choices: u64,
    theaters: Vec<SocketAddr>,
}
impl Actor for Listener {}
impl Handler<Word> for Listener {
    fn handle(&mut self, Word { by, number, .. }: Word, ctx: &mut Context<Self>) {
        assert_eq!(number, self.heard[by], "lost, repeated or out of order");
        self.heard[by] += 1;
        self.choices = Choices::new(self.choices).next();
        if self.choices.is_multiple_of(MOVES_EVERY) {
            ctx.migrate_to(self.theaters[(self.choices / MOVES_EVERY) as usize % self.theaters.len()]);
        }
    }
}
impl Handler<Heard> for Listener {
    fn handle(&mut self, _: Heard, _: &mut Context<Self>) -> Vec<u64> {
        self.heard.clone()
    }
}
remote!(mobile Listener: Word, Heard);

#[derive(Serialize, Deserialize)]
struct Speak;
remote_message!(Speak -> ());

/// Sends some words to all listeners at a time, asks one of them now and then, and migrates to other theaters.
#[derive(Serialize, Deserialize)]
struct Speaker {
    by: usize,
    said: u64,
    to: Vec<ActorRef<Listener>>,
    choices: u64,
    theaters: Vec<SocketAddr>,
    moves: bool,
}
impl Actor for Speaker {}
impl AsyncHandler<Speak> for Speaker {
    async fn handle(&mut self, _: Speak, ctx: &mut Context<Self>) {
        let mut choices = Choices::new(self.choices);
        for _ in 0..1 + choices.below(12) {
            if self.said == WORDS {
                return;
            }
            for to in &self.to {
                to.tell(Word { by: self.by, number: self.said, text: "x".repeat(choices.below(200)) });
            }
            self.said += 1;
        }
        if choices.one_in(3) {
            let heard = self.to[choices.below(LISTENERS)].ask(Heard).await.unwrap();
            assert_eq!(heard[self.by], self.said, "an answer says that all before it has come");
        }
        if self.moves && choices.one_in(4) {
            ctx.migrate_to(self.theaters[choices.below(self.theaters.len())]);
        }
        self.choices = choices.next();
        ctx.this().tell(Speak);
    }
}
remote!(mobile Speaker: Speak);

// GUARANTEE: A slow reader slows the writer
#[test]
fn senders_that_are_slowed_before_a_theater_is_reached_go_on_and_lose_nothing_under_every_seed() {
    for seed in crate::seeds::range(200) {
        let _seed = Seed(seed);
        let net = Simulation::new(seed);
        let mut choices = Choices::new(seed);
        // There are few stages: a listener, a speaker and the stub of another listener share one.
        let stages = 1 + choices.below(3);
        let start = |_| {
            let system = System::builder().workers(1).stages(stages);
            net.theater(Theater::builder().listen("127.0.0.1:0").system(system).window(WINDOW)).unwrap()
        };
        let theaters: Vec<Theater> = (0..4).map(start).collect();
        net.uneven_turns(choices.one_in(2));
        if choices.one_in(2) {
            net.break_by_chance(Duration::from_millis(5));
        }
        let addresses: Vec<_> = theaters.iter().map(|theater| theater.address().unwrap()).collect();
        let home = theaters[0].system();
        let to: Vec<_> = (0..LISTENERS)
            .map(|_| {
                let heard = vec![0; SPEAKERS];
                home.spawn(Listener { heard, choices: choices.next(), theaters: addresses.clone() })
            })
            .collect();
        for by in 0..SPEAKERS {
            let (choices, moves, theaters) = (choices.next(), choices.one_in(2), addresses.clone());
            home.spawn(Speaker { by, said: 0, to: to.clone(), choices, theaters, moves }).tell(Speak);
        }
        net.run_for(Duration::from_millis(500));
        net.calm();
        net.run_until_idle();
        for listener in to {
            assert_eq!(listener.ask(Heard).wait().unwrap(), [WORDS; SPEAKERS]);
        }
        for theater in &theaters {
            let total = theater.system().stats().total;
            assert_eq!((total.dead_letters, total.crashes), (0, 0));
        }
    }
}
