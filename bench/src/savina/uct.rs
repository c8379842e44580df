//! Unbalanced cobwebbed tree: a tree of actors grows, and then a wave of work goes through it, partly in the urgent lane.

use playhouse::prelude::*;

use super::{dice, lead, program};
use crate::harness::benchmark::Benchmark;
use crate::harness::busy_work::Work;
use crate::harness::finish::Finish;
use crate::harness::outcome::{Failure, Outcome, Size, check};
use crate::harness::steps::Steps;

pub(crate) const UCT: Benchmark = program(
    "savina-uct",
    "node",
    "a tree of 200,000 actors grows, up to 10 children each, then works 400 to 600 steps each; half are urgent",
    run,
);

const CHILDREN_MAX: usize = 10;
const STEPS: u32 = 500;
const STEPS_SPREAD: u32 = 100;

/// A node before its growth: the seed of its dice, and the number of nodes in its subtree.
#[derive(Clone, Copy)]
struct Seed {
    number: u32,
    nodes: u32,
    urgent: bool,
}

impl Seed {
    /// Returns the children, which get unequal shares of the nodes below. Their numbers are unique: each takes as many as it
    /// has nodes.
    fn children(self) -> Vec<Seed> {
        let mut dice = dice(self.number);
        let (mut number, mut left) = (self.number + 1, self.nodes - 1);
        let mut children = Vec::new();
        while left > 0 {
            let last = children.len() + 1 == CHILDREN_MAX;
            let nodes = if last { left } else { 1 + dice.pick(left as usize) as u32 / 2 };
            children.push(Seed { number, nodes, urgent: dice.pick(2) == 0 });
            number += nodes;
            left -= nodes;
        }
        children
    }

    /// Does the work of the node, and returns its result.
    fn work(self) -> u64 {
        let mut dice = dice(!self.number);
        let steps = STEPS - STEPS_SPREAD + dice.pick(2 * STEPS_SPREAD as usize) as u32;
        u64::from(Work::Compute(steps).perform(self.number))
    }
}

/// The receiver of a node's report.
enum Above {
    Node(ActorRef<Node>),
    Finish(Finish<(u32, u64)>),
}

struct Node {
    seed: Seed,
    work: Steps,
    above: Above,
    children: Vec<(ActorRef<Node>, bool)>,
    waiting: usize,
    nodes: u32,
    sum: u64,
}

impl Node {
    fn new(seed: Seed, work: Steps, above: Above) -> Self {
        Self { seed, work, above, children: Vec::new(), waiting: 0, nodes: 0, sum: 0 }
    }

    fn grown_below(&mut self, ctx: &mut Context<Self>) {
        match &self.above {
            Above::Node(above) => above.tell(Grown),
            // The whole tree has grown.
            Above::Finish(_) => ctx.this().tell(Traverse),
        }
    }

    fn done_below(&self) {
        match &self.above {
            Above::Node(above) => above.tell(Done(self.nodes, self.sum)),
            Above::Finish(finish) => finish.reached((self.nodes, self.sum)),
        }
    }
}

#[actor]
impl Node {
    #[message]
    fn grow(&mut self, ctx: &mut Context<Self>) {
        for seed in self.seed.children() {
            let child = ctx.spawn(Node::new(seed, self.work, Above::Node(ctx.this())));
            self.children.push((child, seed.urgent));
            child.tell(Grow);
        }
        self.waiting = self.children.len();
        if self.waiting == 0 {
            self.grown_below(ctx);
        }
    }

    #[message]
    fn grown(&mut self, ctx: &mut Context<Self>) {
        self.waiting -= 1;
        if self.waiting == 0 {
            self.grown_below(ctx);
        }
    }

    #[message]
    fn traverse(&mut self) {
        for &(child, urgent) in &self.children {
            if urgent { child.tell_urgent(Traverse) } else { child.tell(Traverse) }
        }
        self.work.work();
        self.nodes = 1;
        self.sum = self.seed.work();
        self.waiting = self.children.len();
        if self.waiting == 0 {
            self.done_below();
        }
    }

    #[message]
    fn done(&mut self, nodes: u32, sum: u64) {
        self.nodes += nodes;
        self.sum += sum;
        self.waiting -= 1;
        if self.waiting == 0 {
            self.done_below();
        }
    }
}

fn run(system: &System, size: Size, work: Steps) -> Result<Outcome, Failure> {
    let nodes = size.smoke_or(500, 200_000);
    let root = Seed { number: 0, nodes, urgent: false };
    let (elapsed, found) = lead(system, size, |finish| Node::new(root, work, Above::Finish(finish)), Grow)?;
    check("the nodes and the sum of their work", walk(root), found)?;
    Ok(Outcome::new(u64::from(nodes), elapsed))
}

fn walk(root: Seed) -> (u32, u64) {
    let (mut nodes, mut sum, mut left) = (0, 0, vec![root]);
    while let Some(seed) = left.pop() {
        nodes += 1;
        sum += seed.work();
        left.extend(seed.children());
    }
    (nodes, sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_has_its_nodes_and_is_unbalanced() {
        let root = Seed { number: 0, nodes: 5_000, urgent: false };
        assert_eq!(walk(root).0, 5_000);
        let children = root.children();
        let (most, least) = (children.iter().map(|c| c.nodes).max(), children.iter().map(|c| c.nodes).min());
        assert!(children.len() <= CHILDREN_MAX && most > least.map(|least| 2 * least), "{most:?} {least:?}");
    }
}
