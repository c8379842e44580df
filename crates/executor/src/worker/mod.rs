//! Workers: one per core, each with its own queue, logs and cells.
//!
//! A worker's message path has no lock, no atomic read-modify-write and no allocation. A send appends a record to the
//! log of the receiver's worker (its own log, for stages it runs itself). A gulp takes the records of the own log and
//! runs them in order. [`crate::worker::inbox`] holds the state of a worker that others may touch, and
//! [`crate::worker::exchange`] says when the worker looks at it. [`crate::scheduler::monitor`] takes the work away from
//! a worker while a handler is stuck.
//!
//! # Files
//!
//! - State: [`system_core`] is what the workers of a system share, and [`inbox`] what other threads leave for a worker.
//!   [`message_queue`] is the queue of messages, [`core`] moves to another thread when a handler is stuck, and
//!   [`route`] tells which worker runs a stage.
//! - Steps: [`run`] runs messages, [`run_deferred`] those that an actor has deferred, and [`exchange`] lies between two
//!   gulps. [`inbox_delivery`] and [`outside_delivery`] give messages to other workers.
//! - Threads: [`threads`] starts them. [`ownership`] and [`after_takeover`] tell which thread has a worker's work, and
//!   [`run_by_askers`] lends parked workers to threads outside.
//!
//! # Phases
//!
//! A worker is in phase USER while it runs records and in phase RUNTIME while it touches its [`Core`]. The monitor may
//! take the core of a thread only while the thread is in USER, and never waits for it. The rules (proof in
//! `monitor.rs`): before each record the worker stores the record that it *claims*, then (after a light fence) looks at
//! its signal. On entering RUNTIME it stores the phase, then (after a light fence) looks at its signal.
//!
//! User code (handlers, hooks, drops of messages and states) runs in USER only: see [`crate::user_code`].

pub(crate) mod after_takeover;
pub(crate) mod core;
pub(crate) mod count_queue;
pub(crate) mod deferred_starts;
pub(crate) mod exchange;
pub(crate) mod fire_timers;
pub(crate) mod frozen;
pub(crate) mod gate;
pub(crate) mod inbox;
pub(crate) mod inbox_delivery;
pub(crate) mod message_queue;
pub(crate) mod nested;
pub(crate) mod outside_delivery;
pub(crate) mod outsiders;
pub(crate) mod ownership;
pub(crate) mod reactor;
pub(crate) mod route;
pub(crate) mod run;
pub(crate) mod run_by_askers;
pub(crate) mod run_deferred;
pub(crate) mod run_observed;
pub(crate) mod simulation;
pub(crate) mod system_core;
pub(crate) mod take_samples;
pub(crate) mod threads;
pub(crate) mod timer_wheel;
pub(crate) mod user_calls;

use std::cell::{Cell as StdCell, RefCell, UnsafeCell};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use crate::load::accounts::Accounts;
use crate::memory::cell::Cell;
use crate::memory::record::Record;
use crate::memory::segment::{Pool, Segment};
use crate::memory::slab::CellAllocator;
use crate::observe::observer::ObservedHandler;
use crate::observe::stats::Ledger;
use crate::sync::asymmetric_fence;
use crate::sync::worker_requests::Signal;
use crate::worker::after_takeover::HandoffState;
use crate::worker::core::Core;
use crate::worker::inbox::WorkerShared;
use crate::worker::message_queue::{Cursor, Log};
use crate::worker::nested::{NEST_MAX, Newborns};
use crate::worker::ownership::Ownership;
use crate::worker::route::Route;
use crate::worker::run_by_askers::Lending;
use crate::worker::system_core::SystemCore;

thread_local! {
    static CURRENT: StdCell<*const Worker> = const { StdCell::new(ptr::null()) };
}

/// Returns the worker that this thread runs, if any.
#[inline(always)]
pub(crate) fn current<'a>() -> Option<&'a Worker> {
    let worker = CURRENT.get();
    // SAFETY: CURRENT is set only while the worker it points to is kept alive by `Worker::enter`'s caller, on this
    // thread; the reference is used within calls made by that caller.
    unsafe { worker.as_ref() }
}

/// Returns whether this thread delivers one message at a time (`deliveries.rs`). Each wake-up is then a message of its
/// own, which names its sender.
pub(crate) fn runs_single_deliveries() -> bool {
    current().is_some_and(|worker| worker.single.get())
}

