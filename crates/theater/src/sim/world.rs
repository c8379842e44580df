//! The environment of simulated theaters in place of threads, sockets and clocks, and the one thread that drives all of them.

use std::collections::BTreeMap;
use std::hash::Hasher;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

use playhouse_executor::{Choices, Driver, DriverLock, Steps, SystemCore, nanoseconds};
use rustc_hash::FxHasher;

use super::NetworkStats;
use super::network::Net;
use super::turns::Turns;
use super::wire::Wire;
use crate::link::frame::Hello;
use crate::link::poller::{CATCH_UP, PollerDuty};
use crate::lock::lock;
use crate::node::core::TheaterCore;
use crate::node::environment::{Environment, OnReply};
use crate::node::links::TICK;
use crate::transport::simulated::{Readiness, SimulatedEvents};

/// Maximum number of steps that the driver takes at once with the workers of one system.
const STEPS_MAX: usize = 8;
/// Maximum duration of one step of the driver, because virtual time passes during work, too.
const STEP_NS_MAX: usize = 20_000;

/// An event with a planned time.
pub(crate) enum Event {
    /// A tick of a theater's housekeeper.
    Tick(usize),
    /// A theater's poller is to be asked again whether the receivers have caught up.
    CatchUp(usize),
    /// A job that a theater outside of simulations gives to a thread.
    Job(Box<dyn FnOnce() + Send>),
    /// The arrival of bytes that one end of a connection has written.
    Arrive(Arc<Wire>, usize),
    /// The discovery of an end that its connection is broken.
    Break(Arc<Wire>, usize),
    /// The next fault that is drawn by chance.
    Fault,
    /// Two theaters reach each other again.
    Heal([usize; 2]),
    /// The next pause that is drawn by chance.
    Pause,
}

impl Event {
    /// Returns whether the run goes on because of this event.
    fn is_awaited(&self) -> bool {
        !matches!(self, Event::Tick(_) | Event::Fault | Event::Pause)
    }
}

#[derive(Default)]
struct Events {
    /// The events by their time and planning order, with the theater that has planned each.
    all: BTreeMap<(u64, u64), (Option<usize>, Event)>,
    next: u64,
    awaited: usize,
}

impl Events {
    fn remove(&mut self, key: (u64, u64)) -> Option<Event> {
        let (_, event) = self.all.remove(&key)?;
        self.awaited -= usize::from(event.is_awaited());
        Some(event)
    }
}

/// The environment of a simulated theater in place of threads and sockets.
pub(crate) struct Outside {
    world: Weak<World>,
    number: usize,
    start: Instant,
    /// The readiness events of its connections.
    readiness: Mutex<Vec<Readiness>>,
    /// A poll has work to do.
    called: AtomicBool,
    /// A poll will have work to do after a while.
    catches_up: AtomicBool,
}

impl SimulatedEvents for Outside {
    fn tell(&self, readiness: Readiness) {
        lock(&self.readiness).push(readiness);
        self.called.store(true, Ordering::Relaxed);
    }

    fn demand(&self) {
        self.called.store(true, Ordering::Relaxed);
    }

    fn take_readiness(&self) -> Vec<Readiness> {
        std::mem::take(&mut *lock(&self.readiness))
    }

    fn now(&self) -> Instant {
        let ns = self.world.upgrade().map_or(0, |world| world.now_ns());
        self.start + Duration::from_nanos(ns)
    }
}

impl Environment for Outside {
    fn later(&self, delay: Duration, job: Box<dyn FnOnce() + Send>) {
        if let Some(world) = self.world.upgrade() {
            world.plan(delay, Some(self.number), Event::Job(job));
        }
    }

    fn call(&self, address: SocketAddr, hello: Hello, on_reply: OnReply) {
        let Some(world) = self.world.upgrade() else { return };
        let caller = self.number;
        let delay = world.delay() + world.latency_to(caller, address);
        let arrives = move |world: &Arc<World>| world.deliver_call(caller, address, hello, on_reply);
        world.plan_with(delay, caller, arrives);
    }
}

