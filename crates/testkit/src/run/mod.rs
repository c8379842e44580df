//! One run of a program, one delivery at a time.
//!
//! The system is simulated and has one worker; what waits in it is taken out of its queue
//! ([`playhouse_executor::Deliveries`]), and whoever [chooses](Choose) says what is handled next. A delivery is a
//! *macro-step* (kumar ch. 2): a handler runs from its beginning to its end, or to its next await.
//!
//! Actors and messages have names that are the same in every run in which the same has happened before: an actor is the
//! so-manyth that its creator started, a message the so-manyth that its sender sent to its receiver.

use std::collections::{HashMap, HashSet};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use playhouse::{ActorId, ShortType, System, name_of};
use playhouse_executor::{Deliveries, Delivery, Driver, DriverLock, MailKind, RawAddress};

use crate::quiet::{Quiet, take_panic, text_of};
use crate::schedule::{Sent, sender, shown, waits};
use crate::step::{Cast, Channel, MessageId, Origin, Step, Who, Wrong};

/// A run that has come so far is taken for one that never ends.
pub(crate) const DELIVERIES_MAX: usize = 10_000;

/// A message that waits.
#[derive(Clone, Debug)]
pub(crate) struct Waiting {
    pub(crate) id: MessageId,
    delivery: Delivery,
    origin: Origin,
}

/// Says what is delivered next.
pub(crate) trait Choose: Send {
    /// One of `enabled`, which are in the order of sending. None: this run is of no interest any more.
    fn choose(&mut self, steps: &[Step], enabled: &[MessageId]) -> Option<usize>;
}

/// An actor of a run.
#[derive(Clone, Debug)]
struct Part {
    address: RawAddress,
    actor: &'static str,
    name: Option<String>,
    /// Who has started it, and the how manyth it was.
    creator: (Who, u32),
}

/// When timers fire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Time {
    /// When nothing else is left to do.
    AtRest,
    /// When it is chosen.
    AnyTime,
}

/// What a run is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// A test drives it.
    Kit,
    /// It is one of many, and may be given up.
    Search(Time),
}

/// A run under way.
struct Run {
    deliveries: Deliveries,
    choose: Box<dyn Choose>,
    cast: Arc<Mutex<Cast>>,
    parts: HashMap<RawAddress, Who>,
    people: HashMap<Who, Part>,
    births: HashMap<Who, u32>,
    sent: HashMap<(Who, Who, Channel), u32>,
    waiting: Vec<Waiting>,
    /// Whom the present handler of an actor has asked, and has no answer of.
    asks: HashMap<Who, Vec<Who>>,
    steps: Vec<Step>,
    /// What the program knows of.
    program: Origin,
    /// To whom nothing is delivered.
    held: HashSet<RawAddress>,
    /// How far time may go.
    until: Option<Duration>,
    crashes: u64,
    wrong: Arc<Mutex<Vec<Wrong>>>,
    system: System,
    purpose: Purpose,
    /// How often time was chosen to pass.
    times: u32,
    endless: bool,
}

/// Thrown where a run is given up.
struct GivenUp;

impl Run {
    /// Takes in what was sent.
    fn take_in(&mut self, from: Who, origin: &Origin) -> Vec<(Who, MailKind)> {
        let mut sent = Vec::new();
        for delivery in self.deliveries.collect() {
            let to = match self.parts.get(&delivery.to) {
                Some(known) => *known,
                None => self.enter(from, &delivery),
            };
            let channel = Channel::of(&delivery);
            let nth = self.sent.entry((from, to, channel)).or_default();
            let id = MessageId { from, to, channel, nth: *nth };
            *nth += 1;
            sent.push((to, delivery.kind));
            self.waiting.push(Waiting { id, delivery, origin: origin.clone() });
        }
        sent
    }

    fn take_in_from_program(&mut self) {
        let program = self.program.clone();
        self.take_in(Who::Program, &program);
    }

    /// An actor that was not heard of before: `creator` has started it.
    fn enter(&mut self, creator: Who, delivery: &Delivery) -> Who {
        let births = self.births.entry(creator).or_default();
        let nth = *births;
        *births += 1;
        let who = lock(&self.cast).born(creator, nth);
        self.parts.insert(delivery.to, who);
        let part = Part { address: delivery.to, actor: delivery.actor, name: None, creator: (creator, nth) };
        self.people.insert(who, part);
        who
    }

