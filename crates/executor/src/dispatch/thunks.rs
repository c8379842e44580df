//! The functions of records: they run an envelope on its actor, or bounce, forward or describe it.

use std::ptr::NonNull;

use crate::dispatch::async_handler;
use crate::memory::cell::{Cell, status};
use crate::memory::record::{
    CONTROL, Described, Op, Outcome, Record, Thunk, Undelivered, drop_on_panic, peek, unwrap, write,
};
use crate::message::away::AwayCx;
use crate::message::dead_letters::quietly;
use crate::message::envelope::{Admission, AsyncEnvelope, Control, ControlCx, Cx, Envelope, Resident};
use crate::user_code::during;
use crate::user_code::mail_kind::MailKind;
use crate::worker::deferred_starts::DeferredStart;

/// A kind of envelope that can be put into a record for a cell with an `S`.
pub(crate) trait Deliverable<S: Resident>: Send + Sized + 'static {
    const THUNK: Thunk;
    const IS_CONTROL: bool;

    /// # Safety
    /// The same as for [`write()`].
    #[inline(always)]
    unsafe fn write_record(self, target: *mut u8, cell: NonNull<Cell>, identity: u64) {
        let control = if Self::IS_CONTROL { CONTROL } else { 0 };
        // SAFETY: `target` has room for the record; THUNK is the thunk for Self.
        unsafe { write(target, Self::THUNK, cell, identity, control, self) };
    }
}

/// A message whose handler runs to completion.
#[repr(transparent)]
pub(crate) struct SyncMail<E>(pub(crate) E);
/// A message whose handler may suspend the actor.
#[repr(transparent)]
pub(crate) struct AsyncMail<E>(pub(crate) E);
/// A request to the cell itself (stop, restart, ...).
#[repr(transparent)]
pub(crate) struct ControlMail<C>(pub(crate) C);

impl<S: Resident, E: Envelope<S>> Deliverable<S> for SyncMail<E> {
    const THUNK: Thunk = run_sync::<S, E>;
    const IS_CONTROL: bool = false;
}

impl<S: Resident, E: AsyncEnvelope<S>> Deliverable<S> for AsyncMail<E> {
    const THUNK: Thunk = run_async::<S, E>;
    const IS_CONTROL: bool = false;
}

impl<S: Resident, C: Control<S>> Deliverable<S> for ControlMail<C> {
    const THUNK: Thunk = run_control::<S, C>;
    const IS_CONTROL: bool = true;
}

/// The first message of an actor with the status NEW.
#[repr(transparent)]
pub(crate) struct FirstMail<E>(pub(crate) E);

impl<S: Resident, E: Envelope<S>> Deliverable<S> for FirstMail<E> {
    const THUNK: Thunk = run_first::<S, E>;
    const IS_CONTROL: bool = true;
}

/// A [`ControlMail`] that waits its turn behind the messages that were sent before it.
#[repr(transparent)]
pub(crate) struct OrderedMail<C>(pub(crate) C);

impl<S: Resident, C: Control<S>> Deliverable<S> for OrderedMail<C> {
    const THUNK: Thunk = run_control::<S, C>;
    const IS_CONTROL: bool = false;
}

