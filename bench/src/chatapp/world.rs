//! The world: starts the actors from outside, turn by turn.

use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::Duration;

use playhouse::prelude::*;

use super::counts::Totals;
use super::directory::Directory;
use super::growth::Memory;
use super::local_context::LocalContext;
use super::messages::{
    Begin, Closed, CollectPartial, Direct, EndDriven, LastTurn, MigrationsFinished, Open, OpenSpread, Phase, PhaseDone,
};
use super::migrator::{FinishMigrations, Migrator};
use super::scenario::Scenario;
use super::{Fault, Progress};

/// The end of the world.
pub(super) struct Outcome {
    pub totals: Totals,
    /// Messages by the running account of the turns, which must agree with the sum of the senders' counters.
    pub account: u64,
    pub messages_in_turns: u64,
    /// Turns that have ended.
    pub turns: u32,
    /// From the start of each turn to its end; of an endless world, the latest ones.
    pub turns_ns: Vec<u64>,
    pub set_up: Duration,
    pub settling: Duration,
    pub memory: Memory,
    /// The state at a stall, if the world did not end by itself.
    pub stalled: Option<String>,
}

/// The receiver of the ends of phases, which drives the world from outside.
pub(super) type Driver = Sender<PhaseEnd>;

/// A phase that a driver began has ended.
pub(super) struct PhaseEnd {
    /// Messages that were sent in it.
    pub messages: u64,
    pub took: Duration,
}

/// The greatest number of turns of a scenario.
const TURNS_KEPT: usize = 10_000_000;

/// The driver: begins each phase when the one before has ended in every directory.
pub(super) struct World {
    scenario: Scenario,
    fault: Option<Fault>,
    observer: Box<dyn FnMut(&Progress) + Send>,
    outcome: Sender<Outcome>,
    directories: Vec<ActorRef<Directory>>,
    phase: Phase,
    phases: u64,
    /// Directories that the phase has not ended in.
    waiting: usize,
    /// Messages of the directories' accounts in this phase.
    sent: u64,
    opened: Duration,
    began: Duration,
    set_up: Duration,
    account: u64,
    messages_in_turns: u64,
    turns: u32,
    turns_ns: Vec<u64>,
    totals: Totals,
    stalled: Option<String>,
    /// No turn comes after the one that is being played.
    ends: bool,
    /// The migrator, if there are several theaters.
    migrator: Option<ActorRef<Migrator>>,
    /// The driver, if the moves come from outside.
    driver: Option<Driver>,
    memory: Memory,
}

impl World {
    pub(super) fn new(
        scenario: Scenario,
        fault: Option<Fault>,
        observer: Box<dyn FnMut(&Progress) + Send>,
        outcome: Sender<Outcome>,
    ) -> World {
        World {
            scenario,
            fault,
            observer,
            outcome,
            directories: Vec::new(),
            phase: Phase::Meet,
            phases: 0,
            waiting: 0,
            sent: 0,
            opened: Duration::ZERO,
            began: Duration::ZERO,
            set_up: Duration::ZERO,
            account: 0,
            messages_in_turns: 0,
            turns: 0,
            turns_ns: Vec::new(),
            totals: Totals::default(),
            stalled: None,
            ends: false,
            migrator: None,
            driver: None,
            memory: Memory::default(),
        }
    }

    /// Waits after each phase for the orders of `driver` for the next.
    pub(super) fn driven(self, driver: Driver) -> World {
        World { driver: Some(driver), ..self }
    }

    fn begin(&mut self, phase: Phase, ctx: &mut Context<Self>) {
        self.enter(phase, ctx);
        for directory in &self.directories {
            directory.tell(Begin(self.phase.clone()));
        }
    }

    fn enter(&mut self, phase: Phase, ctx: &mut Context<Self>) {
        self.began = ctx.now();
        self.phases += 1;
        self.waiting = self.directories.len();
        // To each directory, and back.
        self.sent = 2 * self.directories.len() as u64;
        self.phase = phase;
    }

    /// Distributes the driver's orders to the directories.
    fn distributed<T>(&self, all: Vec<(u32, T)>) -> Vec<Vec<(u32, T)>> {
        let directories = self.directories.len();
        let mut each: Vec<Vec<(u32, T)>> = (0..directories).map(|_| Vec::new()).collect();
        all.into_iter().for_each(|(id, of)| each[id as usize % directories].push((id, of)));
        each
    }

    /// Takes the end of the phase in a directory; returns whether it was the last one.
    fn ended(&mut self, sent: u64) -> bool {
        self.sent += sent;
        self.waiting -= 1;
        if self.waiting == 0 {
            self.account += self.sent;
        }
        self.waiting == 0
    }

    fn report(&mut self, turn: u32, now: Duration) {
        let progress = Progress {
            turn,
            turns: self.scenario.turns,
            messages: self.account,
            messages_in_turns: self.messages_in_turns,
            in_turns: now.saturating_sub(self.opened).saturating_sub(self.set_up),
        };
        (self.observer)(&progress);
    }

    fn describe_stall(&self) -> String {
        let phase = match self.phase {
            Phase::Open(_) => "while the clients were created".to_owned(),
            Phase::Meet => "while friends were made".to_owned(),
            Phase::Turn(turn) => format!("in turn {turn} of {}", self.scenario.turns),
            Phase::Close => "while the clients logged out".to_owned(),
        };
        format!(
            "everything stopped {phase}: an answer is missing in {} of {} directories",
            self.waiting,
            self.directories.len()
        )
    }

