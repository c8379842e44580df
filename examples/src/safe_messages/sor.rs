//! Successive over-relaxation of a square matrix, an actor per cell: red and black cells take turns, and send their values to
//! their neighbours. Each half of the matrix has a peer that starts its cells. Each cell gets the list of all cells.

use std::sync::Arc;

use playhouse::prelude::*;

use super::passing::{pass, share};

const OMEGA: f64 = 1.25;
const ITERATIONS: u32 = 10;

/// Returns the next value of a cell with `values` around it.
fn relax(old: f64, values: [Option<f64>; 4]) -> f64 {
    OMEGA / 4.0 * values.into_iter().flatten().sum::<f64>() + (1.0 - OMEGA) * old
}

/// Returns the cells above, left of, right of and below the one at `position`.
fn neighbours(position: usize, side: usize) -> [Option<usize>; 4] {
    let (row, column) = (position / side, position % side);
    [
        (row > 0).then(|| position - side),
        (column > 0).then(|| position - 1),
        (column + 1 < side).then(|| position + 1),
        (row + 1 < side).then(|| position + side),
    ]
}

fn is_red(position: usize, side: usize) -> bool {
    (position / side + position % side).is_multiple_of(2)
}

struct Cell {
    position: usize,
    side: usize,
    runner: ActorRef<Runner>,
    cells: Arc<[ActorRef<Cell>]>,
    value: f64,
    around: [Option<f64>; 4],
    to_do: u32,
}

impl Cell {
    fn tell_neighbours(&self) {
        for neighbour in neighbours(self.position, self.side).into_iter().flatten() {
            self.cells[neighbour].tell(Value(pass(self.position), pass(self.value)));
        }
    }

    /// Computes if all neighbours have sent their values.
    fn step(&mut self) {
        let needed = neighbours(self.position, self.side).iter().flatten().count();
        if self.to_do == 0 || self.around.iter().flatten().count() < needed {
            return;
        }
        self.value = relax(self.value, std::mem::take(&mut self.around));
        self.to_do -= 1;
        if self.to_do > 0 || is_red(self.position, self.side) {
            self.tell_neighbours();
        }
        if self.to_do == 0 {
            self.runner.tell(Settled(pass(self.position), pass(self.value)));
        }
    }
}

#[actor]
impl Cell {
    #[message]
    fn start(&mut self, iterations: u32, cells: Arc<[ActorRef<Cell>]>) {
        (self.to_do, self.cells) = (iterations, cells);
        if !is_red(self.position, self.side) {
            self.tell_neighbours();
        }
        self.step();
    }

    #[message]
    fn value(&mut self, from: usize, value: f64) {
        let direction = neighbours(self.position, self.side).iter().position(|neighbour| *neighbour == Some(from));
        if let Some(direction) = direction {
            self.around[direction] = Some(value);
        }
        self.step();
    }
}

struct Peer;

#[actor]
impl Peer {
    #[message]
    fn boot(&mut self, first: usize, side: usize, part: Vec<f64>, runner: ActorRef<Runner>, ctx: &mut Context<Self>) {
        let cell = |(number, value)| Cell {
            position: first + number,
            side,
            runner,
            cells: Arc::default(),
            value,
            around: [None; 4],
            to_do: 0,
        };
        let cells = part.into_iter().enumerate().map(cell).map(|cell| ctx.spawn(cell)).collect();
        runner.tell(Booted(pass(first), pass(cells)));
    }
}

#[derive(Default)]
struct Runner {
    parts: [Vec<ActorRef<Cell>>; 2],
    matrix: Vec<f64>,
    settled: usize,
}

#[actor]
impl Runner {
    #[message]
    fn run(&mut self, matrix: Vec<f64>, side: usize, ctx: &mut Context<Self>) {
        let mut upper = matrix;
        let lower = upper.split_off(side / 2 * side);
        self.matrix = vec![0.0; side * side];
        ctx.spawn(Peer).tell(Boot(pass(upper.len()), pass(side), pass(lower), pass(ctx.this())));
        ctx.spawn(Peer).tell(Boot(pass(0), pass(side), pass(upper), pass(ctx.this())));
    }

    #[message]
    fn booted(&mut self, first: usize, cells: Vec<ActorRef<Cell>>) {
        self.parts[usize::from(first > 0)] = cells;
        if self.parts.iter().all(|part| !part.is_empty()) {
            let cells: Arc<[_]> = self.parts.iter().flatten().copied().collect();
            for cell in cells.iter() {
                cell.tell(Start(pass(ITERATIONS), share(&cells)));
            }
        }
    }

    #[message]
    fn settled(&mut self, position: usize, value: f64) {
        self.matrix[position] = value;
        self.settled += 1;
    }

    #[message]
    fn answer(&mut self) -> (Vec<f64>, usize) {
        (std::mem::take(&mut self.matrix), self.settled)
    }
}

/// Computes the same without actors.
fn sequential(mut matrix: Vec<f64>, side: usize) -> Vec<f64> {
    for _ in 0..ITERATIONS {
        for red in [true, false] {
            for position in (0..matrix.len()).filter(|position| is_red(*position, side) == red) {
                let around = neighbours(position, side).map(|neighbour| neighbour.map(|at| matrix[at]));
                matrix[position] = relax(matrix[position], around);
            }
        }
    }
    matrix
}

pub(super) fn run(system: &System, side: usize) -> playhouse::Result<bool> {
    let matrix = || (0..side * side).map(|number| (number * 7919 % 1009) as f64).collect::<Vec<_>>();
    let runner = system.spawn(Runner::default());
    runner.tell(Run(pass(matrix()), pass(side)));
    system.run_until_idle();
    Ok(runner.ask(Answer).wait()? == (sequential(matrix(), side), side * side))
}
