//! Shortest paths from one node of a graph. Each node tells its neighbours about a shorter path.

use playhouse::prelude::*;

/// The edges of the graph: from, to, length.
const EDGES: [(usize, usize, u64); 5] = [(0, 1, 4), (0, 2, 1), (2, 1, 1), (1, 3, 1), (2, 3, 5)];
const NODES: usize = 4;

struct Node {
    distance: Option<u64>,
    neighbours: Vec<(ActorRef<Node>, u64)>,
    bug: bool,
}

#[derive(Message)]
struct Join(ActorRef<Node>, u64);

#[derive(Message)]
struct Reached(u64);

#[derive(Message)]
#[message(reply = Option<u64>)]
struct Distance;

impl Actor for Node {}

impl Handler<Join> for Node {
    fn handle(&mut self, join: Join, _: &mut Context<Self>) {
        self.neighbours.push((join.0, join.1));
    }
}

impl Handler<Reached> for Node {
    fn handle(&mut self, reached: Reached, _: &mut Context<Self>) {
        if self.distance.is_none_or(|known| reached.0 < known && !self.bug) {
            self.distance = Some(reached.0);
            for (neighbour, length) in &self.neighbours {
                neighbour.tell(Reached(reached.0 + length));
            }
        }
    }
}

impl Handler<Distance> for Node {
    fn handle(&mut self, _: Distance, _: &mut Context<Self>) -> Option<u64> {
        self.distance
    }
}

pub(super) fn find(system: &System, bug: bool) -> u64 {
    let nodes: Vec<_> = (0..NODES)
        .map(|n| {
            let name = SpawnOptions::new().name(format!("{n}"));
            system.spawn_with(name, Node { distance: None, neighbours: Vec::new(), bug })
        })
        .collect();
    for (from, to, length) in EDGES {
        nodes[from].tell(Join(nodes[to], length));
    }
    system.run_until_idle();
    nodes[0].tell(Reached(0));
    system.run_until_idle();
    let distances = nodes.iter().map(|node| node.ask(Distance).wait().expect("nodes do not end"));
    distances.map(|distance| distance.expect("every node is reached")).fold(0, |all, distance| all * 10 + distance)
}
