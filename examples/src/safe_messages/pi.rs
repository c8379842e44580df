//! Pi by the rectangle rule: a master divides the interval, and workers sum up their parts.

use playhouse::prelude::*;

use super::passing::pass;

/// The number of rectangles of each worker.
const PART: usize = 1000;

struct Worker;

#[actor]
impl Worker {
    #[message]
    fn compute(&mut self, first: usize, all: usize, master: ActorRef<Master>, ctx: &mut Context<Self>) {
        let width = 1.0 / all as f64;
        let height = |number: usize| 4.0 / (1.0 + ((number as f64 + 0.5) * width).powi(2));
        master.tell(Part(pass((first..first + PART).map(height).sum::<f64>() * width)));
        ctx.stop();
    }
}

struct Master {
    sum: f64,
    parts: usize,
}

#[actor]
impl Master {
    #[message]
    fn start(&mut self, workers: usize, ctx: &mut Context<Self>) {
        for number in 0..workers {
            ctx.spawn(Worker).tell(Compute(pass(number * PART), pass(workers * PART), pass(ctx.this())));
        }
    }

    #[message]
    fn part(&mut self, sum: f64) {
        self.sum += sum;
        self.parts += 1;
    }

    #[message]
    fn answer(&self) -> (f64, usize) {
        (self.sum, self.parts)
    }
}

pub(super) fn run(system: &System, workers: usize) -> playhouse::Result<bool> {
    let master = system.spawn(Master { sum: 0.0, parts: 0 });
    master.tell(Start(pass(workers)));
    system.run_until_idle();
    let (pi, parts) = master.ask(Answer).wait()?;
    Ok(parts == workers && (pi - std::f64::consts::PI).abs() < 1e-6)
}
