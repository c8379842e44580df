//! The amounts of `matrix`.

use crate::harness::outcome::{Failure, Size, check};

/// The amounts of `matrix`.
pub(crate) struct Plan {
    /// Rows and columns of the matrices.
    pub(crate) n: usize,
}

impl Plan {
    pub(crate) fn of(size: Size) -> Self {
        Self { n: size.pick(48, 1_024, 3_072) }
    }

    /// Returns the two factors: small whole numbers, which make every sum exact.
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
    pub(crate) fn row(&self, row: usize) -> &[f64] {
        &self.values[row * self.n..(row + 1) * self.n]
    }

    /// Returns one row of the product of two matrices.
    pub(crate) fn product_row(&self, other: &Self, row: usize) -> Box<[f64]> {
        let mut product = vec![0.0; self.n].into_boxed_slice();
        for (column, x) in self.row(row).iter().enumerate() {
            for (sum, y) in product.iter_mut().zip(other.row(column)) {
                *sum += x * y;
            }
        }
        product
    }

    pub(crate) fn times(&self, vector: &[f64]) -> Vec<f64> {
        (0..self.n).map(|row| dot(self.row(row), vector)).collect()
    }
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

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}
