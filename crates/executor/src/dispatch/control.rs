//! Requests to a cell that need its worker: an interrupted handler, a new state, and the notes of handled messages.

use std::ptr::NonNull;

use crate::dispatch::async_handler;
use crate::memory::cell::{Cell, status};
use crate::memory::record::Outcome;
use crate::memory::suspended::drop_suspended;
use crate::message::envelope::{Control, ControlCx, Cx, Resident};
use crate::user_code::mail_kind::MailKind;
use crate::worker::{current, note_suspended};

/// # Safety
/// The caller runs the cell's stage and holds no reference to the cold part.
unsafe fn note_from_now(cell: NonNull<Cell>, on: bool) {
    // SAFETY: the caller runs the cell's stage, and only that thread writes the cell's status (I1).
    unsafe {
        cell.as_ref().set_status(status::NOTED, on);
        Cell::note_handled(cell);
    }
}

impl<S: Resident> Cx<S> {
    /// From now on, notes the time at which this actor has handled a message, or ends that. (A request that was carried
    /// out is not noted.)
    pub fn note_handled(&mut self, on: bool) {
        // SAFETY: this thread runs the cell's stage, and this function holds no reference to the cold part.
        unsafe { note_from_now(self.cell(), on) };
    }
}

impl<S: Resident> ControlCx<S> {
    /// Does the same as [`Cx::note_handled`].
    pub fn note_handled(&mut self, on: bool) {
        // SAFETY: this thread runs the cell's stage, and this function holds no reference to the cold part.
        unsafe { note_from_now(self.cell(), on) };
    }

    /// Drops the suspended handler, if there is one, and thereby cancels the future that it awaited. If the actor was
    /// to [stop](ControlCx::stop) behind that handler, it stops.
    pub fn interrupt(&mut self) {
        if self.is_suspended() {
            // SAFETY: this thread runs the cell's stage; the future is not being polled, because a control runs.
            unsafe {
                drop_suspended(self.cell());
                self.cell().as_ref().set_status(status::SUSPENDED, false);
            }
            note_suspended(false);
            // SAFETY: this thread runs the cell's stage; a short borrow. A suspended actor has a cold part.
            let cold = unsafe { Cell::cold_mut(self.cell()) };
            let (failure, stop_after) = (cold.failure.take(), std::mem::take(&mut cold.stop_after));
            self.set_outcome(if stop_after { Outcome::Stop } else { Outcome::Resume });
            // The handler had failed, and the failure is dropped without a report.
            drop(failure);
        }
    }

    /// Parks ordinary messages until [`ControlCx::resume`]: the actor waits for its supervisor. A suspended handler is
    /// dropped.
    pub fn hold(&mut self) {
        self.interrupt();
        // SAFETY: the cell is alive while the control runs; its status is written by this thread only (I1).
        let cell = unsafe { self.cell().as_ref() };
        cell.set_status(status::SUSPENDED, false);
        cell.set_status(status::CRASHED, true);
    }

    /// Replaces the state and returns the old one; it counts as a restart.
    ///
    /// # Panics
    /// If a handler is suspended, or if the actor is away.
    pub fn replace(&mut self, state: S) -> S {
        if let Some(worker) = current() {
            worker.ledger.restarts.add(1);
        }
        std::mem::replace(self.state().expect("the actor is suspended or away: its state cannot be replaced"), state)
    }
}

/// Runs more of the actor's deferred messages, because it has run many without a pause. See [`status::BEHIND`].
pub(crate) struct GoOn;

impl<S: Resident> Control<S> for GoOn {
    // At a frozen cell, the deferred messages are run when it thaws.
    fn passes(&self) -> bool {
        true
    }

    fn describe(&self) -> (MailKind, &'static str) {
        (MailKind::WakeUp, "go on")
    }

    fn run(self, cx: &mut ControlCx<S>) {
        // SAFETY: the cell is alive while the control runs; its status is written by this thread only (I1).
        let cell = unsafe { cx.cell().as_ref() };
        if cell.has_status(status::BEHIND) {
            cell.set_status(status::BEHIND, false);
            if cell.is_ready() {
                cx.set_outcome(Outcome::Resume);
            }
        }
        if let Some(worker) = current() {
            // It is not a message that an actor has sent.
            worker.handled.set(worker.handled.get().wrapping_sub(1));
        }
    }
}

/// Polls the suspended handler of the actor again.
pub(crate) struct Poll;

impl<S: Resident> Control<S> for Poll {
    fn describe(&self) -> (MailKind, &'static str) {
        (MailKind::WakeUp, "wake-up")
    }

    fn run(self, cx: &mut ControlCx<S>) {
        async_handler::poll(cx.cell(), &mut |outcome| cx.set_outcome(outcome));
    }
}
