//! Trapezoidal approximation: workers integrate a function, each in a part of the range.

use playhouse::prelude::*;

use super::{lead, program};
use crate::harness::benchmark::Benchmark;
use crate::harness::finish::Finish;
use crate::harness::outcome::{Failure, Outcome, Size, check};
use crate::harness::steps::Steps;

pub(crate) const TRAPEZOID: Benchmark =
    program("savina-trapezoid", "piece", "100 workers integrate a function from 1 to 5 in 10,000,000 pieces", run);

const WORKERS: usize = 100;
const FROM: f64 = 1.0;
const TO: f64 = 5.0;

/// Returns the value of the original's function.
fn height(x: f64) -> f64 {
    let growing = (1.0 + (2.0 * x).sqrt().exp()).sqrt();
    (x.powi(3) - 1.0).sin() / (x + 1.0) * growing
}

struct Worker {
    number: usize,
    work: Steps,
    master: ActorRef<Master>,
}

#[actor]
impl Worker {
    #[message]
    fn integrate(&self, from: f64, pieces: u64, width: f64) {
        self.work.work();
        let area = |piece: u64| {
            let left = from + piece as f64 * width;
            0.5 * (height(left) + height(left + width)) * width
        };
        self.master.tell(Area(self.number, (0..pieces).map(area).sum()));
    }
}

struct Master {
    pieces: u64,
    work: Steps,
    areas: [f64; WORKERS],
    waiting: usize,
    finish: Finish<f64>,
}

#[actor]
impl Master {
    #[message]
    fn start(&mut self, ctx: &mut Context<Self>) {
        let (master, work) = (ctx.this(), self.work);
        let (share, width) = (self.pieces / WORKERS as u64, (TO - FROM) / self.pieces as f64);
        for number in 0..WORKERS {
            let from = FROM + (number as u64 * share) as f64 * width;
            ctx.spawn(Worker { number, work, master }).tell(Integrate(from, share, width));
        }
    }

    #[message]
    fn area(&mut self, worker: usize, area: f64) {
        self.areas[worker] = area;
        self.waiting -= 1;
        if self.waiting == 0 {
            self.finish.reached(self.areas.iter().sum());
        }
    }
}

fn run(system: &System, size: Size, work: Steps) -> Result<Outcome, Failure> {
    let pieces = size.smoke_or(20_000, 10_000_000);
    let master = |finish| Master { pieces, work, areas: [0.0; WORKERS], waiting: WORKERS, finish };
    let (elapsed, area) = lead(system, size, master, Start)?;
    check("that the integral is right", true, is_right(area, pieces))?;
    Ok(Outcome::new(pieces, elapsed))
}

/// Compares with Simpson's rule. The error of trapezoids goes with the square of their width.
fn is_right(area: f64, pieces: u64) -> bool {
    const PAIRS: u32 = 20_000;
    let width = (TO - FROM) / f64::from(2 * PAIRS);
    let at = |place: u32| height(FROM + f64::from(place) * width);
    let pair = |pair: u32| at(2 * pair) + 4.0 * at(2 * pair + 1) + at(2 * pair + 2);
    let simpson = (0..PAIRS).map(pair).sum::<f64>() * width / 3.0;
    (area - simpson).abs() < 1e-9 + 1e3 / (pieces as f64).powi(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_integral_is_not_right() {
        let at = |pieces: u64| {
            let width = (TO - FROM) / pieces as f64;
            (0..pieces).map(|piece| height(FROM + (piece as f64 + 0.5) * width) * width).sum::<f64>()
        };
        assert!(is_right(at(20_000), 20_000));
        assert!(!is_right(at(20_000) + 1e-4, 20_000));
    }
}
