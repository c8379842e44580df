//! Coordinated shutdown: what a program does before it ends, in phases.
//!
//! Phases come one after the other, in the order in which they were made, each with a deadline. The tasks of a phase run at the
//! same time: closures, and actors that are drained. What has not finished in time is left behind, and the report names it.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
#[cfg(unix)]
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::thread::Thread;
use std::time::Duration;

use playhouse_actor::{Actor, ActorId, ActorRef, Context, StopReason, System, Terminated};

use crate::block::{describe, lock};
use crate::keeper::{Keeper, Observe, Table};

/// Any error of a task.
type TaskError = Box<dyn std::error::Error + Send + Sync>;

/// What a program does before it ends: see [the module](self). Clones are handles to the same plan, for the parts of a program
/// that register their own tasks.
///
/// It does not end the system: [`System::shutdown`] comes behind it.
#[derive(Clone)]
pub struct CoordinatedShutdown {
    system: System,
    plan: Arc<Mutex<Plan>>,
    /// Held by who goes through the phases.
    turn: Arc<Mutex<()>>,
}

#[derive(Default)]
struct Plan {
    phases: Vec<Planned>,
    /// How many have begun.
    begun: usize,
}

struct Planned {
    name: String,
    within: Duration,
    tasks: Vec<(String, Task)>,
}

enum Task {
    Call(Box<dyn FnOnce() -> Result<(), TaskError> + Send>),
    /// Has the keeper watch an actor, which is drained, and tells who it is.
    Drain(ActorId, Box<dyn FnOnce(ActorRef<Keeper<Roll>>) + Send>),
}

/// A phase of a [`CoordinatedShutdown`], to register tasks in.
#[derive(Clone)]
pub struct Phase {
    plan: Arc<Mutex<Plan>>,
    number: usize,
}

/// A task was registered in a phase that has begun already, and will not be run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TooLate {
    task: String,
    phase: String,
}

impl fmt::Display for TooLate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the shutdown task {:?} comes too late: the phase {:?} has begun", self.task, self.phase)
    }
}

impl std::error::Error for TooLate {}

impl CoordinatedShutdown {
    /// A plan without phases.
    pub fn new(system: &System) -> CoordinatedShutdown {
        CoordinatedShutdown { system: system.clone(), plan: Arc::default(), turn: Arc::default() }
    }

    /// Another phase, behind those that there are. Its tasks have `within` together.
    pub fn phase(&self, name: impl Into<String>, within: Duration) -> Phase {
        let mut plan = lock(&self.plan);
        plan.phases.push(Planned { name: name.into(), within, tasks: Vec::new() });
        Phase { plan: Arc::clone(&self.plan), number: plan.phases.len() - 1 }
    }

    /// Goes through the phases that have not been gone through, and blocks meanwhile, also while another thread does. A phase
    /// without tasks takes no time.
    ///
    /// In a simulated system, closures are run on this thread, one after the other, and deadlines are in virtual time.
    ///
    /// # Panics
    /// Inside an actor: it would hold the worker. If the system was shut down before, and an actor is to be drained.
    #[track_caller]
    pub fn run(&self) -> Report {
        playhouse_actor::assert_outside("`CoordinatedShutdown::run`", "run it in the main thread");
        let _turn = lock(&self.turn);
        let mut phases = Vec::new();
        loop {
            let next = {
                let mut plan = lock(&self.plan);
                let begun = plan.begun;
                let next = plan
                    .phases
                    .get_mut(begun)
                    .map(|phase| (phase.name.clone(), phase.within, std::mem::take(&mut phase.tasks)));
                plan.begun += usize::from(next.is_some());
                next
            };
            let Some((name, within, tasks)) = next else { return Report { phases } };
            phases.push(self.go_through(name, within, tasks));
        }
    }

