//! Records: a message in its envelope, as it lies in a segment.

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
use crate::message::mailbox::WithPermit;
use crate::message::permit::PERMITTED;
use crate::migration::stub::AwayCx;
use crate::worker::deferred_starts::DeferredStart;
use crate::worker::user_code::{contained, during};

/// What a thunk is asked to do with its record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Op {
    /// Run the envelope on the state of the cell. The cell is resident and this worker runs its stage.
    Run,
    /// The envelope cannot be delivered: consume it.
    Bounce(Undelivered),
    /// The actor is elsewhere: send the envelope on. The cell has the status AWAY and this worker runs its stage.
    Away,
    /// For control mail: as `Run` or `Away` if it passes a frozen cell; if not, return `WAITS` and consume nothing.
    Frozen,
    /// Say what it is ([`described`]); return `WAITS` and consume nothing.
    Describe,
    /// As `Describe`, with what it takes of a mailbox ([`weighed`]). For messages; consumed by a panic.
    Weigh,
    /// As for `Run`, for a message: return `WAITS` if its guard says that it has to wait, else `CONTINUE`, and consume nothing. Consumed by a
    /// panic.
    Ask,
}

thread_local! {
    /// What the last record that was asked is, and whom it is for. Not an argument of the thunks: those are called for each
    /// message, and this is asked only where messages are delivered one at a time.
    static DESCRIBED: StdCell<Option<Described>> = const { StdCell::new(None) };
}

/// What a record is, and the type that it is for.
#[derive(Clone, Copy)]
pub(crate) struct Described {
    pub(crate) actor: &'static str,
    pub(crate) kind: MailKind,
    pub(crate) name: &'static str,
    /// Whether its handler may wait.
    pub(crate) may_wait: bool,
    /// It was dropped for another one: its record is still here, and nothing in it.
    pub(crate) is_gone: bool,
    /// What it takes of a mailbox, if that was asked for.
    pub(crate) bytes: usize,
}

impl Described {
    fn note<S: Resident>((kind, name): (MailKind, &'static str), may_wait: bool, bytes: usize) -> Outcome {
        Described { actor: S::name(), kind, name, may_wait, is_gone: false, bytes }.say()
    }

    /// The answer of a thunk that is asked.
    pub(crate) fn say(self) -> Outcome {
        DESCRIBED.set(Some(self));
        WAITS
    }
}

/// What `record` is.
///
/// # Safety
/// A whole record whose payload was not consumed.
pub(crate) unsafe fn described(record: NonNull<Record>) -> Described {
    // SAFETY: by the contract; nothing is consumed.
    unsafe { told(record, Op::Describe) }
}

/// What `record` is, and what it takes of a mailbox.
///
/// # Safety
/// A whole record whose payload was not consumed. By a panic it is.
pub(crate) unsafe fn weighed(record: NonNull<Record>) -> Described {
    // SAFETY: by the contract.
    unsafe { told(record, Op::Weigh) }
}

/// # Safety
/// As for `op`.
unsafe fn told(record: NonNull<Record>, op: Op) -> Described {
    // SAFETY: by the contract.
    unsafe { (record.as_ref().thunk)(record, op) };
    DESCRIBED.take().expect("every record that is not buried says what it is")
}

/// What the worker has to do after a thunk returned. Zero is the common case.
pub(crate) type Outcome = u32;
/// Go on.
pub(crate) const CONTINUE: Outcome = 0;
/// The actor stops.
pub(crate) const STOP: Outcome = 1;
/// The actor was killed: as stop, without the hooks.
pub(crate) const KILL: Outcome = 2;
/// The actor may run its deferred messages again.
pub(crate) const RESUME: Outcome = 3;
/// The actor failed on its own account (`Cx::fail`): the error is in its cold part.
pub(crate) const FAIL: Outcome = 4;

/// The record was moved elsewhere before, or had nothing in it any more: it does not count.
pub(crate) const PASSED: Outcome = 5;

/// The cell is frozen, and this does not pass it; or its guard does not hold: the record was not consumed.
pub(crate) const WAITS: Outcome = 6;

/// Consumes the record. Called exactly once for each record, but for one that [waits](WAITS).
pub(crate) type Thunk = unsafe fn(NonNull<Record>, Op) -> Outcome;

/// Payloads up to this size travel inline; larger ones (and over-aligned ones) are boxed once at the send.
pub const INLINE_BYTES_MAX: usize = 256;

const WORDS: u64 = 0x07ff;
/// A dead-letter hook has sent the message.
const FROM_HOOK: u64 = 0x0800;
/// The last word is what caused the message: see `observed.rs`.
const CAUSED: u64 = 0x1000;
const LANE_SHIFT: u32 = 13;
const LANE: u64 = 3 << LANE_SHIFT;
pub(crate) const CONTROL: u64 = 0x8000;
pub(crate) const IDENTITY: u64 = !0xffff;

/// The head of a record; its payload follows.
///
/// `tag` is `generation:32 | stage:16 | control:1 | lane:2 | caused:1 | from_hook:1 | words:11`. Its upper 48 bits are compared with the tag of the
/// cell at delivery: the liveness check, the residency check and the "is it suspended?" check in one.
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

