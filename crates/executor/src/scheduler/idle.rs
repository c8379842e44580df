//! Workers without work: they watch, steal and park.
//!
//! # No lost wake-up (I3): the argument
//!
//! 1. Mail is put into an inbox under its lock, and the presence is set to awake under the same lock. The presence is
//!    lowered under that lock only: to idle if the inbox is empty, and from idle (the inbox is then still empty) to
//!    parked.
//! 2. If mail comes after the presence was lowered to idle, the worker cannot get from idle to parked. If mail comes
//!    after the presence was lowered to parked, its sender finds "parked" and unparks the thread, which checks the
//!    presence before it parks again.
//! 3. The mail flag is only a hint: it is raised after the lock was given back. A worker that sleeps does not need it.
//!    A worker that watches sees it a moment later. A worker that is about to become idle finds the mail under the
//!    lock.
//! 4. A worker is counted as active until it parks. The thread that makes it awake counts it again, under the lock.
//!    While mail is in any inbox, its worker is therefore counted (`SystemCore::is_quiet`).
//! 6. While a worker is idle or parked, other workers may adopt its stages (`exchange.rs`). It updates its route before
//!    it does anything else.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::policy::decisions::Idle;
use crate::policy::idle_share::IdleShare;
use crate::scheduler::poll;
use crate::sync::jitter::seam;
use crate::worker::Worker;
use crate::worker::inbox::Presence;
use crate::worker::reactor::Reactor;

/// The number of glances of an idle worker at its mail flag before any other step.
const GLANCES: u32 = 64;
/// The number of pauses with another glance after those. An answer of another worker takes about 0.25 µs. A worker
/// needs as long to enter the set of idle workers and to leave it, because both write a cache line that the other
/// worker reads.
const PAUSES: u32 = 16;
/// The least time for which a worker watches that flag before it parks; the largest is
/// [`Config::spin`](crate::Config::spin). In between, the time follows the latest results. It doubles after mail came
/// in time (or would have come), and halves after mail did not, because others may need the core.
const WATCH_NS_MIN: u64 = 2_500;

impl Worker {
    /// Steals, watches and parks, because the worker has no work. Returns false if the system has ended. In RUNTIME.
    pub(crate) fn wait_for_work(&self) -> bool {
        self.publish_empty();
        if self.dirty.get() || self.advance() {
            // Messages were sent after the last flush, by `write_out`.
            return true;
        }
        self.system.wake_called(usize::MAX);
        let shared = self.shared();
        self.weigh();
        if !self.lower() {
            return true;
        }
        if self.system.shutdown.ending.load(Ordering::Acquire) {
            self.sleep();
            return false;
        }
        // SAFETY: in RUNTIME; short borrow.
        let (due, holding) = unsafe {
            let core = self.core();
            core.checked_ns = 0;
            core.loaded_since_ns = None;
            (core.wheel.next_ns(), core.has_parked())
        };
        // First without looking at a clock or at other workers: an answer to the latest messages may arrive soon.
        let called = (0..GLANCES).any(|_| self.is_called())
            || (0..PAUSES).any(|_| {
                std::hint::spin_loop();
                self.is_called()
            });
        if !called {
            let idle_ns = self.note_idle(true);
            self.system.idle.workers.insert(self.id, Idle::Watching);
            self.look_for_work();
            if let Some(reactor) = self.begin_to_poll() {
                self.poll(reactor, due, holding);
                self.end_to_poll();
            } else {
                // With parked stages it matters whether others sleep too: see `sleep`.
                let called = !holding && self.watch(due, || false);
                if !called {
                    self.park(due);
                }
                if self.lending.is_lost() {
                    return false;
                }
            }
            let now_ns = self.note_idle(false);
            self.note_idle_time(now_ns - idle_ns);
        }
        seam(1_000);
        if !called {
            self.system.idle.workers.remove(self.id, Idle::Watching);
            self.begin_to_learn();
        }
        if shared.mail.is_up() {
            self.take_mail();
        } else {
            self.raise();
        }
        // A worker that has found no stages for this one may have put it back by now. It does so under the inbox lock.
        self.system.idle.workers.remove(self.id, Idle::Watching);
        // Other workers may have adopted its stages while it was idle: it sends no message before its route is updated.
        self.flush();
        self.handled_at_idle.set(self.handled_in_all());
        // SAFETY: in RUNTIME; short borrow.
        if !unsafe { self.core() }.wheel.is_empty() {
            self.fire_timers(self.system.now_ns());
        }
        true
    }

