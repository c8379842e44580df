//! Hand-overs to a worker, from threads that are no workers and of records outside the logs; and the wake-up of the
//! worker.

use std::cell::Cell;
use std::ptr::NonNull;
use std::sync::MutexGuard;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::load::bounds::Load;
use crate::memory::raw_address::Lane;
use crate::memory::record::Record;
use crate::policy::decisions::Idle;
use crate::sync::jitter::seam;
use crate::sync::locks::wait_for;
use crate::sync::worker_requests::Signal;
use crate::worker::core::Reason;
use crate::worker::inbox::{Inbox, Presence, WorkerShared};
use crate::worker::run_by_askers::{self, Wakes};
use crate::worker::system_core::SystemCore;

thread_local! {
    /// This thread waits for no overloaded worker.
    static NEVER_WAITS: Cell<bool> = const { Cell::new(false) };
}

/// Calls `f`, whose messages are sent without a wait. Used by the monitor, because the receiver's worker may be one
/// that it has to take over.
pub(crate) fn without_waiting<R>(f: impl FnOnce() -> R) -> R {
    struct Restore(bool);
    impl Drop for Restore {
        fn drop(&mut self) {
            NEVER_WAITS.set(self.0);
        }
    }
    let _restore = Restore(NEVER_WAITS.replace(true));
    f()
}

/// The thread that wakes a sleeping worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WokenBy {
    /// The sender wakes the worker's thread.
    Sender,
    /// The sender only marks the worker as called, and another worker wakes its thread.
    Others,
    /// The sender borrows the worker, if it may (`run_by_askers.rs`).
    Asker,
}

impl WokenBy {
    pub(crate) fn asker_if(asks: bool) -> WokenBy {
        if asks { WokenBy::Asker } else { WokenBy::Sender }
    }
}

impl SystemCore {
    /// Notes that mail was put into the inbox: raises the flag and wakes the worker if it is idle.
    pub(crate) fn arrived(&self, shared: &WorkerShared, inbox: MutexGuard<'_, Inbox>, worker: u16) {
        self.arrived_for(shared, inbox, worker, WokenBy::Sender);
    }

    /// Does the same as [`arrived`](SystemCore::arrived); `by` wakes a sleeping worker.
    pub(crate) fn arrived_for(
        &self,
        shared: &WorkerShared,
        mut inbox: MutexGuard<'_, Inbox>,
        worker: u16,
        by: WokenBy,
    ) {
        let bytes = inbox.sent_bytes() + u64::from(inbox.queued_bytes);
        let loads = shared.loads(bytes, shared.average_ns.load(Ordering::Relaxed));
        if loads.pressed == Load::High {
            shared.press();
            if loads.overloaded == Load::High {
                shared.overloaded.store(true, Ordering::SeqCst);
            }
        }
        self.call(worker, &mut inbox, by);
        let first = inbox.first_segment();
        drop(inbox);
        seam(1_000);
        // After the lock was given back, because the unlock would wait for this store to end.
        shared.mail.raise(first);
    }

    /// Makes the worker of `inbox` awake.
    fn call(&self, worker: u16, inbox: &mut Inbox, by: WokenBy) {
        let asks = by == WokenBy::Asker && inbox.presence == Presence::Parked && inbox.adoptable && !inbox.polls;
        let borrower = if asks { self.borrower(worker) } else { None };
        let wakes = inbox.loan.wakes(&mut inbox.presence, borrower.is_some());
        if wakes == Wakes::Nobody {
            if by == WokenBy::Asker && inbox.loan.is_lent() {
                run_by_askers::note_runs_on_other_thread();
            }
            return;
        }
        self.idle.workers.remove(worker, Idle::Parked);
        self.active_more();
        if inbox.polls {
            self.poller.reactor.get().expect("a polling worker has a reactor").wake();
        } else if let Some(borrower) = borrower {
            borrower.borrows();
        } else if let Some(thread) = &inbox.thread
            && !(by == WokenBy::Others && self.idle.workers.call(worker))
        {
            thread.unpark();
        }
    }

