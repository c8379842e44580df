//! Quiescence and the end of a system.

use std::fmt;
use std::io::{self, Write as _};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicIsize, AtomicUsize, Ordering, fence};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::task::Waker;
use std::thread::{self, JoinHandle, ThreadId};
use std::time::{Duration, Instant};

use crate::memory::cell::{Cell, status};
use crate::memory::raw_address::RawAddress;
use crate::memory::record::described;
use crate::memory::slab;
use crate::sync::locks::{lock, wait, wait_for};
use crate::user_code::crash::Ending;
use crate::worker;
use crate::worker::Worker;
use crate::worker::outsiders::wake;
use crate::worker::simulation::Simulation;
use crate::worker::system_core::{SLOTS, SystemCore};

/// The value that each wake-up adds to `active`, beside the 1 for the awake worker. Equal readings show that no worker
/// woke between them.
const WOKEN: u64 = 1 << 32;

/// The number of times that the cells of an ended system are swept while actors that end still start others. The actors
/// of further sweeps are killed, and their `ended` therefore does not run the hooks of the layer above.
const SWEEPS_MAX: u32 = 100;
/// The number of sweeps in all. If even the drops of killed states start others without end, the last ones stay
/// undropped.
const KILLING_SWEEPS_MAX: u32 = 2 * SWEEPS_MAX;

/// The largest number of steps of a simulated system that is shut down.
const DRAIN_STEPS_MAX: u64 = 1_000_000;

/// The number of moments of virtual time, and the time on threads, after which `run_until_idle` reports that it waits
/// for timers.
const MOMENTS: u32 = 100_000;
const WAITS: Duration = Duration::from_secs(10);

/// Counts moments of virtual time.
#[derive(Default)]
struct Moments {
    last: Duration,
    passed: u32,
}

impl Moments {
    /// Returns true once, in the moment with the number [`MOMENTS`].
    fn ends_at(&mut self, now: Duration) -> bool {
        if now == self.last || self.passed == MOMENTS {
            return false;
        }
        self.last = now;
        self.passed += 1;
        self.passed == MOMENTS
    }
}

/// Looks at a system on threads while a caller waits for it to be quiet.
struct Looks {
    /// The end of this window of [`WAITS`].
    until: Instant,
    /// The looks in this window.
    all: u32,
    /// Those that found no worker awake.
    asleep: u32,
    reported: bool,
}

impl Looks {
    fn begin(now: Instant) -> Looks {
        Looks { until: now + WAITS, all: 0, asleep: 0, reported: false }
    }

    /// Returns true once, at the end of a window in which most looks found no worker awake. A look between two messages may find none,
    /// too.
    fn waits_at(&mut self, now: Instant, is_asleep: bool) -> bool {
        self.all += 1;
        self.asleep += u32::from(is_asleep);
        if self.reported || now < self.until {
            return false;
        }
        let reported = self.asleep > self.all / 2;
        *self = Looks { reported, ..Looks::begin(now) };
        reported
    }
}

/// Reports that `run_until_idle` may wait for an event that never comes. The line is lost if stderr is closed.
#[cold]
fn report_long_wait(since: fmt::Arguments<'_>) {
    let line = format!(
        "playhouse: `run_until_idle` has waited for {since}: for timers, async handlers, or senders that are slowed. A periodic timer never ends: \
         `run_for` lets a time pass.\n"
    );
    drop(io::stderr().write_all(line.as_bytes()));
}

/// Called for each message that waited for its guard: [`SystemCore::end`].
pub type Waited<'a> = dyn FnMut(RawAddress, &'static str, &'static str) + Send + 'a;

/// Returns the moment after `time`.
fn after(time: Duration) -> Instant {
    /// Longer than any process runs; about 30 years.
    const LONG: Duration = Duration::from_secs(1 << 30);
    let now = Instant::now();
    now.checked_add(time.min(LONG)).unwrap_or(now)
}

/// A thread that waits for the system to be quiet, as long as this value lives.
struct WaitsForQuiet<'a>(&'a AtomicUsize);

impl WaitsForQuiet<'_> {
    fn begin(system: &SystemCore) -> WaitsForQuiet<'_> {
        system.quiescence.wait_for_quiet.fetch_add(1, Ordering::Relaxed);
        // Pairs with the fence in `notify_quiet`.
        fence(Ordering::SeqCst);
        WaitsForQuiet(&system.quiescence.wait_for_quiet)
    }
}

