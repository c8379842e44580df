//! All-pairs shortest path: Floyd and Warshall's algorithm, with an actor for each block of the matrix.
//!
//! In phase `k` each block needs its part of row `k` and of column `k`. Their owners send them to all blocks of the same column
//! or row after phase `k - 1`. A block that is behind keeps early parts, by phase.

use std::collections::VecDeque;
use std::sync::Arc;

use playhouse::prelude::*;

use super::{dice, lead, program};
use crate::harness::benchmark::Benchmark;
use crate::harness::finish::Finish;
use crate::harness::outcome::{Failure, Outcome, Size, check};
use crate::harness::steps::Steps;

pub(crate) const APSP: Benchmark = program(
    "savina-apsp",
    "update",
    "300 nodes in blocks of 50 x 50; a block sends its part of row and column k to the others in phase k",
    run,
);

const LENGTH_MAX: usize = 100;

/// The lengths of the edges, row after row.
fn graph(nodes: usize) -> Vec<u32> {
    let mut dice = dice(0);
    let edge = |at: usize| if at / nodes == at % nodes { 0 } else { dice.pick(LENGTH_MAX) as u32 + 1 };
    (0..nodes * nodes).map(edge).collect()
}

/// Blocks by their row and column.
type Blocks = Arc<[ActorRef<Block>]>;

/// The received parts for a phase.
#[derive(Default)]
struct Phase {
    row: Option<Arc<[u32]>>,
    column: Option<Arc<[u32]>>,
}

struct Block {
    /// Nodes per side of a block, and blocks per side of the matrix.
    side: usize,
    blocks: usize,
    row: usize,
    column: usize,
    lengths: Vec<u32>,
    others: Blocks,
    phase: usize,
    /// This phase's, then those of phases to come.
    known: VecDeque<Phase>,
    work: Steps,
    master: ActorRef<Master>,
}

impl Block {
    /// Sends this block's part of row and column `phase`.
    fn share(&mut self) {
        let (owner, at) = (self.phase / self.side, self.phase % self.side);
        if owner == self.row {
            let part: Arc<[u32]> = self.lengths[at * self.side..][..self.side].into();
            for row in 0..self.blocks {
                self.others[row * self.blocks + self.column].tell(Row(self.phase, Arc::clone(&part)));
            }
        }
        if owner == self.column {
            let part: Arc<[u32]> = self.lengths.iter().skip(at).step_by(self.side).copied().collect();
            for column in 0..self.blocks {
                self.others[self.row * self.blocks + column].tell(Column(self.phase, Arc::clone(&part)));
            }
        }
    }

    /// Returns the entry of a phase that is not over.
    fn entry(&mut self, phase: usize) -> &mut Phase {
        let ahead = phase - self.phase;
        if self.known.len() <= ahead {
            self.known.resize_with(ahead + 1, Phase::default);
        }
        &mut self.known[ahead]
    }

    fn go_on(&mut self) {
        while let Some(Phase { row: Some(row), column: Some(column) }) = self.known.front() {
            self.work.work();
            for (lengths, to) in self.lengths.chunks_mut(self.side).zip(column.iter()) {
                for (length, from) in lengths.iter_mut().zip(row.iter()) {
                    *length = (*length).min(to + from);
                }
            }
            self.known.pop_front();
            self.phase += 1;
            if self.phase == self.side * self.blocks {
                self.master.tell(Ended(self.row, self.column, std::mem::take(&mut self.lengths)));
            } else {
                self.share();
            }
        }
    }
}

#[actor]
impl Block {
    #[message]
    fn begin(&mut self, others: Blocks) {
        self.others = others;
        self.share();
    }

    #[message]
    fn row(&mut self, phase: usize, part: Arc<[u32]>) {
        self.entry(phase).row = Some(part);
        self.go_on();
    }

    #[message]
    fn column(&mut self, phase: usize, part: Arc<[u32]>) {
        self.entry(phase).column = Some(part);
        self.go_on();
    }
}

struct Master {
    side: usize,
    blocks: usize,
    lengths: Vec<u32>,
    work: Steps,
    waiting: usize,
    finish: Finish<Vec<u32>>,
}

impl Master {
    /// Returns the position of row `at` of a block in the matrix.
    fn place(&self, row: usize, column: usize, at: usize) -> std::ops::Range<usize> {
        let from = (row * self.side + at) * self.side * self.blocks + column * self.side;
        from..from + self.side
    }
}

#[actor]
impl Master {
    #[message]
    fn start(&mut self, ctx: &mut Context<Self>) {
        let (side, blocks, work, master) = (self.side, self.blocks, self.work, ctx.this());
        let nobody: Blocks = Arc::new([]);
        let all: Blocks = (0..blocks * blocks)
            .map(|number| {
                let (row, column) = (number / blocks, number % blocks);
                let rows = (0..side).map(|at| &self.lengths[self.place(row, column, at)]);
                let lengths = rows.collect::<Vec<_>>().concat();
                let (others, known) = (Arc::clone(&nobody), VecDeque::new());
                ctx.spawn(Block { side, blocks, row, column, lengths, others, phase: 0, known, work, master })
            })
            .collect();
        all.iter().for_each(|block| block.tell(Begin(Arc::clone(&all))));
    }

    #[message]
    fn ended(&mut self, row: usize, column: usize, lengths: Vec<u32>) {
        for (at, part) in lengths.chunks(self.side).enumerate() {
            let place = self.place(row, column, at);
            self.lengths[place].copy_from_slice(part);
        }
        self.waiting -= 1;
        if self.waiting == 0 {
            self.finish.reached(std::mem::take(&mut self.lengths));
        }
    }
}

fn run(system: &System, size: Size, work: Steps) -> Result<Outcome, Failure> {
    let (side, blocks) = size.smoke_or((5, 4), (50, 6));
    let nodes = side * blocks;
    let mut lengths = graph(nodes);
    let given = lengths.clone();
    let master = |finish| Master { side, blocks, lengths: given, work, waiting: blocks * blocks, finish };
    let (elapsed, found) = lead(system, size, master, Start)?;
    floyd_warshall(&mut lengths, nodes);
    check("that the paths are the shortest", true, lengths == found)?;
    Ok(Outcome::new((nodes * blocks * blocks) as u64, elapsed))
}

fn floyd_warshall(lengths: &mut [u32], nodes: usize) {
    for k in 0..nodes {
        let row = lengths[k * nodes..][..nodes].to_vec();
        for lengths in lengths.chunks_mut(nodes) {
            let to = lengths[k];
            for (length, from) in lengths.iter_mut().zip(&row) {
                *length = (*length).min(to + from);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_way_round_is_found() {
        let mut lengths = vec![0, 9, 1, 9, 0, 9, 9, 2, 0];
        floyd_warshall(&mut lengths, 3);
        assert_eq!(lengths, [0, 3, 1, 9, 0, 9, 9, 2, 0]);
    }
}
