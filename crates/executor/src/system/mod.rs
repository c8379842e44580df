//! Systems: workers, stages and the state that they share.

pub(crate) mod config;
pub(crate) mod outsiders;
pub(crate) mod quiescence;

use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicIsize, AtomicU16, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock, Weak};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use crate::backpressure::relays::Relays;
use crate::backpressure::stage::StageBackpressure;
use crate::backpressure::standing::Sources;
use crate::dispatch::actor_end::KindOf;
use crate::driver::simulated::{Choices, Simulation};
use crate::driver::timer_wheel::{TimerKey, TimerOp, TimerTask};
use crate::memory::cell::Cell;
use crate::memory::raw_address::RawAddress;
use crate::memory::record::Undelivered;
use crate::memory::slab::CellAllocator;
use crate::message::address::Address;
use crate::message::dead_letters::{DeadLetterHook, DeadLetterHooks};
use crate::message::envelope::{Envelope, Resident};
use crate::message::mailbox_bound::{BoundedMailboxes, Mailbox};
use crate::observe::observed::Observers;
use crate::observe::stats::Counters;
use crate::scheduler::idle_set::IdleWorkers;
use crate::scheduler::poll::Reactor;
use crate::scheduler::stuck::Stuck;
use crate::scheduler::{costs, monitor};
use crate::sync::locks::lock;
use crate::system::config::{Config, StageChoice, limits};
use crate::system::outsiders::Outsiders;
use crate::worker::core::Core;
use crate::worker::delivery::WokenBy;
use crate::worker::inbox::WorkerTable;
use crate::worker::route::Route;
use crate::worker::{Worker, run_by_askers, user_calls};
use crate::{user_code, worker};

/// The clock of a system.
pub(crate) enum Clock {
    Real(Instant),
    Virtual(AtomicU64),
}

