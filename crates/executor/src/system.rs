//! Systems: workers, stages and what they share.

use std::fmt;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

use crate::address::{Address, Lane, RawAddress};
use crate::boundary::load_of;
use crate::core::Core;
use crate::monitor;
use crate::office::{Inbox, Office, Presence};
use crate::record::{KindOf, Op, Record};
use crate::resident::{Ending, Envelope, Resident, Undelivered};
use crate::signal::Signal;
use crate::simulated::Simulation;
use crate::slab::{self, Nursery};
use crate::stats::{Counters, Ledger};
use crate::timers::{TimerKey, TimerOp, TimerTask};
use crate::worker::{self, Worker};

/// How an idle worker chooses whom to steal from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stealing {
    /// The worker whose last attempt to steal is longest ago: it has been busy longest (cforall-actors).
    #[default]
    LongestVictim,
    /// Any worker with a backlog.
    Random,
    /// None: stages stay with their workers for ever, also where one could be adopted. Worker of stage `s`: `s % workers`.
    None,
}

/// Where an actor is put.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StageChoice {
    /// On a stage of the spawner's worker, by turns; from outside as `Spread`.
    #[default]
    Near,
    /// On any stage, by turns.
    Spread,
    /// On this stage.
    At(u16),
    /// On a stage and a thread of its own.
    Dedicated,
}

/// Largest numbers that are accepted.
pub mod limits {
    /// Workers of a system.
    pub const WORKERS_MAX: usize = 1024;
    /// Stages of a system.
    pub const STAGES_MAX: usize = 60_000;
    /// Actors with a thread of their own, at one time.
    pub const DEDICATED_MAX: usize = 64;
    /// Stages per worker where nothing else is asked for.
    pub const STAGES_PER_WORKER: usize = 16;
    /// Messages per gulp where nothing else is asked for.
    pub const THROUGHPUT: u64 = 512;
}

/// What a system is made of. Every wrong setting is reported by [`Config::check`].
#[derive(Clone, Debug)]
pub struct Config {
    /// Threads that run actors.
    pub workers: usize,
    /// Stages, over all workers. At least one for each worker.
    pub stages: usize,
    /// Most messages that are run between two looks at the inbox.
    pub throughput: u64,
    /// Whom idle workers steal from.
    pub stealing: Stealing,
    /// Whether worker `i` is bound to core `i`.
    pub pinning: bool,
    /// One thread and virtual time, every choice taken from this seed.
    pub simulated: Option<u64>,
}

impl Config {
    /// One worker per core.
    pub fn new() -> Config {
        let workers = std::thread::available_parallelism().map_or(1, usize::from).min(limits::WORKERS_MAX);
        Config {
            workers,
            stages: workers * limits::STAGES_PER_WORKER,
            throughput: limits::THROUGHPUT,
            stealing: Stealing::default(),
            pinning: false,
            simulated: None,
        }
    }

    /// All that is wrong, in words.
    pub fn check(&self) -> Vec<String> {
        let mut wrong = Vec::new();
        if self.workers == 0 || self.workers > limits::WORKERS_MAX {
            wrong.push(format!("workers = {}: must be 1 to {}", self.workers, limits::WORKERS_MAX));
        }
        if self.stages < self.workers {
            wrong.push(format!(
                "stages = {}: must be at least the number of workers, {}, so that each has one",
                self.stages, self.workers
            ));
        }
        if self.stages > limits::STAGES_MAX {
            wrong.push(format!("stages = {}: must be at most {}", self.stages, limits::STAGES_MAX));
        }
        if self.throughput == 0 {
            wrong.push("throughput = 0: must be at least 1 message per gulp".to_owned());
        }
        if self.pinning && self.simulated.is_some() {
            wrong.push("pinning: a simulated system has no threads to pin".to_owned());
        }
        wrong
    }
}

impl Default for Config {
    fn default() -> Self {
        Config::new()
    }
}

/// How the runtime tells time.
pub(crate) enum Clock {
    Real(Instant),
    Virtual(AtomicU64),
}

/// A hook for messages that reach nobody: the names of the actor's and the message's type, and why.
pub type DeadLetterHook = Box<dyn Fn(&'static str, &'static str, Undelivered) + Send + Sync>;

