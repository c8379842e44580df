//! A* search: a master has the most promising places in a queue; workers go on from one of them, each as far as it may.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::sync::Arc;

use playhouse::prelude::*;

use super::{dice, lead, program};
use crate::harness::benchmark::Benchmark;
use crate::harness::finish::Finish;
use crate::harness::outcome::{Failure, Outcome, Size, check};
use crate::harness::steps::Steps;

pub(crate) const ASTAR: Benchmark = program(
    "savina-astar",
    "node",
    "from one corner of a grid of 30 x 30 x 30 to the other; 20 workers go on from the most promising node, 1,024 at a time",
    run,
);

const WORKERS: usize = 20;
const TOLL_MAX: usize = 10;

/// The cost of entering each node. It never changes, therefore all workers read the same memory.
struct Grid {
    side: u32,
    tolls: Vec<u32>,
}

impl Grid {
    fn new(side: u32) -> Self {
        let mut dice = dice(0);
        Self { side, tolls: (0..side.pow(3)).map(|_| dice.pick(TOLL_MAX) as u32 + 1).collect() }
    }

    fn goal(&self) -> u32 {
        self.side.pow(3) - 1
    }

    fn place(&self, node: u32) -> [u32; 3] {
        [node % self.side, node / self.side % self.side, node / self.side.pow(2)]
    }

    /// Returns the least possible cost of the path to the goal.
    fn least(&self, node: u32) -> u32 {
        self.place(node).iter().map(|place| self.side - 1 - place).sum()
    }

    fn neighbours(&self, node: u32) -> impl Iterator<Item = u32> {
        let (side, place) = (self.side, self.place(node));
        [1, side, side * side].into_iter().zip(place).flat_map(move |(step, place)| {
            let back = (place > 0).then(|| node - step);
            let on = (place + 1 < side).then_some(node + step);
            back.into_iter().chain(on)
        })
    }
}

/// A node that can be reached at this cost.
#[derive(Clone, Copy)]
struct Reached {
    node: u32,
    cost: u32,
    from: u32,
    /// Nodes that no search has expanded.
    open: bool,
}

/// Nodes by the least possible cost of the path through them.
#[derive(Default)]
struct Frontier(BinaryHeap<Reverse<(u32, u32, u32)>>);

impl Frontier {
    fn push(&mut self, grid: &Grid, node: u32, cost: u32) {
        self.0.push(Reverse((cost + grid.least(node), node, cost)));
    }

    /// Returns the most promising node, its cost, and the least possible cost of the path through it.
    fn pop(&mut self) -> Option<(u32, u32, u32)> {
        self.0.pop().map(|Reverse((least, node, cost))| (node, cost, least))
    }
}

/// Expands nodes from a start until this number is done; returns the reached nodes.
fn explore(grid: &Grid, start: u32, cost: u32, most: usize) -> Vec<Reached> {
    let mut best = HashMap::from([(start, Reached { node: start, cost, from: start, open: true })]);
    let mut frontier = Frontier::default();
    frontier.push(grid, start, cost);
    let mut done = 0;
    while done < most {
        let Some((node, cost, _)) = frontier.pop() else { break };
        match best.get_mut(&node) {
            Some(reached) if reached.open && reached.cost == cost => reached.open = false,
            _ => continue,
        }
        done += 1;
        for next in grid.neighbours(node) {
            let cost = cost + grid.tolls[next as usize];
            if best.get(&next).is_none_or(|known| cost < known.cost) {
                best.insert(next, Reached { node: next, cost, from: node, open: true });
                frontier.push(grid, next, cost);
            }
        }
        if node == grid.goal() {
            break;
        }
    }
    best.remove(&start);
    best.into_values().collect()
}

struct Worker {
    grid: Arc<Grid>,
    most: usize,
    work: Steps,
    master: ActorRef<Master>,
}

#[actor]
impl Worker {
    #[message]
    fn search(&self, node: u32, cost: u32, ctx: &mut Context<Self>) {
        self.work.work();
        self.master.tell(Explored(explore(&self.grid, node, cost, self.most), ctx.this()));
    }
}