impl Drop for WaitsForQuiet<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl SystemCore {
    pub(crate) fn active_more(&self) {
        // SeqCst: either this thread sees that the monitor sleeps, or the monitor sees that a worker is awake
        // (`pause_monitor`).
        self.idle.active.fetch_add(WOKEN + 1, Ordering::SeqCst);
        if self.threads.monitor_sleeps.load(Ordering::SeqCst) {
            self.wake_monitor();
        }
    }

    #[cold]
    fn wake_monitor(&self) {
        if self.threads.monitor_sleeps.swap(false, Ordering::SeqCst) {
            drop(lock(&self.threads.monitor_nap.0));
            self.threads.monitor_nap.1.notify_all();
        }
    }

    /// Notes that a worker is no longer awake. Returns true if none is awake any more.
    pub(crate) fn active_less(&self) -> bool {
        // AcqRel: a thread that finds the system idle sees all that this worker did.
        let last = self.idle.active.fetch_sub(1, Ordering::AcqRel) % WOKEN == 1;
        if last {
            self.notify_quiet();
        }
        last
    }

    /// Returns the number of workers that are awake.
    pub(crate) fn active(&self) -> u64 {
        self.idle.active.load(Ordering::Acquire) % WOKEN
    }

    /// Notes an activity that no worker knows of: a timer, a suspended handler, a muted stage.
    pub(crate) fn open_more(&self) {
        self.open_counter().fetch_add(1, Ordering::AcqRel);
    }

    pub(crate) fn open_less(&self) {
        self.open_counter().fetch_sub(1, Ordering::AcqRel);
        // If a worker is awake, which may be the caller, then the last worker that goes to sleep calls `notify_quiet`.
        if self.active() == 0 {
            self.notify_quiet();
        }
    }

    /// Returns the counter of this thread. Each worker has its own, because workers that await many answers would
    /// otherwise wait for each other's cache lines.
    fn open_counter(&self) -> &AtomicIsize {
        match worker::current().filter(|worker| worker.system_id == self.id) {
            Some(worker) => &worker.shared().open,
            None => &self.quiescence.open,
        }
    }

    /// Returns whether all workers but the calling one sleep, and no handler is stuck: no message is being handled.
    pub fn others_sleep(&self) -> bool {
        self.active() <= 1 && self.threads.detached.load(Ordering::Acquire) == 0
    }

    fn is_quiet(&self) -> bool {
        // Each counter may be negative. Their sum is the number of open timers, suspended handlers and muted stages, if
        // no counter changed between the reads. A worker changes its counter only while it is awake or detached. The
        // count of wake-ups in `active` shows that no worker was awake between the reads, and only an awake worker
        // becomes detached. Threads outside change the system's counter, which is read before and after the others.
        // Each activity that they begin ends on a worker.
        let active = self.idle.active.load(Ordering::Acquire);
        if !active.is_multiple_of(WOKEN) || self.threads.detached.load(Ordering::Acquire) != 0 {
            return false;
        }
        let outside = self.quiescence.open.load(Ordering::Acquire);
        let inside: isize = self.worker_table.made().map(|(_, shared)| shared.open.load(Ordering::Acquire)).sum();
        outside + inside == 0
            && self.threads.detached.load(Ordering::Acquire) == 0
            && self.idle.active.load(Ordering::Acquire) == active
            && self.quiescence.open.load(Ordering::Acquire) == outside
    }

    /// Panics on a thread of this system, which would wait for itself.
    fn is_outside(&self) {
        assert!(
            worker::current().is_none_or(|w| w.system_id != self.id),
            "an actor waits for its own system, and would wait for itself"
        );
    }

    fn notify_quiet(&self) {
        // Either this thread sees the one that waits, or that one sees all earlier writes of this thread
        // (`WaitsForQuiet::begin`).
        fence(Ordering::SeqCst);
        if self.quiescence.wait_for_quiet.load(Ordering::Relaxed) > 0 && self.is_quiet() {
            drop(lock(&self.quiescence.quiet));
            self.quiescence.became_quiet.notify_all();
        }
    }