/// What the workers of a system share.
pub struct SystemCore {
    // -- rarely changed ------------------------------------------------------------------------------------------------
    pub(crate) id: u16,
    pub(crate) config: Config,
    pub(crate) offices: Box<[Office]>,
    pub(crate) ledgers: Box<[Arc<Ledger>]>,
    /// Which worker runs a stage. Changed under the inbox lock of the worker that runs it.
    pub(crate) route: Box<[AtomicU16]>,
    /// Stages for which too much is put aside.
    pub(crate) full: Box<[AtomicBool]>,
    clock: Clock,
    pub(crate) simulation: Option<Simulation>,
    // -- changed by theft and adoption ---------------------------------------------------------------------------------
    /// Raised with every change of the route.
    pub(crate) epoch: AtomicU64,
    // -- changed when workers rest and wake ------------------------------------------------------------------------------
    /// Workers that are awake.
    pub(crate) active: AtomicUsize,
    pub(crate) parked: AtomicUsize,
    /// Timers, suspended handlers, muted stages: what keeps a system from being idle while no worker is awake.
    open: AtomicUsize,
    quiet: Mutex<()>,
    became_quiet: Condvar,
    // -- the rest ------------------------------------------------------------------------------------------------------
    next_spread: AtomicUsize,
    /// No messages from outside are taken any more.
    closed: AtomicBool,
    /// Workers end when they find nothing to do.
    pub(crate) ending: AtomicBool,
    pub(crate) detached: AtomicUsize,
    pub(crate) handled_detached: AtomicU64,
    outside: Outside,
    pub(crate) posts: Box<[Mutex<Option<Arc<Worker>>>]>,
    threads: Mutex<Vec<std::thread::JoinHandle<()>>>,
    /// Threads that have not ended.
    pub(crate) alive: AtomicUsize,
    dedicated: Mutex<Vec<u16>>,
    monitor_nap: (Mutex<bool>, Condvar),
    dead_letter_hook: OnceLock<DeadLetterHook>,
    next_timer: AtomicU64,
}

/// Cells for actors that are spawned by threads that are no workers, by the worker they go to: so that actors of
/// different workers share no cache lines.
struct Outside {
    nurseries: Box<[Mutex<Nursery>]>,
    spawned: AtomicU64,
    dead_letters: AtomicU64,
}

const SYSTEMS_MAX: usize = 4096;
/// Steps of a simulated system that is shut down, at most.
const DRAIN_STEPS_MAX: u64 = 1_000_000;

struct Slot {
    /// Changes with each system that moves in or out.
    epoch: AtomicU64,
    system: Mutex<Option<Arc<SystemCore>>>,
}

fn slots() -> &'static [Slot] {
    static SLOTS: OnceLock<Box<[Slot]>> = OnceLock::new();
    SLOTS
        .get_or_init(|| (0..SYSTEMS_MAX).map(|_| Slot { epoch: AtomicU64::new(0), system: Mutex::new(None) }).collect())
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Counts a thread as alive until it is dropped.
struct Alive(Arc<SystemCore>);

impl Drop for Alive {
    fn drop(&mut self) {
        self.0.alive.fetch_sub(1, Ordering::AcqRel);
        drop(lock(&self.0.quiet));
        self.0.became_quiet.notify_all();
    }
}

thread_local! {
    /// The system that this outside thread sent to last, and the epoch of its slot.
    static LAST: std::cell::RefCell<Option<(u64, Weak<SystemCore>)>> = const { std::cell::RefCell::new(None) };
}

impl fmt::Debug for SystemCore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SystemCore").field("id", &self.id).field("config", &self.config).finish_non_exhaustive()
    }
}