    /// Hands over all messages, and shows other threads that this worker has run everything.
    pub(crate) fn publish_empty(&self) {
        self.write_out();
        self.publish();
        let shown = &self.shared().shown;
        shown.surplus.store(0, Ordering::Relaxed);
        shown.average_ns.store(0, Ordering::Relaxed);
    }

    /// Goes from awake to idle, unless there is mail, or tasks of cancelled timers are to be dropped. The next turn
    /// sees to those.
    pub(crate) fn lower(&self) -> bool {
        // SAFETY: in RUNTIME; short borrow.
        let (adoptable, starts_wait, drops_wait) = unsafe {
            (!self.core().has_parked(), !self.core().deferred_starts.is_empty(), !self.core().cancelled.is_empty())
        };
        debug_assert!(
            !starts_wait,
            "an idle worker has deferred starts: with an empty queue, the exchange lets them go on"
        );
        if starts_wait || drops_wait {
            return false;
        }
        debug_assert!(!self.dirty.get(), "an idle worker has messages for others in its logs");
        let mut inbox = self.shared().lock();
        if inbox.has_mail() {
            // Its sender may not have raised the flag yet.
            self.shared().mail.raise(inbox.first_segment());
            return false;
        }
        // The signal too: a thread that rouses a worker raises it under this lock, whether the worker is awake or not.
        if self.ownership.signal.get() != 0 {
            return false;
        }
        inbox.presence = Presence::Idle;
        inbox.queued_bytes = 0;
        inbox.adoptable = adoptable;
        true
    }

    /// Goes from idle to parked, unless mail has come, or all others sleep too and a muted stage of this worker goes
    /// on.
    pub(crate) fn sleep(&self) -> bool {
        self.sleep_or_poll(false)
    }

    fn sleep_or_poll(&self, polls: bool) -> bool {
        {
            let mut inbox = self.shared().lock();
            if inbox.presence != Presence::Idle || self.ownership.signal.get() != 0 {
                return false;
            }
            inbox.presence = Presence::Parked;
            inbox.polls = polls;
            // Both changes are under the inbox lock. A thread that wakes this worker removes it from the set under the
            // same lock.
            self.system.idle.workers.remove(self.id, Idle::Watching);
            self.system.idle.workers.insert(self.id, Idle::Parked);
        }
        let last = self.system.active_less();
        !(last && self.break_deadlock())
    }

    /// Goes back to awake, unless another thread has set that.
    pub(crate) fn raise(&self) {
        let mut inbox = self.shared().lock();
        if std::mem::replace(&mut inbox.presence, Presence::Awake) == Presence::Parked {
            self.system.idle.workers.remove(self.id, Idle::Parked);
            self.system.active_more();
        }
        self.note_departures(&inbox);
    }

    /// Begins new measurements after an idle time. The work may be of another kind, and the worker therefore reads the
    /// clock soon.
    pub(crate) fn begin_to_learn(&self) {
        self.looked.set(self.handled.get());
        self.look_messages.set(2);
        // SAFETY: in RUNTIME; short borrow.
        unsafe { self.core() }.checked_ns = self.system.now_ns();
    }

    fn is_called(&self) -> bool {
        self.shared().mail.is_up()
            || self.ownership.signal.get() != 0
            || self.system.shutdown.ending.load(Ordering::Relaxed)
    }

