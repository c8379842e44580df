//! Recursive matrix multiplication: blocks are split until they are small enough; a collector adds the products up.

use std::sync::Arc;

use playhouse::prelude::*;

use super::{lead, program};
use crate::harness::benchmark::Benchmark;
use crate::harness::finish::Finish;
use crate::harness::outcome::{Failure, Outcome, Size, check};
use crate::harness::steps::Steps;

pub(crate) const RECMATMUL: Benchmark = program(
    "savina-recmatmul",
    "element",
    "1,024 x 1,024 elements, split into blocks of 128 x 128 dealt to 20 workers, whose products are moved and added up",
    run,
);

const WORKERS: usize = 20;

/// A square matrix, row after row. The factors never change, therefore all workers read the same memory.
struct Matrix {
    side: usize,
    elements: Vec<u64>,
}

impl Matrix {
    fn new(side: usize, element: impl Fn(usize, usize) -> u64) -> Self {
        Self { side, elements: (0..side * side).map(|at| element(at / side, at % side)).collect() }
    }

    /// Returns this number of elements of a row, from a column on.
    fn row(&self, row: usize, column: usize, count: usize) -> &[u64] {
        &self.elements[row * self.side + column..][..count]
    }

    /// Adds a block at this place.
    fn add(&mut self, row: usize, column: usize, block: &Matrix) {
        for (at, add) in block.elements.chunks(block.side).enumerate() {
            let from = (row + at) * self.side + column;
            for (sum, add) in self.elements[from..from + block.side].iter_mut().zip(add) {
                *sum += add;
            }
        }
    }
}

/// The two factors.
#[derive(Clone)]
struct Factors {
    a: Arc<Matrix>,
    b: Arc<Matrix>,
}

/// A block of the result at `row` and `column`, and the part of its sum that begins at `inner`.
#[derive(Clone, Copy)]
struct Block {
    row: usize,
    column: usize,
    inner: usize,
    side: usize,
}

impl Block {
    fn eighths(self) -> impl Iterator<Item = Block> {
        let side = self.side / 2;
        (0..8).map(move |part| Block {
            row: self.row + (part & 1) * side,
            column: self.column + (part >> 1 & 1) * side,
            inner: self.inner + (part >> 2) * side,
            side,
        })
    }

    fn product(self, factors: &Factors) -> Matrix {
        let mut product = Matrix::new(self.side, |_, _| 0);
        for (row, sums) in product.elements.chunks_mut(self.side).enumerate() {
            let left = factors.a.row(self.row + row, self.inner, self.side);
            for (inner, left) in left.iter().enumerate() {
                let right = factors.b.row(self.inner + inner, self.column, self.side);
                for (sum, right) in sums.iter_mut().zip(right) {
                    *sum += left * right;
                }
            }
        }
        product
    }
}

struct Worker {
    factors: Factors,
    threshold: usize,
    work: Steps,
    master: ActorRef<Master>,
}

#[actor]
impl Worker {
    #[message]
    fn multiply(&self, block: Block) {
        self.work.work();
        if block.side * block.side > self.threshold {
            self.master.tell(Split(block.eighths().collect()));
        } else {
            self.master.tell(Product(block.row, block.column, block.product(&self.factors)));
        }
    }
}

/// Deals the blocks, and collects the result.
struct Master {
    factors: Factors,
    threshold: usize,
    work: Steps,
    workers: Vec<ActorRef<Worker>>,
    dealt: usize,
    waiting: usize,
    result: Matrix,
    finish: Finish<Matrix>,
}

#[actor]
impl Master {
    #[message]
    fn start(&mut self, ctx: &mut Context<Self>) {
        let master = ctx.this();
        for _ in 0..WORKERS {
            let factors = self.factors.clone();
            self.workers.push(ctx.spawn(Worker { factors, threshold: self.threshold, work: self.work, master }));
        }
        self.deal(Block { row: 0, column: 0, inner: 0, side: self.result.side });
    }

    #[message]
    fn split(&mut self, blocks: Vec<Block>) {
        self.waiting -= 1;
        blocks.into_iter().for_each(|block| self.deal(block));
    }

    #[message]
    fn product(&mut self, row: usize, column: usize, block: Matrix) {
        self.waiting -= 1;
        self.result.add(row, column, &block);
        if self.waiting == 0 {
            self.finish.reached(std::mem::replace(&mut self.result, Matrix::new(0, |_, _| 0)));
        }
    }

    fn deal(&mut self, block: Block) {
        self.workers[self.dealt % WORKERS].tell(Multiply(block));
        self.dealt += 1;
        self.waiting += 1;
    }
}

fn run(system: &System, size: Size, work: Steps) -> Result<Outcome, Failure> {
    let (side, threshold) = size.smoke_or((64, 256), (1_024, 16_384));
    let a = Arc::new(Matrix::new(side, |row, _| row as u64));
    let b = Arc::new(Matrix::new(side, |_, column| column as u64));
    let master = |finish| Master {
        factors: Factors { a, b },
        threshold,
        work,
        workers: Vec::new(),
        dealt: 0,
        waiting: 0,
        result: Matrix::new(side, |_, _| 0),
        finish,
    };
    let (elapsed, result) = lead(system, size, master, Start)?;
    check("the first wrong element", None, first_wrong(&result))?;
    Ok(Outcome::new((side * side) as u64, elapsed))
}

/// Returns the first position where the result is not `side * row * column`.
fn first_wrong(result: &Matrix) -> Option<usize> {
    let side = result.side;
    (0..side * side).find(|at| result.elements[*at] != (side * (at / side) * (at % side)) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_element_is_found() {
        let mut result = Matrix::new(8, |row, column| 8 * (row * column) as u64);
        assert_eq!(first_wrong(&result), None);
        result.add(3, 4, &Matrix::new(1, |_, _| 1));
        assert_eq!(first_wrong(&result), Some(3 * 8 + 4));
    }
}