/// Stops the logs of the worker that this thread runs, if any.
pub(crate) fn stop_logs() {
    if let Some(worker) = current() {
        worker.stop_logs();
    }
}

/// Returns the system that this thread works for, if it is a worker.
pub(crate) fn current_system() -> Option<Arc<SystemCore>> {
    current().map(|worker| Arc::clone(&worker.system))
}

/// One worker as seen by the thread that runs it.
///
/// Owned by that thread; fields that other threads touch are marked. INVARIANT: `logs.len()` is the largest number of
/// workers, and `route` holds only indices below it. `route` has `stages` entries.
///
/// The fields lie in the order in which they are declared. The order that the compiler chose made the benchmark
/// `pingpong` 8 % slower with the same instructions: it changes with each field that is added.
#[repr(C, align(128))]
pub(crate) struct Worker {
    // -- the message path: written for each message or gulp by the owner --------------------------------------------
    /// Claims, phase and signal: shared with the monitor.
    pub(crate) ownership: Ownership<Record>,
    /// The cursor: see `message_queue.rs`. In USER, `run_at` lags behind; the claim tells the true position.
    pub(crate) run_segment: StdCell<*mut Segment>,
    pub(crate) run_at: StdCell<*mut u8>,
    pub(crate) run_end: StdCell<*mut u8>,
    /// The last segment of the queued system mail and of the queued urgent mail; null if none is queued.
    pub(crate) lane_last: [StdCell<*mut Segment>; 2],
    /// Gulps so far, for the monitor to see progress.
    pub(crate) beat: AtomicU64,
    /// A log of another worker was opened.
    pub(crate) dirty: StdCell<bool>,
    /// The reactor has to write data of links.
    pub(crate) unwritten: StdCell<bool>,
    /// The value of `handled` when there was no data to be written.
    pub(crate) written_at: StdCell<u64>,
    /// Some stage is in `Core::parked`, or accounts are kept. Gulps then look at the stage of each record.
    pub(crate) holding: StdCell<bool>,
    /// An account for each stage of the messages that it has sent and handled. Only this thread uses it, in RUNTIME and
    /// in handlers.
    pub(crate) accounts: RefCell<Accounts>,
    /// Some stage is in `Core::parked`.
    pub(crate) parked: StdCell<bool>,
    /// The last mail that was taken in was of the system lane or the urgent lane.
    pub(crate) lanes_ran: StdCell<bool>,
    /// The time for which the worker watches its mail flag before it parks.
    pub(crate) watch_ns: StdCell<u64>,
    /// Messages handled since the counters were last written.
    pub(crate) handled: StdCell<u64>,
    pub(crate) beat_counted: StdCell<u64>,
    /// The value of `handled` at the last look at the clock.
    pub(crate) looked: StdCell<u64>,
    /// The number of messages between that look and the next one.
    pub(crate) look_messages: StdCell<u64>,
    /// The average time of a message in nanoseconds, as of the last look.
    pub(crate) average_ns: StdCell<u64>,
    /// The time of each of the next messages in nanoseconds: `average_ns`, or the estimate for the next message's kind
    /// if that is larger.
    pub(crate) next_ns: StdCell<u64>,
    /// The average size of a record in bytes, as of the last look.
    pub(crate) record_bytes: StdCell<u64>,
    /// The number of the last census request that the worker has answered.
    pub(crate) census_given: StdCell<u64>,
    pub(crate) nested: StdCell<usize>,
    /// The first `nested` entries are the cells whose handlers run nested on this stack, after the claimed record's.
    /// Written by the owner.
    pub(crate) nest: [AtomicPtr<Cell>; NEST_MAX],
    /// The time of the first look at the clock for nested calls in this gulp (nanoseconds of the system's clock), or 0
    /// before that look.
    pub(crate) nested_since_ns: StdCell<u64>,
    pub(crate) newborns: Newborns,
    /// The value of `beat` when the worker last handed mail to a watching worker.
    pub(crate) handed_over: StdCell<u64>,
    /// The value of `beat` when the worker last handed mail to a parked worker, or `u64::MAX`.
    pub(crate) woke_at: StdCell<u64>,
    /// The number of messages that the worker had handled in all at the end of its last idle time.
    pub(crate) handled_at_idle: StdCell<u64>,
    /// The cell whose deferred messages are run, or null.
    pub(crate) resuming: StdCell<*mut Cell>,
    /// A timer's task runs, and no stage is the sender of its messages.
    pub(crate) firing: StdCell<bool>,
    /// The worker delivers one message at a time: see `deliveries.rs`.
    pub(crate) single: StdCell<bool>,
    /// Children that were started nested below the start that runs.
    pub(crate) family: StdCell<u32>,
    /// The starts that might have been deferred and were run, and the actors that were spawned within them.
    pub(crate) deferred_start_counts: StdCell<(u64, u64)>,
    /// One of those starts runs.
    pub(crate) in_deferred_start: StdCell<bool>,
    /// Bytes of records in the queue, by segments.
    pub(crate) queued_bytes: StdCell<isize>,
    /// Bytes of all segments that the cursor has left behind.
    pub(crate) passed_bytes: StdCell<u64>,
    /// The next stage for `Near`.
    near_next: StdCell<usize>,
    near_left: StdCell<u32>,
    pub(crate) near_burst: StdCell<u32>,