    /// Returns when no message waits or is handled, no timer runs, no handler is suspended (kumar ch. 2: quiescence);
    /// or when the system has ended.
    ///
    /// # Panics
    /// On a worker of this system, which would wait for itself.
    pub fn run_until_idle(self: &Arc<Self>) {
        if let Some(simulation) = &self.simulation {
            let mut report_limit = Moments::default();
            // A driver of several systems lets time pass with each step.
            let counts = !simulation.has_driver();
            return simulation.run(self, None, &mut || {
                if counts && report_limit.ends_at(self.now()) {
                    report_long_wait(format_args!("{MOMENTS} moments of virtual time"));
                }
                false
            });
        }
        self.is_outside();
        let _waits = WaitsForQuiet::begin(self);
        let mut looks = Looks::begin(Instant::now());
        let mut quiet = lock(&self.quiescence.quiet);
        while !self.is_quiet() && !self.has_ended() {
            // While messages are handled, the caller waits for those.
            if looks.waits_at(Instant::now(), self.active() == 0) {
                report_long_wait(format_args!("{} s", WAITS.as_secs()));
            }
            // The time-out only covers a handler that leaves a detached thread.
            quiet = wait_for(&self.quiescence.became_quiet, quiet, Duration::from_millis(20));
        }
    }

    /// Lets a time pass, with all work that is due in it in simulation. Returns early if the system ends.
    ///
    /// # Panics
    /// On a worker of this system, which would wait for itself.
    pub fn run_for(self: &Arc<Self>, time: Duration) {
        if let Some(simulation) = &self.simulation {
            return simulation.run(self, Some(time), &mut || false);
        }
        self.is_outside();
        let end = after(time);
        let mut quiet = lock(&self.quiescence.quiet);
        while let Some(left) = end.checked_duration_since(Instant::now()).filter(|_| !self.has_ended()) {
            quiet = wait_for(&self.quiescence.became_quiet, quiet, left);
        }
    }

