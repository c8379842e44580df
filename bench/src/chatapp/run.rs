//! Runs a world from its birth to its report.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use playhouse::BuildError;
use playhouse::prelude::*;
use serde::{Deserialize, Serialize};

use super::messages::{CollectPartial, Open};
use super::reader::ScenarioError;
use super::report::Report;
use super::scenario::Scenario;
use super::world::World;

/// The settings of a run. The default is one worker per core and the runtime's number of stages.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// The number of workers.
    pub workers: Option<usize>,
    /// The number of stages, over all workers.
    pub stages: Option<usize>,
    /// Run on the simulated driver with this seed: one thread, a schedule that the seed decides, virtual time.
    pub simulated: Option<u64>,
    #[doc(hidden)]
    pub fault: Option<Fault>,
}

/// A fault for the tests of the check: it affects the delivery of each post of a turn to its first member.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    /// The turn in which it happens.
    pub turn: u32,
    /// The effect of the fault.
    pub kind: FaultKind,
}

/// The effect of a fault on a delivery.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FaultKind {
    /// The delivery is lost.
    Lose,
    /// The delivery is sent twice.
    Duplicate,
    /// The chat panics instead.
    Crash,
    /// The delivery has a graph of as many other objects.
    Exchange,
    /// The delivery has a graph of one object fewer.
    Prune,
}

/// The progress of a world.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Ended turns; 0 when the clients exist and have made friends.
    pub turn: u32,
    /// Turns of the scenario.
    pub turns: u32,
    /// Messages so far.
    pub messages: u64,
    /// The messages of the turns.
    pub messages_in_turns: u64,
    /// Time since the first turn began.
    pub in_turns: Duration,
}

/// The reason for a missing report.
#[derive(Debug)]
#[non_exhaustive]
pub enum RunError {
    /// The scenario contradicts itself.
    Scenario(ScenarioError),
    /// The system cannot be built like this.
    System(BuildError),
    /// The world is idle and its actors do not answer: some have ended, and their counts are lost.
    Lost {
        /// Messages to actors that had ended.
        dead_letters: u64,
    },
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RunError::Scenario(error) => write!(f, "{error}"),
            RunError::System(error) => write!(f, "{error}"),
            RunError::Lost { dead_letters } => {
                write!(
                    f,
                    "the world stopped and cannot report: an actor has ended, or messages are lost ({dead_letters} dead letters)"
                )
            }
        }
    }
}

impl std::error::Error for RunError {}

/// Runs a world, and blocks until it has ended.
///
/// `observer` is called by an actor after the set-up and after each turn; its time is part of the measured time. The result of
/// the check is in the report: [`Report::check`].
///
/// # Examples
///
/// ```
/// use playhouse_bench::chatapp::{Options, Scenario, run};
///
/// let text = "turns = 5\nclients = 20\n[behaviour]\nnew_chat = 10\npost = 50\n[connectedness]\nbefriend = 30\ninvite = 50";
/// let scenario = Scenario::from_toml("example", text).unwrap();
/// let report = run(&scenario, &Options { workers: Some(2), ..Options::default() }, |progress| {
///     eprintln!("{} of {} turns", progress.turn, progress.turns);
/// })
/// .unwrap();
/// assert!(report.check.passed);
/// assert_eq!(report.delivery.expected, report.delivery.received);
/// ```
///
/// # Errors
/// When the scenario or the options are impossible, before any actor exists; and when actors failed, so that there is
/// nothing to report.
pub fn run(
    scenario: &Scenario,
    options: &Options,
    observer: impl FnMut(&Progress) + Send + 'static,
) -> Result<Report, RunError> {
    scenario.check().map_err(RunError::Scenario)?;
    let begun = Instant::now();
    let system = build(options).map_err(RunError::System)?;
    let mut report = play(&system, begun, scenario, options.fault, observer)?;
    if let Err(error) = system.shutdown() {
        report.check.fail(format!("the system did not shut down cleanly: {error}"));
    }
    Ok(report)
}

/// Is like [`run()`], in an existing system, which goes on: the caller that [drives](System::run_until_idle) it drives the world.
///
/// # Errors
/// When the scenario is impossible, before any actor exists; and when actors failed, so that there is nothing to report.
pub fn run_in(
    system: &System,
    scenario: &Scenario,
    observer: impl FnMut(&Progress) + Send + 'static,
) -> Result<Report, RunError> {
    scenario.check().map_err(RunError::Scenario)?;
    play(system, Instant::now(), scenario, None, observer)
}

fn play(
    system: &System,
    begun: Instant,
    scenario: &Scenario,
    fault: Option<Fault>,
    observer: impl FnMut(&Progress) + Send + 'static,
) -> Result<Report, RunError> {
    let dead_letters = DeadLetters::of(system);
    let (outcome, ended) = mpsc::channel();
    let world = system.spawn(World::new(scenario.clone(), fault, Box::new(observer), outcome));
    world.tell(Open);
    system.run_until_idle();
    let outcome = match ended.try_recv() {
        Ok(outcome) => outcome,
        Err(_) => {
            // Idle, and the world has not ended: an answer is missing. The counts will tell which.
            world.tell(CollectPartial);
            system.run_until_idle();
            ended.try_recv().map_err(|_| RunError::Lost { dead_letters: dead_letters.count() })?
        }
    };
    Ok(Report::new(scenario, outcome, begun.elapsed(), system, dead_letters.count()))
}

/// Counts the messages of a system that go to actors that have ended.
pub(super) struct DeadLetters(Arc<AtomicU64>);

impl DeadLetters {
    pub(super) fn of(system: &System) -> DeadLetters {
        let count = Arc::new(AtomicU64::new(0));
        system.on_dead_letter({
            let count = Arc::clone(&count);
            move |_| {
                // Relaxed: read when the system is idle.
                count.fetch_add(1, Relaxed);
            }
        });
        DeadLetters(count)
    }

    pub(super) fn count(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

pub(super) fn build(options: &Options) -> Result<System, BuildError> {
    let mut builder = System::builder();
    if let Some(workers) = options.workers {
        builder = builder.workers(workers);
    }
    if let Some(stages) = options.stages {
        builder = builder.stages(stages);
    }
    if let Some(seed) = options.simulated {
        builder = builder.simulated(seed);
    }
    builder.start()
}