/// A theater, and the state of its driver.
pub(super) struct SimulatedNode {
    pub(super) theater_core: Arc<TheaterCore>,
    pub(super) steps: Steps,
    outside: Arc<Outside>,
    dead: AtomicBool,
    /// The lead of its clock over the world's clock.
    ahead_ns: AtomicU64,
    /// Maximum duration of a step of its workers, if it is longer than the driver's.
    slow_ns: AtomicU64,
    /// The world's time before which its workers take no step.
    busy_until_ns: AtomicU64,
    /// The world's time before which nothing of it runs.
    paused_until_ns: AtomicU64,
}

impl SimulatedNode {
    /// Converts the world's time to the time of its clock.
    fn clock(&self, world_ns: u64) -> Duration {
        // Relaxed: only one thread uses it.
        Duration::from_nanos(world_ns + self.ahead_ns.load(Ordering::Relaxed))
    }

    /// Returns the time of its next timer in the world's time.
    fn next_timer(&self) -> Option<Duration> {
        let ahead = Duration::from_nanos(self.ahead_ns.load(Ordering::Relaxed));
        self.steps.next_timer().map(|next| next.saturating_sub(ahead))
    }

    /// Returns the rest of its pause, in nanoseconds of the world's time.
    pub(super) fn pause_left_ns(&self, world_ns: u64) -> u64 {
        self.paused_until_ns.load(Ordering::Relaxed).saturating_sub(world_ns)
    }

    /// Returns whether it takes and makes no more calls: it was killed, or closes.
    pub(super) fn is_dead(&self) -> bool {
        self.was_killed() || self.theater_core.is_closing()
    }

    fn was_killed(&self) -> bool {
        self.dead.load(Ordering::Relaxed)
    }

    /// Returns whether its actors run: a closing theater runs them until its workers have ended.
    fn runs(&self) -> bool {
        !self.was_killed() && !self.steps.are_workers_ended()
    }

    /// Returns whether all its messages were received and all its broken connections found. No actor has handled anything for the
    /// time `quiet`.
    fn is_settled(&self, quiet: Duration) -> bool {
        let links = self.theater_core.all_links();
        let settled = links.iter().all(|link| link.is_lost() || link.is_settled() && link.connection().is_some());
        settled && !self.theater_core.looks_for_cycles(quiet)
    }
}

/// The next act of the driver.
pub(super) enum Act {
    Step(usize),
    Wake(usize),
    Poll(usize),
    Happen((u64, u64)),
}

/// All simulated theaters that can reach each other.
pub(crate) struct World {
    this: Weak<World>,
    start: Instant,
    now_ns: AtomicU64,
    /// The number of messages that all actors had handled at the last check, and the time since when it has been unchanged.
    /// Relaxed: only one thread uses it.
    handled: AtomicU64,
    quiet_since_ns: AtomicU64,
    choices: Mutex<Choices>,
    nodes: Mutex<Arc<[Arc<SimulatedNode>]>>,
    events: Mutex<Events>,
    pub(super) net: Mutex<Net>,
    /// The seed of the latencies; 0: there are none. Relaxed: only the driver uses it in its turns.
    pub(super) latencies: AtomicU64,
    turns: Mutex<Option<Turns>>,
    /// The mean time between pauses that are drawn by chance, and the longest one.
    pauses: Mutex<Option<(Duration, Duration)>>,
    /// A hash of all events.
    trace: AtomicU64,
    driving: DriverLock,
}

impl World {
    pub(super) fn new(seed: u64) -> Arc<World> {
        Arc::new_cyclic(|this| World {
            this: this.clone(),
            start: Instant::now(),
            now_ns: AtomicU64::new(0),
            handled: AtomicU64::new(0),
            quiet_since_ns: AtomicU64::new(0),
            choices: Mutex::new(Choices::new(seed)),
            nodes: Mutex::new(Arc::new([])),
            events: Mutex::default(),
            net: Mutex::default(),
            latencies: AtomicU64::new(0),
            turns: Mutex::default(),
            pauses: Mutex::default(),
            trace: AtomicU64::new(0),
            driving: DriverLock::new("a simulation was asked to run from inside one of its own actors"),
        })
    }

    pub(crate) fn choose<R>(&self, draw: impl FnOnce(&mut Choices) -> R) -> R {
        draw(&mut lock(&self.choices))
    }

    pub(super) fn now_ns(&self) -> u64 {
        self.now_ns.load(Ordering::Relaxed)
    }

