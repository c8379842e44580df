//! Records: the form of a message and its envelope in a segment.

use std::any::Any;
use std::cell::Cell as StdCell;
use std::mem::{ManuallyDrop, MaybeUninit};
use std::num::NonZeroU64;
use std::ptr::{self, NonNull};

use crate::memory::cell::{Cell, Cold, Kind, status};
use crate::memory::future;
use crate::message::address::Lane;
use crate::message::dead_letters::quietly;
use crate::message::deferred::Deferred;
use crate::message::envelope::{
    Admission, AsyncEnvelope, Control, ControlCx, Cx, Envelope, GoOn, MailKind, Resident, Undelivered,
};
use crate::message::mailbox_bound::WithPermit;
use crate::message::permit::PERMITTED;
use crate::migration::stub::AwayCx;
use crate::worker::deferred_starts::DeferredStart;
use crate::worker::user_code::{contained, during};

/// The operations of a thunk on its record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Op {
    /// Run the envelope on the state of the cell. The cell is resident and this worker runs its stage.
    Run,
    /// The envelope cannot be delivered: consume it.
    Bounce(Undelivered),
    /// The actor is in another theater: forward the envelope. The cell has the status AWAY and this worker runs its
    /// stage.
    Away,
    /// For control mail: the same as `Run` or `Away` if it passes a frozen cell; if not, return `WAITS` and consume
    /// nothing.
    Frozen,
    /// Describe the record ([`described`]); return `WAITS` and consume nothing.
    Describe,
    /// The same as `Describe`, with the record's share of a mailbox ([`weighed`]). For messages; consumed by a panic.
    Weigh,
    /// For a message, under the conditions of `Run`: return `WAITS` if its guard says that it has to wait, else
    /// `CONTINUE`, and consume nothing. Consumed by a panic.
    Ask,
}

thread_local! {
    /// The description of the last record that was asked. Not an argument of the thunks, because those are called for
    /// each message, and this is asked only if messages are delivered one at a time.
    static DESCRIBED: StdCell<Option<Described>> = const { StdCell::new(None) };
}

/// The kind and name of a record, and the type of its receiver.
#[derive(Clone, Copy)]
pub(crate) struct Described {
    pub(crate) actor: &'static str,
    pub(crate) kind: MailKind,
    pub(crate) name: &'static str,
    /// Its handler may wait.
    pub(crate) may_wait: bool,
    /// The message was dropped for another one: its record still exists, without a payload.
    pub(crate) is_gone: bool,
    /// Its share of a mailbox in bytes, if that was asked for.
    pub(crate) bytes: usize,
}

