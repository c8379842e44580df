//! The baseline of matrix: the rows computed one after the other.

use std::hint::black_box;
use std::time::Instant;

use crate::harness::outcome::{Failure, Outcome};
use crate::plans::matrix::{Plan, check_product};

/// The baseline of `matrix`, on one thread.
pub(crate) fn matrix(plan: &Plan) -> Result<Outcome, Failure> {
    let (x, y) = plan.factors();
    let started = Instant::now();
    let rows: Vec<_> = (0..plan.n).map(|row| black_box(&x).product_row(black_box(&y), row)).collect();
    let elapsed = started.elapsed();
    check_product(&x, &y, &rows)?;
    Ok(Outcome::new(plan.n as u64, elapsed))
}