    fn go_through(&self, phase: String, within: Duration, tasks: Vec<(String, Task)>) -> PhaseReport {
        let core = self.system.core();
        let start = core.now();
        let deadline = start.saturating_add(within);
        let (names, tasks): (Vec<_>, Vec<_>) = tasks.into_iter().unzip();
        let progress =
            Arc::new(Progress { outcomes: Mutex::new(vec![None; names.len()]), waiting: std::thread::current() });
        let simulated = core.config().simulated.is_some();
        let mut drained = Vec::new();
        for (number, task) in tasks.into_iter().enumerate() {
            match task {
                Task::Drain(who, begin) => drained.push((number, who, begin)),
                Task::Call(call) => {
                    let done = Arc::clone(&progress);
                    let call = move || done.over(number, outcome_of(call));
                    if simulated {
                        call();
                    } else if let Err(error) =
                        std::thread::Builder::new().name("playhouse-shutdown".to_owned()).spawn(call)
                    {
                        progress.over(number, Outcome::Failed(format!("its thread could not be started: {error}")));
                    }
                }
            }
        }
        let keeper = (!drained.is_empty()).then(|| {
            let known = drained.iter().map(|(number, who, _)| (*who, *number)).collect();
            let keeper = self.system.spawn(Keeper(Roll { drained: known, progress: Arc::clone(&progress) }));
            for (_, _, begin) in drained {
                begin(keeper);
            }
            keeper
        });
        // In simulation, time goes on for a timer only.
        let timer = core.start_timer(within, Box::new(|| None));
        core.block_until(Some(deadline), &mut || progress.is_over() || core.now() >= deadline);
        core.cancel_timer(timer);
        if let Some(keeper) = keeper {
            keeper.stop();
        }
        let outcomes = std::mem::take(&mut *lock(&progress.outcomes));
        let outcomes = outcomes.into_iter().map(|outcome| outcome.unwrap_or(Outcome::Unfinished));
        PhaseReport {
            name: phase,
            took: core.now() - start,
            tasks: names.into_iter().zip(outcomes).map(|(name, outcome)| TaskReport { name, outcome }).collect(),
        }
    }
}

/// The signals that end a program: Ctrl-C and `SIGTERM`.
#[cfg(unix)]
#[derive(Debug)]
pub struct Signal {
    signals: signal_hook::iterator::Signals,
}

#[cfg(unix)]
impl Signal {
    /// From now on, the first of these signals is waited for instead of ending the process; a further one ends it at once, with
    /// 128 and the number of the signal as the exit code.
    ///
    /// # Errors
    /// The signals cannot be caught.
    pub fn catch() -> std::io::Result<Signal> {
        use signal_hook::consts::{SIGINT, SIGTERM};
        use signal_hook::flag;

        let signals = signal_hook::iterator::Signals::new([SIGINT, SIGTERM])?;
        let again = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            // In this order: the first signal only sets the flag.
            flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&again))?;
            flag::register(signal, Arc::clone(&again))?;
        }
        Ok(Signal { signals })
    }

    /// Blocks this thread until one has come, also if it came before.
    pub fn wait(mut self) {
        let _which = self.signals.forever().next();
    }
}

impl fmt::Debug for CoordinatedShutdown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plan = lock(&self.plan);
        let phases: Vec<_> = plan.phases.iter().map(|phase| &phase.name).collect();
        f.debug_struct("CoordinatedShutdown").field("phases", &phases).field("begun", &plan.begun).finish()
    }
}

fn outcome_of(call: Box<dyn FnOnce() -> Result<(), TaskError> + Send>) -> Outcome {
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(Ok(())) => Outcome::Finished,
        Ok(Err(error)) => Outcome::Failed(error.to_string()),
        Err(panic) => Outcome::Failed(format!("it panicked: {}", describe(&*panic))),
    }
}

impl Phase {
    /// Has `task` run in this phase, in a thread of its own. What it returns, or that it panics, is in the report.
    ///
    /// # Errors
    /// The phase has begun.
    pub fn task(
        &self,
        name: impl Into<String>,
        task: impl FnOnce() -> Result<(), TaskError> + Send + 'static,
    ) -> Result<(), TooLate> {
        self.add(name.into(), Task::Call(Box::new(task)))
    }

