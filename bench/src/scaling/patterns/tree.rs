//! Fork and join: each node of a binary tree spawns its children and awaits them.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;

use playhouse::prelude::*;
use tokio::runtime::Runtime;

use super::{answer, results};
use crate::harness::outcome::{Failure, check};
use crate::scaling::goal::Goal;
use crate::scaling::load::Load;
use crate::scaling::pattern::Pattern;
use crate::scaling::stopwatch::Stopwatch;
use crate::scaling::threads::{Node, Outbox, Partition, with_threads};
use crate::scaling::work::Work;

pub(crate) const TREE: Pattern = Pattern {
    name: "scaling-tree",
    op: "node",
    summary: "a binary tree of up to 2^17 leaves: each node works, spawns two children, and awaits their counts of leaves",
    playhouse: |system, watch, load| playhouse(system, watch, &Plan::of(load)),
    tokio: |runtime, watch, load| tokio(runtime, watch, &Plan::of(load)),
    threads: |count, watch, load| threads(count, watch, &Plan::of(load)),
};

/// The size of one run.
struct Plan {
    depth: u32,
    work: Work,
}

impl Plan {
    fn of(load: &Load) -> Self {
        let depth = load.ops(700).max(2).ilog2().clamp(2, 18) - 1;
        Self { depth, work: load.work }
    }

    fn nodes(&self) -> u64 {
        (2 << self.depth) - 1
    }

    fn check(&self, leaves: u64) -> Result<u64, Failure> {
        check("the number of leaves", 1 << self.depth, leaves)?;
        Ok(self.nodes())
    }
}

struct Tree {
    work: Work,
}

#[actor]
impl Tree {
    /// Counts the leaves of this node's subtree. A failed ask shows in their number.
    #[message]
    async fn count(&mut self, depth: u32, ctx: &mut Context<Self>) -> u64 {
        self.work.run();
        if depth == 0 {
            ctx.stop();
            return 1;
        }
        let children = [ctx.spawn(Tree { work: self.work }), ctx.spawn(Tree { work: self.work })];
        let [left, right] = children.map(|child| child.ask(Count(depth - 1)));
        let (left, right) = both(left, right).await;
        let leaves = left.unwrap_or(0) + right.unwrap_or(0);
        ctx.stop();
        leaves
    }
}

/// Runs two futures at the same time, and returns their outputs. An ask is sent only when it is first polled.
async fn both<L: Future + Unpin, R: Future + Unpin>(mut left: L, mut right: R) -> (L::Output, R::Output) {
    let (mut left_is, mut right_is) = (None, None);
    poll_fn(|cx| {
        if left_is.is_none()
            && let Poll::Ready(output) = Pin::new(&mut left).poll(cx)
        {
            left_is = Some(output);
        }
        if right_is.is_none()
            && let Poll::Ready(output) = Pin::new(&mut right).poll(cx)
        {
            right_is = Some(output);
        }
        if left_is.is_some() && right_is.is_some() { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    (left_is.expect("both are ready"), right_is.expect("both are ready"))
}

struct Root {
    work: Work,
    leaves: u64,
    goal: Goal,
}

#[actor]
impl Root {
    #[message]
    async fn begin(&mut self, depth: u32, ctx: &mut Context<Self>) {
        let tree = ctx.spawn(Tree { work: self.work });
        self.leaves = tree.ask(Count(depth)).await.unwrap_or(0);
        self.goal.part_done();
    }

    #[message]
    fn leaves(&self) -> u64 {
        self.leaves
    }
}

fn playhouse(system: &System, watch: &mut Stopwatch, plan: &Plan) -> Result<u64, Failure> {
    let goal = Goal::new();
    let root = system.spawn(Root { work: plan.work, leaves: 0, goal: goal.clone() });
    system.run_until_idle();
    watch.time(&goal, 1, || root.tell(Begin(plan.depth)))?;
    plan.check(answer(root.ask(Leaves).wait())?)
}

/// Counts the leaves of a node's subtree, with a task for each child.
fn count(work: Work, depth: u32) -> Pin<Box<dyn Future<Output = u64> + Send>> {
    Box::pin(async move {
        work.run();
        if depth == 0 {
            return 1;
        }
        let left = tokio::spawn(count(work, depth - 1));
        let right = tokio::spawn(count(work, depth - 1));
        left.await.unwrap_or(0) + right.await.unwrap_or(0)
    })
}

fn tokio(runtime: &Runtime, watch: &mut Stopwatch, plan: &Plan) -> Result<u64, Failure> {
    let goal = Goal::new();
    let (work, depth) = (plan.work, plan.depth);
    let mut root = None;
    watch.time(&goal, 1, || {
        let goal = goal.clone();
        root = Some(runtime.spawn(async move {
            let leaves = tokio::spawn(count(work, depth)).await.unwrap_or(0);
            goal.part_done();
            leaves
        }));
    })?;
    plan.check(results(runtime, root)?.into_iter().sum())
}

#[derive(Clone, Copy)]
enum Letter {
    Count { depth: u32, parent: u32 },
    Leaves(u64),
}

/// A node of the tree. The numbers are in preorder, and a block of numbers is therefore a part of the tree.
struct TreeNode {
    work: Work,
    parent: Option<u32>,
    open: u8,
    leaves: u64,
    goal: Goal,
}

impl TreeNode {
    fn joined(&self, out: &mut Outbox<'_, Letter>) {
        match self.parent {
            Some(parent) => out.send(parent, Letter::Leaves(self.leaves)),
            None => self.goal.part_done(),
        }
    }
}

impl Node for TreeNode {
    type Message = Letter;

    fn handle(&mut self, me: u32, letter: Letter, out: &mut Outbox<'_, Letter>) {
        match letter {
            Letter::Count { depth, parent } => {
                // The root is its own parent.
                self.parent = (parent != me).then_some(parent);
                self.work.run();
                if depth == 0 {
                    self.leaves = 1;
                    return self.joined(out);
                }
                self.open = 2;
                let (left, nodes_below_left) = (me + 1, (1 << depth) - 1);
                for child in [left, left + nodes_below_left] {
                    out.send(child, Letter::Count { depth: depth - 1, parent: me });
                }
            }
            Letter::Leaves(leaves) => {
                self.leaves += leaves;
                self.open -= 1;
                if self.open == 0 {
                    self.joined(out);
                }
            }
        }
    }
}

fn threads(count: usize, watch: &mut Stopwatch, plan: &Plan) -> Result<u64, Failure> {
    let goal = Goal::new();
    let node = |_| TreeNode { work: plan.work, parent: None, open: 0, leaves: 0, goal: goal.clone() };
    let nodes = (0..plan.nodes()).map(node).collect();
    let nodes = with_threads(count, Partition::Blocks, nodes, |injector| {
        watch.time(&goal, 1, || injector.send([(0, Letter::Count { depth: plan.depth, parent: 0 })]))
    })?;
    plan.check(nodes.first().map_or(0, |root| root.leaves))
}