    /// Returns a drawn time in transit.
    pub(super) fn delay(&self) -> Duration {
        let ns = self.choose(|choices| {
            let ns_max = if choices.one_in(8) { 5_000_000 } else { 200_000 };
            choices.below(ns_max)
        });
        Duration::from_nanos(ns as u64)
    }

    /// Adds an event to the trace.
    pub(super) fn note(&self, what: &[u64], bytes: &[u8]) {
        let mut hasher = FxHasher::default();
        hasher.write_u64(self.trace.load(Ordering::Relaxed));
        hasher.write_u64(self.now_ns());
        what.iter().for_each(|number| hasher.write_u64(*number));
        hasher.write(bytes);
        self.trace.store(hasher.finish(), Ordering::Relaxed);
    }

    pub(super) fn trace(&self) -> u64 {
        self.trace.load(Ordering::Relaxed)
    }

    pub(super) fn happened(&self) -> NetworkStats {
        lock(&self.net).happened
    }

    // -- theaters -----------------------------------------------------------------------------------------------------

    /// Returns the address of a theater that wants to listen at `address`.
    pub(crate) fn bind(&self, mut address: SocketAddr) -> io::Result<SocketAddr> {
        let mut net = lock(&self.net);
        if address.port() == 0 {
            net.next_port += 1;
            address.set_port(40_000 + net.next_port);
        }
        let taken = net.listen.get(&address).is_some_and(|listener| !self.nodes()[*listener].is_dead());
        if taken { Err(ErrorKind::AddrInUse.into()) } else { Ok(address) }
    }

    /// Returns the environment of the next theater.
    pub(crate) fn outside(&self) -> Arc<Outside> {
        Arc::new(Outside {
            world: self.this.clone(),
            number: lock(&self.nodes).len(),
            start: self.start,
            readiness: Mutex::default(),
            called: AtomicBool::new(false),
            catches_up: AtomicBool::new(false),
        })
    }

    /// Lets [`World::run`] run this system from now on, with its time tied to the others.
    pub(crate) fn take_over(&self, core: &Arc<SystemCore>) -> Option<Steps> {
        let steps = core.steps()?;
        steps.advance_clock(Duration::from_nanos(self.now_ns()));
        core.set_driver(Arc::new(Drives(self.this.clone())));
        Some(steps)
    }

    /// Adds the theater to the simulation.
    pub(crate) fn admit(
        &self,
        theater_core: &Arc<TheaterCore>,
        steps: Steps,
        outside: Arc<Outside>,
        bound: Option<SocketAddr>,
    ) {
        let number = outside.number;
        lock(&self.net)
            .listen
            .extend([bound, theater_core.listens].into_iter().flatten().map(|address| (address, number)));
        let zero = || AtomicU64::new(0);
        let (ahead_ns, slow_ns, busy_until_ns, paused_until_ns) = (zero(), zero(), zero(), zero());
        let (theater_core, dead) = (Arc::clone(theater_core), AtomicBool::new(false));
        let node = Arc::new(SimulatedNode {
            theater_core,
            steps,
            outside,
            dead,
            ahead_ns,
            slow_ns,
            busy_until_ns,
            paused_until_ns,
        });
        let mut nodes = lock(&self.nodes);
        *nodes = nodes.iter().cloned().chain([node]).collect();
        drop(nodes);
        self.plan(TICK, Some(number), Event::Tick(number));
    }

    pub(super) fn nodes(&self) -> Arc<[Arc<SimulatedNode>]> {
        Arc::clone(&lock(&self.nodes))
    }

    /// Returns the number of a theater.
    pub(super) fn number_of(&self, theater_core: &Arc<TheaterCore>) -> usize {
        let nodes = self.nodes();
        let number = nodes.iter().position(|node| Arc::ptr_eq(&node.theater_core, theater_core));
        number.expect("the theater is not one of this simulation")
    }

