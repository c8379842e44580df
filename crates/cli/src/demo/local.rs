//! The ChatApp world on one system.

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use playhouse_bench::chatapp::{self, Options, Report, RunError, Scenario};

use super::Args;
use crate::interrupt;
use crate::output::{BAD_INPUT, FAILED, INTERRUPTED, coloured, fail, print};
use crate::progress::{Bar, Shared};

#[derive(Clone)]
enum Event {
    Ended,
    Interrupted,
}

const REDRAW: Duration = Duration::from_millis(100);

/// Plays a world and prints what has come of it.
pub fn run(args: &Args, scenario: Scenario) -> ExitCode {
    let options = Options {
        workers: args.workers.map(usize::from),
        stages: args.stages.map(|stages| stages as usize),
        ..Options::default()
    };

    let (events, happened) = mpsc::channel();
    interrupt::send_on_interrupt(events.clone(), Event::Interrupted);
    let turns = scenario.turns;
    let shared = Arc::new(Shared::default());
    let bar = Bar::new(turns, args.quiet, Arc::clone(&shared));
    let world = std::thread::spawn({
        let shared = Arc::clone(&shared);
        move || {
            // Also says so when it panics.
            let _ended = OnDrop(Some(events));
            chatapp::run(&scenario, &options, move |progress| shared.take(progress))
        }
    });
    let event = loop {
        match happened.recv_timeout(REDRAW) {
            Ok(event) => break event,
            Err(RecvTimeoutError::Timeout) => bar.update(),
            Err(RecvTimeoutError::Disconnected) => break Event::Ended,
        }
    };
    bar.clear();
    if let Event::Interrupted = event {
        let (turn, messages) = shared.reached();
        eprintln!("interrupted after {turn} of {turns} turns and {messages} messages");
        // The workers end with the process.
        return ExitCode::from(INTERRUPTED);
    }
    match world.join() {
        Ok(Ok(report)) => show(&report, args),
        Ok(Err(error @ (RunError::Scenario(_) | RunError::System(_)))) => fail(BAD_INPUT, &error.to_string()),
        Ok(Err(error)) => fail(FAILED, &error.to_string()),
        Err(_) => fail(FAILED, "the world panicked"),
    }
}

fn show(report: &Report, args: &Args) -> ExitCode {
    if args.json {
        print(&report.to_json());
    } else {
        let table = report.to_string();
        let (numbers, verdict) = table.rsplit_once('\n').unwrap_or(("", &table));
        print(numbers);
        if args.stats {
            report.statistics.iter().for_each(|(name, count)| print(&format!("  {name:<22}{count:>20}")));
        }
        print(&coloured(verdict, report.check.passed));
    }
    if report.check.passed { ExitCode::SUCCESS } else { fail(FAILED, &report.check.problems.join("\n")) }
}

/// Sends [`Event::Ended`] when its scope ends, whichever way.
struct OnDrop(Option<mpsc::Sender<Event>>);

impl Drop for OnDrop {
    fn drop(&mut self) {
        if let Some(events) = self.0.take() {
            let _ = events.send(Event::Ended);
        }
    }
}
