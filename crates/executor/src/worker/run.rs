//! The run loop over the queue, and the steps that follow a message.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::NonNull;
use std::sync::atomic::Ordering;

use crate::memory::cell::{Cell, status};
use crate::memory::prefetch::prefetch;
use crate::memory::raw_address::RawAddress;
use crate::memory::record::{Op, Outcome, Record, Undelivered};
use crate::message::dead_letters::bounce_or_forward;
use crate::sync::jitter::seam;
use crate::user_code::crash::{Crash, Ending, Payload};
use crate::worker::core::Core;
use crate::worker::frozen::may_pass;
use crate::worker::message_queue::Cursor;
use crate::worker::nested::NEST_MAX;
use crate::worker::{Worker, current, note_suspended};

/// The reason why a gulp ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GulpEnd {
    /// The bound of messages is reached, or the queue is empty.
    Bound,
    /// The signal is raised.
    Signal,
    /// This thread has lost the worker: see `monitor.rs`.
    Detached,
}

/// Runs ahead of the loop and fetches into the cache the cells that will be needed soon. With many actors each message
/// meets a cold cell, and the loop alone would wait for one after the other.
#[derive(Clone, Copy)]
struct Prefetcher {
    at: *mut u8,
}

impl Prefetcher {
    /// The number of records by which the prefetcher is ahead.
    const LEAD: usize = 6;
    const WORTH_BYTES: usize = 512;

    /// Creates a prefetcher for the records of `[at, end)`. It is off for a few records, because it costs 0.6 ns per
    /// message.
    #[inline(always)]
    fn from(at: *mut u8, end: *mut u8) -> Prefetcher {
        if end as usize - (at as usize) < Self::WORTH_BYTES {
            return Prefetcher { at: end };
        }
        let mut prefetcher = Prefetcher { at };
        for _ in 0..Self::LEAD {
            prefetcher.step(end);
        }
        prefetcher
    }

    #[inline(always)]
    fn step(&mut self, end: *mut u8) {
        if self.at != end {
            // SAFETY: between the loop and `end` are whole records.
            let record = unsafe { &*self.at.cast::<Record>() };
            prefetch(record.cell.as_ptr());
            self.at = self.at.wrapping_add(record.bytes());
        }
    }
}

impl Worker {
    /// Runs up to `bound` records of the queue.
    pub(crate) fn gulp(&self, bound: u64) -> GulpEnd {
        if self.system.observation.observers.looks() {
            return self.gulp_observed(bound);
        }
        self.gulp_as::<false>(bound)
    }

    /// Does the same as [`Worker::gulp`] for an observed worker.
    #[cold]
    #[inline(never)]
    fn gulp_observed(&self, bound: u64) -> GulpEnd {
        self.begin_to_show();
        // Handlers do not nest on an observed worker.
        let nested = self.nested.replace(NEST_MAX);
        let stop = self.gulp_as::<true>(bound);
        self.nested.set(nested);
        stop
    }

    #[inline(always)]
    fn gulp_as<const OBSERVED: bool>(&self, bound: u64) -> GulpEnd {
        let mut done = 0;
        loop {
            let result = catch_unwind(AssertUnwindSafe(|| match (self.full_fence(), self.holding.get()) {
                (false, false) => self.run_records::<false, false, OBSERVED>(bound, &mut done),
                (false, true) => self.run_records::<false, true, OBSERVED>(bound, &mut done),
                (true, false) => self.run_records::<true, false, OBSERVED>(bound, &mut done),
                (true, true) => self.run_records::<true, true, OBSERVED>(bound, &mut done),
            }));
            self.handled.set(self.handled.get().wrapping_add(done));
            match result {
                Ok(stop) => return stop,
                Err(panic) => {
                    done = 0;
                    self.crashed(panic);
                }
            }
        }
    }