impl Described {
    fn note<S: Resident>((kind, name): (MailKind, &'static str), may_wait: bool, bytes: usize) -> Outcome {
        Described { actor: S::name(), kind, name, may_wait, is_gone: false, bytes }.answer()
    }

    /// Stores the answer of a thunk that is asked.
    pub(crate) fn answer(self) -> Outcome {
        DESCRIBED.set(Some(self));
        WAITS
    }
}

/// Returns the description of `record`.
///
/// # Safety
/// The record is whole, and its payload was not consumed.
pub(crate) unsafe fn described(record: NonNull<Record>) -> Described {
    // SAFETY: the record is whole, and its payload was not consumed; nothing is consumed.
    unsafe { described_by(record, Op::Describe) }
}

/// Returns the description of `record` with its share of a mailbox.
///
/// # Safety
/// The record is whole, and its payload was not consumed. A panic consumes it.
pub(crate) unsafe fn weighed(record: NonNull<Record>) -> Described {
    // SAFETY: the record is whole, and its payload was not consumed.
    unsafe { described_by(record, Op::Weigh) }
}

/// # Safety
/// The same as for `op`.
unsafe fn described_by(record: NonNull<Record>, op: Op) -> Described {
    // SAFETY: the caller fulfils the conditions of `op`.
    unsafe { (record.as_ref().thunk)(record, op) };
    DESCRIBED.take().expect("every record that is not buried describes itself")
}

/// The next step of the worker after a thunk returned. Zero is the common case.
pub(crate) type Outcome = u32;
/// The worker goes on.
pub(crate) const CONTINUE: Outcome = 0;
/// The actor stops.
pub(crate) const STOP: Outcome = 1;
/// The actor was killed: it stops without the hooks.
pub(crate) const KILL: Outcome = 2;
/// The actor may run its deferred messages again.
pub(crate) const RESUME: Outcome = 3;
/// The actor failed by `Cx::fail`: the error is in its cold part.
pub(crate) const FAIL: Outcome = 4;

/// The record was moved before, or had no payload any more: it does not count.
pub(crate) const PASSED: Outcome = 5;

/// The cell is frozen, and the request does not pass it; or the message's guard does not hold. The record was not
/// consumed.
pub(crate) const WAITS: Outcome = 6;

/// Consumes the record. Called exactly once for each record, except for one that [waits](WAITS).
pub(crate) type Thunk = unsafe fn(NonNull<Record>, Op) -> Outcome;

/// Payloads up to this size travel inline; larger ones (and over-aligned ones) are boxed once at the send.
pub const INLINE_BYTES_MAX: usize = 256;

const WORDS: u64 = 0x07ff;
/// A dead-letter hook has sent the message.
const FROM_HOOK: u64 = 0x0800;
/// The last word is the cause of the message: see `observed.rs`.
const CAUSED: u64 = 0x1000;
const LANE_SHIFT: u32 = 13;
const LANE: u64 = 3 << LANE_SHIFT;
pub(crate) const CONTROL: u64 = 0x8000;
pub(crate) const IDENTITY: u64 = !0xffff;

/// The head of a record; its payload follows.
///
/// `tag` is `generation:32 | stage:16 | control:1 | lane:2 | caused:1 | from_hook:1 | words:11`. Its upper 48 bits are
/// compared with the tag of the cell at delivery: the liveness check, the residency check and the "is it suspended?"
/// check in one.
#[repr(C)]
pub(crate) struct Record {
    pub(crate) thunk: Thunk,
    pub(crate) cell: NonNull<Cell>,
    pub(crate) tag: u64,
}

pub(crate) const HEAD_BYTES: usize = size_of::<Record>();
#[cfg(target_pointer_width = "64")]
const _: () = assert!(HEAD_BYTES == 24);

impl Record {
    #[inline(always)]
    pub(crate) fn bytes(&self) -> usize {
        ((self.tag & WORDS) as usize) * 8
    }

    /// Returns the tag of the cell in which this record can be run at once.
    #[inline(always)]
    pub(crate) fn resident_tag(&self) -> u64 {
        self.tag & IDENTITY
    }

    #[inline(always)]
    pub(crate) fn stage(&self) -> u16 {
        (self.tag >> 16) as u16
    }

    /// Returns whether the record passes by a suspended actor's deferred list.
    pub(crate) fn is_control(&self) -> bool {
        self.tag & CONTROL != 0
    }

    /// Returns the lane of the send. The record keeps it, and older urgent mail therefore stays before newer wherever
    /// the two are put.
    pub(crate) fn lane(&self) -> Lane {
        match (self.tag & LANE) >> LANE_SHIFT {
            0 => Lane::Normal,
            1 => Lane::Urgent,
            _ => Lane::System,
        }
    }

    /// Returns whether a dead-letter hook has sent the record.
    pub(crate) fn is_from_hook(&self) -> bool {
        self.tag & FROM_HOOK != 0
    }

    /// Notes that a dead-letter hook sends the record.
    pub(crate) fn mark_from_hook(&mut self) {
        self.tag |= FROM_HOOK;
    }

    /// Takes the cell, the lane and the dead-letter hook's mark of `other`.
    fn follow(&mut self, other: &Record) {
        const FOLLOWED: u64 = IDENTITY | LANE | FROM_HOOK;
        self.cell = other.cell;
        self.tag = (self.tag & !FOLLOWED) | (other.tag & FOLLOWED);
    }

    pub(crate) fn set_lane(&mut self, lane: Lane) {
        let bits = match lane {
            Lane::Normal => 0,
            Lane::Urgent => 1,
            Lane::System => 2,
        };
        self.tag = (self.tag & !LANE) | (bits << LANE_SHIFT);
    }

    /// Returns the cause of the record, if it is known.
    pub(crate) fn cause(&self) -> Option<NonZeroU64> {
        if self.tag & CAUSED == 0 {
            return None;
        }
        // SAFETY: by the bit, the last of the record's words is the cause.
        unsafe { NonZeroU64::new(ptr::from_ref(self).byte_add(self.bytes() - CAUSE_BYTES).cast::<u64>().read()) }
    }

    /// Turns the record into one that does nothing: its payload was moved away.
    pub(crate) fn bury(&mut self) {
        self.thunk = NOTHING;
        self.tag |= CONTROL;
    }

