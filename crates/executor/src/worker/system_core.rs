//! The state that the workers of a system share.

use std::fmt;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicIsize, AtomicU16, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock, Weak};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use crate::load::relays::Relays;
use crate::load::stage_backpressure::StageBackpressure;
use crate::load::standing::Sources;
use crate::memory::cell::Cell;
use crate::memory::record::Undelivered;
use crate::memory::slab::CellAllocator;
use crate::message::dead_letters::{DeadLetterHook, DeadLetterHooks};
use crate::message::mailbox_bound::BoundedMailboxes;
use crate::observe::observer::Observers;
use crate::observe::sampling::Sampler;
use crate::policy::config::Config;
use crate::policy::idle_set::IdleWorkers;
use crate::sync::locks::lock;
use crate::worker;
use crate::worker::after_takeover::Stuck;
use crate::worker::inbox::WorkerTable;
use crate::worker::outsiders::Outsiders;
use crate::worker::reactor::Reactor;
use crate::worker::route::Route;
use crate::worker::simulation::Simulation;
use crate::worker::{Worker, user_calls};

/// The clock of a system.
pub(crate) enum Clock {
    Real(Instant),
    Virtual(AtomicU64),
}

/// The state that the workers of a system share.
pub struct SystemCore {
    pub(crate) id: u16,
    pub(crate) config: Config,
    pub(crate) clock: Clock,
    pub(crate) simulation: Option<Simulation>,
    pub(crate) worker_table: WorkerTable,
    pub(crate) routing: Routing,
    pub(crate) idle: Idleness,
    pub(crate) quiescence: Quiescence,
    pub(crate) shutdown: Shutdown,
    pub(crate) threads: Threads,
    pub(crate) poller: Poller,
    pub(crate) observation: Observation,
    pub(crate) outside: Outside,
    /// The mailboxes of actors with a bound.
    pub(crate) mailboxes: BoundedMailboxes,
    pub(crate) next_spread: AtomicUsize,
    pub(crate) next_timer: AtomicU64,
    /// The state of a generator of random numbers (splitmix64).
    pub(crate) random: AtomicU64,
    /// A value of the layer above.
    pub(crate) above: OnceLock<Box<dyn std::any::Any + Send + Sync>>,
}

/// The workers of the stages, and the stages whose senders are slowed down. Rarely changed.
pub(crate) struct Routing {
    /// The worker that runs each stage. An entry changes under the inbox lock of the worker that runs the stage, and
    /// that inbox counts the departure.
    pub(crate) route: Box<[AtomicU16]>,
    /// The stages with too many parked bytes.
    pub(crate) full: Box<[StageBackpressure]>,
    /// The stages that forward their load to an overloaded worker.
    pub(crate) relays: Relays,
    pub(crate) sources: Sources,
}

/// The workers that are awake, and those that are idle. Changed when workers become idle and wake.
pub(crate) struct Idleness {
    /// The number of workers that are awake in the lower 32 bits, and the number of wake-ups above them.
    pub(crate) active: AtomicU64,
    pub(crate) parked: AtomicUsize,
    /// The set of idle workers.
    pub(crate) workers: IdleWorkers,
    /// The time of a wake-up in nanoseconds.
    pub(crate) wake_ns: u64,
    /// The number of threads that can run at one time. With 1 worker, and in simulation, this is the number of workers.
    pub(crate) cores: usize,
}

/// Whether the system is idle, and the threads that wait for that.
#[derive(Default)]
pub(crate) struct Quiescence {
    /// Timers, suspended handlers and muted stages that threads other than workers have begun, less those that they
    /// have ended. Each worker has a counter of its own. A system without awake workers is idle only if the sum of all
    /// these counters is 0.
    pub(crate) open: AtomicIsize,
    /// The number of stages whose mail waits behind gates.
    pub(crate) paused: AtomicUsize,
    pub(crate) quiet: Mutex<()>,
    pub(crate) became_quiet: Condvar,
    /// The number of threads that wait for that.
    pub(crate) wait_for_quiet: AtomicUsize,
}

/// The steps of the system's end.
#[derive(Default)]
pub(crate) struct Shutdown {
    /// A shutdown has begun.
    pub(crate) draining: AtomicBool,
    /// No messages from outside are taken any more. It is set by [`SystemCore::close`] only.
    pub(crate) closed: AtomicBool,
    /// The thread that ends the remaining actors, while it does.
    pub(crate) sweeping: Mutex<Option<ThreadId>>,
    /// The number of threads that occupy cells for actors from outside, or are about to find that the system is closed.
    pub(crate) spawning: AtomicUsize,
    /// Workers end when they find no work.
    pub(crate) ending: AtomicBool,
    /// The end is complete, or was given up because threads are stuck.
    pub(crate) ended: AtomicBool,
    /// Held while the remaining actors are ended.
    pub(crate) ending_rest: Mutex<()>,
    pub(crate) outsiders: Outsiders,
}

/// The threads of the workers, and the monitor's.
pub(crate) struct Threads {
    /// The worker of each number, as its thread runs it.
    pub(crate) posts: Box<[Mutex<Option<Arc<Worker>>>]>,
    pub(crate) handles: Mutex<Vec<std::thread::JoinHandle<()>>>,
    /// Threads that have not ended.
    pub(crate) alive: AtomicUsize,
    /// The stages for actors with a thread of their own that no actor has.
    pub(crate) dedicated: Mutex<Vec<u16>>,
    /// The number of threads with a stuck handler that have lost their worker.
    pub(crate) detached: AtomicUsize,
    pub(crate) stuck: Stuck,
    pub(crate) handled_detached: AtomicU64,
    pub(crate) monitor_nap: (Mutex<bool>, Condvar),
    /// The monitor sleeps until a worker wakes.
    pub(crate) monitor_sleeps: AtomicBool,
}

