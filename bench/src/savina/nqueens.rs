//! N queens: workers place one queen after the other; boards with many queens are urgent.

use playhouse::prelude::*;

use super::{lead, program};
use crate::harness::benchmark::Benchmark;
use crate::harness::finish::Finish;
use crate::harness::outcome::{Failure, Outcome, Size, check};
use crate::harness::steps::Steps;

pub(crate) const NQUEENS: Benchmark = program(
    "savina-nqueens",
    "solution",
    "all 14,200 ways to place 12 queens; 20 workers place up to 4 queens one at a time, then the rest at once",
    run,
);

const WORKERS: usize = 20;
/// The numbers of solutions of boards from 1 x 1 on.
const SOLUTIONS: [u64; 12] = [1, 0, 0, 2, 10, 4, 40, 92, 352, 724, 2_680, 14_200];

/// The columns of the queens that stand, row by row.
type Board = Vec<u8>;

/// Returns whether the last queen is safe.
fn is_safe(board: &[u8]) -> bool {
    let Some((last, others)) = board.split_last() else { return true };
    others.iter().rev().enumerate().all(|(at, queen)| {
        let distance = queen.abs_diff(*last);
        distance != 0 && usize::from(distance) != at + 1
    })
}

/// Returns the number of solutions that begin with this board.
fn solutions(board: &mut Board, side: u8) -> u64 {
    if board.len() == usize::from(side) {
        return 1;
    }
    let mut found = 0;
    for column in 0..side {
        board.push(column);
        if is_safe(board) {
            found += solutions(board, side);
        }
        board.pop();
    }
    found
}

struct Worker {
    side: u8,
    threshold: usize,
    work: Steps,
    master: ActorRef<Master>,
}

#[actor]
impl Worker {
    #[message]
    fn place(&self, mut board: Board) {
        self.work.work();
        if board.len() >= self.threshold {
            return self.master.tell(Done(solutions(&mut board, self.side)));
        }
        for column in 0..self.side {
            let mut next = Board::with_capacity(board.len() + 1);
            next.extend_from_slice(&board);
            next.push(column);
            if is_safe(&next) {
                self.master.tell(Deal(next));
            }
        }
        self.master.tell(Done(0));
    }
}

/// Deals boards to the workers in turn.
struct Master {
    side: u8,
    threshold: usize,
    work: Steps,
    workers: Vec<ActorRef<Worker>>,
    dealt: usize,
    waiting: usize,
    found: u64,
    finish: Finish<u64>,
}

#[actor]
impl Master {
    #[started]
    fn employ(&mut self, ctx: &mut Context<Self>) {
        let (side, threshold, work, master) = (self.side, self.threshold, self.work, ctx.this());
        self.workers = (0..WORKERS).map(|_| ctx.spawn(Worker { side, threshold, work, master })).collect();
    }

    /// A worker sends its boards before it reports the end of its own one; the count of open boards is therefore 0 only at
    /// the end.
    #[message]
    fn deal(&mut self, board: Board) {
        let worker = self.workers[self.dealt % WORKERS];
        self.dealt += 1;
        self.waiting += 1;
        let is_urgent = board.len() >= self.threshold;
        if is_urgent { worker.tell_urgent(Place(board)) } else { worker.tell(Place(board)) }
    }

    #[message]
    fn done(&mut self, solutions: u64) {
        self.found += solutions;
        self.waiting -= 1;
        if self.waiting == 0 {
            self.finish.reached(self.found);
        }
    }
}

fn run(system: &System, size: Size, work: Steps) -> Result<Outcome, Failure> {
    let (side, threshold) = size.smoke_or((7, 2), (12, 4));
    let master = |finish| Master { side, threshold, work, workers: Vec::new(), dealt: 0, waiting: 0, found: 0, finish };
    let (elapsed, found) = lead(system, size, master, Deal(Board::new()))?;
    let expected = SOLUTIONS[usize::from(side) - 1];
    check("the number of solutions", expected, found)?;
    Ok(Outcome::new(expected, elapsed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boards_have_as_many_solutions_as_the_books_say() {
        for side in 1..=8 {
            assert_eq!(solutions(&mut Board::new(), side), SOLUTIONS[usize::from(side) - 1]);
        }
    }
}