impl SystemCore {
    /// Starts a system.
    ///
    /// # Errors
    /// All wrong settings; or that a thread could not be started, or that 4,095 systems run already.
    pub fn start(config: Config) -> Result<Arc<SystemCore>, Vec<String>> {
        let wrong = config.check();
        if !wrong.is_empty() {
            return Err(wrong);
        }
        let dedicated = if config.simulated.is_some() { 0 } else { limits::DEDICATED_MAX };
        let workers = config.workers + dedicated;
        let stages = config.stages + dedicated;
        // By turns, so that addresses into a system that has ended do not meet another one under its number for long.
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let from = NEXT.fetch_add(1, Ordering::Relaxed);
        let (at, slot) = (0..SYSTEMS_MAX - 1)
            .map(|turn| 1 + (from + turn) % (SYSTEMS_MAX - 1))
            .find_map(|at| {
                let guard = lock(&slots()[at].system);
                guard.is_none().then_some((at, guard))
            })
            .ok_or_else(|| vec![format!("{} systems run in this process already", SYSTEMS_MAX - 1)])?;
        let mut slot = slot;
        let system = Arc::new(SystemCore {
            id: at as u16,
            offices: (0..workers).map(|_| Office::new()).collect(),
            ledgers: (0..workers).map(|_| Arc::default()).collect(),
            route: (0..stages)
                .map(|stage| {
                    AtomicU16::new(if stage < config.stages {
                        stage % config.workers
                    } else {
                        config.workers + stage - config.stages
                    } as u16)
                })
                .collect(),
            full: (0..stages).map(|_| AtomicBool::new(false)).collect(),
            clock: if config.simulated.is_some() {
                Clock::Virtual(AtomicU64::new(0))
            } else {
                Clock::Real(Instant::now())
            },
            simulation: config.simulated.map(Simulation::new),
            epoch: AtomicU64::new(0),
            active: AtomicUsize::new(0),
            parked: AtomicUsize::new(0),
            open: AtomicUsize::new(0),
            quiet: Mutex::new(()),
            became_quiet: Condvar::new(),
            next_spread: AtomicUsize::new(0),
            closed: AtomicBool::new(false),
            ending: AtomicBool::new(false),
            detached: AtomicUsize::new(0),
            handled_detached: AtomicU64::new(0),
            outside: Outside {
                nurseries: (0..workers).map(|_| Mutex::new(Nursery::new())).collect(),
                spawned: AtomicU64::new(0),
                dead_letters: AtomicU64::new(0),
            },
            posts: (0..workers).map(|_| Mutex::new(None)).collect(),
            threads: Mutex::new(Vec::new()),
            alive: AtomicUsize::new(0),
            dedicated: Mutex::new((config.stages as u16..stages as u16).rev().collect()),
            monitor_nap: (Mutex::new(false), Condvar::new()),
            dead_letter_hook: OnceLock::new(),
            next_timer: AtomicU64::new(0),
            config,
        });
        *slot = Some(Arc::clone(&system));
        slots()[at].epoch.fetch_add(1, Ordering::Release);
        drop(slot);
        for id in 0..system.config.workers as u16 {
            let worker = system.new_worker(id);
            if system.simulation.is_some() {
                *lock(&system.posts[id as usize]) = Some(worker);
            } else if let Err(error) = system.try_start_worker(worker) {
                system.end(Duration::from_secs(1));
                return Err(vec![format!("a worker thread could not be started: {error}")]);
            }
        }
        if system.simulation.is_none() {
            let weak = Arc::downgrade(&system);
            let name = format!("playhouse-{}-monitor", system.id);
            let handle = std::thread::Builder::new().name(name).spawn(move || monitor::watch(&weak));
            match handle {
                Ok(handle) => lock(&system.threads).push(handle),
                Err(error) => {
                    system.end(Duration::from_secs(1));
                    return Err(vec![format!("the monitor thread could not be started: {error}")]);
                }
            }
        }
        Ok(system)
    }

    fn new_worker(self: &Arc<Self>, id: u16) -> Arc<Worker> {
        let seed = self.config.simulated.unwrap_or(0x9e37_79b9) as u32 ^ (u32::from(id) + 1).wrapping_mul(0x85eb_ca6b);
        let signal = Arc::clone(&self.offices[id as usize].lock().signal);
        Arc::new(Worker::new(self, id, signal, Core::new(seed)))
    }

    fn try_start_worker(self: &Arc<Self>, worker: Arc<Worker>) -> std::io::Result<()> {
        let name = format!("playhouse-{}-{}", self.id, worker.id);
        *lock(&self.posts[worker.id as usize]) = Some(Arc::clone(&worker));
        // Awake from the start, so the system is not idle before its workers have looked around.
        {
            let mut inbox = self.offices[worker.id as usize].lock();
            if std::mem::replace(&mut inbox.presence, Presence::Awake) == Presence::Parked {
                self.active_more();
            }
        }
        self.alive.fetch_add(1, Ordering::AcqRel);
        let started = std::thread::Builder::new().name(name).stack_size(8 << 20).spawn(move || {
            let _alive = Alive(Arc::clone(&worker.system));
            if worker.system.config.pinning {
                crate::pinning::pin_to_core(worker.id as usize);
            }
            worker.enter(|| worker.work());
        });
        match started {
            Ok(handle) => lock(&self.threads).push(handle),
            Err(error) => {
                self.alive.fetch_sub(1, Ordering::AcqRel);
                return Err(error);
            }
        }
        Ok(())
    }