    /// Blocks the calling thread until `done`, which is asked again after each unpark. In simulation: runs the system.
    pub fn block_until(self: &Arc<Self>, deadline: Option<Duration>, done: &mut dyn FnMut() -> bool) -> bool {
        if let Some(simulation) = &self.simulation {
            simulation.run(self, None, done);
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

    // -- the end
    // -------------------------------------------------------------------------------------------------------

    /// Returns whether handlers are suspended that a drain waits for, or may be.
    fn awaits_suspended(&self) -> bool {
        if !self.config.awaits_handlers {
            return false;
        }
        // Like in `is_quiet`: the sum is right if no worker was awake between the reads.
        let active = self.idle.active.load(Ordering::Acquire);
        let suspended: isize =
            self.worker_table.made().map(|(_, shared)| shared.suspended.load(Ordering::Acquire)).sum();
        suspended != 0 || !active.is_multiple_of(WOKEN) || self.idle.active.load(Ordering::Acquire) != active
    }

    /// Returns whether no message is queued, handled or waits behind a gate, and, with
    /// [`Config::awaits_handlers`](crate::Config::awaits_handlers), no handler is suspended.
    fn is_drained(&self) -> bool {
        // Like in `is_quiet`: no worker was awake between the reads, so no stage went on or was paused again.
        let active = self.idle.active.load(Ordering::Acquire);
        active.is_multiple_of(WOKEN)
            && self.threads.detached.load(Ordering::Acquire) == 0
            && self.quiescence.paused.load(Ordering::Acquire) == 0
            && !self.is_muted_in_other_systems()
            && !self.awaits_suspended()
            && self.idle.active.load(Ordering::Acquire) == active
    }

    /// Waits until no message is queued, handled or waits behind a gate, with
    /// [`Config::awaits_handlers`](crate::Config::awaits_handlers) also until no handler is suspended, or its workers end,
    /// at most `limit`.
    pub fn drain(self: &Arc<Self>, limit: Duration) {
        // Relaxed: see `is_draining`.
        self.shutdown.draining.store(true, Ordering::Relaxed);
        if let Some(simulation) = &self.simulation {
            // A system that never becomes idle is stopped in the middle, like on threads. Its time may stand still
            // during the drain.
            let deadline = self.now().saturating_add(limit);
            let mut steps = 0;
            simulation.run(self, None, &mut || {
                steps += 1;
                let is_ending = self.shutdown.ending.load(Ordering::Acquire);
                steps > DRAIN_STEPS_MAX || self.now() >= deadline || is_ending || self.is_drained()
            });
            return;
        }
        self.is_outside();
        let _waits = WaitsForQuiet::begin(self);
        let deadline = after(limit);
        let mut quiet = lock(&self.quiescence.quiet);
        loop {
            // No message is handled any more after the end, or by workers that end.
            if self.is_drained() || self.has_ended() || self.shutdown.ending.load(Ordering::Acquire) {
                return;
            }
            let Some(left) = deadline.checked_duration_since(Instant::now()) else { return };
            let nap = left.min(Duration::from_millis(5));
            quiet = wait_for(&self.quiescence.became_quiet, quiet, nap);
        }
    }

    /// Takes no more messages from outside, ends all workers, and ends all actors that are left. Messages that still
    /// wait become dead letters. Returns the number of actors that were left, and the number of threads that did not
    /// end within `limit` because they are in handlers that do not return. With such threads, no actor is ended, and
    /// only the messages that wait at workers whose threads have ended become dead letters.
    ///
    /// `waited` is called for each message that waited for its guard, with its receiver, the receiver's type, and the
    /// message's type.
    ///
    /// The hooks and drops of the ended actors and messages run on this thread, for as long as they take.
    pub fn end(self: &Arc<Self>, limit: Duration, waited: &mut Waited<'_>) -> (u64, usize) {
        let stuck = self.end_threads(after(limit));
        let ended = self.end_idle(stuck, waited);
        wake(self.note_ended());
        ended
    }

    /// Does the same as [`end`](SystemCore::end), and returns within `limit` and twice `grace`, whatever hooks and
    /// drops do. They run on a thread of their own. If they take longer, that thread goes on, and counts as one that
    /// did not end. A simulated system has one thread only, and takes as long as they do.
    pub fn end_in_time(
        self: &Arc<Self>,
        (limit, grace): (Duration, Duration),
        mut waited: Box<Waited<'static>>,
    ) -> (u64, usize) {
        let ends = limit.saturating_add(grace);
        let deadline = after(ends.saturating_add(grace));
        let stuck = self.end_threads(after(ends));
        let (done, finished) = channel();
        let system = Arc::clone(self);
        let rest = move || {
            let ended = system.end_idle(stuck, &mut *waited);
            // The receiver is gone if this has taken too long.
            let _ = done.send(ended);
        };
        let thread = self.run_apart(Box::new(rest));
        let in_time = finished.recv_timeout(deadline.saturating_duration_since(Instant::now())).ok();
        if let (Some(_), Some(thread)) = (in_time, thread) {
            // The thread only drops its reference to the system.
            let _ = thread.join();
        }
        let wakers = self.note_ended();
        if !wakers.is_empty() {
            self.wake_in_time(wakers, deadline);
        }
        in_time.unwrap_or((0, stuck + 1))
    }

    /// Wakes the wakers of the waiters outside, on a thread of its own. Returns at `deadline`, or earlier if all are
    /// woken.
    fn wake_in_time(&self, wakers: Vec<Waker>, deadline: Instant) {
        let (done, finished) = channel::<()>();
        let mut wakers = Some((wakers, done));
        let thread = self.run_apart(Box::new(move || wake(wakers.take().into_iter().flat_map(|(wakers, _)| wakers))));
        // The sender is dropped with the last waker.
        let _ = finished.recv_timeout(deadline.saturating_duration_since(Instant::now()));
        drop(thread);
    }

    /// Runs `rest` on a thread of its own, which is returned. In simulation, or if no thread can be started, it runs on
    /// this one.
    fn run_apart(&self, rest: Box<dyn FnMut() + Send>) -> Option<JoinHandle<()>> {
        let job = Arc::new(Mutex::new(Some(rest)));
        let run = |job: &Mutex<Option<Box<dyn FnMut() + Send>>>| {
            let taken = lock(job).take();
            taken.into_iter().for_each(|mut rest| rest());
        };
        if self.simulation.is_none() {
            let job = Arc::clone(&job);
            let name = format!("playhouse-{}-end", self.id);
            if let Ok(thread) = std::thread::Builder::new().name(name).spawn(move || run(&job)) {
                return Some(thread);
            }
        }
        run(&job);
        None
    }

    /// Ends a simulated system at once if no thread runs it and it `is_unused`, which is asked while none can begin to.
    /// Returns whether it has ended by this call, which waits for no thread.
    pub fn end_unused(self: &Arc<Self>, is_unused: impl Fn() -> bool) -> bool {
        let Some(_drive) = self.simulation.as_ref().and_then(Simulation::try_drive) else { return false };
        is_unused() && self.end_in_time((Duration::ZERO, Duration::ZERO), Box::new(|_, _, _| {})).1 == 0
    }

    /// Takes no more messages from outside and ends all workers: no message is handled any more. Returns whether their
    /// threads have ended within `limit`. Waiting messages, and all actors, are left until the [end](SystemCore::end).
    pub fn end_workers(self: &Arc<Self>, limit: Duration) -> bool {
        self.end_threads(after(limit)) == 0
    }

    /// Takes no more messages from outside and ends all workers. Returns the number of threads that have not ended by
    /// `deadline`.
    fn end_threads(self: &Arc<Self>, deadline: Instant) -> usize {
        self.close();
        self.shutdown.ending.store(true, Ordering::Release);
        for (id, shared) in self.worker_table.made() {
            shared.relieved.notify_all();
            self.rouse(id);
            shared.rouse_other_systems();
        }
        *lock(&self.threads.monitor_nap.0) = true;
        self.threads.monitor_nap.1.notify_all();
        let mut quiet = lock(&self.quiescence.quiet);
        loop {
            let alive = self.threads.alive.load(Ordering::Acquire);
            let left = deadline.saturating_duration_since(Instant::now());
            if alive == 0 || left.is_zero() {
                return alive;
            }
            quiet = wait_for(&self.quiescence.became_quiet, quiet, left);
        }
    }

    /// Ends the remaining actors and messages. `stuck` threads have not ended. Returns the number of actors that were
    /// left, and the number of threads that cannot end.
    fn end_idle(self: &Arc<Self>, stuck: usize, waited: &mut Waited<'_>) -> (u64, usize) {
        let _alone = lock(&self.shutdown.ending_rest);
        if stuck > 0 {
            self.bounce_at_ended_workers();
            return (0, stuck);
        }
        // No other thread that runs a simulated system gets a turn during this one, and none later.
        let _turn = match &self.simulation {
            None => None,
            Some(simulation) => match simulation.last_turn() {
                // The thread of an actor that ends its own system is in a handler that does not return before this
                // does.
                None => return (0, 1),
                turn => turn,
            },
        };
        // Repeated, because the monitor may start a thread for a worker it has just taken over, until the monitor
        // itself has ended.
        loop {
            // A statement of its own: the monitor needs the lock to go on.
            let threads = std::mem::take(&mut *lock(&self.threads.handles));
            if threads.is_empty() {
                break;
            }
            for thread in threads {
                let _ = thread.join();
            }
        }
        let left = self.sweep(waited);
        let slot = &SLOTS[self.id as usize];
        let mut occupant = lock(&slot.system);
        if occupant.as_ref().is_some_and(|system| Arc::ptr_eq(system, self)) {
            slot.epoch.fetch_add(1, Ordering::Release);
            *occupant = None;
        }
        (left, 0)
    }

    /// Bounces the messages that wait at workers whose threads have ended, while other threads are stuck. The actors
    /// stay as they are, because a stuck handler may spawn others beside them.
    fn bounce_at_ended_workers(&self) {
        // Acquire: pairs with the Release of the worker's thread, which touches no field of the worker any more.
        let is_over = |worker: &Arc<Worker>| worker.over.load(Ordering::Acquire);
        let ended: Vec<Arc<Worker>> =
            self.threads.posts.iter().filter_map(|post| lock(post).clone()).filter(is_over).collect();
        bounce_at(&ended);
    }

    /// Ends the remaining actors when all threads have ended. All states are dropped, and all waiting messages are
    /// bounced.
    ///
    /// The last code of an actor may start others, and so may the drop of a message. Those are ended, too, without
    /// having been started. They are not refused, because that would be a panic, perhaps in the drop of a state.
    fn sweep(self: &Arc<Self>, waited: &mut Waited<'_>) -> u64 {
        let workers: Vec<Arc<Worker>> = self.threads.posts.iter().filter_map(|post| lock(post).take()).collect();
        let Some(first) = workers.first() else { return 0 };
        /// A guard: while it lives, spawns of this thread are accepted.
        struct Sweeping<'a>(&'a Mutex<Option<ThreadId>>);
        impl Drop for Sweeping<'_> {
            fn drop(&mut self) {
                *lock(self.0) = None;
            }
        }
        *lock(&self.shutdown.sweeping) = Some(thread::current().id());
        let _sweeping = Sweeping(&self.shutdown.sweeping);
        let mut left = 0;
        for sweep in 1..=KILLING_SWEEPS_MAX {
            let ending = || if sweep > SWEEPS_MAX { Ending::Killed } else { Ending::Shutdown };
            let (spawned, stopped) = self.spawned_and_stopped();
            bounce_at(&workers);
            first.enter(|| {
                slab::sweep(self.id, spawned.wrapping_sub(stopped), |cell| {
                    // SAFETY: all threads of the system have ended, and this one has taken the workers over.
                    unsafe {
                        // A stub does not count.
                        left += u64::from(!cell.as_ref().has_status(status::AWAY));
                        guarded(cell, waited);
                    }
                    let _ending = self.threads.stuck.while_ending(cell);
                    first.call_user(|| first.end(cell, ending()));
                });
            });
            bounce_at(&workers);
            // If others were started during the sweep, they were perhaps counted instead of those that were to be
            // ended.
            if self.spawned_and_stopped().0 == spawned {
                break;
            }
        }
        left
    }