fn note_description<S: Resident>((kind, name): (MailKind, &'static str), may_wait: bool, bytes: usize) -> Outcome {
    Described { actor: S::name(), kind, name, may_wait, is_gone: false, bytes }.answer()
}

/// # Safety
/// A thunk: the record holds an `E` for a cell of kind `S`. For `Op::Run` the cell is resident and ordinary, and this
/// thread runs its stage (I1); nothing else therefore borrows the state.
unsafe fn run_sync<S: Resident, E: Envelope<S>>(record: NonNull<Record>, op: Op) -> Outcome {
    // SAFETY: the record holds an `E`; for `Op::Run`, this thread alone touches the state.
    unsafe {
        if op != Op::Run {
            return do_not_run_sync::<S, E>(record, op);
        }
        let cell = record.as_ref().cell;
        let (state, mut cx) = (Cell::state::<S>(cell), Cx::new(cell));
        let turned_away = during(E::describe, || {
            let turned_away = apply_admission(record, |e: &mut E| e.admission(state, &mut cx), E::bounce);
            if turned_away.is_none() {
                unwrap::<E>(record).run(state, &mut cx);
            }
            turned_away
        });
        cx.note_failure(E::describe);
        turned_away.unwrap_or(cx.outcome())
    }
}

/// Asks an envelope for its [`Admission`]. Returns `Some` if the envelope is not to be run now; the record then waits
/// or was consumed. If `admission` can only return `Run`, this compiles to nothing.
///
/// # Safety
/// The record holds an `E`.
#[inline(always)]
unsafe fn apply_admission<E>(
    record: NonNull<Record>,
    admission: impl FnOnce(&mut E) -> Admission,
    bounce: impl FnOnce(E, Undelivered),
) -> Option<Outcome> {
    // A guard that panics crashes its actor, and its message is lost.
    // SAFETY: the record holds an `E`; a record whose run has panicked is not touched again.
    let admission = unsafe { drop_on_panic(record, admission) };
    match admission {
        Admission::Run => return None,
        Admission::Wait => return Some(Outcome::Waits),
        // SAFETY: the record holds an `E`, which is consumed once.
        Admission::Drop => drop(unsafe { unwrap::<E>(record) }),
        // SAFETY: the record holds an `E`, which is consumed once.
        Admission::Bounce(why) => unsafe {
            quietly(record.as_ref().is_from_hook(), || bounce(unwrap::<E>(record), why));
        },
    }
    Some(Outcome::Continue)
}

/// Performs every operation except `Run`. Kept apart: inlined, it made each message pay for the registers that a dead
/// letter needs (3 ns).
///
/// # Safety
/// The same as for [`run_sync`].
#[cold]
#[inline(never)]
unsafe fn do_not_run_sync<S: Resident, E: Envelope<S>>(record: NonNull<Record>, op: Op) -> Outcome {
    // SAFETY: the record holds an `E` for a cell of kind `S`, which this thread runs.
    unsafe {
        match op {
            Op::Describe => note_description::<S>(E::describe(), false, 0),
            Op::Weigh => note_description::<S>(E::describe(), false, drop_on_panic(record, |e: &mut E| e.bytes())),
            Op::Ask => ask_guard(record, |e: &mut E, state, cx| e.admission(state, cx)),
            Op::Bounce(why) => {
                unwrap::<E>(record).bounce(why);
                Outcome::Continue
            }
            _ => {
                let mut cx = AwayCx::<S>::new(record);
                unwrap::<E>(record).send_on(&mut cx);
                cx.outcome()
            }
        }
    }
}

/// Returns the answer of a thunk to [`Op::Ask`].
///
/// # Safety
/// The same as for [`run_sync`].
unsafe fn ask_guard<S: Resident, E>(
    record: NonNull<Record>,
    admission: impl FnOnce(&mut E, &mut S, &mut Cx<S>) -> Admission,
) -> Outcome {
    // SAFETY: the record holds an `E` for a cell of kind `S`, which this thread runs.
    let admission = unsafe {
        let cell = record.as_ref().cell;
        drop_on_panic(record, |e| admission(e, Cell::state::<S>(cell), &mut Cx::new(cell)))
    };
    if matches!(admission, Admission::Wait) { Outcome::Waits } else { Outcome::Continue }
}

/// # Safety
/// The same as for [`run_sync`], and the cell has the status NEW.
unsafe fn run_first<S: Resident, E: Envelope<S>>(record: NonNull<Record>, op: Op) -> Outcome {
    // SAFETY: the record holds an `E` for a cell of kind `S`, which this thread runs.
    unsafe {
        if matches!(op, Op::Describe | Op::Weigh) {
            return note_description::<S>((MailKind::Start, E::describe().1), false, 0);
        }
        if op != Op::Run {
            return do_not_run_sync::<S, E>(record, op);
        }
        let cell = record.as_ref().cell;
        let mut late = None;
        if cell.as_ref().has_status(status::DEFERRABLE) {
            late = DeferredStart::of(record);
            if late.is_none() {
                return Outcome::Passed;
            }
        }
        cell.as_ref().set_status(status::NEW | status::DEFERRABLE, false);
        let outcome = run_sync::<S, E>(record, op);
        drop(late);
        after_first(cell, outcome)
    }
}

/// Returns the outcome of a start: that of its message, or that the actor stops or runs its deferred messages.
///
/// # Safety
/// The same as for [`run_first`].
#[inline(never)]
unsafe fn after_first(cell: NonNull<Cell>, outcome: Outcome) -> Outcome {
    // SAFETY: this thread runs the cell's stage, and holds no other reference to the cold part.
    match unsafe { Cell::cold(cell) } {
        Some(cold) if outcome == Outcome::Continue => {
            if std::mem::take(&mut cold.stop_after) {
                Outcome::Stop
            } else {
                Outcome::Resume
            }
        }
        _ => outcome,
    }
}

/// # Safety
/// The same as for [`run_sync`].
unsafe fn run_async<S: Resident, E: AsyncEnvelope<S>>(record: NonNull<Record>, op: Op) -> Outcome {
    // SAFETY: the record holds an `E` for a cell of kind `S`, which this thread runs.
    unsafe {
        match op {
            Op::Run => {
                let cell = record.as_ref().cell;
                let admission = |e: &mut E| e.admission(Cell::state::<S>(cell), &mut Cx::new(cell));
                match during(E::describe, || apply_admission(record, admission, E::bounce)) {
                    Some(outcome) => outcome,
                    None => async_handler::start::<S, E>(cell, unwrap::<E>(record)),
                }
            }
            Op::Bounce(why) => {
                unwrap::<E>(record).bounce(why);
                Outcome::Continue
            }
            Op::Away | Op::Frozen => {
                let mut cx = AwayCx::<S>::new(record);
                unwrap::<E>(record).send_on(&mut cx);
                cx.outcome()
            }
            Op::Describe => note_description::<S>(E::describe(), true, 0),
            Op::Weigh => note_description::<S>(E::describe(), true, drop_on_panic(record, |e: &mut E| e.bytes())),
            Op::Ask => ask_guard(record, |e: &mut E, state, cx| e.admission(state, cx)),
        }
    }
}

/// # Safety
/// The same as for [`run_sync`], but the cell may be suspended: its future then borrows the state.
unsafe fn run_control<S: Resident, C: Control<S>>(record: NonNull<Record>, op: Op) -> Outcome {
    // SAFETY: the record holds a `C` for a cell of kind `S`, which this thread runs.
    unsafe {
        let away = record.as_ref().cell.as_ref().has_status(status::AWAY);
        let op = match op {
            Op::Frozen if !peek::<C>(record).passes() => return Outcome::Waits,
            Op::Frozen if away => Op::Away,
            Op::Frozen => Op::Run,
            Op::Describe => {
                let about = peek::<C>(record).describe();
                return note_description::<S>(about, about.0 == MailKind::WakeUp, 0);
            }
            // Requests have no bound, whatever they say of their kind.
            Op::Weigh => return note_description::<S>((MailKind::Control, "control"), false, 0),
            Op::Ask => return Outcome::Continue,
            op => op,
        };
        let control = unwrap::<C>(record);
        match op {
            Op::Bounce(why) => {
                control.bounce(why);
                Outcome::Continue
            }
            Op::Away => {
                let mut cx = AwayCx::<S>::new(record);
                control.send_on(&mut cx);
                cx.outcome()
            }
            _ => {
                let mut cx = ControlCx::<S>::new(record.as_ref().cell);
                let about = control.describe();
                during(|| about, || control.run(&mut cx));
                cx.outcome()
            }
        }
    }
}
