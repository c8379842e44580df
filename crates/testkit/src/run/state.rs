//! The state of a run.

use std::collections::{HashMap, HashSet};
use std::panic::resume_unwind;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use playhouse::{ActorId, System};
use playhouse_actor::name_of;
use playhouse_executor::{Deliveries, Delivery, MailKind, RawAddress};

use super::choose::Scheduler;
use super::panics::take_panic;
use super::step::{ActorNumbers, Channel, Fault, MessageId, Origin, Participant, Step};
use super::{DELIVERIES_MAX, lock};

/// A message that waits.
#[derive(Clone, Debug)]
pub(crate) struct PendingMessage {
    pub(crate) id: MessageId,
    pub(super) delivery: Delivery,
    pub(super) origin: Origin,
}

/// An actor of a run.
#[derive(Clone, Debug)]
pub(super) struct ActorInfo {
    pub(super) address: RawAddress,
    pub(super) actor: &'static str,
    pub(super) name: Option<String>,
    /// The creator of the actor, and the actor's number among the creator's actors.
    pub(super) creator: (Participant, u32),
}

/// A policy for timers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimerPolicy {
    /// Timers fire when nothing else is left to do.
    AtRest,
    /// Timers fire when the scheduler chooses so.
    AnyTime,
}

/// The purpose of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RunMode {
    /// A test drives the run.
    Kit,
    /// The run is one of many, and may be abandoned.
    Search(TimerPolicy),
}

/// The state of a run.
pub(super) struct RunState {
    pub(super) deliveries: Deliveries,
    pub(super) choose: Box<dyn Scheduler>,
    pub(super) numbers: Arc<Mutex<ActorNumbers>>,
    pub(super) ids: HashMap<RawAddress, Participant>,
    pub(super) actors: HashMap<Participant, ActorInfo>,
    pub(super) spawned: HashMap<Participant, u32>,
    pub(super) sent: HashMap<(Participant, Participant, Channel), u32>,
    pub(super) pending: Vec<PendingMessage>,
    /// The actors that the present handler of an actor has asked, and that have not answered.
    pub(super) asks: HashMap<Participant, Vec<Participant>>,
    pub(super) steps: Vec<Step>,
    /// The steps that the program knows of.
    pub(super) program: Origin,
    /// The actors whose messages are held.
    pub(super) held: HashSet<RawAddress>,
    /// The limit of time.
    pub(super) until: Option<Duration>,
    pub(super) crashes: u64,
    pub(super) fault: Arc<Mutex<Vec<Fault>>>,
    pub(super) system: System,
    pub(super) mode: RunMode,
    /// The number of times that time was chosen to pass.
    pub(super) times: u32,
    pub(super) endless: bool,
}

/// The payload that is thrown where a run is abandoned.
pub(super) struct Abandoned;

impl RunState {
    /// Collects the messages that `from` has sent.
    pub(super) fn collect_sent(&mut self, from: Participant, origin: &Origin) -> Vec<(Participant, MailKind)> {
        let mut sent = Vec::new();
        for delivery in self.deliveries.collect() {
            let to = match self.ids.get(&delivery.to) {
                Some(known) => *known,
                None => self.register(from, &delivery),
            };
            let channel = Channel::of(&delivery);
            let nth = self.sent.entry((from, to, channel)).or_default();
            let id = MessageId { from, to, channel, nth: *nth };
            *nth += 1;
            sent.push((to, delivery.kind));
            self.pending.push(PendingMessage { id, delivery, origin: origin.clone() });
        }
        sent
    }

    pub(super) fn collect_from_program(&mut self) {
        let program = self.program.clone();
        self.collect_sent(Participant::Program, &program);
    }

    /// Registers an actor that `creator` has started.
    pub(super) fn register(&mut self, creator: Participant, delivery: &Delivery) -> Participant {
        let spawned = self.spawned.entry(creator).or_default();
        let nth = *spawned;
        *spawned += 1;
        let who = lock(&self.numbers).number(creator, nth);
        self.ids.insert(delivery.to, who);
        let part = ActorInfo { address: delivery.to, actor: delivery.actor, name: None, creator: (creator, nth) };
        self.actors.insert(who, part);
        who
    }

    /// Returns the indexes of the waiting messages that may be next.
    pub(super) fn enabled(&self) -> Vec<usize> {
        let mut enabled: Vec<usize> = Vec::new();
        let mut heads: Vec<MessageId> = Vec::new();
        for (at, pending) in self.pending.iter().enumerate() {
            if heads.iter().any(|head| head.is_in_channel_of(pending.id)) {
                continue;
            }
            heads.push(pending.id);
            let passes = pending.delivery.is_control && pending.delivery.kind == MailKind::Control;
            // The messages of an ended actor are dead letters, even if they were held.
            let to = pending.delivery.to;
            let is_held = !passes && self.held.contains(&to) && !to.is_stale();
            if !is_held && self.deliveries.is_ready(pending.delivery.number) {
                enabled.push(at);
            }
        }
        enabled
    }