    /// Returns the numbers of actors that were ever spawned, and that have ended. Exact when all threads have ended.
    fn spawned_and_stopped(&self) -> (u64, u64) {
        let inside = self.worker_table.made().map(|(_, shared)| shared.ledgers.read());
        let (spawned, stopped) = inside
            .fold((0, 0), |(spawned, stopped), counters| (spawned + counters.spawned, stopped + counters.stopped));
        (spawned + self.outside.spawned.load(Ordering::Relaxed), stopped)
    }

    /// Waits for a tick, or for longer while no work is under way. The wait is at first five ticks, and lasts until a
    /// worker wakes after `quiet` looks without work. Called by the monitor. Returns the number of looks without work.
    pub(crate) fn pause_monitor(&self, tick: Duration, nothing_stuck: bool, quiet: u32) -> u32 {
        /// A thread that wakes a worker then wakes the monitor as well, which takes some microseconds. The long wait
        /// therefore begins after a fifth of a second.
        const LOOKS: u32 = 20;
        let (ended, wake) = &self.threads.monitor_nap;
        if !nothing_stuck || self.active() > 0 {
            self.sleep_monitor(tick, tick);
            return 0;
        }
        if quiet < LOOKS || self.is_muted_in_other_systems() {
            self.sleep_monitor(tick * 5, tick);
            return quiet + 1;
        }
        let mut guard = lock(ended);
        // SeqCst, with the look at the workers behind it: see `active_more`.
        self.threads.monitor_sleeps.store(true, Ordering::SeqCst);
        let is_quiet = || self.idle.active.load(Ordering::SeqCst).is_multiple_of(WOKEN);
        while !*guard && self.threads.monitor_sleeps.load(Ordering::SeqCst) && is_quiet() {
            guard = wait(wake, guard);
        }
        self.threads.monitor_sleeps.store(false, Ordering::SeqCst);
        0
    }