    /// Stops the theater for ever, as if its process had been killed.
    pub(super) fn kill(&self, number: usize) {
        let node = Arc::clone(&self.nodes()[number]);
        if node.dead.swap(true, Ordering::Relaxed) {
            return;
        }
        let jobs: Vec<_> = {
            let mut events = lock(&self.events);
            let its = events.all.iter().filter(|(_, (owner, _))| *owner == Some(number)).map(|(key, _)| *key);
            let its: Vec<_> = its.collect();
            its.into_iter().filter_map(|key| events.remove(key)).collect()
        };
        // The jobs are dropped without the lock, because the drop of their content may use the events.
        drop(jobs);
        let wires = {
            let mut net = lock(&self.net);
            net.happened.kills += 1;
            net.listen.retain(|_, listener| *listener != number);
            net.wires.clone()
        };
        for wire in wires.iter().filter_map(Weak::upgrade) {
            if let Some(side) = wire.between.iter().position(|end| *end == number) {
                wire.cut(self);
                wire.orphan(side);
            }
        }
        self.note(&[u64::MAX, number as u64], &[]);
    }

    /// Lets the theater's clock jump ahead.
    pub(super) fn jump(&self, number: usize, by: Duration) {
        let node = &self.nodes()[number];
        node.ahead_ns.fetch_add(by.as_nanos() as u64, Ordering::Relaxed);
        node.steps.advance_clock(node.clock(self.now_ns()));
        self.note(&[u64::MAX - 1, number as u64], &[]);
    }

    /// Sets the maximum duration of a step of the theater's workers from now on.
    pub(super) fn slow(&self, number: usize, step: Duration) {
        let node = &self.nodes()[number];
        node.slow_ns.store(step.as_nanos() as u64, Ordering::Relaxed);
        node.busy_until_ns.store(0, Ordering::Relaxed);
    }

    /// Stops the theater for this time: no worker, poll, housekeeping, or call of its own runs.
    pub(super) fn pause(&self, number: usize, time: Duration) {
        let node = Arc::clone(&self.nodes()[number]);
        if node.is_dead() || time.is_zero() {
            return;
        }
        let until = self.now_ns() + time.as_nanos() as u64;
        node.paused_until_ns.fetch_max(until, Ordering::Relaxed);
        let mut events = lock(&self.events);
        let its: Vec<_> = events
            .all
            .range(..(until, 0))
            .filter(|(_, (owner, _))| *owner == Some(number))
            .map(|(key, _)| *key)
            .collect();
        for key in its {
            events.next += 1;
            let later = (until, events.next);
            let planned = events.all.remove(&key).expect("it was found under this lock");
            events.all.insert(later, planned);
        }
        drop(events);
        lock(&self.net).happened.pauses += 1;
        self.note(&[u64::MAX - 2, number as u64, until], &[]);
    }

    /// Sets the mean time between pauses by chance, and the longest one; `None`: there are none any more.
    pub(super) fn set_pauses(&self, pauses: Option<(Duration, Duration)>) {
        let before = std::mem::replace(&mut *lock(&self.pauses), pauses);
        if before.is_none() {
            self.plan_pause();
        }
    }

    fn plan_pause(&self) {
        let pauses = *lock(&self.pauses);
        if let Some((every, _)) = pauses {
            let ns = self.choose(|choices| choices.below(2 * every.as_nanos() as usize + 1));
            self.plan(Duration::from_nanos(ns as u64), None, Event::Pause);
        }
    }

    fn pause_one(&self) {
        let pauses = *lock(&self.pauses);
        let Some((_, longest)) = pauses else { return };
        let alive: Vec<usize> =
            self.nodes().iter().enumerate().filter(|(_, node)| !node.is_dead()).map(|(number, _)| number).collect();
        if !alive.is_empty() {
            let number = alive[self.choose(|choices| choices.below(alive.len()))];
            let ns = self.choose(|choices| choices.below(longest.as_nanos() as usize + 1));
            self.pause(number, Duration::from_nanos(ns as u64));
        }
        self.plan_pause();
    }

    /// Sets whether turns are drawn unevenly from now on.
    pub(super) fn set_uneven(&self, uneven: bool) {
        *lock(&self.turns) = uneven.then(Turns::default);
    }

    // -- events ---------------------------------------------------------------------------------------------------------

