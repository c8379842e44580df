//! Theaters that have no links: actors gossip and roam, and the first message or migration makes the link. Nothing is lost by that.

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
/// An actor moves about once in so many messages.
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

/// Theaters in which actors are about to roam, and these.
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

/// Nothing was lost.
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

#[test]
fn theaters_that_meet_while_connections_break_are_linked_soon_after_that() {
    /// More than the time after which a silent connection is given up, a call that nobody answers, and the wait for the next one.
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