    /// Watches and parks in the reactor instead, and dispatches the events that it finds.
    fn poll(&self, reactor: &dyn Reactor, due: Option<u64>, holding: bool) {
        let mut found = false;
        let called = !holding
            && self.watch(due, || {
                found = poll::found(reactor, Some(Duration::ZERO));
                found
            });
        if !called && self.sleep_or_poll(true) {
            self.system.idle.parked.fetch_add(1, Ordering::Relaxed);
            let now = self.system.now_ns();
            let timeout = due.map(|due| Duration::from_nanos(due.saturating_sub(now)));
            found = poll::found(reactor, timeout);
            self.system.idle.parked.fetch_sub(1, Ordering::Relaxed);
            self.note_parked(self.system.now_ns() - now);
        }
        if found {
            self.raise();
            self.dispatch(reactor);
        }
    }

    /// Watches the mail flag for a while, and asks `also` now and then. Returns true if mail has come, a timer is due,
    /// or `also` returned true.
    fn watch(&self, due: Option<u64>, mut also: impl FnMut() -> bool) -> bool {
        let start = self.system.now_ns();
        let max_ns = self.spin_ns;
        // While more workers run than there are cores, a watching worker takes a core from another worker.
        let watch_ns = if self.runs_beyond_cores() { 0 } else { self.watch_ns.get() };
        loop {
            for _ in 0..64 {
                if self.is_called() {
                    self.watch_ns.set((watch_ns * 2).min(max_ns));
                    return true;
                }
                std::hint::spin_loop();
            }
            if also() {
                self.watch_ns.set((watch_ns * 2).min(max_ns));
                return true;
            }
            let now = self.system.now_ns();
            if due.is_some_and(|due| due <= now) {
                return true;
            }
            if now - start > watch_ns {
                self.watch_ns.set((self.watch_ns.get() / 2).max(WATCH_NS_MIN.min(max_ns)));
                return false;
            }
        }
    }

    fn note_parked(&self, parked_ns: u64) {
        self.ledger.parks.add(1);
        self.ledger.parked_ns.add(parked_ns);
        if parked_ns < self.spin_ns {
            self.watch_ns.set((self.watch_ns.get() * 4).min(self.spin_ns));
        }
    }

    fn park(&self, mut due: Option<u64>) {
        self.lending.due_ns.set(due);
        if !self.sleep() {
            return;
        }
        self.system.idle.parked.fetch_add(1, Ordering::Relaxed);
        let start = self.system.now_ns();
        while !self.lending.is_lost() {
            let left = due.map(|due| due.saturating_sub(self.system.now_ns()));
            match left {
                Some(0) => {}
                Some(left) => std::thread::park_timeout(Duration::from_nanos(left)),
                None => std::thread::park(),
            }
            let is_due = left == Some(0);
            let mut inbox = self.shared().lock();
            // If the monitor has taken the worker from its borrower, the inbox belongs to another worker.
            let is_own = Arc::ptr_eq(&inbox.signal, &self.ownership.signal);
            if !is_own || inbox.loan.sleeps_on(is_due) {
                // The thread that runs the worker returns it if a timer is due.
                due = due.filter(|_| !is_due);
            } else if is_due || inbox.presence == Presence::Awake || self.is_called() {
                // Under the same lock: from this point on, no thread borrows the worker.
                if std::mem::replace(&mut inbox.presence, Presence::Awake) == Presence::Parked {
                    self.system.idle.workers.remove(self.id, Idle::Parked);
                    self.system.active_more();
                }
                break;
            }
        }
        self.system.idle.parked.fetch_sub(1, Ordering::Relaxed);
        if !self.lending.is_lost() {
            self.note_parked(self.system.now_ns() - start);
        }
    }
}

impl Worker {
    /// Notes that this worker becomes idle, or busy. Returns the time.
    pub(crate) fn note_idle(&self, is_idle: bool) -> u64 {
        let now_ns = self.system.now_ns();
        let share = &self.shared().shown.idle_share;
        share.store(IdleShare(share.load(Ordering::Relaxed)).changed(now_ns, is_idle).0, Ordering::Relaxed);
        now_ns
    }

    /// Returns the idle share of a worker at this time.
    pub(crate) fn idle_share_of(&self, worker: u16, now_ns: u64) -> f64 {
        IdleShare(self.system.worker_table[usize::from(worker)].shown.idle_share.load(Ordering::Relaxed)).at(now_ns)
    }
}
