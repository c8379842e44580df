//! Cells that freeze, and stubs that may forward no mail.

use std::ptr::NonNull;

use crate::memory::cell::{Cell, status};
use crate::worker::note_suspended;

/// # Safety
/// The caller runs the cell's stage.
pub(crate) unsafe fn freeze(cell: NonNull<Cell>) {
    // SAFETY: cells are never freed; its status is written by this thread only (I1).
    let cell = unsafe { cell.as_ref() };
    if !cell.has_status(status::FROZEN) {
        cell.set_status(status::FROZEN, true);
        note_suspended(true);
    }
}

/// Returns whether mail of this stub may be forwarded. Returns false if the actor is about to arrive; the cell is then
/// frozen, and the mail waits.
///
/// # Safety
/// The cell is that of an actor that is away, and this thread runs its stage.
pub(crate) unsafe fn may_pass(cell: NonNull<Cell>) -> bool {
    // SAFETY: this thread runs the cell's stage; a short borrow.
    let passes =
        unsafe { Cell::cold(cell) }.as_ref().and_then(|cold| cold.route.as_ref()).is_none_or(|route| route.take());
    if !passes {
        // SAFETY: this thread runs the cell's stage.
        unsafe { freeze(cell) };
    }
    passes
}