    // -- rarely changed -----------------------------------------------------------------------------------------------
    /// The largest value of `watch_ns`.
    pub(crate) spin_ns: u64,
    pub(crate) id: u16,
    pub(crate) system_id: u16,
    pub(crate) stages: u16,
    /// Claims and entries into RUNTIME are followed by full fences. The owner changes this between two gulps, and only
    /// to true.
    full_fence: AtomicBool,
    pub(crate) shared: *const WorkerShared,
    /// The private route. Between two flushes, an entry changes only while all logs to other workers are closed, which
    /// keeps the order of messages (I2, proof in `exchange.rs`).
    pub(crate) route: UnsafeCell<Route>,
    /// The next flush updates the route and then takes the mail.
    pub(crate) stale: StdCell<bool>,
    /// The stages for children. INVARIANT: stages for actors (below `Config::stages`) that this worker runs. The stages
    /// of links and of dedicated actors are not among them.
    pub(crate) near: UnsafeCell<Vec<u16>>,
    pub(crate) logs: Box<[Log]>,
    pub(crate) opened: UnsafeCell<Vec<u16>>,
    pub(crate) pool: Pool,
    pub(crate) allocator: UnsafeCell<CellAllocator>,
    pub(crate) ledger: Arc<Ledger>,
    /// Messages that the earlier threads of this worker have handled.
    pub(crate) handled_before: u64,
    pub(crate) system: Arc<SystemCore>,

    // -- shared with the monitor under the rules of the phases --------------------------------------------------------
    /// Null if this thread has lost the worker.
    pub(crate) core: StdCell<*mut Core>,
    /// The stages of the handlers that run nested on this stack, each plus 1, or 0. The monitor reads them.
    pub(crate) nest_stages: [AtomicU32; NEST_MAX],
    /// Cursors for the loop after the present one, last first.
    pub(crate) later: UnsafeCell<Vec<Cursor>>,
    pub(crate) handoff: Mutex<HandoffState>,
    pub(crate) running: ObservedHandler,
    pub(crate) lending: Lending,
    /// The worker's thread has ended in order and touches no field any more.
    pub(crate) over: AtomicBool,
}

// SAFETY: a Worker is used by one thread, apart from the fields marked as read by the monitor, which follow the
// protocol in `monitor.rs`.
unsafe impl Send for Worker {}
// SAFETY: only the fields that the monitor reads are shared, and they follow the protocol in `monitor.rs`.
unsafe impl Sync for Worker {}

