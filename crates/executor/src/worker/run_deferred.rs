//! Running the deferred messages of an actor, when it takes messages again.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::NonNull;

use crate::memory::cell::{Cell, status};
use crate::memory::raw_address::RawAddress;
use crate::memory::record::{Op, Outcome, Record};
use crate::message::dead_letters::bounce_or_forward;
use crate::policy::decisions;
use crate::user_code::crash::{Crash, Payload};
use crate::worker::Worker;
use crate::worker::frozen::may_pass;

/// Deferred messages that are run in a row.
struct Slice {
    /// The number of messages that may still be run.
    left: u64,
    /// The decision of the last one.
    outcome: Outcome,
    panic: Option<Payload>,
}

/// A guard: while it exists, the deferred messages of a cell are run on the stack of a worker.
struct Resuming<'a> {
    worker: &'a Worker,
    outer: *mut Cell,
}

impl<'a> Resuming<'a> {
    fn enter(worker: &'a Worker, cell: NonNull<Cell>) -> Self {
        Resuming { worker, outer: worker.resuming.replace(cell.as_ptr()) }
    }
}

impl Drop for Resuming<'_> {
    fn drop(&mut self) {
        self.worker.resuming.set(self.outer);
    }
}

/// The result of asking the guards that have refused messages.
enum GuardRound {
    /// All messages that remain have been refused again.
    AllRefuse,
    /// A message was run behind one that waits: the oldest is asked again.
    Again,
    /// The actor takes no messages now.
    Over,
}

impl Worker {
    /// Runs the deferred messages of `cell` until it is suspended again.
    ///
    /// Messages whose guards do not hold stay, in order. After each message that was run, the oldest waiting one comes
    /// first again, because a message may open the guards of others. (Local synchronisation constraints: kumar §2.1.
    /// Each round looks at all waiting messages, and costs as much as their number.)
    ///
    /// At most as many messages as in a gulp are run in a row, and fewer if the signal is raised. The others are run
    /// behind what is queued for other actors ([`status::BEHIND`]). If messages are delivered one at a time, all are
    /// run.
    pub(super) fn run_deferred(&self, cell: NonNull<Cell>) {
        // SAFETY: cells are never freed.
        let header = unsafe { cell.as_ref() };
        if self.resuming.get() == cell.as_ptr() {
            // A step that follows a deferred message has resumed the actor. The call further down on this stack goes
            // on.
            self.note_deferred(cell, true);
            return;
        }
        let incarnation = header.tag() >> 16;
        let _resuming = Resuming::enter(self, cell);
        let at_once = || decisions::gulp_messages(self.next_ns.get(), false, self.system.config.throughput);
        let left = if self.single.get() { u64::MAX } else { at_once() };
        let mut slice = Slice { left, outcome: Outcome::Continue, panic: None };
        loop {
            header.set_status(status::BEHIND, false);
            while self.run_round(cell, &mut slice) {}
            self.note_deferred(cell, slice.left == 0);
            let (outcome, panic) = (std::mem::take(&mut slice.outcome), slice.panic.take());
            let was_on_its_way = panic.is_some() && header.has_status(status::AWAY);
            self.settle_deferred(cell, outcome, panic);
            // SAFETY: this thread runs the cell's stage.
            unsafe { self.run_waiting_requests(cell) };
            // A cell whose actor has ended is vacant, or holds another one.
            let goes_on = header.tag() >> 16 == incarnation && header.is_behind();
            if !was_on_its_way && (!goes_on || slice.left == 0) {
                if goes_on {
                    (header.kind().go_on)(RawAddress::of(cell));
                }
                break;
            }
        }
    }

    /// Notes in the status of a cell that takes messages whether its deferred messages come before others. With
    /// `ask_again`, so do messages that their guards have refused.
    fn note_deferred(&self, cell: NonNull<Cell>, ask_again: bool) {
        // SAFETY: cells are never freed; this thread runs the cell's stage, and the reference to the cold part is
        // short.
        let (header, cold) = unsafe { (cell.as_ref(), Cell::cold(cell).as_mut()) };
        let (mut refused, mut later) = (false, false);
        if let Some(cold) = cold {
            cold.deferred.trim(&self.pool);
            (refused, later) = (cold.deferred.has_refused(), cold.deferred.has_later());
        }
        if header.is_ready() || header.is_behind() {
            header.set_status(status::GUARDED, refused);
            header.set_status(status::BEHIND, later || (ask_again && refused));
        }
    }

    /// Asks the guards that have refused deferred messages again. If all still do, goes through the other deferred
    /// messages up to one that is run. Returns whether there may be more to run.
    fn run_round(&self, cell: NonNull<Cell>, slice: &mut Slice) -> bool {
        match self.run_refused(cell, slice) {
            GuardRound::AllRefuse => {}
            GuardRound::Again => return true,
            GuardRound::Over => return false,
        }
        loop {
            // SAFETY: this thread runs the cell's stage; the reference to the cold part is short.
            let Some(record) = (unsafe { Cell::cold_mut(cell) }).deferred.first_later(&self.pool) else { return false };
            let Some(op) = self.op_of_deferred(cell, record, slice) else { return false };
            // SAFETY: this thread runs the cell's stage. The record is taken out before it is run, once, or moved to
            // the refused ones.
            unsafe {
                Cell::cold_mut(cell).deferred.pop_later(&self.pool);
                match self.run_one_deferred(record, op, slice) {
                    Outcome::Waits => Cell::cold_mut(cell).deferred.push_refused(record, &self.pool),
                    Outcome::Passed => {}
                    _ => return true,
                }
            }
        }
    }