    fn sleep_monitor(&self, nap: Duration, tick: Duration) {
        let (ended, wake) = &self.threads.monitor_nap;
        let guard = lock(ended);
        if *guard {
            drop(guard);
            std::thread::sleep(tick);
        } else {
            drop(wait_for(wake, guard, nap));
        }
    }
}

/// Bounces all messages that wait at `workers`, until none does, because drops may send to any of them. The threads of
/// all have ended.
fn bounce_at(workers: &[Arc<Worker>]) {
    let bounce = |worker: &Arc<Worker>| worker.enter(|| worker.bounce_everything());
    while workers.iter().fold(false, |any, worker| any | bounce(worker)) {}
}

/// Calls `waited` for the messages that wait for their guards in `cell`.
///
/// # Safety
/// The caller runs the cell's stage.
unsafe fn guarded(cell: NonNull<Cell>, waited: &mut Waited<'_>) {
    // SAFETY: cells are never freed; the caller runs the cell's stage, and the reference to the cold part is short.
    unsafe {
        if !cell.as_ref().is_ready() || !cell.as_ref().has_status(status::GUARDED) {
            return;
        }
        if let Some(cold) = Cell::cold(cell) {
            cold.deferred.for_each(|record| {
                let about = described(record);
                waited(RawAddress::of(cell), about.actor, about.name);
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // GUARANTEE: Passing time
    #[test]
    fn a_long_wait_is_reported_once_and_never_while_workers_are_mostly_awake() {
        let begun = Instant::now();
        let second = |number: u64| begun + Duration::from_secs(number);
        let mut busy = Looks::begin(begun);
        // The look at the end of the window finds no worker awake.
        assert!((1..100).all(|number| !busy.waits_at(second(number), number % 10 == 0)));
        let mut idle = Looks::begin(begun);
        let reports: Vec<_> = (1..100).filter(|number| idle.waits_at(second(*number), true)).collect();
        assert_eq!(reports, [WAITS.as_secs()]);
    }
}