/// The state that the workers of a system share.
pub struct SystemCore {
    // -- rarely changed
    // ------------------------------------------------------------------------------------------------
    pub(crate) id: u16,
    pub(crate) config: Config,
    pub(crate) worker_table: WorkerTable,
    /// The worker that runs each stage. An entry changes under the inbox lock of the worker that runs the stage, and
    /// that inbox counts the departure.
    pub(crate) route: Box<[AtomicU16]>,
    /// The stages with too many parked bytes.
    pub(crate) full: Box<[StageBackpressure]>,
    /// The stages that forward their load to an overloaded worker.
    pub(crate) relays: Relays,
    pub(crate) sources: Sources,
    clock: Clock,
    pub(crate) simulation: Option<Simulation>,
    pub(crate) observers: Observers,
    // -- changed when workers become idle and wake
    // -----------------------------------------------------------------------
    /// The number of workers that are awake in the lower 32 bits, and the number of wake-ups above them.
    pub(crate) active: AtomicU64,
    pub(crate) parked: AtomicUsize,
    /// The set of idle workers.
    pub(crate) idle: IdleWorkers,
    /// The time of a wake-up in nanoseconds.
    pub(crate) wake_ns: u64,
    /// The number of threads that can run at one time. With 1 worker, and in simulation, this is the number of workers.
    pub(crate) cores: usize,
    /// Timers, suspended handlers and muted stages that threads other than workers have begun, less those that they
    /// have ended. Each worker has a counter of its own. A system without awake workers is idle only if the sum of all
    /// these counters is 0.
    pub(crate) open: AtomicIsize,
    pub(crate) quiet: Mutex<()>,
    pub(crate) became_quiet: Condvar,
    /// The number of threads that wait for that.
    pub(crate) wait_for_quiet: AtomicUsize,
    // -- the rest
    // ------------------------------------------------------------------------------------------------------
    next_spread: AtomicUsize,
    /// The state of a generator of random numbers (splitmix64).
    random: AtomicU64,
    /// A shutdown has begun.
    pub(crate) draining: AtomicBool,
    /// No messages from outside are taken any more. It is set by [`SystemCore::close`] only.
    pub(crate) closed: AtomicBool,
    /// The thread that ends the remaining actors, while it does.
    pub(crate) sweeping: Mutex<Option<ThreadId>>,
    /// The number of threads that occupy cells for actors from outside, or are about to find that the system is closed.
    spawning: AtomicUsize,
    /// Workers end when they find no work.
    pub(crate) ending: AtomicBool,
    /// The end is complete, or was given up because threads are stuck.
    pub(crate) ended: AtomicBool,
    /// Held while the remaining actors are ended.
    pub(crate) ending_rest: Mutex<()>,
    pub(crate) outsiders: Outsiders,
    pub(crate) detached: AtomicUsize,
    pub(crate) stuck: Stuck,
    pub(crate) handled_detached: AtomicU64,
    pub(crate) outside: Outside,
    pub(crate) posts: Box<[Mutex<Option<Arc<Worker>>>]>,
    pub(crate) threads: Mutex<Vec<std::thread::JoinHandle<()>>>,
    /// Threads that have not ended.
    pub(crate) alive: AtomicUsize,
    dedicated: Mutex<Vec<u16>>,
    pub(crate) monitor_nap: (Mutex<bool>, Condvar),
    /// The monitor sleeps until a worker wakes.
    pub(crate) monitor_sleeps: AtomicBool,
    pub(crate) reactor: OnceLock<Arc<dyn Reactor>>,
    above: OnceLock<Box<dyn std::any::Any + Send + Sync>>,
    /// A worker waits for events or handles some.
    pub(crate) polling: AtomicBool,
    /// No busy worker polls before this time (nanoseconds of the system's clock).
    pub(crate) next_poll_ns: AtomicU64,
    /// A sampler wants to know the actors that the workers run.
    pub(crate) sampling: AtomicBool,
    /// The number of requests for a census.
    pub(crate) census_asked: AtomicU64,
    pub(crate) samplers: Mutex<Vec<std::sync::Weak<crate::observe::sampling::Sampler>>>,
    dead_letter_hooks: DeadLetterHooks,
    /// The mailboxes of actors with a bound.
    pub(crate) mailboxes: BoundedMailboxes,
    next_timer: AtomicU64,
}

/// Cells for actors that are spawned by threads that are no workers, by the worker they go to: actors of different
/// workers share no cache lines.
pub(crate) struct Outside {
    /// Made at the first spawn: most workers are those of actors with threads of their own, and most systems have none.
    allocators: Box<[Mutex<Option<CellAllocator>>]>,
    pub(crate) spawned: AtomicU64,
    dead_letters: AtomicU64,
}

const SYSTEMS_MAX: usize = 4096;
pub(crate) struct Slot {
    /// Changes with each system that takes or leaves the slot.
    pub(crate) epoch: AtomicU64,
    pub(crate) system: Mutex<Option<Arc<SystemCore>>>,
}

impl Outside {
    /// Returns a vacant cell of `class` for an actor of `stage`, which the worker `owner` runs.
    pub(crate) fn take(&self, owner: usize, stage: u16, class: u16) -> NonNull<Cell> {
        lock(&self.allocators[owner]).get_or_insert_with(CellAllocator::new).take(class, stage)
    }
}

/// All zero bytes: only slots that were used take memory.
pub(crate) static SLOTS: [Slot; SYSTEMS_MAX] =
    [const { Slot { epoch: AtomicU64::new(0), system: Mutex::new(None) } }; SYSTEMS_MAX];

thread_local! {
    /// The system that this outside thread sent to last, and the epoch of its slot.
    static LAST: std::cell::RefCell<Option<(u64, Weak<SystemCore>)>> = const { std::cell::RefCell::new(None) };
}