    /// The tag that the cell has when this record can be run right away.
    #[inline(always)]
    pub(crate) fn resident_tag(&self) -> u64 {
        self.tag & IDENTITY
    }

    #[inline(always)]
    pub(crate) fn stage(&self) -> u16 {
        (self.tag >> 16) as u16
    }

    /// Whether it passes by a suspended actor's deferred list.
    pub(crate) fn is_control(&self) -> bool {
        self.tag & CONTROL != 0
    }

    /// The lane it was sent in. It is kept in the record, so that older urgent mail stays before newer wherever the two
    /// are put.
    pub(crate) fn lane(&self) -> Lane {
        match (self.tag & LANE) >> LANE_SHIFT {
            0 => Lane::Normal,
            1 => Lane::Urgent,
            _ => Lane::System,
        }
    }

    /// Whether a dead-letter hook has sent it.
    pub(crate) fn is_from_hook(&self) -> bool {
        self.tag & FROM_HOOK != 0
    }

    /// A dead-letter hook sends it.
    pub(crate) fn mark_from_hook(&mut self) {
        self.tag |= FROM_HOOK;
    }

    /// It is for the cell that `other` is for, of its lane, and from whom that is.
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

    /// What caused it, if that is known.
    pub(crate) fn cause(&self) -> Option<NonZeroU64> {
        if self.tag & CAUSED == 0 {
            return None;
        }
        // SAFETY: by the bit, the last of the record's words is the cause.
        unsafe { NonZeroU64::new(ptr::from_ref(self).byte_add(self.bytes() - CAUSE_BYTES).cast::<u64>().read()) }
    }

    /// Turns the record into one that does nothing: its payload was moved elsewhere.
    pub(crate) fn bury(&mut self) {
        self.thunk = NOTHING;
        self.tag |= CONTROL;
    }

    pub(crate) fn is_buried(&self) -> bool {
        ptr::fn_addr_eq(self.thunk, NOTHING)
    }
}

/// The thunk of buried records. A static, and not inlined: it is told from others by its address, and a function may have one for each
/// unit that the crate is compiled in.
static NOTHING: Thunk = nothing;

#[inline(never)]
unsafe fn nothing(_: NonNull<Record>, _: Op) -> Outcome {
    PASSED
}

/// Bytes that a cause adds to a record.
pub(crate) const CAUSE_BYTES: usize = 8;

/// Puts `cause` behind the record, which is `CAUSE_BYTES` longer by that.
///
/// # Safety
/// A whole record without a cause that the caller owns, and the bytes behind it are valid for writes.
pub(crate) unsafe fn put_cause(mut record: NonNull<Record>, cause: NonZeroU64) {
    // SAFETY: by the contract; records are aligned to 8, and so is what is behind them.
    unsafe {
        record.byte_add(record.as_ref().bytes()).cast::<u64>().write(cause.get());
        record.as_mut().tag = (record.as_ref().tag + (CAUSE_BYTES / 8) as u64) | CAUSED;
    }
}