    pub(super) fn plan(&self, after: Duration, owner: Option<usize>, event: Event) {
        let mut at = self.now_ns() + after.as_nanos() as u64;
        if let Some(node) = owner.and_then(|owner| self.nodes().get(owner).cloned()) {
            if node.is_dead() {
                return;
            }
            at = at.max(node.paused_until_ns.load(Ordering::Relaxed));
        }
        let mut events = lock(&self.events);
        events.next += 1;
        events.awaited += usize::from(event.is_awaited());
        let key = (at, events.next);
        events.all.insert(key, (owner, event));
    }

    pub(super) fn plan_with(&self, after: Duration, owner: usize, job: impl FnOnce(&Arc<World>) + Send + 'static) {
        let this = self.this.clone();
        let job = move || {
            if let Some(world) = this.upgrade() {
                job(&world);
            }
        };
        self.plan(after, Some(owner), Event::Job(Box::new(job)));
    }

    fn happen(&self, event: Event) {
        match event {
            Event::Tick(number) => {
                self.nodes()[number].theater_core.tick();
                self.plan(TICK, Some(number), Event::Tick(number));
            }
            Event::CatchUp(number) => {
                let outside = &self.nodes()[number].outside;
                outside.catches_up.store(false, Ordering::Relaxed);
                outside.called.store(true, Ordering::Relaxed);
            }
            Event::Job(job) => job(),
            Event::Arrive(wire, side) => wire.arrive(self, side),
            Event::Break(wire, side) => wire.find_broken(self, side),
            Event::Fault => self.fault(),
            Event::Heal([one, other]) => self.heal(one, other, false),
            Event::Pause => self.pause_one(),
        }
    }

    // -- the driver -----------------------------------------------------------------------------------------------------

    /// Runs until `done`, until virtual time is `until`, or until nothing is left to do. Returns true for `done`. If another
    /// thread runs it, the two take turns.
    ///
    /// # Panics
    /// Inside an actor of one of the theaters. Also if this thread runs another simulation while another thread runs this one.
    pub(super) fn run(&self, until: Option<Duration>, done: &mut dyn FnMut() -> bool) -> bool {
        let mut drive = self.driving.drive();
        let until_ns = until.map(nanoseconds);
        let mut acts = Vec::new();
        loop {
            if done() {
                return true;
            }
            let turn = drive.turn();
            if until_ns.is_some_and(|until| until <= self.now_ns()) || !self.step(until_ns, &mut acts) {
                return false;
            }
            drop(turn);
            drive.give_way();
        }
    }

    /// Returns the time for which no actor has handled anything.
    fn quiet(&self, nodes: &[Arc<SimulatedNode>]) -> Duration {
        let handled_by = |node: &Arc<SimulatedNode>| {
            node.theater_core.system.core().counters().iter().map(|of| of.received).sum::<u64>()
        };
        let handled = nodes.iter().map(handled_by).sum();
        if self.handled.swap(handled, Ordering::Relaxed) != handled {
            self.quiet_since_ns.store(self.now_ns(), Ordering::Relaxed);
        }
        Duration::from_nanos(self.now_ns() - self.quiet_since_ns.load(Ordering::Relaxed))
    }