    pub(crate) fn is_buried(&self) -> bool {
        ptr::fn_addr_eq(self.thunk, NOTHING)
    }
}

/// The thunk of buried records. A static, and not inlined, because it is recognised by its address, and a function may
/// have one for each codegen unit of the crate.
static NOTHING: Thunk = nothing;

#[inline(never)]
unsafe fn nothing(_: NonNull<Record>, _: Op) -> Outcome {
    PASSED
}

/// Bytes that a cause adds to a record.
pub(crate) const CAUSE_BYTES: usize = 8;

/// Puts `cause` behind the record, which becomes `CAUSE_BYTES` longer.
///
/// # Safety
/// The record is whole, without a cause and owned by the caller, and the bytes behind it are valid for writes.
pub(crate) unsafe fn put_cause(mut record: NonNull<Record>, cause: NonZeroU64) {
    // SAFETY: the bytes behind the record are valid for writes; records are aligned to 8, and so are those bytes.
    unsafe {
        record.byte_add(record.as_ref().bytes()).cast::<u64>().write(cause.get());
        record.as_mut().tag = (record.as_ref().tag + (CAUSE_BYTES / 8) as u64) | CAUSED;
    }
}

/// Returns the bytes of the record of an `E`, a multiple of eight.
#[inline(always)]
pub const fn record_bytes<E>() -> usize {
    HEAD_BYTES + if is_inline::<E>() { size_of::<E>().next_multiple_of(8) } else { 8 }
}

const fn is_inline<E>() -> bool {
    size_of::<E>() <= INLINE_BYTES_MAX && align_of::<E>() <= 8
}

#[inline(always)]
unsafe fn payload<E>(record: NonNull<Record>) -> *mut E {
    // SAFETY: the caller has a record with an `E`, whose payload follows the head.
    unsafe { record.as_ptr().cast::<u8>().add(HEAD_BYTES).cast() }
}

/// Writes the record of `envelope` at `target`.
///
/// # Safety
/// `target` is valid for writes of `record_bytes::<E>()` bytes and aligned to 8. `thunk` is a thunk for `E`.
#[inline(always)]
unsafe fn write<E: Send>(target: *mut u8, thunk: Thunk, cell: NonNull<Cell>, identity: u64, control: u64, envelope: E) {
    let words = (record_bytes::<E>() / 8) as u64;
    // SAFETY: the caller guarantees that `target` has room for the record and is aligned.
    unsafe {
        let record = NonNull::new_unchecked(target.cast::<Record>());
        record.write(Record { thunk, cell, tag: (identity & IDENTITY) | control | words });
        if is_inline::<E>() {
            payload::<E>(record).write(envelope);
        } else {
            payload::<Box<E>>(record).write(Box::new(envelope));
        }
    }
}

/// Returns the envelope in its record.
///
/// # Safety
/// The same as for [`unwrap`]; the record is neither consumed nor accessed in another way while the reference is used.
pub(crate) unsafe fn peek<'a, E>(record: NonNull<Record>) -> &'a mut E {
    // SAFETY: the record holds an `E`, and no other access overlaps with the reference.
    unsafe { if is_inline::<E>() { &mut *payload::<E>(record) } else { &mut *payload::<Box<E>>(record) } }
}

/// Moves the envelope out of its record.
///
/// # Safety
/// The record was written by [`write()`] for the same `E`, and its payload was not consumed.
#[inline(always)]
pub(crate) unsafe fn unwrap<E>(record: NonNull<Record>) -> E {
    // SAFETY: the record holds an `E`; it is consumed, and the payload is therefore moved out once.
    unsafe { if is_inline::<E>() { payload::<E>(record).read() } else { *payload::<Box<E>>(record).read() } }
}

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

/// Returns the answer of `ask` about the envelope in `record`. If `ask` panics, the envelope is dropped during the
/// panic.
///
/// # Safety
/// The record holds an `E`, and is not touched again after a panic.
#[inline(always)]
pub(crate) unsafe fn drop_on_panic<E, R>(record: NonNull<Record>, ask: impl FnOnce(&mut E) -> R) -> R {
    struct DropOnPanic<E>(NonNull<Record>, std::marker::PhantomData<E>);
    impl<E> Drop for DropOnPanic<E> {
        fn drop(&mut self) {
            // The guard has panicked. A second panic, in the drop of the message, would abort the process.
            // SAFETY: the record holds an `E`, and is not touched again after a panic.
            contained(|| drop(unsafe { unwrap::<E>(self.0) }));
        }
    }
    let lose = DropOnPanic::<E>(record, std::marker::PhantomData);
    // SAFETY: the record holds an `E`; nothing is consumed during the call.
    let said = ask(unsafe { peek::<E>(record) });
    std::mem::forget(lose);
    said
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
        Admission::Wait => return Some(WAITS),
        // SAFETY: the record holds an `E`, which is consumed once.
        Admission::Drop => drop(unsafe { unwrap::<E>(record) }),
        // SAFETY: the record holds an `E`, which is consumed once.
        Admission::Bounce(why) => unsafe {
            quietly(record.as_ref().is_from_hook(), || bounce(unwrap::<E>(record), why));
        },
    }
    Some(CONTINUE)
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
            Op::Describe => Described::note::<S>(E::describe(), false, 0),
            Op::Weigh => Described::note::<S>(E::describe(), false, drop_on_panic(record, |e: &mut E| e.bytes())),
            Op::Ask => ask_guard(record, |e: &mut E, state, cx| e.admission(state, cx)),
            Op::Bounce(why) => {
                unwrap::<E>(record).bounce(why);
                CONTINUE
            }
            _ => {
                let mut cx = AwayCx::<S>::new(record);
                unwrap::<E>(record).send_on(&mut cx);
                cx.outcome()
            }
        }
    }
}