    /// Has `actor` [drained](ActorRef::drain) in this phase: it handles what it was sent, and ends.
    ///
    /// # Errors
    /// The phase has begun.
    pub fn drain<A: Actor>(&self, name: impl Into<String>, actor: ActorRef<A>) -> Result<(), TooLate> {
        let begin = move |keeper: ActorRef<Keeper<Roll>>| {
            keeper.tell_urgent(Observe { who: actor, watch: true });
            actor.drain();
        };
        self.add(name.into(), Task::Drain(actor.id(), Box::new(begin)))
    }

    fn add(&self, name: String, task: Task) -> Result<(), TooLate> {
        let mut plan = lock(&self.plan);
        let late = self.number < plan.begun;
        let phase = &mut plan.phases[self.number];
        if late {
            return Err(TooLate { task: name, phase: phase.name.clone() });
        }
        phase.tasks.push((name, task));
        Ok(())
    }
}

impl fmt::Debug for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Phase({:?})", lock(&self.plan).phases[self.number].name)
    }
}

/// How far a phase has come.
struct Progress {
    outcomes: Mutex<Vec<Option<Outcome>>>,
    waiting: Thread,
}

impl Progress {
    fn over(&self, number: usize, outcome: Outcome) {
        // After the phase, nobody asks any more.
        if let Some(place) = lock(&self.outcomes).get_mut(number) {
            *place = Some(outcome);
        }
        self.waiting.unpark();
    }

    fn is_over(&self) -> bool {
        lock(&self.outcomes).iter().all(Option::is_some)
    }
}

/// What the keeper of a phase does.
struct Roll {
    drained: Vec<(ActorId, usize)>,
    progress: Arc<Progress>,
}

impl Table for Roll {
    fn ended(&mut self, down: &Terminated, _: &mut Context<Keeper<Self>>) {
        for (_, number) in self.drained.iter().filter(|(who, _)| *who == down.who) {
            let outcome = match &down.reason {
                StopReason::Panicked(_) | StopReason::Failed(_) | StopReason::TheaterLost => {
                    Outcome::Failed(down.reason.to_string())
                }
                _ => Outcome::Finished,
            };
            self.progress.over(*number, outcome);
        }
    }
}

/// What has become of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome {
    /// It has finished, or its actor has ended.
    Finished,
    /// It has returned an error or panicked, or its actor has crashed: why.
    Failed(String),
    /// Its phase was over before it had finished. It goes on.
    Unfinished,
}

/// What has become of one task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskReport {
    /// Its name.
    pub name: String,
    /// What has become of it.
    pub outcome: Outcome,
}

/// How a phase went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PhaseReport {
    /// Its name.
    pub name: String,
    /// How long it took, in the system's time.
    pub took: Duration,
    /// Its tasks, in the order in which they were registered.
    pub tasks: Vec<TaskReport>,
}

/// How a shutdown went. Shown to people, it names what did not finish, a line each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// The phases that were gone through, in their order.
    pub phases: Vec<PhaseReport>,
}

impl Report {
    /// Whether every task has finished.
    pub fn is_clean(&self) -> bool {
        self.phases.iter().flat_map(|phase| &phase.tasks).all(|task| task.outcome == Outcome::Finished)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tasks: usize = self.phases.iter().map(|phase| phase.tasks.len()).sum();
        let mut finished = 0;
        let mut wrong = Vec::new();
        for phase in &self.phases {
            for task in &phase.tasks {
                let (phase, name) = (&phase.name, &task.name);
                match &task.outcome {
                    Outcome::Finished => finished += 1,
                    Outcome::Failed(why) => wrong.push(format!("{phase:?}: {name:?} failed: {why}")),
                    Outcome::Unfinished => wrong.push(format!("{phase:?}: {name:?} did not finish in time")),
                }
            }
        }
        write!(f, "{finished} of {tasks} shutdown tasks finished")?;
        for line in wrong {
            write!(f, "\n{line}")?;
        }
        Ok(())
    }
}
