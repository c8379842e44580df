//! Prints how the programs of `safe_messages` pass their arguments, and their times if all arguments were copied
//! deeply.
//!
//! ```text
//! cargo run --release -p playhouse-examples --bin safe_messages
//! cargo run --release -p playhouse-examples --bin safe_messages small
//! ```

use std::time::Duration;

use playhouse::SystemBuilder;
use playhouse::prelude::*;
use playhouse_examples::safe_messages::passing::{Kind, Mode};
use playhouse_examples::safe_messages::{PROGRAMS, Program};

/// Runs of each program in each mode; their median is printed.
const RUNS: usize = 5;

/// Runs a program in a system of its own.
fn with_system<T>(builder: SystemBuilder, run: impl FnOnce(&System) -> playhouse::Result<T>) -> playhouse::Result<T> {
    let system = builder.start()?;
    let result = run(&system)?;
    system.shutdown()?;
    Ok(result)
}

/// Returns the median times with all arguments moved or shared, and with all copied. The two modes take turns, because other
/// load of the machine then affects both.
fn times(program: &Program, size: usize) -> playhouse::Result<[Duration; 2]> {
    let mut times = [Vec::new(), Vec::new()];
    for _ in 0..RUNS {
        for (mode, times) in [Mode::Moved, Mode::Copied].into_iter().zip(&mut times) {
            times.push(with_system(System::builder(), |system| program.time(system, size, mode))?);
        }
    }
    Ok(times.map(|mut times| {
        times.sort_unstable();
        times[RUNS / 2]
    }))
}

/// Formats `part` of `whole`.
fn share_of(part: usize, whole: usize) -> String {
    format!("{part} / {whole} = {:.0} %", 100.0 * part as f64 / whole as f64)
}

fn main() -> playhouse::Result<()> {
    let is_small = std::env::args().nth(1).is_some_and(|size| size == "small");
    println!("| program | arguments without copy | scalar, moved, shared | sent | copied on write | SOTER |");
    println!("|---|--:|--:|--:|--:|--:|");
    let mut all = [0; 4];
    for program in &PROGRAMS {
        // Small and in simulation, because the account is the same each time.
        let simulated = System::builder().workers(2).simulated(1);
        let account = with_system(simulated, |system| program.count(system, program.small))?;
        let kinds = [Kind::Scalar, Kind::Moved, Kind::Shared].map(|kind| account.sites(kind).to_string());
        let thesis = program.thesis;
        println!(
            "| {} | {} | {} | {} | {} | {} |",
            program.name,
            share_of(account.sites_without_copy(), account.all_sites()),
            kinds.join(", "),
            account.all_sent(),
            account.copies_on_write,
            share_of(thesis.soter, thesis.ideal),
        );
        let sums = [account.sites_without_copy(), account.all_sites(), thesis.soter, thesis.ideal];
        for (sum, summand) in all.iter_mut().zip(sums) {
            *sum += summand;
        }
    }
    let [without_copy, sites, soter, ideal] = all;
    println!("| all | {} | | | | {} |\n", share_of(without_copy, sites), share_of(soter, ideal));

    println!("| program | size | moved or shared, ms | all copied, ms | times as long | in the thesis |");
    println!("|---|--:|--:|--:|--:|--:|");
    for program in &PROGRAMS {
        let size = if is_small { program.small } else { program.full };
        let [moved, copied] = times(program, size)?.map(|time| time.as_secs_f64() * 1e3);
        let thesis = program.thesis.speed_up.map_or("–".to_owned(), |times| format!("{times:.1}"));
        println!("| {} | {size} | {moved:.1} | {copied:.1} | {:.2} | {thesis} |", program.name, copied / moved);
    }
    Ok(())
}