    /// Starts the thread of a worker whose former thread is stuck.
    pub(crate) fn start_worker(self: &Arc<Self>, worker: Arc<Worker>) {
        let _ = self.try_start_worker(worker);
    }

    /// The system with this id.
    pub fn by_id(id: u16) -> Option<Arc<SystemCore>> {
        let slot = slots().get(id as usize)?;
        // Acquire: pairs with the Release of the system that moved in.
        let epoch = slot.epoch.load(Ordering::Acquire);
        LAST.try_with(|last| {
            let mut last = last.borrow_mut();
            if let Some((known, system)) = last.as_ref()
                && *known == (epoch << 16 | u64::from(id))
            {
                return system.upgrade();
            }
            let system = lock(&slot.system).clone()?;
            *last = Some((epoch << 16 | u64::from(id), Arc::downgrade(&system)));
            Some(system)
        })
        .unwrap_or_else(|_| lock(&slot.system).clone())
    }

    /// Settings in force.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// A number that no other running system of this process has.
    pub fn id(&self) -> u16 {
        self.id
    }

    /// Time since the start; virtual where simulated.
    pub fn now(&self) -> Duration {
        Duration::from_nanos(self.now_ns())
    }

    pub(crate) fn now_ns(&self) -> u64 {
        match &self.clock {
            Clock::Real(start) => start.elapsed().as_nanos() as u64,
            Clock::Virtual(now) => now.load(Ordering::Relaxed),
        }
    }

    pub(crate) fn advance_clock(&self, to_ns: u64) {
        if let Clock::Virtual(now) = &self.clock {
            now.fetch_max(to_ns, Ordering::Relaxed);
        }
    }

    // -- counting who is awake -----------------------------------------------------------------------------------------

    pub(crate) fn active_more(&self) {
        self.active.fetch_add(1, Ordering::AcqRel);
    }

    /// True: no worker is awake any more.
    pub(crate) fn active_less(&self) -> bool {
        // AcqRel: what this worker did is seen by whoever finds the system idle.
        let last = self.active.fetch_sub(1, Ordering::AcqRel) == 1;
        if last {
            self.tell_quiet();
        }
        last
    }

    /// Something is under way that no worker knows of: a timer, a suspended handler, a muted stage.
    pub(crate) fn open_more(&self) {
        self.open.fetch_add(1, Ordering::AcqRel);
    }

