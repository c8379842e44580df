//! Matrix multiplication, an actor per row of the result: much work per message.

use std::sync::Arc;

use playhouse::prelude::*;

use crate::baselines;
use crate::harness::benchmark::{Baseline, Benchmark, Family};
use crate::harness::finish::{Finish, finish};
use crate::harness::outcome::{Failure, Outcome, Size};
use crate::plans::matrix::{Matrix, Plan, check_product};

pub(crate) const MATRIX: Benchmark = Benchmark {
    name: "matrix",
    op: "row",
    source: "cforall-actors, Performance, Matrix Multiply",
    summary: "two 1024 x 1024 matrices are multiplied, an actor and a message per row of the result",
    stealing: None,
    workers_min: 1,
    family: Family::Local,
    workload: |system, size, _| run(system, size),
    baseline: Some(Baseline::Hand(|size| baselines::matrix::matrix(&Plan::of(size)))),
    target: None,
};

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