/// The reactor, and the worker that polls it.
#[derive(Default)]
pub(crate) struct Poller {
    pub(crate) reactor: OnceLock<Arc<dyn Reactor>>,
    /// A worker waits for events or handles some.
    pub(crate) polling: AtomicBool,
    /// No busy worker polls before this time (nanoseconds of the system's clock).
    pub(crate) next_poll_ns: AtomicU64,
}

/// The observers of the system: the observer of handlers, samplers, requests for a census, and dead-letter hooks.
#[derive(Default)]
pub(crate) struct Observation {
    pub(crate) observers: Observers,
    /// A sampler wants to know the actors that the workers run.
    pub(crate) sampling: AtomicBool,
    /// The number of requests for a census.
    pub(crate) census_asked: AtomicU64,
    pub(crate) samplers: Mutex<Vec<Weak<Sampler>>>,
    pub(crate) dead_letter_hooks: DeadLetterHooks,
}

/// Cells for actors that are spawned by threads that are no workers, by the worker they go to: actors of different
/// workers share no cache lines.
pub(crate) struct Outside {
    /// Made at the first spawn: most workers are those of actors with threads of their own, and most systems have none.
    pub(crate) allocators: Box<[Mutex<Option<CellAllocator>>]>,
    pub(crate) spawned: AtomicU64,
    pub(crate) dead_letters: AtomicU64,
}

pub(crate) const SYSTEMS_MAX: usize = 4096;
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
        let SystemCore { observation, poller, above, simulation, .. } = self;
        let Observation { dead_letter_hooks, observers, .. } = observation;
        let (hooks, observer) = (std::mem::take(dead_letter_hooks), observers.take_observer());
        let (reactor, above) = (poller.reactor.take(), above.take());
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

impl SystemCore {
    /// Returns the present route for a new worker.
    pub(crate) fn route_for(&self, worker: u16) -> Route {
        // The stages of dedicated workers never move.
        let departures = |id: usize| if id < self.config.workers { self.worker_table[id].lock().departures } else { 0 };
        let departures = (0..self.worker_table.len()).map(departures).collect();
        // Acquire: pairs with the Release of the worker that moved the stage.
        Route::new(
            worker,
            departures,
            self.routing.route.iter().map(|runs_it| runs_it.load(Ordering::Acquire)).collect(),
        )
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
        self.shutdown.closed.load(Ordering::Acquire)
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

    /// Keeps a value that the layers above want to find again from within their actors. Can be called once; returns
    /// false if there is one already.
    pub fn set_above<T: Send + Sync + 'static>(&self, above: T) -> bool {
        self.above.set(Box::new(above)).is_ok()
    }

    /// Returns the value of [`SystemCore::set_above`], if it is a `T`.
    pub fn above<T: 'static>(&self) -> Option<&T> {
        self.above.get()?.downcast_ref()
    }

    /// Begins to occupy cells. Returns `None` if the system is closed. A closed system still accepts spawns of the
    /// thread that ends its actors.
    pub(crate) fn begin_to_spawn(&self) -> Option<Spawning<'_>> {
        // SeqCst: either this thread sees that the system is closed, or `close` sees this thread.
        self.shutdown.spawning.fetch_add(1, Ordering::SeqCst);
        let spawning = Spawning(&self.shutdown.spawning);
        (!self.shutdown.closed.load(Ordering::SeqCst) || self.sweeps_on_this_thread()).then_some(spawning)
    }

    /// Returns whether a shutdown has begun, as far as this thread knows. Activities that repeat by themselves should
    /// then end.
    pub fn is_draining(&self) -> bool {
        // Relaxed: no other data is read through it.
        self.shutdown.draining.load(Ordering::Relaxed)
    }

    /// Returns whether this thread ends the remaining actors of the system after its shutdown.
    #[cold]
    pub fn sweeps_on_this_thread(&self) -> bool {
        *lock(&self.shutdown.sweeping) == Some(thread::current().id())
    }

    /// Takes no more messages and no more actors from outside. Returns when no thread is about to occupy a cell.
    pub(crate) fn close(&self) {
        self.shutdown.closed.store(true, Ordering::SeqCst);
        // The threads run no code of others, and wait for nothing that this thread could hold.
        while self.shutdown.spawning.load(Ordering::SeqCst) > 0 {
            std::thread::yield_now();
        }
    }

    /// Notes that an actor of `stage` has ended.
    #[inline]
    pub(crate) fn stage_left(&self, stage: u16) {
        if self.is_pinned(stage) {
            lock(&self.threads.dedicated).push(stage);
        }
    }

    /// Calls `hook` for each dead letter, after the hooks that were given before. Messages that hooks have sent are
    /// excepted (`dead_letters.rs`).
    pub fn on_dead_letter(&self, hook: DeadLetterHook) {
        self.observation.dead_letter_hooks.add(hook);
    }

    /// Counts a dead letter.
    pub fn dead_letter(&self, actor: &'static str, message: &'static str, why: Undelivered) {
        match worker::current().filter(|w| w.system_id == self.id) {
            Some(worker) => worker.ledger.dead_letters.add(1),
            None => {
                self.outside.dead_letters.fetch_add(1, Ordering::Relaxed);
            }
        }
        self.observation.dead_letter_hooks.call(actor, message, why, worker::stop_logs);
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
}
