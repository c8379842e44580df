//! The table of the guide: the number of schedules that the reduction leaves of all orders of some known programs.

use std::time::Instant;

use playhouse_testkit::Checker;
use playhouse_testkit::programs::PROGRAMS;

fn main() {
    println!("| program | orders | schedules | given up | deliveries until the bug shows | |");
    println!("|---|---|---|---|---|---|");
    for program in PROGRAMS {
        let start = Instant::now();
        let report = Checker::new().run(program.right());
        let each_us = start.elapsed().as_secs_f64() * 1e6 / report.schedules() as f64;
        println!("{} {each_us:.0} µs each |", program.figures());
    }
}