impl Worker {
    pub(crate) fn new(system: &Arc<SystemCore>, id: u16, signal: Arc<Signal>, mut core: Box<Core>) -> Worker {
        // `Mail` counts along the queue, which is new.
        core.mail.clear();
        core.checked_bytes = 0;
        // A trial compares counters of the thread that began it.
        core.trial = None;
        core.exempt = None;
        core.deferred_starts.change_threads();
        let shared = ptr::from_ref(&system.worker_table[id as usize]);
        let spin_ns = system.config.spin_ns();
        let worker = Worker {
            ownership: Ownership::new(signal),
            run_segment: StdCell::new(ptr::null_mut()),
            run_at: StdCell::new(ptr::null_mut()),
            run_end: StdCell::new(ptr::null_mut()),
            lane_last: [const { StdCell::new(ptr::null_mut()) }; 2],
            beat: AtomicU64::new(0),
            dirty: StdCell::new(false),
            unwritten: StdCell::new(false),
            written_at: StdCell::new(0),
            holding: StdCell::new(core.has_parked()),
            accounts: RefCell::default(),
            parked: StdCell::new(core.has_parked()),
            lanes_ran: StdCell::new(false),
            watch_ns: StdCell::new(spin_ns),
            handled: StdCell::new(0),
            beat_counted: StdCell::new(0),
            looked: StdCell::new(0),
            look_messages: StdCell::new(1),
            average_ns: StdCell::new(core.pace.average_ns()),
            next_ns: StdCell::new(core.pace.average_ns()),
            record_bytes: StdCell::new(crate::worker::exchange::RECORD_BYTES),
            census_given: StdCell::new(0),
            nested: StdCell::new(0),
            nest: [const { AtomicPtr::new(ptr::null_mut()) }; NEST_MAX],
            nested_since_ns: StdCell::new(0),
            newborns: Newborns::default(),
            handed_over: StdCell::new(0),
            woke_at: StdCell::new(u64::MAX),
            handled_at_idle: StdCell::new(0),
            resuming: StdCell::new(ptr::null_mut()),
            firing: StdCell::new(false),
            single: StdCell::new(false),
            family: StdCell::new(0),
            deferred_start_counts: StdCell::new((0, 0)),
            in_deferred_start: StdCell::new(false),
            queued_bytes: StdCell::new(0),
            passed_bytes: StdCell::new(0),
            near_next: StdCell::new(0),
            near_left: StdCell::new(0),
            near_burst: StdCell::new(0),
            spin_ns,
            id,
            system_id: system.id,
            stages: system.routing.route.len() as u16,
            full_fence: AtomicBool::new(!asymmetric_fence::asymmetric()),
            shared,
            route: UnsafeCell::new(system.route_for(id)),
            // The first flush takes the mail, as after every update of the route.
            stale: StdCell::new(true),
            near: UnsafeCell::new(Vec::new()),
            logs: (0..system.worker_table.len()).map(|_| Log::closed()).collect(),
            opened: UnsafeCell::new(Vec::new()),
            pool: Pool::new(),
            allocator: UnsafeCell::new(CellAllocator::new()),
            handled_before: system.worker_table[id as usize].ledgers.read().received,
            ledger: system.worker_table[id as usize].ledgers.open(),
            system: Arc::clone(system),
            core: StdCell::new(Box::into_raw(core)),
            nest_stages: [const { AtomicU32::new(0) }; NEST_MAX],
            later: UnsafeCell::new(Vec::new()),
            handoff: Mutex::new(HandoffState::default()),
            running: ObservedHandler::default(),
            lending: Lending::default(),
            over: AtomicBool::new(false),
        };
        worker.open_queue();
        worker
    }

    /// Makes this worker the current one of the thread while `f` runs.
    pub(crate) fn enter<R>(&self, f: impl FnOnce() -> R) -> R {
        struct Restore(*const Worker);
        impl Drop for Restore {
            fn drop(&mut self) {
                CURRENT.set(self.0);
            }
        }
        let run = || {
            let _restore = Restore(CURRENT.replace(self));
            f()
        };
        match &self.system.config.around {
            Some(around) => around.run(run),
            None => run(),
        }
    }

    #[inline(always)]
    pub(crate) fn shared(&self) -> &WorkerShared {
        // SAFETY: the `WorkerShared` belongs to the system, which this worker keeps alive.
        unsafe { &*self.shared }
    }

    /// # Safety
    /// In phase RUNTIME (entered successfully), and no other reference to the core is held.
    #[allow(clippy::mut_from_ref)]
    #[inline(always)]
    pub(crate) unsafe fn core(&self) -> &mut Core {
        // SAFETY: in RUNTIME, the owner alone uses the core; the pointer is null only in a detached thread, which never
        // gets into RUNTIME.
        unsafe { &mut *self.core.get() }
    }

    // -- phases -------------------------------------------------------------------------------------------------------

    /// Returns whether this thread has full fences. For the thread itself.
    #[inline(always)]
    pub(crate) fn full_fence(&self) -> bool {
        // Relaxed: the owner is the only writer.
        self.full_fence.load(Ordering::Relaxed)
    }