thread_local! {
    /// The system whose full mailboxes refuse the messages of this thread. It has no destructor, because messages may
    /// be sent from the destructors of other thread-locals.
    ///
    /// INVARIANT: null, or the `Arc` that a [`SystemCore::while_refusing`] on this thread's stack has borrowed.
    static REFUSING: std::cell::Cell<*const Arc<SystemCore>> = const { std::cell::Cell::new(std::ptr::null()) };
}
const _: () = assert!(!std::mem::needs_drop::<std::cell::Cell<*const Arc<SystemCore>>>());

/// A guard: while it lives, a system refuses the messages of this thread. Its drop restores the former system.
struct Refusing(*const Arc<SystemCore>);

impl Refusing {
    #[inline(never)]
    fn of(system: &Arc<SystemCore>) -> Refusing {
        Refusing(REFUSING.replace(system))
    }
}

impl Drop for Refusing {
    #[inline(never)]
    fn drop(&mut self) {
        REFUSING.set(self.0);
    }
}

/// A guard: while it lives, the system does not end. The end waits for the cells that are occupied by then, and sweeps
/// them.
pub(crate) struct Spawning<'a>(&'a AtomicUsize);

impl Drop for Spawning<'_> {
    fn drop(&mut self) {
        // Release: pairs with the Acquire in `close`, and the sweep therefore finds the cell.
        self.0.fetch_sub(1, Ordering::Release);
    }
}

impl Drop for SystemCore {
    /// Drops the values that the program has given to the system. A worker of another system may drop the last handle,
    /// between two gulps.
    fn drop(&mut self) {
        let SystemCore { dead_letter_hooks, observers, reactor, above, simulation, .. } = self;
        let (hooks, observer) = (std::mem::take(dead_letter_hooks), observers.take_observer());
        let (reactor, above) = (reactor.take(), above.take());
        let driver = simulation.as_mut().and_then(Simulation::take_driver);
        let drops: [Box<dyn FnOnce()>; 5] = [
            Box::new(move || drop(hooks)),
            Box::new(move || drop(observer)),
            Box::new(move || drop(reactor)),
            Box::new(move || drop(above)),
            Box::new(move || drop(driver)),
        ];
        for each in drops {
            user_calls::call(each).unwrap_or(());
        }
    }
}

impl fmt::Debug for SystemCore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SystemCore").field("id", &self.id).field("config", &self.config).finish_non_exhaustive()
    }
}