    pub(super) fn run(&mut self, done: &mut dyn FnMut() -> bool) {
        self.collect_from_program();
        let before = self.steps.len();
        while !done() {
            let enabled = self.enabled();
            let mut ids: Vec<MessageId> = enabled.iter().map(|at| self.pending[*at].id).collect();
            if self.mode == RunMode::Search(TimerPolicy::AnyTime) && self.deliveries.has_timers(self.until) {
                ids.push(MessageId::of_time(self.times));
            }
            if ids.is_empty() {
                let all = Origin { all_before: self.steps.len(), steps: Vec::new() };
                if !self.deliveries.let_time_pass(self.until) {
                    self.program = all;
                    return;
                }
                self.collect_sent(Participant::Clock, &all);
                continue;
            }
            let is_search = self.mode != RunMode::Kit;
            if self.steps.len() - if is_search { 0 } else { before } >= DELIVERIES_MAX {
                assert!(is_search, "the run never ends: {DELIVERIES_MAX} deliveries were made, and more messages wait");
                self.endless = true;
                resume_unwind(Box::new(Abandoned));
            }
            match self.choose.choose(&self.steps, &ids) {
                Some(choice) => match enabled.get(choice) {
                    Some(place) => self.step(*place, choice),
                    None => self.advance_time(choice),
                },
                None => resume_unwind(Box::new(Abandoned)),
            }
        }
        if self.steps.len() > before {
            // The program has waited for the last step.
            self.program.steps.push(self.steps.len() - 1);
        }
    }

    /// Lets time pass until a timer fires: a step of its own.
    pub(super) fn advance_time(&mut self, choice: usize) {
        let id = MessageId::of_time(self.times);
        self.times += 1;
        let fired = |run: &RunState| run.system.stats().total.timers_fired;
        let before = fired(self);
        while fired(self) == before && self.deliveries.let_time_pass(self.until) {}
        self.collect_sent(Participant::Clock, &Origin { all_before: 0, steps: vec![self.steps.len()] });
        let fault = self.take_fault();
        self.steps.push(Step {
            id,
            kind: MailKind::Timer,
            may_wait: false,
            is_control: true,
            message: "time passes",
            choice,
            origin: Origin::default(),
            was_suspended: false,
            was_open: true,
            woke: Vec::new(),
            asked: Vec::new(),
            gives_up_asks: false,
            at: self.system.now(),
            fault,
        });
    }

    pub(super) fn step(&mut self, place: usize, choice: usize) {
        let PendingMessage { id, delivery, origin } = self.pending.remove(place);
        let was_suspended = self.deliveries.is_suspended(delivery.to);
        let was_open = self.deliveries.is_open(delivery.to);
        self.deliveries.deliver(delivery.number);
        let caused = Origin { all_before: 0, steps: vec![self.steps.len()] };
        let sent = self.collect_sent(id.to, &caused);
        let (at, fault) = (self.system.now(), self.take_fault());
        let receivers_of = |kind: MailKind| sent.iter().filter(move |sent| sent.1 == kind).map(|sent| sent.0).collect();
        let (woke, asked): (Vec<Participant>, Vec<Participant>) =
            (receivers_of(MailKind::WakeUp), receivers_of(MailKind::Request));
        let asked = if delivery.may_wait { asked } else { Vec::new() };
        let asks = self.asks.entry(id.to).or_default();
        let gives_up_asks = was_suspended && !asks.is_empty();
        if !was_suspended {
            asks.clear();
        }
        asks.extend(&asked);
        for woken in &woke {
            self.asks.entry(*woken).or_default().retain(|asked| *asked != id.to);
        }
        self.steps.push(Step {
            id,
            kind: delivery.kind,
            may_wait: delivery.may_wait,
            is_control: delivery.is_control,
            message: delivery.message,
            choice,
            origin,
            was_suspended,
            was_open,
            woke,
            asked,
            gives_up_asks,
            at,
            fault,
        });
        if let Some(part) = self.actors.get_mut(&id.to)
            && part.name.is_none()
        {
            part.name = name_of(ActorId::of(part.address)).map(|name| name.to_string());
        }
    }

    pub(super) fn take_fault(&mut self) -> Option<Fault> {
        let crashes = self.system.stats().total.crashes;
        let letters = std::mem::take(&mut *lock(&self.fault));
        if std::mem::replace(&mut self.crashes, crashes) < crashes {
            // A kit prints panics as usual, and captures none.
            let unknown =
                if self.mode == RunMode::Kit { "it panicked, or called `ctx.fail`" } else { "it called `ctx.fail`" };
            let why = take_panic().unwrap_or_else(|| unknown.to_owned());
            return Some(Fault::Crash(why));
        }
        letters.into_iter().next()
    }
}
