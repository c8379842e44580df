//! A system whose deliveries a scheduler chooses.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use playhouse::{ActorId, System};
use playhouse_executor::{Driver, DriverLock};

use super::choose::Scheduler;
use super::outcome::name_in;
use super::sent::{Sent, pending_sent, sender, shown};
use super::state::{RunMode, RunState};
use super::step::{ActorNumbers, Fault, Origin, Participant};
use super::{end, lock};

/// The driver of a system: runs it by the choices of a scheduler.
///
/// INVARIANT: the run is touched only inside a turn. A thread drives the run to the end in one turn, and other
/// threads wait.
pub(super) struct SessionDriver {
    pub(super) driving: DriverLock,
    pub(super) run: Mutex<Option<RunState>>,
}

impl SessionDriver {
    /// Calls `f` with the run, or with `None` if it is over.
    ///
    /// # Panics
    /// The call is made inside an actor of the system.
    pub(super) fn with<R>(&self, f: impl FnOnce(&mut Option<RunState>) -> R) -> R {
        let drive = self.driving.drive();
        let _turn = drive.turn();
        f(&mut lock(&self.run))
    }
}

impl Driver for SessionDriver {
    fn run(&self, time: Option<Duration>, done: &mut dyn FnMut() -> bool) {
        self.with(|run| {
            // `None` means that the run is over.
            if let Some(run) = run.as_mut() {
                run.until = time.map(|time| run.system.now().saturating_add(time));
                run.run(done);
                run.until = None;
            }
        });
    }
}

/// A system whose deliveries a scheduler chooses.
pub(crate) struct Session {
    pub(super) system: System,
    pub(super) driver: Arc<SessionDriver>,
}

impl Session {
    pub(crate) fn start(numbers: &Arc<Mutex<ActorNumbers>>, choose: Box<dyn Scheduler>, mode: RunMode) -> Session {
        let system = System::builder()
            .workers(1)
            .stages(1)
            .simulated(0)
            .print_crashes(false)
            .start()
            .unwrap_or_else(|error| panic!("the system of a run does not start: {error}"));
        let deliveries = system.core().deliveries().expect("the system is simulated and has one worker");
        let fault: Arc<Mutex<Vec<Fault>>> = Arc::default();
        let letters = Arc::clone(&fault);
        system.on_dead_letter(move |letter| lock(&letters).push(Fault::DeadLetter(letter.to_string())));
        let run = RunState {
            deliveries,
            choose,
            numbers: Arc::clone(numbers),
            ids: HashMap::new(),
            actors: HashMap::new(),
            spawned: HashMap::new(),
            sent: HashMap::new(),
            pending: Vec::new(),
            asks: HashMap::new(),
            steps: Vec::new(),
            program: Origin::default(),
            held: HashSet::new(),
            until: None,
            crashes: 0,
            fault,
            system: system.clone(),
            mode,
            times: 0,
            endless: false,
        };
        let driving = DriverLock::new("a simulated system was asked to run from inside one of its own actors");
        let driver = Arc::new(SessionDriver { driving, run: Mutex::new(Some(run)) });
        system.core().set_driver(Arc::clone(&driver) as Arc<dyn Driver>);
        Session { system, driver }
    }

    pub(crate) fn system(&self) -> &System {
        &self.system
    }

    pub(super) fn with<T>(&self, f: impl FnOnce(&mut RunState) -> T) -> T {
        self.driver.with(|run| f(run.as_mut().expect("the run goes on")))
    }

    /// Runs until `done`, or until nothing is left to do before the system time `until`. In the latter case the time
    /// is `until` afterwards. Does nothing after the end.
    pub(crate) fn run(&self, until: Duration, done: &mut dyn FnMut() -> bool) {
        self.driver.with(|run| {
            let Some(run) = run else { return };
            run.until = Some(until);
            run.run(done);
            run.until = None;
        });
    }

    /// Holds the messages of `who`, or releases them.
    pub(crate) fn hold(&self, who: ActorId, held: bool) {
        self.with(|run| {
            if held {
                run.held.insert(who.address());
            } else {
                run.held.remove(&who.address());
            }
        });
    }

    /// Returns the actors that `creator` has started, in order, as far as their starts were sent.
    pub(crate) fn children(&self, creator: ActorId) -> Vec<ActorId> {
        self.with(|run| {
            run.collect_from_program();
            let Some(creator) = run.ids.get(&creator.address()).copied() else { return Vec::new() };
            let mut children: Vec<(u32, ActorId)> = run
                .actors
                .values()
                .filter(|part| part.creator.0 == creator)
                .map(|part| (part.creator.1, ActorId::of(part.address)))
                .collect();
            children.sort();
            children.into_iter().map(|(_, child)| child).collect()
        })
    }

    /// Returns the delivered messages, and then the waiting ones.
    pub(crate) fn sent(&self) -> Vec<(Option<ActorId>, Sent)> {
        self.with(|run| {
            run.collect_from_program();
            let whose = |who: Participant| run.actors.get(&who).map(|part| ActorId::of(part.address));
            let name = |who: Participant| name_in(&run.actors, who);
            let pending =
                run.pending.iter().map(|pending| (pending.id, pending.delivery.kind, pending.delivery.message));
            let delivered = run.steps.iter().map(|step| (whose(sender(step.id, step.kind)), shown(step, &name)));
            let now = run.system.now();
            let pending = pending.map(|(id, kind, message)| {
                let from = sender(id, kind);
                (whose(from), Sent { from: name(from), to: name(id.to), ..pending_sent(kind, message, now) })
            });
            delivered.chain(pending).collect()
        })
    }

    pub(super) fn finish(&self) -> RunState {
        self.driver.with(Option::take).expect("it is taken once")
    }

    /// Ends the system.
    pub(crate) fn end(&self) {
        let RunState { deliveries, system, .. } = self.finish();
        end(deliveries, system);
    }
}