    /// Which of those that wait may be next.
    fn enabled(&self) -> Vec<usize> {
        let mut enabled: Vec<usize> = Vec::new();
        let mut heads: Vec<MessageId> = Vec::new();
        for (at, waiting) in self.waiting.iter().enumerate() {
            if heads.iter().any(|head| head.is_in_channel_of(waiting.id)) {
                continue;
            }
            heads.push(waiting.id);
            let passes = waiting.delivery.is_control && waiting.delivery.kind == MailKind::Control;
            // The messages of an actor that has ended are dead letters, whether it was held or not.
            let to = waiting.delivery.to;
            let is_held = !passes && self.held.contains(&to) && !to.is_stale();
            if !is_held && self.deliveries.is_ready(waiting.delivery.number) {
                enabled.push(at);
            }
        }
        enabled
    }

    fn run(&mut self, done: &mut dyn FnMut() -> bool) {
        self.take_in_from_program();
        let before = self.steps.len();
        while !done() {
            let enabled = self.enabled();
            let mut ids: Vec<MessageId> = enabled.iter().map(|at| self.waiting[*at].id).collect();
            if self.purpose == Purpose::Search(Time::AnyTime) && self.deliveries.has_timers(self.until) {
                ids.push(MessageId::of_time(self.times));
            }
            if ids.is_empty() {
                let all = Origin { all_before: self.steps.len(), steps: Vec::new() };
                if !self.deliveries.let_time_pass(self.until) {
                    self.program = all;
                    return;
                }
                self.take_in(Who::Clock, &all);
                continue;
            }
            let is_search = self.purpose != Purpose::Kit;
            if self.steps.len() - if is_search { 0 } else { before } >= DELIVERIES_MAX {
                assert!(is_search, "this never ends: {DELIVERIES_MAX} deliveries were made, and more wait");
                self.endless = true;
                resume_unwind(Box::new(GivenUp));
            }
            match self.choose.choose(&self.steps, &ids) {
                Some(choice) => match enabled.get(choice) {
                    Some(place) => self.step(*place, choice),
                    None => self.let_time_pass(choice),
                },
                None => resume_unwind(Box::new(GivenUp)),
            }
        }
        if self.steps.len() > before {
            // What it has waited for was done by the last step.
            self.program.steps.push(self.steps.len() - 1);
        }
    }

    /// Time passes until some timer fires: a step of its own.
    fn let_time_pass(&mut self, choice: usize) {
        let id = MessageId::of_time(self.times);
        self.times += 1;
        let fired = |run: &Run| run.system.stats().total.timers_fired;
        let before = fired(self);
        while fired(self) == before && self.deliveries.let_time_pass(self.until) {}
        self.take_in(Who::Clock, &Origin { all_before: 0, steps: vec![self.steps.len()] });
        let wrong = self.what_went_wrong();
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
            wrong,
        });
    }

    fn step(&mut self, place: usize, choice: usize) {
        let Waiting { id, delivery, origin } = self.waiting.remove(place);
        let was_suspended = self.deliveries.is_suspended(delivery.to);
        let was_open = self.deliveries.is_open(delivery.to);
        self.deliveries.deliver(delivery.number);
        let caused = Origin { all_before: 0, steps: vec![self.steps.len()] };
        let sent = self.take_in(id.to, &caused);
        let (at, wrong) = (self.system.now(), self.what_went_wrong());
        let to_whom = |kind: MailKind| sent.iter().filter(move |sent| sent.1 == kind).map(|sent| sent.0).collect();
        let (woke, asked): (Vec<Who>, Vec<Who>) = (to_whom(MailKind::WakeUp), to_whom(MailKind::Request));
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
            wrong,
        });
        if let Some(part) = self.people.get_mut(&id.to)
            && part.name.is_none()
        {
            part.name = name_of(ActorId::of(part.address)).map(|name| name.to_string());
        }
    }

    fn what_went_wrong(&mut self) -> Option<Wrong> {
        let crashes = self.system.stats().total.crashes;
        let letters = std::mem::take(&mut *lock(&self.wrong));
        if std::mem::replace(&mut self.crashes, crashes) < crashes {
            // In a kit, panics are printed as ever, and not kept.
            let unknown =
                if self.purpose == Purpose::Kit { "it panicked, or called `ctx.fail`" } else { "it called `ctx.fail`" };
            let why = take_panic().unwrap_or_else(|| unknown.to_owned());
            return Some(Wrong::Crash(why));
        }
        letters.into_iter().next()
    }
}