    /// Tells the driver before memory is sampled, because the sample must not lengthen a turn as seen from outside.
    fn tell_driver(&self, now: Duration) {
        if let Some(driver) = &self.driver {
            // The receiver may be gone.
            let _ = driver.send(PhaseEnd { messages: self.sent, took: now.saturating_sub(self.began) });
        }
    }
}

impl Actor for World {}

impl Handler<Open> for World {
    fn handle(&mut self, _: Open, ctx: &mut Context<Self>) {
        self.opened = ctx.now();
        self.memory.begin();
        let world = ctx.this();
        for index in 0..self.scenario.directories {
            let options = SpawnOptions::new().placement(Placement::Spread);
            self.directories.push(ctx.spawn_with(options, Directory::new(index, world)));
        }
        let context = LocalContext::new(&self.scenario, self.fault, self.directories.clone(), None);
        self.begin(Phase::Open(Arc::new(context)), ctx);
    }
}

impl Handler<PhaseDone> for World {
    fn handle(&mut self, done: PhaseDone, ctx: &mut Context<Self>) {
        if !self.ended(done.sent) {
            return;
        }
        let now = ctx.now();
        let next = match self.phase {
            Phase::Open(_) => {
                self.set_up = now.saturating_sub(self.opened);
                self.tell_driver(now);
                Phase::Meet
            }
            Phase::Meet => {
                // The time of a driver before it begins is left out.
                self.set_up += now.saturating_sub(self.began);
                self.tell_driver(now);
                self.memory.note(0);
                self.report(0, now);
                Phase::Turn(1)
            }
            Phase::Turn(turn) => {
                let took_ns = now.saturating_sub(self.began).as_nanos() as u64;
                if self.turns_ns.len() < TURNS_KEPT {
                    self.turns_ns.push(took_ns);
                } else {
                    self.turns_ns[turn as usize % TURNS_KEPT] = took_ns;
                }
                self.turns += 1;
                self.messages_in_turns += self.sent;
                self.tell_driver(now);
                self.memory.note(turn);
                self.report(turn, now);
                if turn < self.scenario.turns && !self.ends { Phase::Turn(turn + 1) } else { Phase::Close }
            }
            Phase::Close => return,
        };
        if self.driver.is_some() {
            return;
        }
        match (&next, self.migrator) {
            // An actor that ends while it migrates would leave the migrator waiting.
            (Phase::Close, Some(migrator)) => migrator.tell(FinishMigrations(ctx.this())),
            _ => self.begin(next, ctx),
        }
    }
}

impl Handler<MigrationsFinished> for World {
    fn handle(&mut self, _: MigrationsFinished, ctx: &mut Context<Self>) {
        if !matches!(self.phase, Phase::Close) {
            self.begin(Phase::Close, ctx);
        }
    }
}

impl Handler<OpenSpread> for World {
    fn handle(&mut self, open: OpenSpread, ctx: &mut Context<Self>) {
        self.opened = ctx.now();
        self.memory.begin();
        self.directories.clone_from(&open.context.directories);
        self.migrator = Some(open.migrator);
        self.begin(Phase::Open(open.context), ctx);
    }
}

impl Handler<Direct> for World {
    fn handle(&mut self, direct: Direct, ctx: &mut Context<Self>) {
        match direct {
            Direct::Meet(engagements) => {
                let each = self.distributed(engagements);
                self.enter(Phase::Meet, ctx);
                self.directories.iter().zip(each).for_each(|(directory, of)| directory.tell(Direct::Meet(of)));
            }
            Direct::Turn(turn, acts) => {
                let each = self.distributed(acts);
                self.enter(Phase::Turn(turn), ctx);
                self.directories.iter().zip(each).for_each(|(directory, of)| directory.tell(Direct::Turn(turn, of)));
            }
        }
    }
}

impl Handler<EndDriven> for World {
    fn handle(&mut self, _: EndDriven, ctx: &mut Context<Self>) {
        self.begin(Phase::Close, ctx);
    }
}

impl Handler<LastTurn> for World {
    fn handle(&mut self, _: LastTurn, _: &mut Context<Self>) {
        self.ends = true;
    }
}

impl Handler<CollectPartial> for World {
    fn handle(&mut self, _: CollectPartial, ctx: &mut Context<Self>) {
        self.stalled = Some(self.describe_stall());
        self.begin(Phase::Close, ctx);
    }
}

impl Handler<Closed> for World {
    fn handle(&mut self, closed: Closed, ctx: &mut Context<Self>) {
        self.totals += &closed.totals;
        if !self.ended(closed.sent) {
            return;
        }
        self.totals.messages.phase += self.phases * self.directories.len() as u64;
        let outcome = Outcome {
            totals: self.totals,
            account: self.account,
            messages_in_turns: self.messages_in_turns,
            turns: self.turns,
            turns_ns: std::mem::take(&mut self.turns_ns),
            set_up: self.set_up,
            settling: ctx.now().saturating_sub(self.began),
            memory: std::mem::take(&mut self.memory),
            stalled: self.stalled.take(),
        };
        // The receiver may be gone.
        let _ = self.outcome.send(outcome);
    }
}

playhouse::remote!(World: PhaseDone, Closed);
