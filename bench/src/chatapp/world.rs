//! The external world: what pokes the actors from outside, turn by turn.

use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::Duration;

use playhouse::prelude::*;

use super::counts::Totals;
use super::directory::Directory;
use super::messages::{Begin, Closed, Open, Phase, PhaseDone, Salvage};
use super::random::Chance;
use super::scenario::Scenario;
use super::{Fault, Progress};

/// What every actor of the world knows from its birth: the immutable plan, and where the directories are.
pub(super) struct Town {
    pub scenario: Scenario,
    pub odds: Odds,
    pub fault: Option<Fault>,
    pub directories: Vec<ActorRef<Directory>>,
}

/// The probabilities of the scenario as thresholds: one roll decides between the behaviours.
pub(super) struct Odds {
    /// A roll below this starts a chat;
    pub new_chat_below: u64,
    /// one from there to below this leaves a chat;
    pub leave_below: u64,
    /// one from there to below this posts; any other does nothing.
    pub post_below: u64,
    pub befriend: Chance,
    pub invite: Chance,
}

impl Odds {
    fn of(scenario: &Scenario) -> Odds {
        let threshold = |percent: f64| Chance::of_percent(percent.min(100.0)).threshold();
        let behaviour = scenario.behaviour;
        Odds {
            new_chat_below: threshold(behaviour.new_chat),
            leave_below: threshold(behaviour.new_chat + behaviour.leave),
            post_below: threshold(behaviour.new_chat + behaviour.leave + behaviour.post),
            befriend: Chance::of_percent(scenario.connectedness.befriend),
            invite: Chance::of_percent(scenario.connectedness.invite),
        }
    }
}

impl Town {
    /// The directory that owns a client id.
    #[inline]
    pub fn directory_of(&self, id: u32) -> ActorRef<Directory> {
        self.directories[id as usize % self.directories.len()]
    }
}

/// How the world ended.
pub(super) struct Outcome {
    pub totals: Totals,
    /// Messages by the running account of the turns, which must agree with the sum of the senders' counters.
    pub account: u64,
    pub messages_in_turns: u64,
    /// From the poke of each turn to its end.
    pub turns_ns: Vec<u64>,
    pub set_up: Duration,
    pub settling: Duration,
    /// What was going on when everything stopped, if the world did not end by itself.
    pub stalled: Option<String>,
}

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
    turns_ns: Vec<u64>,
    totals: Totals,
    stalled: Option<String>,
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
            turns_ns: Vec::new(),
            totals: Totals::default(),
            stalled: None,
        }
    }

    fn begin(&mut self, phase: Phase, ctx: &mut Context<Self>) {
        self.began = ctx.now();
        self.phases += 1;
        self.waiting = self.directories.len();
        // To each directory, and back.
        self.sent = 2 * self.directories.len() as u64;
        self.phase = phase;
        for directory in &self.directories {
            directory.tell(Begin(self.phase.clone()));
        }
    }

    /// Takes a directory's word that the phase has ended there, and says whether it was the last.
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
}

impl Actor for World {}

impl Handler<Open> for World {
    fn handle(&mut self, _: Open, ctx: &mut Context<Self>) {
        self.opened = ctx.now();
        let world = ctx.this();
        for index in 0..self.scenario.directories {
            let options = SpawnOptions::new().placement(Placement::Spread);
            self.directories.push(ctx.spawn_with(options, Directory::new(index, world)));
        }
        let town = Town {
            scenario: self.scenario.clone(),
            odds: Odds::of(&self.scenario),
            fault: self.fault,
            directories: self.directories.clone(),
        };
        self.begin(Phase::Open(Arc::new(town)), ctx);
    }
}

impl Handler<PhaseDone> for World {
    fn handle(&mut self, done: PhaseDone, ctx: &mut Context<Self>) {
        if !self.ended(done.sent) {
            return;
        }
        let now = ctx.now();
        let next = match self.phase {
            Phase::Open(_) => Phase::Meet,
            Phase::Meet => {
                self.set_up = now.saturating_sub(self.opened);
                self.report(0, now);
                Phase::Turn(1)
            }
            Phase::Turn(turn) => {
                self.turns_ns.push(now.saturating_sub(self.began).as_nanos() as u64);
                self.messages_in_turns += self.sent;
                self.report(turn, now);
                if turn < self.scenario.turns { Phase::Turn(turn + 1) } else { Phase::Close }
            }
            Phase::Close => return,
        };
        self.begin(next, ctx);
    }
}

impl Handler<Salvage> for World {
    fn handle(&mut self, _: Salvage, ctx: &mut Context<Self>) {
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
            turns_ns: std::mem::take(&mut self.turns_ns),
            set_up: self.set_up,
            settling: ctx.now().saturating_sub(self.began),
            stalled: self.stalled.take(),
        };
        // Whoever no longer listens does not want to know.
        let _ = self.outcome.send(outcome);
    }
}