/// The size of a worker's stack. Without optimisation, a function has stack space of its own for each move of a value,
/// and asks with messages of 1 MiB need more. The system gives memory only to the part of a stack that is used.
pub(crate) const STACK_BYTES: usize = if cfg!(debug_assertions) { 32 << 20 } else { 8 << 20 };

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
        user_code::note_places(|| worker::current().is_some());
        let dedicated = if config.simulated.is_some() { 0 } else { limits::DEDICATED_MAX };
        let workers = config.workers + dedicated;
        let shared = config.stages + config.links;
        let stages = shared + dedicated;
        // In turn, because addresses into a system that has ended should not meet another one under its number for
        // long.
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let from = NEXT.fetch_add(1, Ordering::Relaxed);
        let (at, slot) = (0..SYSTEMS_MAX - 1)
            .map(|turn| 1 + (from + turn) % (SYSTEMS_MAX - 1))
            .find_map(|at| {
                let guard = lock(&SLOTS[at].system);
                guard.is_none().then_some((at, guard))
            })
            .ok_or_else(|| {
                vec![format!("{} systems run in this process already, which is the limit", SYSTEMS_MAX - 1)]
            })?;
        let mut slot = slot;
        let random = config.simulated.unwrap_or_else(|| RandomState::new().hash_one(at));
        let system = Arc::new(SystemCore {
            id: at as u16,
            worker_table: WorkerTable::new(config.workers, dedicated),
            route: (0..stages)
                .map(|stage| {
                    AtomicU16::new(
                        if stage < shared { stage % config.workers } else { config.workers + stage - shared } as u16,
                    )
                })
                .collect(),
            full: (0..stages).map(|_| StageBackpressure::default()).collect(),
            sources: Sources::default(),
            relays: Relays::new(stages),
            clock: if config.simulated.is_some() {
                Clock::Virtual(AtomicU64::new(0))
            } else {
                Clock::Real(Instant::now())
            },
            simulation: config.simulated.map(Simulation::new),
            observers: Observers::default(),
            active: AtomicU64::new(0),
            parked: AtomicUsize::new(0),
            idle: IdleWorkers::of(config.workers),
            // With 1 worker, and in simulation, no thread is woken to share work.
            wake_ns: if config.workers > 1 && config.simulated.is_none() { costs::wake_ns() } else { 10_000 },
            cores: if config.workers > 1 && config.simulated.is_none() { costs::cores() } else { config.workers },
            open: AtomicIsize::new(0),
            quiet: Mutex::new(()),
            became_quiet: Condvar::new(),
            wait_for_quiet: AtomicUsize::new(0),
            next_spread: AtomicUsize::new(0),
            random: AtomicU64::new(random),
            draining: AtomicBool::new(false),
            closed: AtomicBool::new(false),
            sweeping: Mutex::new(None),
            spawning: AtomicUsize::new(0),
            ending: AtomicBool::new(false),
            ended: AtomicBool::new(false),
            ending_rest: Mutex::new(()),
            outsiders: Outsiders::default(),
            detached: AtomicUsize::new(0),
            stuck: Stuck::default(),
            handled_detached: AtomicU64::new(0),
            outside: Outside {
                allocators: (0..workers).map(|_| Mutex::default()).collect(),
                spawned: AtomicU64::new(0),
                dead_letters: AtomicU64::new(0),
            },
            posts: (0..workers).map(|_| Mutex::new(None)).collect(),
            threads: Mutex::new(Vec::new()),
            alive: AtomicUsize::new(0),
            dedicated: Mutex::new((shared as u16..stages as u16).rev().collect()),
            monitor_nap: (Mutex::new(false), Condvar::new()),
            monitor_sleeps: AtomicBool::new(false),
            reactor: OnceLock::new(),
            above: OnceLock::new(),
            polling: AtomicBool::new(false),
            next_poll_ns: AtomicU64::new(0),
            sampling: AtomicBool::new(false),
            census_asked: AtomicU64::new(0),
            samplers: Mutex::default(),
            dead_letter_hooks: DeadLetterHooks::default(),
            mailboxes: BoundedMailboxes::default(),
            next_timer: AtomicU64::new(0),
            config,
        });
        *slot = Some(Arc::clone(&system));
        SLOTS[at].epoch.fetch_add(1, Ordering::Release);
        drop(slot);
        for id in 0..system.config.workers as u16 {
            if system.simulation.is_some() {
                *lock(&system.posts[id as usize]) = Some(system.new_worker(id));
                continue;
            }
            match system.start_thread(id) {
                Ok(thread) => thread.run(system.new_worker(id)),
                Err(error) => {
                    system.end(Duration::from_secs(1), &mut |_, _, _| {});
                    return Err(vec![format!("a worker thread could not be started: {error}")]);
                }
            }
        }
        if system.simulation.is_none() {
            let weak = Arc::downgrade(&system);
            let name = format!("playhouse-{}-monitor", system.id);
            let handle = std::thread::Builder::new().name(name).spawn(move || monitor::watch(&weak));
            match handle {
                Ok(handle) => lock(&system.threads).push(handle),
                Err(error) => {
                    system.end(Duration::from_secs(1), &mut |_, _, _| {});
                    return Err(vec![format!("the monitor thread could not be started: {error}")]);
                }
            }
        }
        Ok(system)
    }

    /// Returns the present route for a new worker.
    pub(crate) fn route_for(&self, worker: u16) -> Route {
        // The stages of dedicated workers never move.
        let departures = |id: usize| if id < self.config.workers { self.worker_table[id].lock().departures } else { 0 };
        let departures = (0..self.worker_table.len()).map(departures).collect();
        // Acquire: pairs with the Release of the worker that moved the stage.
        Route::new(worker, departures, self.route.iter().map(|runs_it| runs_it.load(Ordering::Acquire)).collect())
    }

    fn new_worker(self: &Arc<Self>, id: u16) -> Arc<Worker> {
        let seed = self.config.simulated.unwrap_or(0x9e37_79b9) as u32 ^ (u32::from(id) + 1).wrapping_mul(0x85eb_ca6b);
        let signal = Arc::clone(&self.worker_table[id as usize].lock().signal);
        Arc::new(Worker::new(self, id, signal, Core::new(seed)))
    }

    /// Returns the system with this id.
    pub fn by_id(id: u16) -> Option<Arc<SystemCore>> {
        let slot = SLOTS.get(id as usize)?;
        // Acquire: pairs with the Release of the system that took the slot.
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

    /// Returns the settings in force.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Returns the id of this system, which no other running system of the process has.
    pub fn id(&self) -> u16 {
        self.id
    }

    /// Returns whether the system takes no messages from outside any more, because it ends or has ended.
    pub fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// Returns whether this is a simulated system.
    pub fn is_simulated(&self) -> bool {
        self.simulation.is_some()
    }

    /// Returns the time since the start; virtual in simulation.
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

    // -- spawning
    // ------------------------------------------------------------------------------------------------------

    /// Returns a random number for jitter, which needs no quality. In a simulated system, the same seed gives the same
    /// numbers.
    pub fn random(&self) -> u64 {
        const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
        Choices::new(self.random.fetch_add(STEP, Ordering::Relaxed)).next()
    }

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
            // No thread is started any more for an actor that a sweep will end.
            StageChoice::Dedicated if self.simulation.is_some() || self.closed.load(Ordering::Relaxed) => Ok(spread()),
            StageChoice::Dedicated => lock(&self.dedicated).pop().ok_or_else(|| {
                format!(
                    "dedicated: {} actors with a thread of their own exist already, which is the limit",
                    limits::DEDICATED_MAX
                )
            }),
        }
    }

    /// Keeps a value that the layers above want to find again from within their actors. Can be called once; returns
    /// false if there is one already.
    pub fn set_above<T: Send + Sync + 'static>(&self, above: T) -> bool {
        self.above.set(Box::new(above)).is_ok()
    }

    /// Returns the value of [`SystemCore::set_above`], if it is a `T`.
    pub fn above<T: 'static>(&self) -> Option<&T> {
        self.above.get()?.downcast_ref()
    }

    /// Returns a stage for actors that are to be together.
    pub fn next_stage(&self) -> u16 {
        (self.next_spread.fetch_add(1, Ordering::Relaxed) % self.config.stages) as u16
    }

    /// Puts `state` into a cell and starts it: `start` is its first message. From a handler, with a stage of the same
    /// worker, that message is run before this returns.
    ///
    /// # Errors
    /// A text, with the state: no such stage, or no thread for a dedicated one; or the system has ended.
    pub fn spawn<S: Resident, E: Envelope<S>>(
        self: &Arc<Self>,
        state: S,
        choice: StageChoice,
        start: E,
    ) -> Result<Address<S>, (S, String)> {
        let (state, start) = match choice {
            StageChoice::Near if worker::current().is_some_and(|w| w.system_id == self.id) => {
                match crate::dispatch::inline_call::spawn_near(state, start) {
                    Ok(address) => return Ok(address),
                    Err(back) => back,
                }
            }
            _ => (state, start),
        };
        self.settle(state, choice, start, None)
    }

    /// Does the same as [`SystemCore::spawn`] for an actor whose mailbox is bounded. Its first message is never run
    /// before this returns.
    ///
    /// # Errors
    /// The same as for [`SystemCore::spawn`].
    pub fn spawn_bounded<S: Resident, E: Envelope<S>>(
        self: &Arc<Self>,
        state: S,
        choice: StageChoice,
        start: E,
        bound: Mailbox,
    ) -> Result<Address<S>, (S, String)> {
        self.settle(state, choice, start, Some(bound))
    }

    #[inline(never)]
    fn settle<S: Resident, E: Envelope<S>>(
        self: &Arc<Self>,
        state: S,
        choice: StageChoice,
        start: E,
        bound: Option<Mailbox>,
    ) -> Result<Address<S>, (S, String)> {
        let kind = KindOf::<S>::KIND;
        let (spawning, stage, cell) = match self.vacancy(choice, kind.class) {
            Ok(found) => found,
            Err(why) => return Err((state, why)),
        };
        // SAFETY: a vacant cell of the right class, owned by this thread.
        unsafe { Cell::occupy(cell, state, kind, stage, self.id) };
        let address = self.occupied(cell, bound, spawning).typed();
        // SAFETY: the address has not been given away.
        unsafe { address.send_first(start, false) };
        Ok(address)
    }

    // The parts of a spawn that do not depend on types are functions of their own: they are compiled once.

    /// Begins to occupy a cell. Returns `Err` with the reason if there is none.
    #[inline(never)]
    fn vacancy(
        self: &Arc<Self>,
        choice: StageChoice,
        class: u16,
    ) -> Result<(Spawning<'_>, u16, NonNull<Cell>), String> {
        let spawning = self.begin_to_spawn().ok_or("the system has been shut down")?;
        let (stage, cell) = self.vacant_cell(choice, class)?;
        Ok((spawning, stage, cell))
    }

    /// Finishes the occupation of a cell. From this point on a sweep may end the actor. Its first message then finds
    /// the system closed.
    #[inline(never)]
    fn occupied(&self, cell: NonNull<Cell>, bound: Option<Mailbox>, spawning: Spawning<'_>) -> RawAddress {
        self.outside.spawned.fetch_add(1, Ordering::Relaxed);
        if let Some(bound) = bound {
            // SAFETY: cells are never freed.
            unsafe { cell.as_ref() }.set_bounded();
            self.mailboxes.build(RawAddress::of(cell), bound);
        }
        drop(spawning);
        RawAddress::of(cell)
    }

    /// Begins to occupy cells. Returns `None` if the system is closed. A closed system still accepts spawns of the
    /// thread that ends its actors.
    pub(crate) fn begin_to_spawn(&self) -> Option<Spawning<'_>> {
        // SeqCst: either this thread sees that the system is closed, or `close` sees this thread.
        self.spawning.fetch_add(1, Ordering::SeqCst);
        let spawning = Spawning(&self.spawning);
        (!self.closed.load(Ordering::SeqCst) || self.sweeps_here()).then_some(spawning)
    }

    /// Returns whether a shutdown has begun, as far as this thread knows. Activities that repeat by themselves should
    /// then end.
    pub fn is_draining(&self) -> bool {
        // Relaxed: no other data is read through it.
        self.draining.load(Ordering::Relaxed)
    }

    /// Returns whether this thread ends the remaining actors of the system after its shutdown.
    #[cold]
    pub fn sweeps_here(&self) -> bool {
        *lock(&self.sweeping) == Some(thread::current().id())
    }

    /// Takes no more messages and no more actors from outside. Returns when no thread is about to occupy a cell.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
        // The threads run no code of others, and wait for nothing that this thread could hold.
        while self.spawning.load(Ordering::SeqCst) > 0 {
            std::thread::yield_now();
        }
    }

    /// Returns a cell for an actor that is spawned by a thread that is no worker, and its stage. Returns `Err` with the
    /// reason if there is none.
    #[inline(never)]
    fn vacant_cell(self: &Arc<Self>, choice: StageChoice, class: u16) -> Result<(u16, NonNull<Cell>), String> {
        let stage = self.choose_stage(choice)?;
        let owner = self.route[stage as usize].load(Ordering::Relaxed) as usize;
        if self.is_pinned(stage) && lock(&self.posts[owner]).is_none() {
            match self.start_thread(owner as u16) {
                Ok(thread) => thread.run(self.new_worker(owner as u16)),
                Err(error) => {
                    lock(&self.dedicated).push(stage);
                    return Err(format!("dedicated: the thread could not be started: {error}"));
                }
            }
        }
        Ok((stage, self.outside.take(owner, stage, class)))
    }

    /// Notes that an actor of `stage` has ended.
    #[inline]
    pub(crate) fn stage_left(&self, stage: u16) {
        if self.is_pinned(stage) {
            lock(&self.dedicated).push(stage);
        }
    }

    // -- timers
    // --------------------------------------------------------------------------------------------------------

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
            && let Some(task) = worker.with_core(|core| core.wheel.cancel(key.id))
        {
            if let Some(task) = task {
                self.open_less();
                // Outside of the core, because a message of the program is dropped with it.
                drop(task);
            }
            return;
        }
        self.timer_op(key.worker, TimerOp::Cancel { id: key.id });
    }

    fn timer_op(&self, worker: u16, op: TimerOp) {
        let shared = &self.worker_table[worker as usize];
        let mut inbox = shared.lock();
        inbox.timer_ops.push(op);
        self.arrived_for(shared, inbox, worker, WokenBy::asker_if(run_by_askers::take_asks()));
    }

    // -- reports
    // -------------------------------------------------------------------------------------------------------

    /// Calls `hook` for each dead letter, after the hooks that were given before. Messages that hooks have sent are
    /// excepted (`dead_letters.rs`).
    pub fn on_dead_letter(&self, hook: DeadLetterHook) {
        self.dead_letter_hooks.add(hook);
    }

    /// Counts a dead letter.
    pub fn dead_letter(&self, actor: &'static str, message: &'static str, why: Undelivered) {
        match worker::current().filter(|w| w.system_id == self.id) {
            Some(worker) => worker.ledger.dead_letters.add(1),
            None => {
                self.outside.dead_letters.fetch_add(1, Ordering::Relaxed);
            }
        }
        self.dead_letter_hooks.call(actor, message, why, worker::stop_logs);
    }

    /// Runs `f`. Messages that `f` drops or bounces are dead letters of this system, also on a thread that runs none of
    /// its actors.
    pub(crate) fn while_refusing<R>(self: &Arc<Self>, f: impl FnOnce() -> R) -> R {
        let _refusing = Refusing::of(self);
        f()
    }

    /// Returns the system whose dead letter is bounced now.
    #[inline(never)]
    pub fn of_dead_letter() -> Option<Arc<SystemCore>> {
        // SAFETY: by the INVARIANT of REFUSING, the frame that has borrowed it is below this one on the stack.
        let refusing = unsafe { REFUSING.get().as_ref() };
        refusing.cloned().or_else(worker::current_system)
    }

    /// Returns the counters of each worker, as of its last checkup (at most one tick old while it runs, exact while it
    /// is idle).
    pub fn counters(&self) -> Vec<Counters> {
        let mut counters = vec![Counters::default(); self.worker_table.len()];
        for (id, shared) in self.worker_table.made() {
            counters[usize::from(id)] = shared.ledgers.read();
        }
        counters[0].spawned += self.outside.spawned.load(Ordering::Relaxed);
        counters[0].dead_letters += self.outside.dead_letters.load(Ordering::Relaxed);
        counters[0].rejected += self.mailboxes.rejected.load(Ordering::Relaxed);
        counters[0].dropped += self.mailboxes.dropped.load(Ordering::Relaxed);
        counters[0].received += self.handled_detached.load(Ordering::Relaxed);
        counters.truncate(
            self.config.workers.max(counters.iter().rposition(|c| *c != Counters::default()).map_or(0, |at| at + 1)),
        );
        counters
    }
}
