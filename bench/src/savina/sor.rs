//! Successive over-relaxation: an actor per cell; red and black cells take turns, each with the values of its neighbours.

use std::sync::Arc;

use playhouse::prelude::*;

use super::{dice, lead, program};
use crate::harness::benchmark::Benchmark;
use crate::harness::finish::Finish;
use crate::harness::outcome::{Failure, Outcome, Size, check};
use crate::harness::steps::Steps;

pub(crate) const SOR: Benchmark = program(
    "savina-sor",
    "update",
    "100 x 100 cells, 100 iterations, omega 1.25; a cell waits for its four neighbours, red cells and black in turn",
    run,
);

const OMEGA: f64 = 1.25;

/// The cells, row after row; those at the edge keep their values.
fn grid(side: usize) -> Vec<f64> {
    let mut dice = dice(0);
    (0..side * side).map(|_| f64::from(dice.roll()) * 1e-6).collect()
}

/// Returns whether a cell keeps its value.
fn is_edge(at: usize, side: usize) -> bool {
    [at / side, at % side].iter().any(|place| *place == 0 || *place == side - 1)
}

/// Returns whether a cell is red: red cells begin.
fn is_red(at: usize, side: usize) -> bool {
    (at / side + at % side).is_multiple_of(2)
}

/// The cells above, to the left, to the right and below.
fn neighbours(at: usize, side: usize) -> [usize; 4] {
    [at - side, at - 1, at + 1, at + side]
}

fn relaxed(value: f64, around: [f64; 4]) -> f64 {
    OMEGA / 4.0 * around.iter().sum::<f64>() + (1.0 - OMEGA) * value
}

struct Cell {
    at: usize,
    value: f64,
    around: [f64; 4],
    /// Neighbours that are actors, with the side of theirs that this one is on.
    others: Vec<(ActorRef<Cell>, usize)>,
    missing: usize,
    iterations: u32,
    work: Steps,
    master: ActorRef<Master>,
}

impl Cell {
    fn update(&mut self) {
        self.work.work();
        self.missing = self.others.len();
        self.value = relaxed(self.value, self.around);
        self.others.iter().for_each(|(other, side)| other.tell(Neighbour(*side, self.value)));
        self.iterations -= 1;
        if self.iterations == 0 {
            self.master.tell(Settled(self.at, self.value));
        }
    }
}

#[actor]
impl Cell {
    /// Starts the red cells.
    #[message]
    fn begin(&mut self, cells: Arc<[Option<ActorRef<Cell>>]>, side: usize) {
        let others = neighbours(self.at, side).into_iter().zip([3, 2, 1, 0]);
        self.others = others.filter_map(|(at, mine)| Some((cells[at]?, mine))).collect();
        self.missing += self.others.len();
        if is_red(self.at, side) {
            self.update();
        }
    }

    #[message]
    fn neighbour(&mut self, side: usize, value: f64) {
        self.around[side] = value;
        self.missing -= 1;
        if self.missing == 0 && self.iterations > 0 {
            self.update();
        }
    }
}

struct Master {
    side: usize,
    iterations: u32,
    values: Vec<f64>,
    work: Steps,
    waiting: usize,
    finish: Finish<Vec<f64>>,
}

#[actor]
impl Master {
    #[message]
    fn start(&mut self, ctx: &mut Context<Self>) {
        let (side, iterations, work, master) = (self.side, self.iterations, self.work, ctx.this());
        let cell = |at: usize| {
            let around = neighbours(at, side).map(|at| self.values[at]);
            let (value, others) = (self.values[at], Vec::new());
            ctx.spawn(Cell { at, value, around, others, missing: 0, iterations, work, master })
        };
        let mut cell = Some(cell);
        let cells: Arc<[_]> = (0..side * side)
            .map(|at| if is_edge(at, side) { None } else { cell.as_mut().map(|cell| cell(at)) })
            .collect();
        cells.iter().flatten().for_each(|cell| cell.tell(Begin(Arc::clone(&cells), side)));
    }

    #[message]
    fn settled(&mut self, at: usize, value: f64) {
        self.values[at] = value;
        self.waiting -= 1;
        if self.waiting == 0 {
            self.finish.reached(std::mem::take(&mut self.values));
        }
    }
}

fn run(system: &System, size: Size, work: Steps) -> Result<Outcome, Failure> {
    let (side, iterations) = size.smoke_or((10, 10), (100, 100));
    let mut expected = grid(side);
    let (values, cells) = (expected.clone(), (side - 2) * (side - 2));
    let master = |finish| Master { side, iterations, values, work, waiting: cells, finish };
    let (elapsed, found) = lead(system, size, master, Start)?;
    relax(&mut expected, side, iterations);
    check("that all cells have the right value", true, expected == found)?;
    Ok(Outcome::new(cells as u64 * u64::from(iterations), elapsed))
}

fn relax(values: &mut [f64], side: usize, iterations: u32) {
    for half in 0..2 * iterations {
        for at in (0..values.len()).filter(|&at| !is_edge(at, side) && is_red(at, side) == (half % 2 == 0)) {
            values[at] = relaxed(values[at], neighbours(at, side).map(|at| values[at]));
        }
    }
}