struct Master {
    grid: Arc<Grid>,
    most: usize,
    work: Steps,
    /// The best known path to each node.
    best: Vec<Reached>,
    frontier: Frontier,
    idle: Vec<ActorRef<Worker>>,
    finish: Finish<Vec<Reached>>,
}

impl Master {
    /// Gives idle workers nodes. At the end all are idle and no node left could improve the path.
    fn deal(&mut self) {
        while let Some(&worker) = self.idle.last() {
            let Some((node, cost, least)) = self.frontier.pop() else { break };
            let to_beat = self.best[self.grid.goal() as usize].cost;
            let best = &mut self.best[node as usize];
            if best.open && best.cost == cost && least < to_beat {
                best.open = false;
                self.idle.pop();
                worker.tell(Search(node, cost));
            }
        }
        if self.idle.len() == WORKERS {
            self.finish.reached(std::mem::take(&mut self.best));
        }
    }
}

#[actor]
impl Master {
    #[message]
    fn start(&mut self, ctx: &mut Context<Self>) {
        let master = ctx.this();
        for _ in 0..WORKERS {
            let grid = Arc::clone(&self.grid);
            self.idle.push(ctx.spawn(Worker { grid, most: self.most, work: self.work, master }));
        }
        self.best[0].cost = 0;
        self.frontier.push(&self.grid, 0, 0);
        self.deal();
    }

    #[message]
    fn explored(&mut self, reached: Vec<Reached>, worker: ActorRef<Worker>) {
        for reached in reached {
            let best = &mut self.best[reached.node as usize];
            if reached.cost < best.cost {
                *best = reached;
                if reached.open {
                    self.frontier.push(&self.grid, reached.node, reached.cost);
                }
            } else if reached.cost == best.cost {
                best.open &= reached.open;
            }
        }
        self.idle.push(worker);
        self.deal();
    }
}

fn run(system: &System, size: Size, work: Steps) -> Result<Outcome, Failure> {
    let (side, most) = size.smoke_or((8, 16), (30, 1_024));
    let grid = Arc::new(Grid::new(side));
    let given = Arc::clone(&grid);
    let best = (0..grid.goal() + 1).map(|node| Reached { node, cost: u32::MAX, from: node, open: true }).collect();
    let (frontier, idle) = (Frontier::default(), Vec::new());
    let master = |finish| Master { grid: given, most, work, best, frontier, idle, finish };
    let (elapsed, best) = lead(system, size, master, Start)?;
    let goal = grid.goal();
    check("the cost of the way", shortest(&grid), best[goal as usize].cost)?;
    check("the cost of the way back", best[goal as usize].cost, walked(&grid, &best))?;
    Ok(Outcome::new(grid.tolls.len() as u64, elapsed))
}

/// Returns the tolls of the path back from the goal.
fn walked(grid: &Grid, best: &[Reached]) -> u32 {
    let back = |&node: &u32| Some(best[node as usize].from).filter(|_| node != 0);
    let way = std::iter::successors(Some(grid.goal()), back).take(grid.tolls.len());
    way.filter(|&node| node != 0).map(|node| grid.tolls[node as usize]).sum()
}

/// Returns the cost of the cheapest path, by Dijkstra's algorithm.
fn shortest(grid: &Grid) -> u32 {
    let mut best = vec![u32::MAX; grid.tolls.len()];
    let mut frontier = BinaryHeap::from([Reverse((0, 0))]);
    best[0] = 0;
    while let Some(Reverse((cost, node))) = frontier.pop() {
        if best[node as usize] < cost {
            continue;
        }
        for next in grid.neighbours(node) {
            let cost = cost + grid.tolls[next as usize];
            if cost < best[next as usize] {
                best[next as usize] = cost;
                frontier.push(Reverse((cost, next)));
            }
        }
    }
    best[grid.goal() as usize]
}