    /// Locks the inbox of the worker that runs `stage`, and calls `f` with it.
    fn with_inbox_of<R>(&self, stage: u16, f: impl FnOnce(&WorkerShared, MutexGuard<'_, Inbox>, u16) -> R) -> R {
        loop {
            // Acquire: pairs with the Release of the worker that moved the stage.
            let worker = self.routing.route[stage as usize].load(Ordering::Acquire);
            let shared = &self.worker_table[worker as usize];
            let inbox = shared.lock();
            if self.routing.route[stage as usize].load(Ordering::Acquire) == worker {
                return f(shared, inbox, worker);
            }
        }
    }

    /// Moves the record to the inbox of its stage's worker. Returns false if the system takes no messages; the record
    /// was then not moved.
    pub(crate) fn post(&self, stage: u16, lane: Lane, record: NonNull<Record>, size: usize, asks: bool) -> bool {
        self.with_inbox_of(stage, |shared, inbox, worker| {
            if self.shutdown.closed.load(Ordering::Acquire) {
                return false;
            }
            // SAFETY: a whole record that the caller gives up.
            unsafe { self.put((shared, inbox, worker), lane, record, size, WokenBy::asker_if(asks)) };
            true
        })
    }

    /// Moves the record to the inbox of its stage's worker, even if the system takes no messages any more. The thread
    /// that ends the system then bounces it. This function runs no user code.
    ///
    /// # Safety
    /// A whole record whose payload the caller gives up, in a thread of this system that has not ended.
    pub(crate) unsafe fn post_anyway(&self, lane: Lane, record: NonNull<Record>) {
        // SAFETY: the record is whole, and the caller has given its payload up.
        unsafe {
            let (stage, size) = (record.as_ref().stage(), record.as_ref().bytes());
            if !record.as_ref().is_buried() {
                self.with_inbox_of(stage, |shared, inbox, worker| {
                    self.put((shared, inbox, worker), lane, record, size, WokenBy::Sender);
                });
            }
        }
    }

    /// Puts the record into the inbox of `worker`.
    ///
    /// # Safety
    /// The record is whole, and the caller gives its payload up.
    unsafe fn put(
        &self,
        (shared, mut inbox, worker): (&WorkerShared, MutexGuard<'_, Inbox>, u16),
        lane: Lane,
        mut record: NonNull<Record>,
        size: usize,
        by: WokenBy,
    ) {
        // SAFETY: the record is whole, and the caller has given its payload up.
        unsafe {
            record.as_mut().set_lane(lane);
            inbox.put(lane, record, size);
        }
        if lane != Lane::Normal {
            inbox.signal.raise(Signal::LANES);
        }
        self.arrived_for(shared, inbox, worker, by);
    }

    /// Returns the pressed worker that gets the messages to `stage` of `worker`: that worker, or the one that the stage
    /// forwards its load to.
    pub(crate) fn pressed_by(&self, worker: u16, stage: u16) -> Option<u16> {
        self.more_pressed(self.worker_table[worker as usize].is_pressed().then_some(worker), self.passes_on_to(stage))
    }

    /// Returns the one of two pressed workers with the larger backlog. A worker that is a little pressed would
    /// otherwise admit more than the worker that it passes messages on to can do.
    pub(crate) fn more_pressed(&self, first: Option<u16>, next: Option<u16>) -> Option<u16> {
        let (Some(first), Some(next)) = (first, next) else { return first.or(next) };
        let excess = |worker: u16| self.worker_table[usize::from(worker)].excess();
        Some(if excess(next) > excess(first) { next } else { first })
    }

    /// Returns the overloaded worker to which `stage` passes messages on.
    pub(crate) fn passes_on_to(&self, stage: u16) -> Option<u16> {
        let is_overloaded = |worker: u16| self.worker_table[worker as usize].overloaded.load(Ordering::SeqCst);
        self.routing.relays.passes_on_to(stage, is_overloaded)
    }

    /// Slows down a thread that is not a worker: waits while the worker that gets its messages is pressed, or while
    /// `stage` is full. Returns for 1 message when that worker admits it ([`crate::load::source_admission`]).
    pub(crate) fn wait_while_overloaded(&self, stage: u16, bytes: u64) {
        self.wait_while_overloaded_for(stage, bytes, None);
    }

    /// Does the same as [`wait_while_overloaded`](SystemCore::wait_while_overloaded), for up to `limit`.
    pub(crate) fn wait_while_overloaded_for(&self, stage: u16, bytes: u64, limit: Option<Duration>) {
        if NEVER_WAITS.get() || self.simulation.is_some() || stage as usize >= self.routing.route.len() {
            return;
        }
        let start = self.now();
        while !self.shutdown.closed.load(Ordering::Relaxed) && limit.is_none_or(|limit| self.now() - start < limit) {
            let worker = self.routing.route[stage as usize].load(Ordering::Acquire);
            let full = || self.routing.full[stage as usize].is_full();
            let slows = if full() { Some(worker) } else { self.pressed_by(worker, stage) };
            let Some(slows) = slows else { return };
            let shared = &self.worker_table[slows as usize];
            let inbox = shared.lock();
            if full() {
                if slows != worker {
                    continue;
                }
            } else if !shared.is_pressed() || shared.admits(bytes) {
                return;
            }
            self.routing.sources.note(self.now_ns());
            let _waiting = shared.standing.note_waiting();
            // The wait is bounded, because the stage may move to another worker.
            drop(wait_for(&shared.relieved, inbox, Duration::from_millis(10)));
        }
    }

    /// Notes that a source is slowed down for `worker`.
    pub(crate) fn note_source(&self, worker: u16) {
        self.worker_table[usize::from(worker)].standing.note_source();
        self.routing.sources.note(self.now_ns());
    }

    /// Returns whether messages to `stage` pile up. The caller slows down a sender if they do.
    pub fn is_stage_overloaded(&self, stage: u16) -> bool {
        let Some(worker) = self.routing.route.get(stage as usize) else { return false };
        if self.routing.full[stage as usize].is_full() {
            return true;
        }
        let pressed = self.pressed_by(worker.load(Ordering::Relaxed), stage);
        if let Some(pressed) = pressed {
            // The sender may be a source, like one that is muted. Its backlog is no standing one.
            self.note_source(pressed);
        }
        pressed.is_some()
    }

    /// Returns whether messages of `bytes` bytes to `stage` may be sent now, by a sender that waits by other means or
    /// does not wait. They may if no messages pile up, or if the worker admits these as it admits sources
    /// (`load::source_admission`).
    pub fn admits(&self, stage: u16, bytes: u64) -> bool {
        let Some(worker) = self.routing.route.get(stage as usize) else { return true };
        if self.routing.full[stage as usize].is_full() {
            return false;
        }
        let Some(pressed) = self.pressed_by(worker.load(Ordering::Relaxed), stage) else { return true };
        let shared = &self.worker_table[usize::from(pressed)];
        let admits = shared.admits(bytes);
        if !admits {
            // The sender may be a source, like one that is muted. Its backlog is no standing one.
            self.note_source(pressed);
        }
        admits
    }

    /// Notes a message to `stage` from a sender that has no account and does not wait: it may be a source.
    pub(crate) fn note_unslowed(&self, stage: u16) {
        let Some(worker) = self.routing.route.get(stage as usize) else { return };
        if let Some(pressed) = self.pressed_by(worker.load(Ordering::Relaxed), stage) {
            self.worker_table[usize::from(pressed)].standing.note_source();
        }
    }

    /// Returns whether messages to `stage` pile up only because it waits for a gate, or because stages of its worker
    /// are muted. Those may wait for these very messages.
    pub fn is_stage_held_up(&self, stage: u16) -> bool {
        let Some(worker) = self.routing.route.get(stage as usize) else { return false };
        let worker = worker.load(Ordering::Relaxed);
        let shared = &self.worker_table[self.pressed_by(worker, stage).unwrap_or(worker) as usize];
        // Relaxed: the caller decides how long to wait, and asks again.
        let backpressure = &self.routing.full[stage as usize];
        (backpressure.is_full() || shared.held_up.load(Ordering::Relaxed)) && !backpressure.is_stuck()
    }

    /// Returns whether messages to `stage` pile up because it waits for a gate to open.
    pub fn is_stage_paused(&self, stage: u16) -> bool {
        self.routing
            .full
            .get(stage as usize)
            .is_some_and(|backpressure| backpressure.is_full() && !backpressure.is_stuck())
    }

    /// Wakes worker `other` for an exchange.
    pub(crate) fn rouse(&self, other: u16) {
        self.call_with(other, Signal::TICK);
    }

    /// Raises `bits` for worker `other`, and wakes it if it sleeps.
    pub(crate) fn call_with(&self, other: u16, bits: u32) {
        let mut inbox = self.worker_table[other as usize].lock();
        // A dedicated worker that was never started has no thread, and none would lower its presence again.
        if inbox.thread.is_some() || self.simulation.is_some() {
            inbox.signal.raise(bits);
            self.call(other, &mut inbox, WokenBy::Sender);
        }
    }

    /// Wakes up to `at_most` called workers ([`crate::policy::idle_set`]).
    pub(crate) fn wake_called(&self, at_most: usize) {
        for _ in 0..at_most {
            let Some(worker) = self.idle.workers.take_called() else { return };
            let thread = self.worker_table[usize::from(worker)].lock().thread.clone();
            if let Some(thread) = thread {
                thread.unpark();
            }
        }
    }

    /// Returns whether the stage has a thread of its own, and may therefore not change its worker.
    pub(crate) fn is_pinned(&self, stage: u16) -> bool {
        stage as usize >= self.config.stages + self.config.links
    }

    /// Returns a stage to its worker, because the reason why it was parked is gone: the stuck handler of a detached
    /// thread has returned, or a gate is open.
    pub(crate) fn return_stage(&self, stage: u16, reason: Reason) {
        self.with_inbox_of(stage, |shared, mut inbox, worker| {
            inbox.returned.push((stage, reason));
            self.arrived(shared, inbox, worker);
        });
    }
}