/// Drives a system by the choices of somebody.
///
/// INVARIANT: the run is touched only in a turn. A thread drives it to the end in one turn: others wait meanwhile.
struct Conductor {
    driving: DriverLock,
    run: Mutex<Option<Run>>,
}

impl Conductor {
    /// Calls `f` with the run, if it is not over.
    ///
    /// # Panics
    /// From inside an actor of the system.
    fn with<R>(&self, f: impl FnOnce(&mut Option<Run>) -> R) -> R {
        let drive = self.driving.drive();
        let _turn = drive.turn();
        f(&mut lock(&self.run))
    }
}

impl Driver for Conductor {
    fn run(&self, time: Option<Duration>, done: &mut dyn FnMut() -> bool) {
        self.with(|run| {
            // None: the run is over.
            if let Some(run) = run.as_mut() {
                run.until = time.map(|time| run.system.now().saturating_add(time));
                run.run(done);
                run.until = None;
            }
        });
    }
}

/// How a run ended.
#[derive(Debug)]
pub(crate) enum Ended<R> {
    /// With what the program returned.
    Returned(R),
    /// The program panicked.
    Panicked(String),
    /// Whoever chose had no interest in its rest.
    GivenUp,
    /// It made [`DELIVERIES_MAX`] deliveries, and more wait.
    Endless,
}

/// A run that is over.
#[derive(Debug)]
pub(crate) struct Ran<R> {
    pub(crate) ended: Ended<R>,
    pub(crate) steps: Vec<Step>,
    /// What the program has waited for.
    pub(crate) program: Origin,
    people: HashMap<Who, Part>,
    /// Whose handlers wait for something that nobody will do, with what waits for them.
    pub(crate) stuck: Vec<String>,
}

impl<R> Ran<R> {
    /// What the actor is called: by its name, or by its type and number.
    pub(crate) fn name(&self, who: Who) -> String {
        name_in(&self.people, who)
    }
}