    pub(crate) fn open_less(&self) {
        if self.open.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.tell_quiet();
        }
    }

    fn is_quiet(&self) -> bool {
        // `open` first: what is under way ends on a worker that is awake at that time.
        self.open.load(Ordering::Acquire) == 0
            && self.active.load(Ordering::Acquire) == 0
            && self.open.load(Ordering::Acquire) == 0
            && self.detached.load(Ordering::Acquire) == 0
    }

    fn tell_quiet(&self) {
        if self.is_quiet() {
            drop(lock(&self.quiet));
            self.became_quiet.notify_all();
        }
    }

    /// Returns when no message waits or is handled, no timer runs, no handler is suspended (kumar ch. 2: quiescence).
    ///
    /// # Panics
    /// On a worker of this system: it would wait for itself.
    pub fn run_until_idle(self: &Arc<Self>) {
        if let Some(simulation) = &self.simulation {
            return simulation.run(self, &mut || false);
        }
        assert!(
            worker::current().is_none_or(|w| w.system_id != self.id),
            "run_until_idle was called inside an actor of the same system: it would wait for itself"
        );
        let mut quiet = lock(&self.quiet);
        while !self.is_quiet() {
            // The time-out only covers a handler that leaves a detached thread.
            quiet = self
                .became_quiet
                .wait_timeout(quiet, Duration::from_millis(20))
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
    }

    /// Blocks the calling thread until `done`, which is asked again after each unpark. In simulation: runs it.
    pub fn block_until(self: &Arc<Self>, deadline: Option<Duration>, done: &mut dyn FnMut() -> bool) -> bool {
        if let Some(simulation) = &self.simulation {
            simulation.run(self, done);
            return done();
        }
        loop {
            if done() {
                return true;
            }
            match deadline {
                None => std::thread::park(),
                Some(deadline) => {
                    let now = self.now();
                    if now >= deadline {
                        return done();
                    }
                    std::thread::park_timeout(deadline - now);
                }
            }
        }
    }

    // -- hand-overs ----------------------------------------------------------------------------------------------------

    /// Something was put into the inbox: raises the flag and wakes the worker if it rests.
    pub(crate) fn arrived(&self, office: &Office, mut inbox: MutexGuard<'_, Inbox>, _worker: u16) {
        if load_of(inbox.sent_bytes(), office.average_ns.load(Ordering::Relaxed)) >= 2 {
            office.overloaded.store(true, Ordering::SeqCst);
        }
        self.call(&mut inbox);
        drop(inbox);
        // After the lock was given back: that would wait for this store to be done.
        office.mail.raise();
    }

    /// Makes the worker of `inbox` awake.
    fn call(&self, inbox: &mut Inbox) {
        if std::mem::replace(&mut inbox.presence, Presence::Awake) == Presence::Parked {
            self.active_more();
            if let Some(thread) = &inbox.thread {
                thread.unpark();
            }
        }
    }

    /// Locks the inbox of the worker that runs `stage`, and calls `f` with it.
    fn with_inbox_of<R>(&self, stage: u16, f: impl FnOnce(&Office, MutexGuard<'_, Inbox>, u16) -> R) -> R {
        loop {
            // Acquire: pairs with the Release of whoever moved the stage.
            let worker = self.route[stage as usize].load(Ordering::Acquire);
            let office = &self.offices[worker as usize];
            let inbox = office.lock();
            if self.route[stage as usize].load(Ordering::Acquire) == worker {
                return f(office, inbox, worker);
            }
        }
    }

    /// Moves the record to the inbox of its stage's worker. False: the system takes no messages, the record was not
    /// moved.
    pub(crate) fn post(&self, stage: u16, lane: Lane, mut record: NonNull<Record>, size: usize) -> bool {
        let start = stage as usize >= self.config.stages && self.simulation.is_none();
        let posted = self.with_inbox_of(stage, |office, mut inbox, worker| {
            if self.closed.load(Ordering::Acquire) {
                return false;
            }
            // SAFETY: a whole record that the caller gives up.
            unsafe {
                record.as_mut().set_lane(lane);
                inbox.lane(lane).push_bytes(record.as_ptr().cast(), size, None);
            }
            if lane != Lane::Normal {
                inbox.signal.raise(Signal::LANES);
            }
            self.arrived(office, inbox, worker);
            true
        });
        debug_assert!(!start || stage < self.route.len() as u16);
        posted
    }

    /// Moves the record to the inbox of its stage's worker, or bounces it.
    ///
    /// # Safety
    /// A whole record whose payload the caller gives up.
    pub(crate) unsafe fn post_or_bounce(&self, lane: Lane, record: NonNull<Record>) {
        // SAFETY: by the contract.
        unsafe {
            if record.as_ref().is_buried() {
                return;
            }
            if !self.post(record.as_ref().stage(), lane, record, record.as_ref().bytes()) {
                (record.as_ref().thunk)(record, Op::Bounce(Undelivered::Shutdown));
            }
        }
    }

    /// Whether what is sent to `stage` of `worker` piles up: the worker's queue is too long, or too much is put aside for
    /// the stage.
    pub(crate) fn is_full(&self, worker: u16, stage: u16) -> bool {
        self.offices[worker as usize].overloaded.load(Ordering::SeqCst)
            || self.full[stage as usize].load(Ordering::SeqCst)
    }

    /// A thread that is no worker waits here while what it sends to is overloaded: overload slows senders.
    pub(crate) fn wait_while_overloaded(&self, stage: u16) {
        if self.simulation.is_some() || stage as usize >= self.route.len() {
            return;
        }
        let worker = self.route[stage as usize].load(Ordering::Acquire);
        if !self.is_full(worker, stage) {
            return;
        }
        let office = &self.offices[worker as usize];
        let mut inbox = office.lock();
        while self.is_full(worker, stage)
            && !self.closed.load(Ordering::Relaxed)
            && self.route[stage as usize].load(Ordering::Relaxed) == worker
        {
            inbox = office
                .relieved
                .wait_timeout(inbox, Duration::from_millis(10))
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
    }

    /// Whether messages to `to` pile up.
    pub fn is_overloaded(&self, to: RawAddress) -> bool {
        self.route
            .get(to.stage() as usize)
            .is_some_and(|worker| self.is_full(worker.load(Ordering::Relaxed), to.stage()))
    }

    /// Wakes worker `other` to look around.
    pub(crate) fn rouse(&self, other: u16) {
        let mut inbox = self.offices[other as usize].lock();
        // A dedicated worker that was never started has no thread: nobody would lower its presence again.
        if inbox.thread.is_some() || self.simulation.is_some() {
            inbox.signal.raise(Signal::TICK);
            self.call(&mut inbox);
        }
    }

    /// Wakes one parked worker to steal, if one is parked.
    pub(crate) fn wake_a_thief(&self, waker: u16) {
        if self.parked.load(Ordering::Relaxed) == 0 {
            return;
        }
        for id in 1..=self.config.workers {
            let other = (waker as usize + id) % self.config.workers;
            if let Some(mut inbox) = self.offices[other].try_lock()
                && inbox.presence == Presence::Parked
            {
                self.call(&mut inbox);
                self.ledgers[waker as usize].wake_ups.add(1);
                return;
            }
        }
    }

    /// Whether the stage may not change its worker.
    pub(crate) fn is_pinned(&self, stage: u16) -> bool {
        stage as usize >= self.config.stages
    }

    /// The stuck handler of a detached thread has returned.
    pub(crate) fn return_stage(&self, stage: u16) {
        self.with_inbox_of(stage, |office, mut inbox, worker| {
            inbox.returned.push(stage);
            self.arrived(office, inbox, worker);
        });
    }

    // -- spawning ------------------------------------------------------------------------------------------------------

    fn choose_stage(&self, choice: StageChoice) -> Result<u16, String> {
        let spread = || (self.next_spread.fetch_add(1, Ordering::Relaxed) % self.config.stages) as u16;
        match choice {
            StageChoice::Near => Ok(worker::current()
                .filter(|w| w.system_id == self.id)
                .and_then(Worker::near_stage)
                .unwrap_or_else(spread)),
            StageChoice::Spread => Ok(spread()),
            StageChoice::At(stage) if (stage as usize) < self.config.stages => Ok(stage),
            StageChoice::At(stage) => {
                Err(format!("stage {stage}: this system has the stages 0 to {}", self.config.stages - 1))
            }
            StageChoice::Dedicated if self.simulation.is_some() => Ok(spread()),
            StageChoice::Dedicated => lock(&self.dedicated).pop().ok_or_else(|| {
                format!(
                    "dedicated: {} actors with a thread of their own live already, which is the limit",
                    limits::DEDICATED_MAX
                )
            }),
        }
    }

    /// A stage for actors that are to be together.
    pub fn next_stage(&self) -> u16 {
        (self.next_spread.fetch_add(1, Ordering::Relaxed) % self.config.stages) as u16
    }

    /// Puts `state` into a cell and starts it: `start` is its first message. From a handler, with a stage of the same
    /// worker, that message is run before this returns.
    ///
    /// # Errors
    /// In words, with the state: no such stage, or no thread for a dedicated one; or the system has ended.
    pub fn spawn<S: Resident, E: Envelope<S>>(
        self: &Arc<Self>,
        state: S,
        choice: StageChoice,
        start: E,
    ) -> Result<Address<S>, (S, String)> {
        let (state, start) = match choice {
            StageChoice::Near if worker::current().is_some_and(|w| w.system_id == self.id) => {
                match crate::nested::spawn_near(state, start) {
                    Ok(address) => return Ok(address),
                    Err(back) => back,
                }
            }
            _ => (state, start),
        };
        if self.closed.load(Ordering::Acquire) {
            return Err((state, "the system has been shut down".to_owned()));
        }
        let stage = match self.choose_stage(choice) {
            Ok(stage) => stage,
            Err(why) => return Err((state, why)),
        };
        let owner = self.route[stage as usize].load(Ordering::Relaxed) as usize;
        if stage as usize >= self.config.stages
            && lock(&self.posts[owner]).is_none()
            && let Err(error) = self.try_start_worker(self.new_worker(owner as u16))
        {
            lock(&self.dedicated).push(stage);
            return Err((state, format!("dedicated: the thread could not be started: {error}")));
        }
        let kind = KindOf::<S>::KIND;
        let cell = lock(&self.outside.nurseries[owner]).take(kind.class);
        // SAFETY: a vacant cell of the right class, owned by this thread.
        unsafe { crate::cell::Cell::occupy(cell, state, kind, stage, self.id) };
        self.outside.spawned.fetch_add(1, Ordering::Relaxed);
        let address = RawAddress::of(cell).typed();
        // SAFETY: the address has not been given away.
        unsafe { address.send_first(start) };
        Ok(address)
    }

    /// An actor of `stage` has ended.
    #[inline]
    pub(crate) fn stage_left(&self, stage: u16) {
        if stage as usize >= self.config.stages {
            lock(&self.dedicated).push(stage);
        }
    }

    // -- timers --------------------------------------------------------------------------------------------------------

    /// Calls `task` after `delay`, on a worker; it may send messages and must not block.
    pub fn start_timer(self: &Arc<Self>, delay: Duration, task: TimerTask) -> TimerKey {
        self.open_more();
        let at_ns =
            self.now_ns().saturating_add(u64::try_from(delay.as_nanos()).unwrap_or(u64::MAX / 2)).min(u64::MAX / 2);
        let mut task = Some(task);
        if let Some(worker) = worker::current().filter(|w| w.system_id == self.id) {
            let key = worker.with_core(|core| {
                let id = core.next_timer;
                core.next_timer += 2;
                core.wheel.start(id, at_ns, task.take().expect("the task is taken once"));
                TimerKey { worker: worker.id, id }
            });
            if let Some(key) = key {
                return key;
            }
        }
        // Odd ids: from outside.
        let id = self.next_timer.fetch_add(2, Ordering::Relaxed) | 1;
        let worker = (id / 2 % self.config.workers as u64) as u16;
        self.timer_op(worker, TimerOp::Start { id, at_ns, task: task.expect("not taken by a worker") });
        TimerKey { worker, id }
    }

    /// Forgets a timer. One that fires at this moment may still fire.
    pub fn cancel_timer(&self, key: TimerKey) {
        if let Some(worker) = worker::current().filter(|w| w.system_id == self.id && w.id == key.worker)
            && let Some(found) = worker.with_core(|core| core.wheel.cancel(key.id))
        {
            if found {
                self.open_less();
            }
            return;
        }
        self.timer_op(key.worker, TimerOp::Cancel { id: key.id });
    }

    fn timer_op(&self, worker: u16, op: TimerOp) {
        let office = &self.offices[worker as usize];
        let mut inbox = office.lock();
        inbox.timer_ops.push(op);
        self.arrived(office, inbox, worker);
    }

    // -- reports -------------------------------------------------------------------------------------------------------

    /// Calls `hook` for each message that reaches nobody. The first hook stays.
    pub fn on_dead_letter(&self, hook: DeadLetterHook) {
        let _ = self.dead_letter_hook.set(hook);
    }

    /// Counts a message that reached nobody.
    pub fn dead_letter(&self, actor: &'static str, message: &'static str, why: Undelivered) {
        match worker::current().filter(|w| w.system_id == self.id) {
            Some(worker) => worker.ledger.dead_letters.add(1),
            None => {
                self.outside.dead_letters.fetch_add(1, Ordering::Relaxed);
            }
        }
        if let Some(hook) = self.dead_letter_hook.get() {
            hook(actor, message, why);
        }
    }

    /// Counters of each worker, as of its last checkup (at most one tick old while it runs, exact while it rests).
    pub fn counters(&self) -> Vec<Counters> {
        let mut counters: Vec<Counters> = self.ledgers.iter().map(|ledger| ledger.read()).collect();
        counters[0].spawned += self.outside.spawned.load(Ordering::Relaxed);
        counters[0].dead_letters += self.outside.dead_letters.load(Ordering::Relaxed);
        counters[0].received += self.handled_detached.load(Ordering::Relaxed);
        counters.truncate(
            self.config.workers.max(counters.iter().rposition(|c| *c != Counters::default()).map_or(0, |at| at + 1)),
        );
        counters
    }

    // -- the end -------------------------------------------------------------------------------------------------------

    /// Waits until no message is queued or handled, at most `limit`. True: so it is.
    pub fn drain(self: &Arc<Self>, limit: Duration) -> bool {
        if let Some(simulation) = &self.simulation {
            // A system that never rests is stopped in the middle, as on threads.
            let mut steps = 0;
            simulation.run(self, &mut || {
                steps += 1;
                steps > DRAIN_STEPS_MAX || self.active.load(Ordering::Acquire) == 0
            });
            return true;
        }
        assert!(
            worker::current().is_none_or(|w| w.system_id != self.id),
            "a system was shut down by one of its own actors: it would wait for itself"
        );
        let deadline = Instant::now() + limit;
        let mut quiet = lock(&self.quiet);
        loop {
            if self.active.load(Ordering::Acquire) == 0 && self.detached.load(Ordering::Acquire) == 0 {
                return true;
            }
            let Some(left) = deadline.checked_duration_since(Instant::now()) else { return false };
            let nap = left.min(Duration::from_millis(5));
            quiet = self.became_quiet.wait_timeout(quiet, nap).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Takes no more messages from outside, ends all workers, and ends all actors that are left. Messages that still
    /// wait become dead letters. Returns how many actors were left, and how many threads did not end within `limit`
    /// because they are in handlers that do not return: then nothing is taken from them.
    pub fn end(self: &Arc<Self>, limit: Duration) -> (u64, usize) {
        self.closed.store(true, Ordering::Release);
        self.ending.store(true, Ordering::Release);
        for id in 0..self.offices.len() as u16 {
            self.offices[id as usize].relieved.notify_all();
            self.rouse(id);
        }
        *lock(&self.monitor_nap.0) = true;
        self.monitor_nap.1.notify_all();
        let deadline = Instant::now() + limit;
        let mut quiet = lock(&self.quiet);
        let stuck = loop {
            let alive = self.alive.load(Ordering::Acquire);
            if alive == 0 {
                break 0;
            }
            let Some(left) = deadline.checked_duration_since(Instant::now()) else { break alive };
            quiet = self.became_quiet.wait_timeout(quiet, left).unwrap_or_else(PoisonError::into_inner).0;
        };
        drop(quiet);
        let slot = &slots()[self.id as usize];
        if stuck > 0 {
            return (0, stuck);
        }
        // Again and again: until it has ended itself, the monitor may start a thread for a worker it has just taken over.
        loop {
            // A statement of its own: the monitor needs the lock to go on.
            let threads = std::mem::take(&mut *lock(&self.threads));
            if threads.is_empty() {
                break;
            }
            for thread in threads {
                let _ = thread.join();
            }
        }
        let left = self.sweep();
        let mut occupant = lock(&slot.system);
        if occupant.as_ref().is_some_and(|system| Arc::ptr_eq(system, self)) {
            slot.epoch.fetch_add(1, Ordering::Release);
            *occupant = None;
        }
        (left, 0)
    }

    /// Ends what is left when all threads have ended.
    fn sweep(self: &Arc<Self>) -> u64 {
        let workers: Vec<Arc<Worker>> = self.posts.iter().filter_map(|post| lock(post).take()).collect();
        let Some(first) = workers.first() else { return 0 };
        let mut left = 0;
        for worker in &workers {
            worker.enter(|| worker.bounce_everything());
        }
        first.enter(|| {
            let mut cells = Vec::new();
            slab::sweep(self.id, |cell| cells.push(cell));
            for cell in cells {
                left += 1;
                let ended =
                    std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| first.end(cell, Ending::Shutdown)));
                drop(ended);
            }
        });
        for worker in &workers {
            worker.enter(|| worker.bounce_everything());
        }
        left
    }

    /// Waits for a tick, or for work if none is under way. Called by the monitor.
    pub(crate) fn rest_of_monitor(&self, tick: Duration, nothing_stuck: bool) {
        let (ended, wake) = &self.monitor_nap;
        let asleep = nothing_stuck && self.active.load(Ordering::Relaxed) == 0;
        let nap = if asleep { tick * 5 } else { tick };
        let guard = lock(ended);
        if *guard {
            drop(guard);
            std::thread::sleep(tick);
        } else {
            drop(wake.wait_timeout(guard, nap).unwrap_or_else(PoisonError::into_inner));
        }
    }
}