/// Consumes a record that cannot be delivered.
///
/// # Safety
/// The record is whole, and its payload was not consumed.
pub(crate) unsafe fn bounce(record: NonNull<Record>, why: Undelivered) {
    // SAFETY: the record is whole, and its payload was not consumed.
    unsafe { bounce_or_forward(record, Op::Bounce(why)) };
}

/// Consumes a record that cannot be delivered by this cell, by `Op::Bounce` or `Op::Away`. If a dead-letter hook has
/// sent it, no hook is called for it.
///
/// # Safety
/// The conditions of the record's thunk.
pub(crate) unsafe fn bounce_or_forward(record: NonNull<Record>, op: Op) -> Outcome {
    // SAFETY: the caller fulfils the conditions of the record's thunk.
    unsafe { quietly(record.as_ref().is_from_hook(), || (record.as_ref().thunk)(record, op)) }
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
    if matches!(admission, Admission::Wait) { WAITS } else { CONTINUE }
}

/// # Safety
/// The same as for [`run_sync`], and the cell has the status NEW.
unsafe fn run_first<S: Resident, E: Envelope<S>>(record: NonNull<Record>, op: Op) -> Outcome {
    // SAFETY: the record holds an `E` for a cell of kind `S`, which this thread runs.
    unsafe {
        if matches!(op, Op::Describe | Op::Weigh) {
            return Described::note::<S>((MailKind::Start, E::describe().1), false, 0);
        }
        if op != Op::Run {
            return do_not_run_sync::<S, E>(record, op);
        }
        let cell = record.as_ref().cell;
        let mut late = None;
        if cell.as_ref().has_status(status::DEFERRABLE) {
            late = DeferredStart::of(record);
            if late.is_none() {
                return PASSED;
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
        Some(cold) if outcome == CONTINUE => {
            if std::mem::take(&mut cold.stop_after) {
                STOP
            } else {
                RESUME
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
                    None => future::start::<S, E>(cell, unwrap::<E>(record)),
                }
            }
            Op::Bounce(why) => {
                unwrap::<E>(record).bounce(why);
                CONTINUE
            }
            Op::Away | Op::Frozen => {
                let mut cx = AwayCx::<S>::new(record);
                unwrap::<E>(record).send_on(&mut cx);
                cx.outcome()
            }
            Op::Describe => Described::note::<S>(E::describe(), true, 0),
            Op::Weigh => Described::note::<S>(E::describe(), true, drop_on_panic(record, |e: &mut E| e.bytes())),
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
            Op::Frozen if !peek::<C>(record).passes() => return WAITS,
            Op::Frozen if away => Op::Away,
            Op::Frozen => Op::Run,
            Op::Describe => {
                let about = peek::<C>(record).describe();
                return Described::note::<S>(about, about.0 == MailKind::WakeUp, 0);
            }
            // Requests have no bound, whatever they say of their kind.
            Op::Weigh => return Described::note::<S>((MailKind::Control, "control"), false, 0),
            Op::Ask => return CONTINUE,
            op => op,
        };
        let control = unwrap::<C>(record);
        match op {
            Op::Bounce(why) => {
                control.bounce(why);
                CONTINUE
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

/// The largest record: one with its permit and a cause.
const LOOSE_BYTES: usize = record_bytes::<WithPermit>() + HEAD_BYTES + INLINE_BYTES_MAX + CAUSE_BYTES;
const _: () = assert!(LOOSE_BYTES / 8 <= WORDS as usize);

/// Room on the stack for one record, for senders that have no log of their own.
#[repr(C, align(8))]
pub(crate) struct Loose {
    bytes: ManuallyDrop<[MaybeUninit<u8>; LOOSE_BYTES]>,
}

impl Loose {
    pub(crate) fn new() -> Self {
        Loose { bytes: ManuallyDrop::new([MaybeUninit::uninit(); LOOSE_BYTES]) }
    }

    /// Writes `mail` into this room. The caller moves the bytes on or consumes the record, because the room drops
    /// nothing.
    pub(crate) fn write<S: Resident, D: Deliverable<S>>(
        &mut self,
        mail: D,
        cell: NonNull<Cell>,
        identity: u64,
    ) -> NonNull<Record> {
        let target = self.bytes.as_mut_ptr().cast::<u8>();
        // SAFETY: the room is large enough for any record (payloads above INLINE_BYTES_MAX are boxed), and aligned.
        unsafe {
            mail.write_record(target, cell, identity);
            NonNull::new_unchecked(target.cast())
        }
    }

    /// Does the same as [`Loose::write`]. If the message in `own` is not droppable, it is moved behind its permit.
    ///
    /// # Safety
    /// `own` is a whole record without a cause for which `permit` was found.
    pub(crate) unsafe fn write_with_permit(&mut self, permit: WithPermit, own: NonNull<Record>) -> NonNull<Record> {
        let target = self.bytes.as_mut_ptr().cast::<u8>();
        // SAFETY: the room is large enough for both records, and aligned; the thunk is that of a `WithPermit`.
        unsafe {
            let (cell, tag, is_behind) = (own.as_ref().cell, own.as_ref().tag, matches!(permit, WithPermit::Inline(_)));
            write(target, PERMITTED, cell, tag, 0, permit);
            let mut record = NonNull::new_unchecked(target.cast::<Record>());
            if is_behind {
                let bytes = own.as_ref().bytes();
                ptr::copy_nonoverlapping(own.as_ptr().cast::<u8>(), behind_permit(record).as_ptr().cast(), bytes);
                record.as_mut().tag += (bytes / 8) as u64;
            }
            record
        }
    }
}

/// Returns the record of a message that lies behind its permit in `record`.
///
/// # Safety
/// A whole record with a [`WithPermit`].
pub(crate) unsafe fn behind_permit(record: NonNull<Record>) -> NonNull<Record> {
    // SAFETY: the record is whole, and the address is within it, or just behind it.
    unsafe { record.byte_add(record_bytes::<WithPermit>()) }
}

/// Returns the answer of the guard of the message in `own` ([`Op::Ask`]). If the guard panics, the message is lost.
///
/// # Safety
/// `own` is a whole record that came in `record`, whose cell is resident and run by this thread.
pub(crate) unsafe fn ask_own(mut own: NonNull<Record>, record: NonNull<Record>) -> Outcome {
    // SAFETY: `own` is whole, and this thread runs the cell of `record`.
    unsafe {
        own.as_mut().follow(record.as_ref());
        (own.as_ref().thunk)(own, Op::Ask)
    }
}

/// Applies `op`, the operation for `record`, to the message in `own`, which came in `record`.
///
/// # Safety
/// `own` is a whole record, and fulfils the conditions of its thunk on the cell of `record`.
pub(crate) unsafe fn run_own(mut own: NonNull<Record>, record: NonNull<Record>, op: Op) -> Outcome {
    // SAFETY: `own` fulfils the conditions of its thunk; the thunk consumes it, or it is moved to the list of those
    // that wait.
    unsafe {
        own.as_mut().follow(record.as_ref());
        let outcome = (own.as_ref().thunk)(own, op);
        if outcome != WAITS {
            return outcome;
        }
        // The guard has changed its answer since it was asked.
        crate::worker::current().expect("mail is run on a worker").wait_for_guard(own);
        PASSED
    }
}

/// A record in memory of its own. Its drop does not consume the record, and the payload is then lost.
pub(crate) struct Kept(Box<[MaybeUninit<u64>]>);

impl Kept {
    /// # Safety
    /// The record is whole, and the caller owns it and gives it up.
    pub(crate) unsafe fn of(record: NonNull<Record>) -> Kept {
        // SAFETY: the caller gives up a whole record; records are aligned to 8, and their sizes are multiples of that.
        unsafe {
            let words = record.as_ref().bytes() / 8;
            let mut place = Box::new_uninit_slice(words);
            ptr::copy_nonoverlapping(record.as_ptr().cast::<MaybeUninit<u64>>(), place.as_mut_ptr(), words);
            Kept(place)
        }
    }

    pub(crate) fn record(&mut self) -> NonNull<Record> {
        NonNull::from(&mut *self.0).cast()
    }
}

/// Type-erased operations on a cell's state, one static per resident type.
pub(crate) struct KindOf<S>(std::marker::PhantomData<S>);

impl<S: Resident> KindOf<S> {
    pub(crate) const KIND: &'static Kind = &Kind {
        class: crate::memory::slab::class_of::<S>(),
        type_id: std::any::TypeId::of::<S>,
        name: S::name,
        stop: stop::<S>,
        crash: crash::<S>,
        go_on: |to| crate::message::send::post_request::<S, _>(to, ControlMail(GoOn)),
    };
}

/// # Safety
/// The cell holds an `S` that nothing borrows; afterwards it holds none.
unsafe fn stop<S: Resident>(cell: NonNull<Cell>, ending: crate::message::envelope::Ending) {
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
        let ending = if unstarted { crate::message::envelope::Ending::Killed } else { ending };
        let mut cx = Cx::<S>::new(cell);
        // The waiting messages are bounced after the end was reported, like those that are still queued, because a
        // watcher may learn the reason first.
        let waited = Cell::cold(cell).as_mut().map(|cold| cold.deferred.take());
        let extra = if has_cold { take_extra(cell) } else { None };
        let extra = extra.map(|any| any.downcast::<S::Extra>().expect("the extra part of a cell has its own type"));
        contained(|| Cell::state::<S>(cell).ended(extra, ending, &mut cx));
        if let Some(waited) = waited {
            crate::worker::message_queue::bounce_chain(waited, Undelivered::Stopped);
        }
        // A cold part that the hook has made goes with the state.
        if Cell::cold(cell).is_some() {
            drop_suspended(cell);
            let left = take_extra(cell);
            contained(|| drop(left));
        }
        if crate::memory::slab::is_inline::<S>() && !std::mem::needs_drop::<S>() {
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
        crate::worker::message_queue::bounce_chain(cold.deferred.take(), Undelivered::Stopped);
    }
}

/// # Safety
/// The same as for [`stop`].
#[inline(never)]
pub(crate) unsafe fn drop_suspended(cell: NonNull<Cell>) {
    // SAFETY: this thread runs the cell's stage, and holds no other reference to the cold part.
    if let Some(suspended) = unsafe { Cell::cold(cell) }.as_mut().and_then(|cold| cold.suspended.take()) {
        contained(|| drop(suspended));
    }
}

/// # Safety
/// The same as for [`stop`].
#[inline(never)]
unsafe fn take_extra(cell: NonNull<Cell>) -> Option<Box<dyn Any + Send>> {
    // SAFETY: this thread runs the cell's stage, and holds no other reference to the cold part.
    let mut cold = unsafe { Cell::cold(cell) }.take()?;
    let extra = cold.extra.take();
    crate::worker::message_queue::bounce_chain(cold.deferred.take(), Undelivered::Stopped);
    extra
}

/// # Safety
/// The cell holds an `S` that nothing else borrows.
unsafe fn crash<S: Resident>(cell: NonNull<Cell>, error: crate::message::envelope::Crash) -> Outcome {
    // SAFETY: nothing else borrows the state; a crashed async handler's future is dropped before the state is touched.
    unsafe {
        drop_suspended(cell);
        let mut cx = ControlCx::<S>::new(cell);
        // An actor whose supervision has panicked ends, and no further hook is called.
        contained(|| S::crashed(error, &mut cx)).map_or(KILL, |()| cx.outcome())
    }
}

impl Cold {
    pub(crate) fn new() -> Box<Cold> {
        Box::new(Cold {
            suspended: None,
            waking: None,
            deferred: Deferred::default(),
            route: None,
            stop_after: false,
            handled_ns: 0,
            failure: None,
            extra: None,
        })
    }
}