    /// The loop of the message path. In RUNTIME at the start, and at the end unless detached.
    ///
    /// FULL: this platform has no asymmetric fence. HOLDING: records of some stage are parked. OBSERVED: see
    /// `run_observed.rs`.
    #[inline(always)]
    fn run_records<const FULL: bool, const HOLDING: bool, const OBSERVED: bool>(
        &self,
        bound: u64,
        done: &mut u64,
    ) -> GulpEnd {
        let mut left = bound;
        let (mut at, mut end) = (self.run_at.get(), self.run_end.get());
        let mut prefetcher = Prefetcher::from(at, end);
        self.ownership.begin();
        loop {
            if at == end {
                // Enters RUNTIME again, to find the next position. Most often it is behind `at`, in the records that
                // were sent during the run.
                self.run_at.set(at);
                if !self.enter_runtime() {
                    return GulpEnd::Detached;
                }
                self.beat.store(self.beat.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
                if self.dirty.get() || self.shared().mail.is_up() || !self.advance() || left == 0 {
                    return GulpEnd::Bound;
                }
                (at, end) = (self.run_at.get(), self.run_end.get());
                prefetcher = Prefetcher::from(at, end);
                self.ownership.begin();
            }
            // SAFETY: `at` is at a whole record of the queue whose payload was not consumed.
            let record = unsafe { NonNull::new_unchecked(at.cast::<Record>()) };
            if self.ownership.claim::<FULL>(record.as_ptr()) != 0 || left == 0 {
                self.run_at.set(at);
                return if self.interrupted(record) { GulpEnd::Signal } else { GulpEnd::Detached };
            }
            seam(10_000);
            left -= 1;
            *done += 1;
            // SAFETY: `at` is at a whole record of the queue whose payload was not consumed.
            let (size, cell, tag) =
                unsafe { (record.as_ref().bytes(), record.as_ref().cell, record.as_ref().resident_tag()) };
            at = at.wrapping_add(size);
            prefetcher.step(end);
            if HOLDING && self.park_record_of_stage(record) {
                *done -= 1;
                self.run_at.set(at);
                continue;
            }
            // SAFETY: this thread runs the stage of the record (I1), and the record is run once.
            let outcome = unsafe {
                if OBSERVED {
                    self.run_observed(record)
                } else if cell.as_ref().tag() == tag {
                    (record.as_ref().thunk)(record, Op::Run)
                } else {
                    self.deliver_irregular(record)
                }
            };
            seam(10_000);
            if outcome != Outcome::Continue {
                // SAFETY: this thread runs the record's stage; the head of a claimed record stays readable.
                unsafe { self.settle_record(record, outcome) };
            }
        }
    }

    /// Moves the claimed record away if its stage is parked. Otherwise pays the account of the stage. A detached thread
    /// finds that out at its next claim, and the stage of a claimed record is its own until then.
    fn park_record_of_stage(&self, record: NonNull<Record>) -> bool {
        // SAFETY: the head of a claimed record stays readable.
        let (stage, is_buried) = unsafe { (record.as_ref().stage(), record.as_ref().is_buried()) };
        if is_buried {
            return false;
        }
        let park = |core: &mut Core| {
            let is_parked = core.park_record(record, &self.pool);
            if is_parked {
                self.fill(core, stage);
            }
            is_parked
        };
        let is_parked = self.parked.get() && self.with_core(park).unwrap_or(false);
        if !is_parked {
            self.accounts.borrow_mut().pay(stage);
        }
        is_parked
    }

    /// Returns the position behind `claimed`, which is the loop's position in USER. A thread other than the owner
    /// passes the claim on which it has decided, because the owner may have claimed the next record by then.
    ///
    /// # Safety
    /// The record was claimed last, or was claimed before the present one.
    pub(crate) unsafe fn position_behind(&self, claimed: NonNull<Record>) -> Cursor {
        // SAFETY: a claimed record stays readable while it is in the segment that the cursor is in; this holds until
        // the thread enters RUNTIME.
        let at = unsafe { claimed.as_ptr().cast::<u8>().add(claimed.as_ref().bytes()) };
        Cursor { segment: self.run_segment.get(), at, end: self.run_end.get() }
    }

    /// Gives the claim of `record` back, because the signal is raised or the bound is reached; the record was not run.
    /// Returns false if this thread is detached.
    #[cold]
    #[inline(never)]
    fn interrupted(&self, record: NonNull<Record>) -> bool {
        if self.enter_runtime() {
            return true;
        }
        self.finish_claimed(record);
        false
    }

    /// Ends a detached thread's work with `record` claimed: runs it if the monitor left it to this thread.
    #[cold]
    fn finish_claimed(&self, record: NonNull<Record>) -> GulpEnd {
        if self.handoff_left_me(record) {
            // SAFETY: the monitor saw the claim and left the record, and its stage, to this thread.
            unsafe {
                let outcome = self.run_observed(record);
                self.handled.set(self.handled.get().wrapping_add(1));
                self.settle_record(record, outcome);
            }
        }
        GulpEnd::Detached
    }

    /// Delivers a record whose tag differs: the actor is gone, is suspended, has crashed, or has messages that wait for
    /// their guards.
    ///
    /// # Safety
    /// The same as for running the record.
    #[cold]
    #[inline(never)]
    pub(crate) unsafe fn deliver_irregular(&self, record: NonNull<Record>) -> Outcome {
        // SAFETY: the caller may run the record; cells are never freed.
        unsafe {
            let cell = record.as_ref().cell;
            let same_incarnation = cell.as_ref().tag() >> 16 == record.as_ref().tag >> 16;
            if !same_incarnation || cell.as_ref().has_status(status::VACANT) {
                return bounce_or_forward(record, Op::Bounce(Undelivered::Stopped));
            }
            if cell.as_ref().has_status(status::FROZEN) {
                if record.as_ref().is_control() {
                    let outcome = (record.as_ref().thunk)(record, Op::Frozen);
                    if outcome != Outcome::Waits {
                        return outcome;
                    }
                }
            } else if cell.as_ref().has_status(status::AWAY) {
                if record.as_ref().is_control() || may_pass(cell) {
                    return bounce_or_forward(record, Op::Away);
                }
            } else if record.as_ref().is_control() {
                return (record.as_ref().thunk)(record, Op::Run);
            } else if cell.as_ref().is_ready() {
                let outcome = (record.as_ref().thunk)(record, Op::Run);
                if outcome != Outcome::Waits && outcome != Outcome::Passed {
                    Cell::note_handled(cell);
                }
                // The state may have changed: the guards of the waiting messages are asked again.
                return if outcome == Outcome::Continue && cell.as_ref().has_status(status::GUARDED) {
                    Outcome::Resume
                } else {
                    outcome
                };
            }
            if cell.as_ref().has_status(status::DEFERRABLE) {
                self.hasten_deferred_starts();
            }
            Cell::cold_mut(cell).deferred.push(record, &self.pool);
            // A deferred message is counted when it is run.
            Outcome::Passed
        }
    }

    /// Carries out the outcome of a record that was run.
    ///
    /// # Safety
    /// The same as for running the record, whose head is still readable; if it [waits](Outcome::Waits), so is its
    /// payload.
    pub(crate) unsafe fn settle_record(&self, record: NonNull<Record>, outcome: Outcome) {
        // SAFETY: this thread runs the record's stage, and the record's head is readable.
        unsafe {
            let cell = record.as_ref().cell;
            if outcome == Outcome::Waits {
                self.wait_for_guard(record);
                self.settle(cell, Outcome::Passed);
            } else {
                self.settle(cell, outcome);
            }
        }
    }

    /// Moves `record`, whose guard does not hold, behind those that wait already.
    ///
    /// # Safety
    /// The same as for running the record, which is given up.
    #[cold]
    pub(crate) unsafe fn wait_for_guard(&self, record: NonNull<Record>) {
        // SAFETY: this thread runs the record's stage, and the record's payload moves to the list.
        unsafe {
            let cell = record.as_ref().cell;
            Cell::cold_mut(cell).deferred.push_refused(record, &self.pool);
            cell.as_ref().set_status(status::GUARDED, true);
        }
    }

    /// Carries out a handler's decision about its cell.
    pub(crate) fn settle(&self, cell: NonNull<Cell>, outcome: Outcome) {
        match outcome {
            Outcome::Continue => {}
            Outcome::Passed => self.handled.set(self.handled.get().wrapping_sub(1)),
            Outcome::Resume => self.run_deferred(cell),
            Outcome::Stop => {
                // SAFETY: this thread runs the cell's stage.
                let failure = unsafe { Cell::cold(cell) }.as_mut().and_then(|cold| cold.failure.take());
                self.end(cell, failure.map_or(Ending::Stopped, Ending::Crashed));
            }
            Outcome::Kill => self.end(cell, Ending::Killed),
            Outcome::Fail => {
                // SAFETY: this thread runs the cell's stage.
                let failure = unsafe { Cell::cold_mut(cell) }.failure.take().expect("a failure was noted");
                self.crash(cell, failure);
            }
            Outcome::Waits => unreachable!("the caller has moved the record that waits"),
        }
    }

    /// Ends the message that panicked: the record claimed last, or a nested one that was handled by its catch.
    #[cold]
    fn crashed(&self, panic: Box<dyn Any + Send>) {
        let claimed = self.ownership.claimed();
        let panic = Payload::from(panic);
        let Some(claimed) = NonNull::new(claimed) else {
            panic!("a panic outside of any handler: {:?}", Crash::Panic(panic));
        };
        // SAFETY: the claimed record stays readable until the next one is claimed.
        let (cell, incarnation) = unsafe {
            self.run_at.set(self.position_behind(claimed).at);
            (claimed.as_ref().cell, claimed.as_ref().tag >> 16)
        };
        // SAFETY: cells are never freed.
        if unsafe { cell.as_ref() }.tag() >> 16 != incarnation {
            // The panic is not of the present actor of the cell: the drop of a dead letter panicked.
            drop(panic);
            self.enter_runtime();
            return;
        }
        self.crash(cell, Crash::Panic(panic));
        // The loop starts again in RUNTIME. A detached thread finds that out at its first claim.
        self.enter_runtime();
    }

    pub(crate) fn crash(&self, cell: NonNull<Cell>, crash: Crash) {
        // SAFETY: cells are never freed.
        let header = unsafe { cell.as_ref() };
        // If the actor has migrated away, a message to be forwarded panicked, and the panic loses it.
        if !header.is_occupied_in(self.system_id) || header.has_status(status::AWAY) {
            return;
        }
        self.ledger.crashes.add(1);
        if header.has_status(status::SUSPENDED) {
            header.set_status(status::SUSPENDED, false);
            note_suspended(false);
        }
        // SAFETY: this thread runs the cell's stage; short borrows.
        let failure = unsafe { Cell::cold(cell) }.as_mut().and_then(|cold| cold.failure.take());
        // The handler has failed first, and has panicked then: the panic is reported.
        drop(failure);
        // SAFETY: this thread runs the cell's stage; short borrow.
        if unsafe { Cell::cold(cell) }.as_ref().is_some_and(|cold| cold.stop_after) {
            // The actor was to stop after this message. It stops, and no supervisor restarts it.
            return self.end(cell, Ending::Crashed(crash));
        }
        // SAFETY: this thread runs the cell's stage; the crashed handler has been unwound.
        let outcome = unsafe { (header.kind().crash)(cell, crash) };
        let thaws = header.has_status(status::FROZEN) && !matches!(outcome, Outcome::Stop | Outcome::Kill);
        if thaws {
            header.set_status(status::FROZEN, false);
            note_suspended(false);
        }
        self.settle(cell, outcome);
        if thaws {
            // SAFETY: this thread runs the cell's stage.
            unsafe { self.run_waiting_requests(cell) };
        }
    }

    /// Ends the incarnation in `cell` and makes the cell vacant.
    pub(crate) fn end(&self, cell: NonNull<Cell>, ending: Ending) {
        // SAFETY: cells are never freed.
        let header = unsafe { cell.as_ref() };
        if header.has_status(status::VACANT) {
            return;
        }
        if header.has_status(status::SUSPENDED | status::FROZEN) {
            note_suspended(false);
        }
        struct Vacate<'a>(&'a Worker, NonNull<Cell>);
        impl Drop for Vacate<'_> {
            fn drop(&mut self) {
                // SAFETY: cells are never freed.
                let header = unsafe { self.1.as_ref() };
                let (class, stage) = (header.kind().class, header.stage());
                let address = RawAddress::of(self.1);
                if address.is_bounded() {
                    self.0.system.mailboxes.give_up(address);
                }
                if header.vacate() {
                    // SAFETY: used by this thread only, in short borrows.
                    unsafe { (*self.0.allocator.get()).put(self.1, class) };
                }
                self.0.ledger.stopped.add(1);
                self.0.system.stage_left(stage);
            }
        }
        let _vacate = Vacate(self, cell);
        // SAFETY: this thread runs the cell's stage, and no handler of it is on the stack.
        unsafe { (header.kind().stop)(cell, ending) };
    }
}

impl Cell {
    /// Notes that a message was handled, and its time if that is to be noted.
    ///
    /// # Safety
    /// The same as for [`Cell::cold`].
    #[cold]
    pub(crate) unsafe fn note_handled(cell: NonNull<Cell>) {
        // SAFETY: cells are never freed; the caller runs the cell's stage and holds no reference to the cold part.
        unsafe {
            if cell.as_ref().has_status(status::NOTED)
                && let Some(worker) = current()
            {
                Cell::cold_mut(cell).handled_ns = worker.system.now_ns();
            }
        }
    }
}