    /// Asks the guards that have refused deferred messages again, in order, and runs the messages that they let pass.
    fn run_refused(&self, cell: NonNull<Cell>, slice: &mut Slice) -> GuardRound {
        // SAFETY: this thread runs the cell's stage; the reference to the cold part is short.
        let deferred = &mut unsafe { Cell::cold_mut(cell) }.deferred;
        if !deferred.has_refused() {
            return GuardRound::AllRefuse;
        }
        // SAFETY: cells are never freed.
        if unsafe { cell.as_ref() }.has_status(status::AWAY) {
            // No guard is asked any more.
            deferred.forget_refusals();
            return GuardRound::AllRefuse;
        }
        let mut refused = deferred.take_refused();
        let (mut one_waits, mut round) = (false, GuardRound::AllRefuse);
        while let Some(record) = refused.next() {
            let Some(op) = self.op_of_deferred(cell, record, slice) else {
                round = GuardRound::Over;
                break;
            };
            // SAFETY: the list owns the records; each is run once, and is noted as consumed unless it waits.
            unsafe {
                let outcome = self.run_one_deferred(record, op, slice);
                if outcome == Outcome::Waits {
                    one_waits = true;
                    continue;
                }
                refused.consumed(record);
                if outcome == Outcome::Passed {
                    one_waits = true;
                } else if one_waits {
                    round = GuardRound::Again;
                    break;
                }
            }
        }
        // SAFETY: this thread runs the cell's stage; the reference to the cold part is short.
        unsafe { Cell::cold_mut(cell) }.deferred.put_back(refused, &self.pool);
        round
    }

    /// Returns the operation for `record`, which is deferred. Returns `None` if the record waits.
    fn op_of_deferred(&self, cell: NonNull<Cell>, record: NonNull<Record>, slice: &mut Slice) -> Option<Op> {
        if slice.outcome != Outcome::Continue || slice.panic.is_some() {
            return None;
        }
        // SAFETY: cells are never freed; a whole record; this thread runs the cell's stage.
        unsafe {
            match (cell.as_ref().tag() ^ record.as_ref().resident_tag()) & !status::OPEN {
                0 => (slice.left > 0).then_some(Op::Run),
                status::AWAY if record.as_ref().is_control() || may_pass(cell) => Some(Op::Away),
                _ => None,
            }
        }
    }

    /// Runs a deferred record, or forwards it.
    ///
    /// # Safety
    /// A whole record of a cell whose stage this thread runs, for which `op` was [found](Worker::op_of_deferred). It is consumed, unless it
    /// [waits](Outcome::Waits).
    unsafe fn run_one_deferred(&self, record: NonNull<Record>, op: Op, slice: &mut Slice) -> Outcome {
        // SAFETY: a whole record of a stage that this thread runs; it is consumed once, or waits.
        unsafe {
            let cell = record.as_ref().cell;
            // The records behind a panicking one are still run.
            let run =
                || if op == Op::Run { (record.as_ref().thunk)(record, op) } else { bounce_or_forward(record, op) };
            match catch_unwind(AssertUnwindSafe(|| if op == Op::Run { self.show(record, run) } else { run() })) {
                // `Passed`: the message was dropped for another one; or it still waits, behind the others that were
                // refused.
                Ok(Outcome::Waits) => return Outcome::Waits,
                Ok(Outcome::Passed) => return Outcome::Passed,
                Ok(Outcome::Resume) => {}
                Ok(decided) => slice.outcome = decided,
                Err(caught) => slice.panic = Some(caught.into()),
            }
            if op == Op::Run {
                if slice.panic.is_none() {
                    Cell::note_handled(cell);
                }
                let interrupted = self.ownership.signal.get() != 0 && !self.single.get();
                slice.left = if interrupted { 0 } else { slice.left.saturating_sub(1) };
            }
            self.handled.set(self.handled.get().wrapping_add(1));
            Outcome::Continue
        }
    }

    fn settle_deferred(&self, cell: NonNull<Cell>, outcome: Outcome, panic: Option<Payload>) {
        // SAFETY: cells are never freed.
        let header = unsafe { cell.as_ref() };
        match panic {
            // A message to be forwarded has panicked, and the panic loses it; those behind it remain.
            Some(_) if header.has_status(status::AWAY) => {}
            Some(panic) => self.crash(cell, Crash::Panic(panic)),
            None => self.settle(cell, outcome),
        }
    }

    /// Runs the requests that waited while the cell was frozen. Like requests that come now, they wait neither for a
    /// handler that was suspended since, nor for the supervisor's decision about a crash.
    ///
    /// # Safety
    /// This thread runs the cell's stage.
    pub(super) unsafe fn run_waiting_requests(&self, cell: NonNull<Cell>) {
        loop {
            // SAFETY: cells are never freed; this thread runs the cell's stage, and the reference to the cold part is
            // short.
            let (header, deferred) =
                unsafe { (cell.as_ref(), Cell::cold(cell).as_mut().map(|cold| &mut cold.deferred)) };
            if header.has_status(status::FROZEN | status::AWAY | status::VACANT) || header.is_behind() {
                return;
            }
            let Some(mut request) = deferred.and_then(|deferred| deferred.pop_request()) else { return };
            let request = request.record();
            // SAFETY: the request is a whole record for a cell whose stage this thread runs.
            let run = || unsafe { self.show(request, || (request.as_ref().thunk)(request, Op::Run)) };
            let outcome = catch_unwind(AssertUnwindSafe(run));
            self.handled.set(self.handled.get().wrapping_add(1));
            match outcome {
                Ok(outcome) => self.settle(cell, outcome),
                Err(panic) => self.crash(cell, Crash::Panic(panic.into())),
            }
        }
    }
}
