//! Cycles of asks over several theaters end, with their path; other waits do not.

use std::time::Duration;

use crate::support::LIMIT;
use playhouse_actor::wire::WireForm;
use playhouse_actor::*;
use playhouse_theater::{Simulation, Theater};
use serde::{Deserialize, Serialize};

/// Asks others, and waits for their answers.
#[derive(Serialize, Deserialize, Default)]
struct Node {
    others: Vec<ActorRef<Node>>,
    tours: u32,
}

#[derive(Serialize, Deserialize)]
struct Meet(Vec<ActorRef<Node>>);
impl Message for Meet {
    type Reply = ();
    const WIRE: Option<WireForm<Meet>> = Some(WireForm::of());
}

/// Asks all others in turn, each for the depth below. Answered with the number of successful asks, or with the reason of a failed
/// one.
#[derive(Serialize, Deserialize)]
struct Descend(u32);
impl Message for Descend {
    type Reply = Result<u64, AskError>;
    const WIRE: Option<WireForm<Descend>> = Some(WireForm::of());
}

#[derive(Serialize, Deserialize)]
struct GoTo(std::net::SocketAddr);
impl Message for GoTo {
    type Reply = ();
    const WIRE: Option<WireForm<GoTo>> = Some(WireForm::of());
}

impl Actor for Node {}
impl Handler<Meet> for Node {
    fn handle(&mut self, Meet(others): Meet, _: &mut Context<Self>) {
        self.others = others;
    }
}
impl Handler<GoTo> for Node {
    fn handle(&mut self, GoTo(theater): GoTo, ctx: &mut Context<Self>) {
        ctx.migrate_to(theater);
    }
}
impl AsyncHandler<Descend> for Node {
    async fn handle(&mut self, Descend(depth): Descend, _: &mut Context<Self>) -> Result<u64, AskError> {
        let mut sum = 1;
        if depth > 0 {
            for other in &self.others {
                sum += other.ask(Descend(depth - 1)).await??;
            }
        }
        Ok(sum)
    }
}
remote!(mobile Node: Meet, Descend, GoTo);

/// Starts node `i` in the theater `locations[i]`, with asks to those of `edges[i]`. The first theater knows all of them.
fn graph(theaters: &[Theater], locations: &[usize], edges: &[Vec<usize>]) -> Vec<ActorRef<Node>> {
    let [first, ..] = theaters else { unreachable!() };
    let start = |place: &usize| match place {
        0 => first.system().spawn(Node::default()),
        place => {
            let peer = first.connect(theaters[*place].address().unwrap()).unwrap();
            first.spawn_at(&peer, &Node::default()).unwrap()
        }
    };
    let nodes: Vec<_> = locations.iter().map(start).collect();
    for (node, others) in nodes.iter().zip(edges) {
        node.ask(Meet(others.iter().map(|other| nodes[*other]).collect())).within(LIMIT).wait().unwrap();
    }
    nodes
}

fn simulated(seed: u64) -> (Simulation, Vec<Theater>) {
    let net = Simulation::new(seed);
    let theater = || {
        let system = System::builder().workers(2).stages(4);
        net.theater(Theater::builder().listen("127.0.0.1:0").system(system)).unwrap()
    };
    let theaters = (0..3).map(|_| theater()).collect();
    (net, theaters)
}

// GUARANTEE: Cycles over theaters
#[test]
fn a_ring_of_theaters_fails_with_its_path() {
    let rings: [(&[usize], usize); 4] = [(&[0, 1], 2), (&[0, 1, 2], 3), (&[0, 0, 1], 3), (&[1, 2], 2)];
    for (locations, length) in rings {
        for seed in 0..50 {
            let (net, theaters) = simulated(seed);
            let edges: Vec<_> = (0..locations.len()).map(|at| vec![(at + 1) % locations.len()]).collect();
            let nodes = graph(&theaters, locations, &edges);
            let error = nodes[0].ask(Descend(length as u32)).wait().unwrap().unwrap_err();
            let AskError::Cycle(path) = error else { panic!("{error:?}") };
            assert!(path.len() == length + 1 && path.first() == path.last(), "seed {seed}: {path:?}");
            // A node that was asked before continues.
            net.run_until_idle();
            assert_eq!(nodes[1].ask(Descend(1)).wait(), Ok(Ok(2)));
        }
    }
}

