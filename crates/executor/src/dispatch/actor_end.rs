//! The kind of each resident type: the end and the crash of an actor, with its type erased.

use std::any::Any;
use std::ptr::NonNull;

use crate::dispatch::control::GoOn;
use crate::dispatch::send::post_request;
use crate::dispatch::thunks::ControlMail;
use crate::memory::cell::{Cell, Kind, status};
use crate::memory::record::{Outcome, Undelivered};
use crate::memory::slab;
use crate::memory::suspended::drop_suspended;
use crate::message::envelope::{ControlCx, Cx, Resident};
use crate::user_code::contained;
use crate::user_code::crash::{Crash, Ending};
use crate::worker::message_queue::bounce_chain;

/// Type-erased operations on a cell's state, one static per resident type.
pub(crate) struct KindOf<S>(std::marker::PhantomData<S>);

impl<S: Resident> KindOf<S> {
    pub(crate) const KIND: &'static Kind = &Kind {
        class: slab::class_of::<S>(),
        type_id: std::any::TypeId::of::<S>,
        name: S::name,
        stop: stop::<S>,
        crash: crash::<S>,
        go_on: |to| post_request::<S, _>(to, ControlMail(GoOn)),
    };
}

/// # Safety
/// The cell holds an `S` that nothing borrows; afterwards it holds none.
unsafe fn stop<S: Resident>(cell: NonNull<Cell>, ending: Ending) {
    // SAFETY: nothing but the future, if any, borrows the state, and the future goes first. The panic hook reports a
    // panic in one of the steps. The next steps are taken all the same, and the panic does not reach the caller, which
    // may be another actor.
    unsafe {
        if cell.as_ref().has_status(status::AWAY) {
            return forget(cell);
        }
        // Few actors have a cold part.
        let has_cold = Cell::cold(cell).is_some();
        if has_cold {
            drop_suspended(cell);
        }
        // An actor that was never started has no end to report.
        let unstarted = cell.as_ref().has_status(status::NEW);
        let ending = if unstarted { Ending::Killed } else { ending };
        let mut cx = Cx::<S>::new(cell);
        // The waiting messages are bounced after the end was reported, like those that are still queued, because a
        // watcher may learn the reason first.
        let waited = Cell::cold(cell).as_mut().map(|cold| cold.deferred.take());
        let extra = if has_cold { take_extra(cell) } else { None };
        let extra = extra.map(|any| any.downcast::<S::Extra>().expect("the extra part of a cell has its own type"));
        contained(|| Cell::state::<S>(cell).ended(extra, ending, &mut cx));
        if let Some(waited) = waited {
            bounce_chain(waited, Undelivered::Stopped);
        }
        // A cold part that the hook has made goes with the state.
        if Cell::cold(cell).is_some() {
            drop_suspended(cell);
            let left = take_extra(cell);
            contained(|| drop(left));
        }
        if slab::is_inline::<S>() && !std::mem::needs_drop::<S>() {
            return;
        }
        contained(|| Cell::drop_state::<S>(cell));
    }
}

/// # Safety
/// The same as for [`stop`], and the cell holds no state. The route of the stub is dropped.
#[inline(never)]
unsafe fn forget(cell: NonNull<Cell>) {
    // SAFETY: this thread runs the cell's stage, and holds no other reference to the cold part.
    if let Some(mut cold) = unsafe { Cell::cold(cell) }.take() {
        bounce_chain(cold.deferred.take(), Undelivered::Stopped);
    }
}

/// # Safety
/// The same as for [`stop`].
#[inline(never)]
unsafe fn take_extra(cell: NonNull<Cell>) -> Option<Box<dyn Any + Send>> {
    // SAFETY: this thread runs the cell's stage, and holds no other reference to the cold part.
    let mut cold = unsafe { Cell::cold(cell) }.take()?;
    let extra = cold.extra.take();
    bounce_chain(cold.deferred.take(), Undelivered::Stopped);
    extra
}

/// # Safety
/// The cell holds an `S` that nothing else borrows.
unsafe fn crash<S: Resident>(cell: NonNull<Cell>, error: Crash) -> Outcome {
    // SAFETY: nothing else borrows the state; a crashed async handler's future is dropped before the state is touched.
    unsafe {
        drop_suspended(cell);
        let mut cx = ControlCx::<S>::new(cell);
        // An actor whose supervision has panicked ends, and no further hook is called.
        contained(|| S::crashed(error, &mut cx)).map_or(Outcome::Kill, |()| cx.outcome())
    }
}