/// Bytes of the record of an `E`, a multiple of eight.
#[inline(always)]
pub const fn record_bytes<E>() -> usize {
    HEAD_BYTES + if is_inline::<E>() { size_of::<E>().next_multiple_of(8) } else { 8 }
}

const fn is_inline<E>() -> bool {
    size_of::<E>() <= INLINE_BYTES_MAX && align_of::<E>() <= 8
}

#[inline(always)]
unsafe fn payload<E>(record: NonNull<Record>) -> *mut E {
    // SAFETY: the caller has a record with an `E`: its payload follows the head.
    unsafe { record.as_ptr().cast::<u8>().add(HEAD_BYTES).cast() }
}

/// Writes the record of `envelope` at `target`.
///
/// # Safety
/// `target` is valid for writes of `record_bytes::<E>()` bytes and aligned to 8. `thunk` is a thunk for `E`.
#[inline(always)]
unsafe fn write<E: Send>(target: *mut u8, thunk: Thunk, cell: NonNull<Cell>, identity: u64, control: u64, envelope: E) {
    let words = (record_bytes::<E>() / 8) as u64;
    // SAFETY: by the contract.
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

/// The envelope in its record.
///
/// # Safety
/// As [`unwrap`]; the record is not consumed, and not looked at in another way, while the reference is used.
pub(crate) unsafe fn peek<'a, E>(record: NonNull<Record>) -> &'a mut E {
    // SAFETY: by the contract.
    unsafe { if is_inline::<E>() { &mut *payload::<E>(record) } else { &mut *payload::<Box<E>>(record) } }
}

/// Moves the envelope out of its record.
///
/// # Safety
/// The record was written by [`write()`] for the same `E`, and its payload is still there.
#[inline(always)]
pub(crate) unsafe fn unwrap<E>(record: NonNull<Record>) -> E {
    // SAFETY: by the contract; the record is consumed, so the payload is moved out once.
    unsafe { if is_inline::<E>() { payload::<E>(record).read() } else { *payload::<Box<E>>(record).read() } }
}

/// A kind of envelope that can be put into a record for a cell with an `S`.
pub(crate) trait Deliverable<S: Resident>: Send + Sized + 'static {
    const THUNK: Thunk;
    const IS_CONTROL: bool;

    /// # Safety
    /// As [`write()`].
    #[inline(always)]
    unsafe fn write_record(self, target: *mut u8, cell: NonNull<Cell>, identity: u64) {
        let control = if Self::IS_CONTROL { CONTROL } else { 0 };
        // SAFETY: by the contract; THUNK is the thunk for Self.
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

/// As [`ControlMail`], but it waits its turn behind the messages that were sent before it.
#[repr(transparent)]
pub(crate) struct OrderedMail<C>(pub(crate) C);

impl<S: Resident, C: Control<S>> Deliverable<S> for OrderedMail<C> {
    const THUNK: Thunk = run_control::<S, C>;
    const IS_CONTROL: bool = false;
}

/// # Safety
/// A thunk: the record holds an `E` for a cell of kind `S`; for `Op::Run` the cell is resident, ordinary, and its
/// stage is run by this thread (I1), so the state is not borrowed by anybody else.
unsafe fn run_sync<S: Resident, E: Envelope<S>>(record: NonNull<Record>, op: Op) -> Outcome {
    // SAFETY: by the contract.
    unsafe {
        if op != Op::Run {
            return do_not_run_sync::<S, E>(record, op);
        }
        let cell = record.as_ref().cell;
        let (state, mut cx) = (Cell::state::<S>(cell), Cx::new(cell));
        let turned_away = during(E::describe, || {
            let turned_away = turn_away(record, |e: &mut E| e.admission(state, &mut cx), E::bounce);
            if turned_away.is_none() {
                unwrap::<E>(record).run(state, &mut cx);
            }
            turned_away
        });
        cx.note_failure(E::describe);
        turned_away.unwrap_or(cx.outcome())
    }
}

/// What `ask` says of the envelope in `record`, which is dropped while a panic in there goes on.
///
/// # Safety
/// The record holds an `E`, and is not touched again after a panic.
#[inline(always)]
pub(crate) unsafe fn or_lose<E, R>(record: NonNull<Record>, ask: impl FnOnce(&mut E) -> R) -> R {
    struct Lose<E>(NonNull<Record>, std::marker::PhantomData<E>);
    impl<E> Drop for Lose<E> {
        fn drop(&mut self) {
            // The guard has panicked. A second panic, in the drop of the message, would abort the process.
            // SAFETY: the contract of `or_lose`.
            contained(|| drop(unsafe { unwrap::<E>(self.0) }));
        }
    }
    let lose = Lose::<E>(record, std::marker::PhantomData);
    // SAFETY: by the contract; nothing is consumed meanwhile.
    let said = ask(unsafe { peek::<E>(record) });
    std::mem::forget(lose);
    said
}

/// Asks an envelope for its [`Admission`]. Some: it is not to be run now, and the record waits or was consumed. Where all
/// that `admission` ever says is `Run`, this is nothing once compiled.
///
/// # Safety
/// The record holds an `E`.
#[inline(always)]
unsafe fn turn_away<E>(
    record: NonNull<Record>,
    admission: impl FnOnce(&mut E) -> Admission,
    bounce: impl FnOnce(E, Undelivered),
) -> Option<Outcome> {
    // A guard that panics crashes its actor, and its message is lost by that.
    // SAFETY: by the contract; a record whose run has panicked is not touched again.
    let admission = unsafe { or_lose(record, admission) };
    match admission {
        Admission::Run => return None,
        Admission::Wait => return Some(WAITS),
        // SAFETY: by the contract; the record is consumed here.
        Admission::Drop => drop(unsafe { unwrap::<E>(record) }),
        // SAFETY: as above.
        Admission::Bounce(why) => unsafe {
            quietly(record.as_ref().is_from_hook(), || bounce(unwrap::<E>(record), why));
        },
    }
    Some(CONTINUE)
}

/// Kept apart: inlined, it made each message pay for the registers that a dead letter needs (3 ns).
///
/// # Safety
/// As [`run_sync`].
#[cold]
#[inline(never)]
unsafe fn do_not_run_sync<S: Resident, E: Envelope<S>>(record: NonNull<Record>, op: Op) -> Outcome {
    // SAFETY: by the contract.
    unsafe {
        match op {
            Op::Describe => Described::note::<S>(E::describe(), false, 0),
            Op::Weigh => Described::note::<S>(E::describe(), false, or_lose(record, |e: &mut E| e.bytes())),
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

/// Consumes what cannot be delivered.
///
/// # Safety
/// A whole record whose payload was not consumed.
pub(crate) unsafe fn bounce(record: NonNull<Record>, why: Undelivered) {
    // SAFETY: by the contract.
    unsafe { turn_back(record, Op::Bounce(why)) };
}

/// Consumes what cannot be delivered here, by `Op::Bounce` or `Op::Away`. If a dead-letter hook has sent it, no hook is told of that.
///
/// # Safety
/// The contract of the record's thunk.
pub(crate) unsafe fn turn_back(record: NonNull<Record>, op: Op) -> Outcome {
    // SAFETY: by the contract.
    unsafe { quietly(record.as_ref().is_from_hook(), || (record.as_ref().thunk)(record, op)) }
}

/// What a thunk answers to [`Op::Ask`].
///
/// # Safety
/// As [`run_sync`].
unsafe fn ask_guard<S: Resident, E>(
    record: NonNull<Record>,
    admission: impl FnOnce(&mut E, &mut S, &mut Cx<S>) -> Admission,
) -> Outcome {
    // SAFETY: by the contract.
    let admission = unsafe {
        let cell = record.as_ref().cell;
        or_lose(record, |e| admission(e, Cell::state::<S>(cell), &mut Cx::new(cell)))
    };
    if matches!(admission, Admission::Wait) { WAITS } else { CONTINUE }
}

/// # Safety
/// As [`run_sync`], and the cell has the status NEW.
unsafe fn run_first<S: Resident, E: Envelope<S>>(record: NonNull<Record>, op: Op) -> Outcome {
    // SAFETY: by the contract.
    unsafe {
        if matches!(op, Op::Describe | Op::Weigh) {
            return Described::note::<S>((MailKind::Start, E::describe().1), false, 0);
        }
        if op != Op::Run {
            return do_not_run_sync::<S, E>(record, op);
        }
        let cell = record.as_ref().cell;
        let mut late = None;
        if cell.as_ref().has_status(status::LATE) {
            late = DeferredStart::of(record);
            if late.is_none() {
                return PASSED;
            }
        }
        cell.as_ref().set_status(status::NEW | status::LATE, false);
        let outcome = run_sync::<S, E>(record, op);
        drop(late);
        after_first(cell, outcome)
    }
}

/// Returns the outcome of a start: that of its message, or that the actor stops or runs its deferred messages.
///
/// # Safety
/// As [`run_first`].
#[inline(never)]
unsafe fn after_first(cell: NonNull<Cell>, outcome: Outcome) -> Outcome {
    // SAFETY: by the contract.
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
/// As [`run_sync`].
unsafe fn run_async<S: Resident, E: AsyncEnvelope<S>>(record: NonNull<Record>, op: Op) -> Outcome {
    // SAFETY: by the contract.
    unsafe {
        match op {
            Op::Run => {
                let cell = record.as_ref().cell;
                let admission = |e: &mut E| e.admission(Cell::state::<S>(cell), &mut Cx::new(cell));
                match during(E::describe, || turn_away(record, admission, E::bounce)) {
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
            Op::Weigh => Described::note::<S>(E::describe(), true, or_lose(record, |e: &mut E| e.bytes())),
            Op::Ask => ask_guard(record, |e: &mut E, state, cx| e.admission(state, cx)),
        }
    }
}

/// # Safety
/// As [`run_sync`], but the cell may be suspended: then the state is borrowed by its future.
unsafe fn run_control<S: Resident, C: Control<S>>(record: NonNull<Record>, op: Op) -> Outcome {
    // SAFETY: by the contract.
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
            // Nobody bounds requests, whatever they say that they are.
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

/// The largest record, in one with its place, with a cause.
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

    /// Writes `mail` here. The caller moves the bytes on or consumes the record: nothing is dropped here.
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

    /// As [`Loose::write`]; where the message in `own` is not on a shelf, it is moved behind its place.
    ///
    /// # Safety
    /// `own` is a whole record without a cause for which `placed` was found.
    pub(crate) unsafe fn write_with_permit(&mut self, placed: WithPermit, own: NonNull<Record>) -> NonNull<Record> {
        let target = self.bytes.as_mut_ptr().cast::<u8>();
        // SAFETY: the room is large enough for both records, and aligned; the thunk is that of a `Placed`.
        unsafe {
            let (cell, tag, is_here) = (own.as_ref().cell, own.as_ref().tag, matches!(placed, WithPermit::Here(_)));
            write(target, PERMITTED, cell, tag, 0, placed);
            let mut record = NonNull::new_unchecked(target.cast::<Record>());
            if is_here {
                let bytes = own.as_ref().bytes();
                ptr::copy_nonoverlapping(own.as_ptr().cast::<u8>(), carried(record).as_ptr().cast(), bytes);
                record.as_mut().tag += (bytes / 8) as u64;
            }
            record
        }
    }
}

/// The record of a message that lies behind its place in `record`.
///
/// # Safety
/// A whole record with a [`Placed`].
pub(crate) unsafe fn carried(record: NonNull<Record>) -> NonNull<Record> {
    // SAFETY: by the contract, within the record, or just behind it.
    unsafe { record.byte_add(record_bytes::<WithPermit>()) }
}

/// What the guard of the message in `own` says ([`Op::Ask`]). If it panics, the message is lost.
///
/// # Safety
/// A whole record that came in `record`, whose cell is resident and run by this thread.
pub(crate) unsafe fn ask_own(mut own: NonNull<Record>, record: NonNull<Record>) -> Outcome {
    // SAFETY: by the contract.
    unsafe {
        own.as_mut().follow(record.as_ref());
        (own.as_ref().thunk)(own, Op::Ask)
    }
}

/// Does with the message in `own` what is to be done with `record`, in which it came.
///
/// # Safety
/// A whole record, and as for its thunk on the cell of `record`.
pub(crate) unsafe fn run_own(mut own: NonNull<Record>, record: NonNull<Record>, op: Op) -> Outcome {
    // SAFETY: by the contract; the record is consumed by its thunk, or moved to the list of those that wait.
    unsafe {
        own.as_mut().follow(record.as_ref());
        let outcome = (own.as_ref().thunk)(own, op);
        if outcome != WAITS {
            return outcome;
        }
        // Its guard has changed its mind since it was asked.
        crate::worker::current().expect("mail is run on a worker").wait_for_guard(own);
        PASSED
    }
}

/// A record in a place of its own. Not consumed when this is dropped: what is in it is lost then.
pub(crate) struct Kept(Box<[MaybeUninit<u64>]>);

impl Kept {
    /// # Safety
    /// A whole record that the caller owns, and gives up.
    pub(crate) unsafe fn of(record: NonNull<Record>) -> Kept {
        // SAFETY: by the contract; records are aligned to 8, and their sizes are multiples of that.
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
/// The cell holds an `S` that nobody borrows; afterwards it holds none.
unsafe fn stop<S: Resident>(cell: NonNull<Cell>, ending: crate::message::envelope::Ending) {
    // SAFETY: by the contract. The future, if any, borrows the state and goes first. A panic in one of the steps is reported by the panic
    // hook. It neither keeps the next steps from being taken nor reaches the caller, who may be another actor.
    unsafe {
        if cell.as_ref().has_status(status::AWAY) {
            return forget(cell);
        }
        // Few actors have a cold part.
        let has_cold = Cell::cold(cell).is_some();
        if has_cold {
            drop_suspended(cell);
        }
        // An actor that was never started has no end to tell of.
        let unstarted = cell.as_ref().has_status(status::NEW);
        let ending = if unstarted { crate::message::envelope::Ending::Killed } else { ending };
        let mut cx = Cx::<S>::new(cell);
        // What has waited is bounced when its end was told, as what is still queued: who watches it may be told why.
        let waited = Cell::cold(cell).as_mut().map(|cold| cold.deferred.take());
        let extra = if has_cold { take_extra(cell) } else { None };
        let extra = extra.map(|any| any.downcast::<S::Extra>().expect("the extra part of a cell has its own type"));
        contained(|| Cell::state::<S>(cell).ended(extra, ending, &mut cx));
        if let Some(waited) = waited {
            crate::worker::queue::bounce_chain(waited, Undelivered::Stopped);
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
/// As [`stop`], and nothing lives there; what was known of the actor's whereabouts goes.
#[inline(never)]
unsafe fn forget(cell: NonNull<Cell>) {
    // SAFETY: by the contract.
    if let Some(mut cold) = unsafe { Cell::cold(cell) }.take() {
        crate::worker::queue::bounce_chain(cold.deferred.take(), Undelivered::Stopped);
    }
}

/// # Safety
/// As [`stop`].
#[inline(never)]
pub(crate) unsafe fn drop_suspended(cell: NonNull<Cell>) {
    // SAFETY: by the contract.
    if let Some(suspended) = unsafe { Cell::cold(cell) }.as_mut().and_then(|cold| cold.suspended.take()) {
        contained(|| drop(suspended));
    }
}

/// # Safety
/// As [`stop`].
#[inline(never)]
unsafe fn take_extra(cell: NonNull<Cell>) -> Option<Box<dyn Any + Send>> {
    // SAFETY: by the contract.
    let mut cold = unsafe { Cell::cold(cell) }.take()?;
    let extra = cold.extra.take();
    crate::worker::queue::bounce_chain(cold.deferred.take(), Undelivered::Stopped);
    extra
}

/// # Safety
/// The cell holds an `S` that nobody else borrows.
unsafe fn crash<S: Resident>(cell: NonNull<Cell>, error: crate::message::envelope::Crash) -> Outcome {
    // SAFETY: by the contract; a crashed async handler's future is dropped before the state is touched.
    unsafe {
        drop_suspended(cell);
        let mut cx = ControlCx::<S>::new(cell);
        // An actor whose supervision has panicked ends, and nothing more is asked of it.
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
