//! The election of a leader. Candidates capture each other, with all that each has captured before. The leader is the
//! candidate with more than half of them.

use std::sync::Arc;

use playhouse::prelude::*;

use super::passing::{pass, share, write};

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Candidate,
    Captured,
    Elected,
    Surrendered,
}

struct Node {
    position: usize,
    nodes: Arc<[ActorRef<Node>]>,
    captured: Arc<Vec<usize>>,
    state: State,
    leader: Option<ActorRef<Node>>,
}

impl Node {
    /// Tells all others how strong this candidate is.
    fn claim(&self, this: ActorRef<Node>) {
        for node in self.nodes.iter().filter(|node| **node != this) {
            node.tell(Capture(pass(this), pass(self.position), share(&self.captured)));
        }
    }
}

#[actor]
impl Node {
    #[message]
    fn init(&mut self, nodes: Arc<[ActorRef<Node>]>) {
        self.nodes = nodes;
    }

    #[message]
    fn start(&mut self, ctx: &mut Context<Self>) {
        if self.state == State::Candidate {
            self.claim(ctx.this());
        }
    }

    #[message]
    fn capture(&mut self, claimant: ActorRef<Node>, position: usize, captured: Arc<Vec<usize>>) {
        let is_stronger = (captured.len(), position) > (self.captured.len(), self.position);
        if self.state == State::Candidate && is_stronger {
            (self.state, self.leader) = (State::Captured, Some(claimant));
            claimant.tell(Accept(pass(self.position), pass(std::mem::take(&mut self.captured))));
        }
    }

    #[message]
    fn accept(&mut self, captive: usize, captives: Arc<Vec<usize>>, ctx: &mut Context<Self>) {
        match (self.state, self.leader) {
            (State::Candidate, _) => {
                let captured = write(&mut self.captured);
                captured.push(captive);
                captured.extend(captives.iter());
                if self.captured.len() < self.nodes.len() / 2 {
                    return self.claim(ctx.this());
                }
                (self.state, self.leader) = (State::Elected, Some(ctx.this()));
                for node in self.nodes.iter().filter(|node| **node != ctx.this()) {
                    node.tell(Elect(pass(ctx.this())));
                }
            }
            (State::Captured, Some(leader)) => leader.tell(Accept(pass(captive), pass(captives))),
            _ => {}
        }
    }

    #[message]
    fn elect(&mut self, leader: ActorRef<Node>) {
        (self.state, self.leader) = (State::Surrendered, Some(leader));
    }

    #[message]
    fn leader(&self) -> (Option<ActorRef<Node>>, bool) {
        (self.leader, self.state == State::Elected)
    }
}

pub(super) fn run(system: &System, nodes: usize) -> playhouse::Result<bool> {
    let node = |position| Node {
        position,
        nodes: Arc::default(),
        captured: Arc::default(),
        state: State::Candidate,
        leader: None,
    };
    let nodes: Arc<[_]> = (0..nodes).map(|position| system.spawn(node(position))).collect();
    for node in nodes.iter() {
        node.tell(Init(share(&nodes)));
    }
    system.run_until_idle();
    for node in nodes.iter() {
        node.tell(Start);
    }
    system.run_until_idle();
    let mut leaders = Vec::new();
    for node in nodes.iter() {
        leaders.push(node.ask(Leader).wait()?);
    }
    let elected = leaders.iter().filter(|(_, is_elected)| *is_elected).count();
    Ok(elected == 1 && leaders.iter().all(|(leader, _)| leader.is_some() && *leader == leaders[0].0))
}
