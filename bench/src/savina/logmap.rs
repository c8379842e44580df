//! Logistic map: each series asks its computer for one term after the other.

use playhouse::prelude::*;

use super::{lead, program};
use crate::harness::benchmark::Benchmark;
use crate::harness::finish::Finish;
use crate::harness::outcome::{Failure, Outcome, Size, check};
use crate::harness::steps::Steps;

pub(crate) const LOGMAP: Benchmark = program(
    "savina-logmap",
    "term",
    "10 series of 25,000 terms each; a series is told to go on 25,000 times and asks a computer for each term",
    run,
);

const SERIES: usize = 10;

fn rate_of(series: usize) -> f64 {
    3.46 + 0.0025 * series as f64
}

fn first_term(series: usize) -> f64 {
    series as f64 * 0.0025
}

fn term_after(rate: f64, term: f64) -> f64 {
    rate * term * (1.0 - term)
}

struct Computer {
    rate: f64,
    work: Steps,
}

#[actor]
impl Computer {
    #[message]
    fn compute(&self, term: f64) -> f64 {
        self.work.work();
        term_after(self.rate, term)
    }
}

/// Counts the messages that arrive while it waits for its computer; a count suffices, because they carry no data.
struct Series {
    number: usize,
    computer: ActorRef<Computer>,
    master: ActorRef<Master>,
    term: f64,
    wanted: u32,
    computing: bool,
    ends: bool,
}

impl Series {
    fn go_on(&mut self, ctx: &mut Context<Self>) {
        if self.computing {
            return;
        }
        if self.wanted > 0 {
            self.wanted -= 1;
            self.computing = true;
            ctx.ask(self.computer, Compute(self.term)).then(|this, answer, ctx| {
                if let Ok(term) = answer {
                    this.term = term;
                    this.computing = false;
                    this.go_on(ctx);
                }
            });
        } else if self.ends {
            self.master.tell(Last(self.number, self.term));
        }
    }
}

#[actor]
impl Series {
    #[message]
    fn next_term(&mut self, ctx: &mut Context<Self>) {
        self.wanted += 1;
        self.go_on(ctx);
    }

    #[message]
    fn end(&mut self, ctx: &mut Context<Self>) {
        self.ends = true;
        self.go_on(ctx);
    }
}

struct Master {
    terms: u32,
    sent: u32,
    work: Steps,
    series: Vec<ActorRef<Series>>,
    last: [f64; SERIES],
    waiting: usize,
    finish: Finish<[f64; SERIES]>,
}

#[actor]
impl Master {
    #[started]
    fn set_up(&mut self, ctx: &mut Context<Self>) {
        let master = ctx.this();
        for number in 0..SERIES {
            let computer = ctx.spawn(Computer { rate: rate_of(number), work: self.work });
            let term = first_term(number);
            let series = Series { number, computer, master, term, wanted: 0, computing: false, ends: false };
            self.series.push(ctx.spawn(series));
        }
    }

    #[message]
    fn drive(&mut self, ctx: &mut Context<Self>) {
        for _ in 0..super::SLICE.min(self.terms - self.sent) {
            self.series.iter().for_each(|series| series.tell(NextTerm));
            self.sent += 1;
        }
        if self.sent < self.terms {
            ctx.this().tell(Drive);
        } else {
            self.series.iter().for_each(|series| series.tell(End));
        }
    }

    #[message]
    fn last(&mut self, series: usize, term: f64) {
        self.last[series] = term;
        self.waiting -= 1;
        if self.waiting == 0 {
            self.finish.reached(self.last);
        }
    }
}

fn run(system: &System, size: Size, work: Steps) -> Result<Outcome, Failure> {
    let terms = size.smoke_or(100, 25_000);
    let last = [0.0; SERIES];
    let master = |finish| Master { terms, sent: 0, work, series: Vec::new(), last, waiting: SERIES, finish };
    let (elapsed, last) = lead(system, size, master, Drive)?;
    let expected =
        std::array::from_fn(|series| (0..terms).fold(first_term(series), |term, _| term_after(rate_of(series), term)));
    check("the last terms", expected, last)?;
    Ok(Outcome::new(u64::from(terms) * SERIES as u64, elapsed))
}
