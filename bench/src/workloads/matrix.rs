//! Matrix multiplication, an actor per row of the result: much work per message.

use std::sync::Arc;

use playhouse::prelude::*;

use super::finish::{Finish, finish};
use crate::limit;
use crate::outcome::{Failure, Outcome, Size, check};
use crate::registry::{Benchmark, Family, Limit};

pub(crate) const MATRIX: Benchmark = Benchmark {
    name: "matrix",
    op: "row",
    source: "cforall-actors, Performance, Matrix Multiply",
    summary: "two 1024 x 1024 matrices are multiplied, an actor and a message per row of the result",
    stealing: None,
    workers_min: 1,
    family: Family::Local,
    workload: |system, size, _| run(system, size),
    limit: Some(Limit::Hand(|size| limit::matrix::matrix(&Plan::of(size)))),
    target: None,
};

/// How much `matrix` does.
pub(crate) struct Plan {
    /// Rows and columns of the matrices.
    pub(crate) n: usize,
}

impl Plan {
    fn of(size: Size) -> Self {
        Self { n: size.pick(48, 1_024, 3_072) }
    }

    /// The two factors: small whole numbers, so that every sum is exact.
    pub(crate) fn factors(&self) -> (Matrix, Matrix) {
        let factor = |a: usize, b: usize, m: usize| {
            let value = |place: usize| ((a * (place / self.n) + b * (place % self.n)) % m) as f64 - (m / 2) as f64;
            Matrix { n: self.n, values: (0..self.n * self.n).map(value).collect() }
        };
        (factor(7, 13, 17), factor(11, 5, 19))
    }
}

/// A square matrix, row by row.
pub(crate) struct Matrix {
    n: usize,
    values: Vec<f64>,
}

impl Matrix {
    fn row(&self, row: usize) -> &[f64] {
        &self.values[row * self.n..(row + 1) * self.n]
    }

    /// One row of the product of two matrices.
    pub(crate) fn product_row(&self, other: &Self, row: usize) -> Box<[f64]> {
        let mut product = vec![0.0; self.n].into_boxed_slice();
        for (column, x) in self.row(row).iter().enumerate() {
            for (sum, y) in product.iter_mut().zip(other.row(column)) {
                *sum += x * y;
            }
        }
        product
    }

    fn times(&self, vector: &[f64]) -> Vec<f64> {
        (0..self.n).map(|row| dot(self.row(row), vector)).collect()
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Checks that `rows` are those of `x` times `y`, by multiplying both sides with a vector (Freivalds' check): the cost of
/// one multiplication is not paid again.
pub(crate) fn check_product(x: &Matrix, y: &Matrix, rows: &[Box<[f64]>]) -> Result<(), Failure> {
    let vector: Vec<_> = (0..x.n).map(|place| (place * place % 23) as f64 - 9.0).collect();
    let expected = x.times(&y.times(&vector));
    check("the number of rows", x.n, rows.len())?;
    for (number, (row, expected)) in rows.iter().zip(expected).enumerate() {
        check(&format!("row {number} times the test vector"), expected, dot(row, &vector))?;
    }
    Ok(())
}

#[derive(Message)]
struct Multiply {
    row: usize,
}

struct Multiplier {
    x: Arc<Matrix>,
    y: Arc<Matrix>,
    collector: ActorRef<Collector>,
}

impl Actor for Multiplier {}

impl Handler<Multiply> for Multiplier {
    fn handle(&mut self, Multiply { row }: Multiply, ctx: &mut Context<Self>) {
        self.collector.tell(Row { row, values: self.x.product_row(&self.y, row) });
        ctx.stop();
    }
}

#[derive(Message)]
struct Row {
    row: usize,
    values: Box<[f64]>,
}

struct Collector {
    rows: Vec<Box<[f64]>>,
    missing: usize,
    finish: Finish<Vec<Box<[f64]>>>,
}

impl Actor for Collector {}

impl Handler<Row> for Collector {
    fn handle(&mut self, row: Row, _: &mut Context<Self>) {
        self.rows[row.row] = row.values;
        self.missing -= 1;
        if self.missing == 0 {
            self.finish.reached(std::mem::take(&mut self.rows));
        }
    }
}

fn run(system: &System, size: Size) -> Result<Outcome, Failure> {
    let plan = Plan::of(size);
    let (x, y) = plan.factors();
    let (x, y) = (Arc::new(x), Arc::new(y));
    let (finish, finished) = finish(size);
    let rows = vec![Box::default(); plan.n];
    let collector = system.spawn(Collector { rows, missing: plan.n, finish });
    let (elapsed, rows) = finished.time(|| {
        for row in 0..plan.n {
            let multiplier = Multiplier { x: Arc::clone(&x), y: Arc::clone(&y), collector };
            system.spawn(multiplier).tell(Multiply { row });
        }
    })?;
    check_product(&x, &y, &rows)?;
    Ok(Outcome::new(plan.n as u64, elapsed))
}