    /// Returns whether this thread has full fences. For the monitor, which sees all claims and phases from before the
    /// change.
    pub(crate) fn has_full_fences(&self) -> bool {
        // Acquire: pairs with the Release in `check_fence`.
        self.full_fence.load(Ordering::Acquire)
    }

    /// Changes to full fences if the kernel refuses the asymmetric one by now. In RUNTIME, between two gulps.
    pub(crate) fn check_fence(&self) {
        if !self.full_fence() && !asymmetric_fence::asymmetric() {
            // Release: pairs with the Acquire in `has_full_fences`.
            self.full_fence.store(true, Ordering::Release);
            self.ledger.fence_fallbacks.add(1);
        }
    }

    #[inline(always)]
    pub(crate) fn light_fence(&self) {
        if self.full_fence() {
            asymmetric_fence::light::<true>();
        } else {
            asymmetric_fence::light::<false>();
        }
    }

    /// Enters RUNTIME. Returns false if this thread has lost the worker and must not touch core, queue or logs.
    #[inline(always)]
    pub(crate) fn enter_runtime(&self) -> bool {
        let free = if self.full_fence() { self.ownership.enter::<true>() } else { self.ownership.enter::<false>() };
        if free || self.handoff_kept() {
            return true;
        }
        self.ownership.leave();
        false
    }

    /// Leaves RUNTIME.
    #[inline(always)]
    pub(crate) fn leave_runtime(&self) {
        self.ownership.leave();
    }

    /// Runs `f` with the core, from within a handler or from the runtime itself. Returns `None` if this thread is
    /// detached.
    pub(crate) fn with_core<R>(&self, f: impl FnOnce(&mut Core) -> R) -> Option<R> {
        let in_handler = self.ownership.is_user();
        if in_handler && !self.enter_runtime() {
            return None;
        }
        // SAFETY: in RUNTIME; `f` does not call back into the worker.
        let result = f(unsafe { self.core() });
        if in_handler {
            self.leave_runtime();
        }
        Some(result)
    }

    // -- spawning
    // -------------------------------------------------------------------------------------------------------

    /// Returns the stage for a child of an actor of this worker.
    ///
    /// Stages take turns, and thieves therefore find work to steal. The longer a burst of spawns (since the last
    /// exchange), the more of them go to the same stage in a row. Near relatives in a large family therefore stay
    /// together when stages are stolen.
    #[inline]
    pub(crate) fn near_stage(&self) -> Option<u16> {
        /// Rounds over the stages before two neighbours share one.
        const ROUNDS: u32 = 8;
        const IN_A_ROW_MAX: u32 = 64;
        // SAFETY: changed only at exchanges, by this thread.
        let near = unsafe { &*self.near.get() };
        if near.is_empty() {
            return None;
        }
        let mut next = self.near_next.get();
        let left = self.near_left.get();
        let burst = self.near_burst.get();
        self.near_burst.set(burst + 1);
        if left == 0 {
            next += 1;
            self.near_left.set((burst / (near.len() as u32 * ROUNDS)).min(IN_A_ROW_MAX - 1));
        } else {
            self.near_left.set(left - 1);
        }
        if next >= near.len() {
            next = 0;
        }
        self.near_next.set(next);
        Some(near[next])
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.shared().ledgers.close(&self.ledger);
        let core = self.core.get();
        if !core.is_null() {
            // The queue is empty, but its open segment still exists. A thread that has lost the core has freed its
            // queue.
            self.logs[usize::from(self.id)].seal().recycle_spent(None);
            // SAFETY: made by Box::into_raw in `new`, and not taken over by another thread.
            drop(unsafe { Box::from_raw(core) });
        }
    }
}

/// Notes that a handler was suspended or was resumed. The system is not idle while a handler is suspended.
pub(crate) fn note_suspended(suspended: bool) {
    if let Some(worker) = current() {
        if worker.system.config.awaits_handlers {
            // AcqRel, as for `open`: a thread that finds no suspended handler sees what the handlers did.
            worker.shared().suspended.fetch_add(if suspended { 1 } else { -1 }, Ordering::AcqRel);
        }
        if suspended {
            worker.system.open_more();
        } else {
            worker.system.open_less();
        }
    }
}
