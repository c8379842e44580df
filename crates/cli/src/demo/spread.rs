//! The ChatApp world in four theaters, each a process of its own.

use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use playhouse_bench::Failure;
use playhouse_bench::chatapp::{Census, Report, Scenario, SpreadWorld};

use super::Args;
use super::account::Account;
use super::director::{Director, Done, Drains, Stage, THEATERS};
use super::process::{Process, theater};
use crate::interrupt;
use crate::output::{BAD_INPUT, FAILED, coloured, fail, print};
use crate::progress::{Shared, Status};

#[derive(Clone)]
struct Interrupted;

/// How often the main thread looks around.
const TICK: Duration = Duration::from_millis(50);
/// How often all theaters are asked who is there.
const CENSUS: Duration = Duration::from_millis(500);
/// How often a theater is drained in a world without end.
const DRAIN_EVERY: Duration = Duration::from_secs(30);
/// How long a turn may take, at least; and a world's beginning and end.
const TURN_MAX: Duration = Duration::from_secs(60);
const SET_UP_MAX: Duration = Duration::from_secs(600);
/// How long actors that wait for an answer in vain may take to say so.
const SALVAGE: Duration = Duration::from_secs(10);

/// Plays a world and prints the account of it.
pub fn run(args: &Args, mut scenario: Scenario) -> ExitCode {
    if let Err(error) = scenario.check() {
        return fail(BAD_INPUT, &error.to_string());
    }
    let drains = if args.serve { Drains::Every(DRAIN_EVERY) } else { Drains::AfterTurn(scenario.turns.div_ceil(2)) };
    if args.serve {
        scenario.turns = u32::MAX;
    }
    let (interrupt, interrupted) = mpsc::channel();
    interrupt::send_then_exit(interrupt, Interrupted);
    match play(args, &scenario, drains, &interrupted) {
        Ok(account) => show(&account, args),
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
    scenario: &Scenario,
    drains: Drains,
    interrupted: &Receiver<Interrupted>,
) -> Result<Account, Failure> {
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
        let process = Process::start(workers, &addresses)?;
        peers.push(theater.connect(process.address).map_err(|error| failure(&error))?);
        addresses.push(process.address);
        processes.push(process);
    }
    if let (true, Some(address)) = (args.serve, theater.address()) {
        status.note(&format!("to look at it: playhouse top {address}"));
    }
    let observer = {
        let progress = Arc::clone(&progress);
        move |reached: &_| progress.take(reached)
    };
    let spread = SpreadWorld::open(&theater, &peers, scenario, observer)?;
    let stage = Stage {
        spread: Mutex::new(spread),
        progress,
        ended: AtomicBool::new(false),
        scene: Mutex::new("opening the world".to_owned()),
    };
    let mut director = Director { theater, workers, processes, drains };

    let (report, done) = std::thread::scope(|threads| {
        let directing = threads.spawn(|| director.direct(&stage));
        let report = watch(&stage, &mut status, interrupted, &|| directing.is_finished());
        stage.ended.store(true, Relaxed);
        let done = directing.join().unwrap_or_else(|_| Err(Failure::new("the director panicked")));
        // What the director says is why the world has stopped, if both say something.
        done.and_then(|done| Ok((report?, done)))
    })?;
    status.clear();
    end(director, &stage, report, done)
}

/// Looks after the world until it has ended, or cannot.
fn watch(
    stage: &Stage,
    status: &mut Status,
    interrupted: &Receiver<Interrupted>,
    directed: &dyn Fn() -> bool,
) -> Result<Report, Failure> {
    let (mut turn, mut since, mut longest) = (0, Instant::now(), Duration::ZERO);
    let mut counted: Option<Instant> = None;
    let mut present: Vec<Option<Census>> = Vec::new();
    loop {
        if let Some(report) = stage.spread().report(Duration::ZERO) {
            return Ok(report);
        }
        if directed() {
            return Err(Failure::new("the director has ended before the world"));
        }
        match interrupted.recv_timeout(TICK) {
            Ok(Interrupted) => {
                status.note("this turn is the last one; Ctrl-C again ends at once");
                stage.spread().end_after_this_turn();
            }
            Err(RecvTimeoutError::Timeout) => {}
            // No handler could be set: the signal ends the program.
            Err(RecvTimeoutError::Disconnected) => std::thread::sleep(TICK),
        }
        let reached = stage.progress.reached().0;
        if reached != turn {
            longest = longest.max(since.elapsed());
            (turn, since) = (reached, Instant::now());
        }
        let most = if turn == 0 { SET_UP_MAX } else { TURN_MAX + 20 * longest };
        if since.elapsed() > most {
            status.note(&format!("nothing has ended for {} s: an answer is missing", most.as_secs()));
            stage.spread().collect_partial();
            let report = stage.spread().report(SALVAGE);
            return report.ok_or_else(|| {
                Failure::new(format!(
                    "the world stopped after turn {turn} and cannot report: an actor or messages are lost"
                ))
            });
        }
        let watch = stage.watch();
        if counted.is_none_or(|at| at.elapsed() > CENSUS) {
            present = watch.census(CENSUS);
            counted = Some(Instant::now());
        }
        status.update(&stage.scene(), &watch.migrations(), &present);
    }
}

/// Ends the theaters, and draws up the account.
fn end(director: Director, stage: &Stage, report: Report, done: Done) -> Result<Account, Failure> {
    let trips = stage.watch().migrations();
    let Director { theater, workers, processes, .. } = director;
    let mut dead_letters = done.dead_letters + theater.system().stats().total.dead_letters;
    for process in processes {
        dead_letters += process.end()?;
    }
    theater.shutdown().map_err(|error| Failure::new(error.to_string()))?;
    Ok(Account::new(report, workers, &trips, &done, dead_letters))
}