// GUARANTEE: Cycles over theaters
#[test]
fn threads_find_a_cycle_too_and_a_long_wait_is_none() {
    let theater = || crate::support::builder().start().unwrap();
    let theaters = [theater(), theater(), theater()];
    let nodes = graph(&theaters, &[0, 1, 2, 1], &[vec![1, 1], vec![2], vec![0], vec![]]);
    let error = nodes[0].ask(Descend(3)).within(LIMIT).wait().unwrap().unwrap_err();
    assert!(matches!(error, AskError::Cycle(_)), "{error:?}");
    for theater in &theaters {
        theater.system().run_until_idle();
    }
    // The depth is too small for a cycle.
    assert_eq!(nodes[0].ask(Descend(2)).within(LIMIT).wait(), Ok(Ok(5)));
    theaters.into_iter().for_each(|theater| drop(theater.shutdown().unwrap()));
}

// GUARANTEE: Cycles over theaters
/// Random graphs, asked from several sides at once, over connections that break, while the actors move.
#[test]
fn every_ask_ends_and_what_is_no_cycle_comes_through_under_every_seed() {
    let seeds = std::env::var("SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(700);
    let (mut cycles, mut through) = (0, 0);
    for seed in 0..seeds {
        let (net, theaters) = simulated(seed);
        let locations: Vec<usize> = (0..5).map(|_| net.choose(3)).collect();
        let acyclic = net.choose(2) == 0;
        let edge = |from: usize| {
            let to = net.choose(5);
            if acyclic { from + 1 + to } else { to }
        };
        let edges: Vec<Vec<usize>> =
            (0..5).map(|from| (0..1 + net.choose(2)).map(|_| edge(from)).filter(|to| *to < 5).collect()).collect();
        let nodes = graph(&theaters, &locations, &edges);
        net.break_by_chance(Duration::from_millis(50));
        let asks: Vec<_> = (0..4).map(|_| nodes[net.choose(5)].ask(Descend(6))).collect();
        let mut asks: Vec<_> = asks.into_iter().map(Box::pin).collect();
        let mut noop = std::task::Context::from_waker(std::task::Waker::noop());
        let mut answers = Vec::new();
        asks.retain_mut(|ask| match ask.as_mut().poll(&mut noop) {
            std::task::Poll::Ready(answer) => {
                answers.push(answer);
                false
            }
            std::task::Poll::Pending => true,
        });
        for _ in 0..net.choose(3) {
            net.run_for(Duration::from_micros(net.choose(20_000) as u64));
            nodes[net.choose(5)].tell(GoTo(theaters[net.choose(3)].address().unwrap()));
        }
        net.run_for(Duration::from_millis(300));
        net.calm();
        net.run_until_idle();
        for mut ask in asks {
            match ask.as_mut().poll(&mut noop) {
                std::task::Poll::Ready(answer) => answers.push(answer),
                std::task::Poll::Pending => panic!("seed {seed}: an ask has not ended: {locations:?} {edges:?}"),
            }
        }
        for answer in answers {
            match answer {
                Ok(Ok(_)) => through += 1,
                Ok(Err(AskError::Cycle(path))) if !acyclic => {
                    cycles += 1;
                    assert_eq!(path.first(), path.last(), "seed {seed}");
                }
                other => panic!("seed {seed}: {other:?} of {locations:?} {edges:?}"),
            }
        }
    }
    assert!(cycles > 100 && through > 100, "{cycles} cycles, {through} came through");
}