    /// Runs one act. Returns false if nothing is left to do.
    fn step(&self, until_ns: Option<u64>, acts: &mut Vec<Act>) -> bool {
        let nodes = self.nodes();
        let now = Duration::from_nanos(self.now_ns());
        acts.clear();
        let mut next_timer = None;
        for (number, node) in nodes.iter().enumerate().filter(|(_, node)| node.runs()) {
            // Relaxed: only one thread uses it.
            let paused_until = Duration::from_nanos(node.paused_until_ns.load(Ordering::Relaxed));
            if paused_until > now {
                next_timer = Some(next_timer.map_or(paused_until, |earlier: Duration| earlier.min(paused_until)));
                continue;
            }
            let busy_until = Duration::from_nanos(node.busy_until_ns.load(Ordering::Relaxed));
            if busy_until > now {
                next_timer = Some(next_timer.map_or(busy_until, |earlier: Duration| earlier.min(busy_until)));
            } else if !node.steps.rests() {
                acts.push(Act::Step(number));
            } else if let Some(next) = node.next_timer() {
                if next <= now {
                    acts.push(Act::Wake(number));
                }
                next_timer = Some(next_timer.map_or(next, |earlier: Duration| earlier.min(next)));
            }
            if node.outside.called.load(Ordering::Relaxed) {
                acts.push(Act::Poll(number));
            }
        }
        let (next_event, awaited) = {
            let events = lock(&self.events);
            acts.extend(events.all.range(..=(self.now_ns(), u64::MAX)).map(|(key, _)| Act::Happen(*key)));
            (events.all.keys().next().map(|key| key.0), events.awaited)
        };
        if acts.is_empty() {
            let alive = || nodes.iter().filter(|node| !node.is_dead());
            let is_settled = || {
                let quiet = self.quiet(&nodes);
                alive().all(|node| node.is_settled(quiet))
            };
            if next_timer.is_none() && awaited == 0 && is_settled() {
                return false;
            }
            let next = next_timer.map(|next| next.as_nanos() as u64).into_iter().chain(next_event).min();
            let Some(next) = next else { return false };
            self.pass_time(&nodes, next.min(until_ns.unwrap_or(u64::MAX)));
            return true;
        }
        let chosen = self.choose(|choices| match &mut *lock(&self.turns) {
            None => choices.below(acts.len()),
            Some(turns) => turns.choose(acts, nodes.len(), choices),
        });
        let act = acts.swap_remove(chosen);
        match act {
            Act::Step(number) => {
                let steps = self.choose(|choices| 1 + choices.below(STEPS_MAX));
                for _ in 0..steps {
                    nodes[number].steps.step();
                }
                let slow_ns = nodes[number].slow_ns.load(Ordering::Relaxed);
                if slow_ns > 0 {
                    let took = self.choose(|choices| choices.below(slow_ns as usize)) as u64;
                    nodes[number].busy_until_ns.store(self.now_ns() + took, Ordering::Relaxed);
                }
                self.look_after_poller(number, &nodes[number]);
            }
            Act::Wake(number) => nodes[number].steps.wake(),
            Act::Poll(number) => {
                nodes[number].outside.called.store(false, Ordering::Relaxed);
                nodes[number].steps.poll();
                self.look_after_poller(number, &nodes[number]);
            }
            Act::Happen(key) => {
                let event = lock(&self.events).remove(key);
                if let Some(event) = event {
                    self.happen(event);
                }
            }
        }
        let took = self.choose(|choices| choices.below(STEP_NS_MAX)) as u64;
        self.pass_time(&nodes, self.now_ns() + took);
        true
    }

    /// Plans a further poll of the theater if necessary. (Workers poll by themselves, too.)
    fn look_after_poller(&self, number: usize, node: &SimulatedNode) {
        match node.theater_core.poller.duty() {
            PollerDuty::Nothing => {}
            PollerDuty::More => node.outside.called.store(true, Ordering::Relaxed),
            PollerDuty::Waits if node.outside.catches_up.swap(true, Ordering::Relaxed) => {}
            PollerDuty::Waits => self.plan(CATCH_UP, Some(number), Event::CatchUp(number)),
        }
    }

    fn pass_time(&self, nodes: &[Arc<SimulatedNode>], now_ns: u64) {
        self.now_ns.fetch_max(now_ns, Ordering::Relaxed);
        for node in nodes.iter().filter(|node| !node.was_killed()) {
            node.steps.advance_clock(node.clock(now_ns));
        }
    }
}

impl Drop for World {
    fn drop(&mut self) {
        if std::thread::panicking() {
            // A failed step may have left any state behind, and therefore the system is not run again.
            return;
        }
        let events = std::mem::take(&mut lock(&self.events).all);
        drop(events);
        for node in self.nodes().iter() {
            node.theater_core.end();
        }
    }
}

/// The time in which theaters do the work that is due at the end of a run.
const LAST_MOMENT: Duration = Duration::from_millis(1);

/// Runs all theaters for a thread that waits for one of them.
struct Drives(Weak<World>);

impl Driver for Drives {
    fn run(&self, time: Option<Duration>, done: &mut dyn FnMut() -> bool) {
        let Some(world) = self.0.upgrade() else { return };
        let until =
            time.map(|time| Duration::from_nanos(world.now_ns()).saturating_add(time).saturating_add(LAST_MOMENT));
        if let (false, Some(until)) = (world.run(until, done), until) {
            // Nothing else is due before that time.
            world.pass_time(&world.nodes(), nanoseconds(until));
        }
    }
}