fn name_in(people: &HashMap<Who, Part>, who: Who) -> String {
    match who {
        Who::Program => "program".to_owned(),
        Who::Clock => "clock".to_owned(),
        Who::Actor(number) => match people.get(&who) {
            Some(Part { actor, name: Some(name), .. }) => format!("{} {name:?}", ShortType(actor)),
            Some(Part { actor, .. }) => format!("{} #{number}", ShortType(actor)),
            None => format!("#{number}"),
        },
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A system whose deliveries somebody chooses.
pub(crate) struct Session {
    system: System,
    conductor: Arc<Conductor>,
}

impl Session {
    pub(crate) fn start(cast: &Arc<Mutex<Cast>>, choose: Box<dyn Choose>, purpose: Purpose) -> Session {
        let system = System::builder()
            .workers(1)
            .stages(1)
            .simulated(0)
            .print_crashes(false)
            .start()
            .unwrap_or_else(|error| panic!("a system for one run: {error}"));
        let deliveries = system.core().deliveries().expect("it is simulated and has one worker");
        let wrong: Arc<Mutex<Vec<Wrong>>> = Arc::default();
        let letters = Arc::clone(&wrong);
        system.on_dead_letter(move |letter| lock(&letters).push(Wrong::DeadLetter(letter.to_string())));
        let run = Run {
            deliveries,
            choose,
            cast: Arc::clone(cast),
            parts: HashMap::new(),
            people: HashMap::new(),
            births: HashMap::new(),
            sent: HashMap::new(),
            waiting: Vec::new(),
            asks: HashMap::new(),
            steps: Vec::new(),
            program: Origin::default(),
            held: HashSet::new(),
            until: None,
            crashes: 0,
            wrong,
            system: system.clone(),
            purpose,
            times: 0,
            endless: false,
        };
        let driving = DriverLock::new("a simulated system was asked to run from inside one of its own actors");
        let conductor = Arc::new(Conductor { driving, run: Mutex::new(Some(run)) });
        system.core().set_driver(Arc::clone(&conductor) as Arc<dyn Driver>);
        Session { system, conductor }
    }

    pub(crate) fn system(&self) -> &System {
        &self.system
    }

    fn with<T>(&self, f: impl FnOnce(&mut Run) -> T) -> T {
        self.conductor.with(|run| f(run.as_mut().expect("the kit of this probe is still there")))
    }

    /// Runs until `done`, or nothing is left to do before `until` (in the system's time), which it is then.
    pub(crate) fn run(&self, until: Duration, done: &mut dyn FnMut() -> bool) {
        self.with(|run| {
            run.until = Some(until);
            run.run(done);
            run.until = None;
        });
    }

    /// Nothing is delivered to `who` any more, or it is again.
    pub(crate) fn hold(&self, who: ActorId, held: bool) {
        self.with(|run| {
            if held {
                run.held.insert(who.address());
            } else {
                run.held.remove(&who.address());
            }
        });
    }

    /// Whom `creator` has started, in order, as far as their starts were sent.
    pub(crate) fn children(&self, creator: ActorId) -> Vec<ActorId> {
        self.with(|run| {
            run.take_in_from_program();
            let Some(creator) = run.parts.get(&creator.address()).copied() else { return Vec::new() };
            let mut children: Vec<(u32, ActorId)> = run
                .people
                .values()
                .filter(|part| part.creator.0 == creator)
                .map(|part| (part.creator.1, ActorId::of(part.address)))
                .collect();
            children.sort();
            children.into_iter().map(|(_, child)| child).collect()
        })
    }

    /// What was delivered, and what waits.
    pub(crate) fn sent(&self) -> Vec<(Option<ActorId>, Sent)> {
        self.with(|run| {
            run.take_in_from_program();
            let whose = |who: Who| run.people.get(&who).map(|part| ActorId::of(part.address));
            let name = |who: Who| name_in(&run.people, who);
            let waiting =
                run.waiting.iter().map(|waiting| (waiting.id, waiting.delivery.kind, waiting.delivery.message));
            let delivered = run.steps.iter().map(|step| (whose(sender(step.id, step.kind)), shown(step, &name)));
            let now = run.system.now();
            let waits = waiting.map(|(id, kind, message)| {
                let from = sender(id, kind);
                (whose(from), Sent { from: name(from), to: name(id.to), ..waits(kind, message, now) })
            });
            delivered.chain(waits).collect()
        })
    }

    fn finish(&self) -> Run {
        self.conductor.with(Option::take).expect("it is taken once")
    }

    /// Ends it.
    pub(crate) fn end(&self) {
        let Run { deliveries, system, .. } = self.finish();
        end(deliveries, system);
    }
}

/// Runs `program` in a system of its own, and then until nothing is left to do.
pub(crate) fn run<R>(
    program: impl FnOnce(&System) -> R,
    cast: &Arc<Mutex<Cast>>,
    choose: Box<dyn Choose>,
    time: Time,
) -> Ran<R> {
    let session = Session::start(cast, choose, Purpose::Search(time));
    let quiet = Quiet::begin();
    let returned = catch_unwind(AssertUnwindSafe(|| {
        let result = program(&session.system);
        session.system.run_until_idle();
        result
    }));
    let run = session.finish();
    let ended = match returned {
        Ok(result) => Ended::Returned(result),
        Err(_) if run.endless => Ended::Endless,
        Err(thrown) if thrown.is::<GivenUp>() => Ended::GivenUp,
        Err(thrown) => Ended::Panicked(take_panic().unwrap_or_else(|| text_of(&*thrown))),
    };
    let stuck = if matches!(ended, Ended::Returned(_)) { stuck(&run) } else { Vec::new() };
    let Run { deliveries, people, steps, program, system, .. } = run;
    end(deliveries, system);
    drop(quiet);
    Ran { ended, steps, program, people, stuck }
}

/// Ends the system: what is left in it is ended unseen.
fn end(deliveries: Deliveries, system: System) {
    drop(deliveries);
    system.shutdown_within(Duration::ZERO).expect("a simulated system has no threads that could be stuck");
}

/// Who waits for something that nobody will do.
fn stuck(run: &Run) -> Vec<String> {
    let mut stuck: Vec<Who> =
        run.people.iter().filter(|(_, part)| run.deliveries.is_suspended(part.address)).map(|(who, _)| *who).collect();
    stuck.sort();
    let queued = |who: &Who| {
        let queued = run.waiting.iter().filter(|waiting| waiting.id.to == *who);
        queued.map(|waiting| ShortType(waiting.delivery.message).to_string()).collect::<Vec<_>>()
    };
    let handles = |who: &Who| {
        let started = run.steps.iter().rfind(|step| step.id.to == *who && !step.was_suspended);
        started.map_or_else(String::new, |step| ShortType(step.message).to_string())
    };
    let say = |who: &Who| {
        let (name, handles, queued) = (name_in(&run.people, *who), handles(who), queued(who));
        let behind = if queued.is_empty() { String::new() } else { format!(", with {} behind it", queued.join(", ")) };
        format!("{name} waits in its handler of {handles}{behind}")
    };
    stuck.iter().map(say).collect()
}
