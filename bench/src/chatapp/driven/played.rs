//! A world whose moves come from outside.

use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use playhouse::prelude::*;

use super::act::Act;
use super::ledger::Ledger;
use crate::chatapp::messages::{CollectPartial, Direct, EndDriven, Engage, Open};
use crate::chatapp::report::Report;
use crate::chatapp::run::{DeadLetters, Options, RunError, build};
use crate::chatapp::scenario::Scenario;
use crate::chatapp::world::{Outcome, PhaseEnd, World};
use crate::harness::memory;

/// A world on a system of its own, which waits for its set-up or for its next turn.
pub(super) struct Played {
    scenario: Scenario,
    system: System,
    world: ActorRef<World>,
    phases: Receiver<PhaseEnd>,
    outcome: Receiver<Outcome>,
    dead_letters: DeadLetters,
    begun: Instant,
    /// The time between two checks, during a wait for an answer, that actors with the answer still exist.
    check_interval: Duration,
    pub ledger: Ledger,
}

const SOON: Duration = Duration::from_secs(1);

impl Played {
    /// A world whose clients exist, and have not met.
    pub fn open(scenario: &Scenario, options: &Options) -> Result<Played, RunError> {
        scenario.check().map_err(RunError::Scenario)?;
        // Excludes the leftovers of an earlier world of this process.
        memory::release_freed();
        memory::reset_peak();
        let begun = Instant::now();
        let system = build(options).map_err(RunError::System)?;
        let dead_letters = DeadLetters::of(&system);
        let (outcome, ended) = mpsc::channel();
        let (driver, phases) = mpsc::channel();
        let world = World::new(scenario.clone(), options.fault, Box::new(|_| ()), outcome).driven(driver);
        let world = system.spawn(world);
        let played = Played {
            scenario: scenario.clone(),
            system,
            world,
            phases,
            outcome: ended,
            dead_letters,
            begun,
            // A simulated system runs while a thread waits for it to be idle.
            check_interval: options.simulated.map_or(SOON, |_| Duration::ZERO),
            ledger: Ledger::new(scenario),
        };
        played.world.tell(Open);
        played.wait(&played.phases)?;
        Ok(played)
    }

    /// Lets the clients meet according to checked orders.
    pub fn meet(&mut self, engagements: Vec<(u32, Engage)>) -> Result<PhaseEnd, RunError> {
        self.ledger.meet(&engagements);
        self.world.tell(Direct::Meet(engagements));
        self.wait(&self.phases)
    }

    /// Plays the next turn according to checked orders.
    pub fn play(&mut self, acts: Vec<(u32, Act)>) -> Result<PhaseEnd, RunError> {
        let turn = self.ledger.next();
        self.ledger.play(&acts);
        self.world.tell(Direct::Turn(turn, acts));
        self.wait(&self.phases)
    }

    /// Logs all clients out.
    pub fn close(self) -> Result<Report, RunError> {
        self.world.tell(EndDriven);
        let outcome = self.wait(&self.outcome)?;
        Ok(self.report(outcome))
    }

    /// Collects the counts of a world whose turn has not ended.
    pub fn collect_partial(self) -> Result<Report, RunError> {
        self.world.tell(CollectPartial);
        let outcome = self.wait(&self.outcome)?;
        Ok(self.report(outcome))
    }

    fn report(&self, outcome: Outcome) -> Report {
        Report::new(&self.scenario, outcome, self.begun.elapsed(), &self.system, self.dead_letters.count())
    }

    fn wait<T>(&self, answers: &Receiver<T>) -> Result<T, RunError> {
        answers.recv_timeout(self.check_interval).or_else(|_| {
            self.system.run_until_idle();
            answers.try_recv().map_err(|_| RunError::Lost { dead_letters: self.dead_letters.count() })
        })
    }
}

impl Drop for Played {
    fn drop(&mut self) {
        // No thread waits for a result of it; its remaining messages are dropped.
        let _ = self.system.clone().shutdown_within(Duration::ZERO);
    }
}
