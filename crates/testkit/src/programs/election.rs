//! Leader election in a ring (Chang and Roberts 1979).

use playhouse::prelude::*;

const NODES: u32 = 3;

struct Node {
    number: u32,
    next: Option<ActorRef<Node>>,
    /// Whether the node stands for election, or knows a better candidate.
    takes_part: bool,
    is_leader: bool,
    bug: bool,
}

#[derive(Message)]
struct Join(ActorRef<Node>);

#[derive(Message)]
struct Begin;

#[derive(Message)]
struct Candidate(u32);

#[derive(Message)]
#[message(reply = bool)]
struct IsLeader;

impl Actor for Node {}

impl Node {
    fn stand(&mut self) {
        self.takes_part = true;
        self.send(self.number);
    }

    fn send(&self, candidate: u32) {
        self.next.expect("the ring is closed first").tell(Candidate(candidate));
    }
}

impl Handler<Join> for Node {
    fn handle(&mut self, join: Join, _: &mut Context<Self>) {
        self.next = Some(join.0);
    }
}

impl Handler<Begin> for Node {
    fn handle(&mut self, _: Begin, _: &mut Context<Self>) {
        if !self.takes_part {
            self.stand();
        }
    }
}

impl Handler<Candidate> for Node {
    fn handle(&mut self, candidate: Candidate, _: &mut Context<Self>) {
        let knew = std::mem::replace(&mut self.takes_part, true);
        if candidate.0 == self.number {
            self.is_leader = true;
        } else if candidate.0 > self.number {
            self.send(candidate.0);
        } else if !knew && !self.bug {
            self.stand();
        }
    }
}

impl Handler<IsLeader> for Node {
    fn handle(&mut self, _: IsLeader, _: &mut Context<Self>) -> bool {
        self.is_leader
    }
}

pub(super) fn elect(system: &System, bug: bool) -> u64 {
    let nodes: Vec<_> = (0..NODES)
        .map(|number| {
            let name = SpawnOptions::new().name(format!("{number}"));
            system.spawn_with(name, Node { number, next: None, takes_part: false, is_leader: false, bug })
        })
        .collect();
    for (n, node) in nodes.iter().enumerate() {
        node.tell(Join(nodes[(n + 1) % nodes.len()]));
    }
    system.run_until_idle();
    for node in &nodes {
        node.tell(Begin);
    }
    system.run_until_idle();
    let leaders: Vec<usize> =
        (0..nodes.len()).filter(|n| nodes[*n].ask(IsLeader).wait().expect("nodes do not end")).collect();
    assert_eq!(leaders, [nodes.len() - 1], "the highest is the only leader");
    leaders[0] as u64
}
