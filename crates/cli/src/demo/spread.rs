//! The ChatApp world in four theaters, each a process of its own.

use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use playhouse_bench::Failure;
use playhouse_bench::chatapp::{Census, Report, Scenario, SpreadWorld};
use playhouse_console::output::{BAD_INPUT, FAILED, coloured, fail, is_reader_gone, note, print};
use playhouse_console::progress::{Shared, Status};
use playhouse_console::signals::{self, Signal};

use super::Args;
use super::account::Account;
use super::director::{Director, Done, Drains, THEATERS, World};
use super::process::{Process, theater};
use crate::logs;

/// The time between two looks of the main thread.
const TICK: Duration = Duration::from_millis(50);
/// The time between two counts of the actors in all theaters.
const CENSUS: Duration = Duration::from_millis(500);
/// The time between two drains in a world without end.
const DRAIN_EVERY: Duration = Duration::from_secs(30);
/// The time that a turn may take, at least.
const TURN_MAX: Duration = Duration::from_secs(60);
/// The time that the beginning of a world may take.
const SET_UP_MAX: Duration = Duration::from_secs(600);
/// The time in which actors report the answers that they still wait for.
const SALVAGE: Duration = Duration::from_secs(10);

/// Plays a world and prints its results.
pub fn run(args: &Args, log: &logs::Args, mut scenario: Scenario) -> ExitCode {
    if let Err(error) = scenario.check() {
        return fail(BAD_INPUT, &error.to_string());
    }
    let drains = if args.serve { Drains::Every(DRAIN_EVERY) } else { Drains::AfterTurn(scenario.turns.div_ceil(2)) };
    if args.serve {
        scenario.turns = u32::MAX;
    }
    let (sender, signals) = mpsc::channel();
    signals::send_first(sender, |signal| signal);
    match play(args, log, &scenario, drains, &signals) {
        Ok((account, ended)) => match (show(&account, args), ended) {
            (ExitCode::SUCCESS, Some(signal)) => signal.code_after_drain(),
            (code, _) => code,
        },
        Err(failure) => fail(FAILED, &failure.to_string()),
    }
}

fn show(account: &Account, args: &Args) -> ExitCode {
    if args.json {
        print(&account.to_json());
    } else {
        print(account.to_string().trim_end());
        print(&coloured(&account.verdict(), account.passed()));
    }
    if account.passed() { ExitCode::SUCCESS } else { fail(FAILED, &account.problems().join("\n")) }
}

fn play(
    args: &Args,
    log: &logs::Args,
    scenario: &Scenario,
    drains: Drains,
    signals: &Receiver<Signal>,
) -> Result<(Account, Option<Signal>), Failure> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let workers = args.workers.map_or((cores / THEATERS).max(1), usize::from);
    let failure = |error: &dyn std::fmt::Display| Failure::new(error.to_string());

    let progress = Arc::new(Shared::default());
    progress.set_clients(scenario.clients.into());
    let turns = (!args.serve).then_some(scenario.turns);
    let mut status = Status::new(turns, args.quiet, Arc::clone(&progress));
    status.say("starting four theaters");
    let theater = theater(workers)?;
    let mut addresses: Vec<_> = theater.address().into_iter().collect();
    let (mut processes, mut peers) = (Vec::new(), Vec::new());
    while addresses.len() < THEATERS {
        let process = Process::start(workers, log, &addresses)?;
        peers.push(theater.connect(process.address).map_err(|error| failure(&error))?);
        addresses.push(process.address);
        processes.push(process);
    }
    if let (true, Some(address)) = (args.serve, theater.address()) {
        note(&format!("to look at it: playhouse top {address}"));
    }
    let observer = {
        let progress = Arc::clone(&progress);
        move |reached: &_| progress.take(reached)
    };
    let spread = SpreadWorld::open(&theater, &peers, scenario, observer)?;
    let world = World {
        spread: Mutex::new(spread),
        progress,
        ended: AtomicBool::new(false),
        activity: Mutex::new("starting the world".to_owned()),
    };
    let mut director = Director { theater, workers, log: log.clone(), processes, drains };

    let ((report, ended), done) = std::thread::scope(|threads| {
        let directing = threads.spawn(|| director.direct(&world));
        let report = watch(&world, &mut status, signals, &|| directing.is_finished());
        world.ended.store(true, Relaxed);
        let done = directing.join().unwrap_or_else(|_| Err(Failure::new("the director panicked")));
        // If both fail, the director's error is the cause.
        done.and_then(|done| Ok((report?, done)))
    })?;
    status.clear();
    Ok((end(director, &world, report, done)?, ended))
}

/// Shows the status until the world has ended, or cannot end. Returns the signal that has ended the world, too.
fn watch(
    world: &World,
    status: &mut Status,
    signals: &Receiver<Signal>,
    directed: &dyn Fn() -> bool,
) -> Result<(Report, Option<Signal>), Failure> {
    let (mut turn, mut since, mut longest) = (0, Instant::now(), Duration::ZERO);
    let mut counted: Option<Instant> = None;
    let mut present: Vec<Option<Census>> = Vec::new();
    let (mut ended, mut unread) = (None, false);
    loop {
        if let Some(report) = world.spread().report(Duration::ZERO) {
            return Ok((report, ended));
        }
        if directed() {
            return Err(Failure::new("the director has ended before the world"));
        }
        match signals.recv_timeout(TICK) {
            Ok(signal) => {
                note(&format!(
                    "{}: this turn is the last one; a second signal ends the program at once",
                    signal.name()
                ));
                ended = Some(signal);
                world.spread().end_after_this_turn();
            }
            Err(RecvTimeoutError::Timeout) => {}
            // The sender is gone with the first signal, or because the signals could not be handled.
            Err(RecvTimeoutError::Disconnected) => std::thread::sleep(TICK),
        }
        if !unread && is_reader_gone() {
            // The results would reach no reader.
            unread = true;
            world.spread().end_after_this_turn();
        }
        let reached = world.progress.reached().0;
        if reached != turn {
            longest = longest.max(since.elapsed());
            (turn, since) = (reached, Instant::now());
        }
        let most = if turn == 0 { SET_UP_MAX } else { TURN_MAX + 20 * longest };
        if since.elapsed() > most {
            note(&format!("no turn has ended for {} s: an answer is missing", most.as_secs()));
            world.spread().collect_partial();
            let report = world.spread().report(SALVAGE);
            return report.map(|report| (report, ended)).ok_or_else(|| {
                Failure::new(format!(
                    "the world stopped after turn {turn} and cannot report: an actor or messages are lost"
                ))
            });
        }
        let watch = world.watch();
        if counted.is_none_or(|at| at.elapsed() > CENSUS) {
            present = watch.census(CENSUS);
            counted = Some(Instant::now());
        }
        status.update(&world.activity(), &watch.migrations(), &present);
    }
}

/// Ends the theaters, and returns the results.
fn end(director: Director, world: &World, report: Report, done: Done) -> Result<Account, Failure> {
    let trips = world.watch().migrations();
    let Director { theater, workers, processes, .. } = director;
    let mut dead_letters = done.dead_letters + theater.system().stats().total.dead_letters;
    for process in processes {
        dead_letters += process.end()?;
    }
    theater.shutdown().map_err(|error| Failure::new(error.to_string()))?;
    Ok(Account::new(report, workers, &trips, &done, dead_letters))
}
