//! Records: the form of a message and its envelope in a segment.

use std::cell::Cell as StdCell;
use std::mem::MaybeUninit;
use std::num::NonZeroU64;
use std::ptr::{self, NonNull};

use crate::memory::cell::Cell;
use crate::memory::raw_address::Lane;
use crate::user_code::contained;
use crate::user_code::mail_kind::MailKind;

/// The reason why an envelope was not run.
///
/// # Examples
///
/// ```
/// # use playhouse_executor::Undelivered;
/// // A dead letter is worth a line in the log, except at the end of the program.
/// fn is_worth_a_line(why: Undelivered) -> bool {
///     why != Undelivered::Shutdown
/// }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Undelivered {
    /// The actor had stopped before the message reached it, or stopped with the message still waiting.
    Stopped,
    /// The system was shut down.
    Shutdown,
    /// The actor is in another theater, and the message could not be forwarded.
    Unreachable,
    /// The actor does not take the message now: its guard did not hold, and refuses the message then.
    Refused,
    /// The actor's [mailbox](crate::Mailbox) was full: the message was rejected, or was dropped for a newer one.
    Full,
}

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
    /// For control mail: the same as `Run` or `Away` if it passes a frozen cell; if not, return `Waits` and consume
    /// nothing.
    Frozen,
    /// Describe the record ([`described`]); return `Waits` and consume nothing.
    Describe,
    /// The same as `Describe`, with the record's share of a mailbox ([`weighed`]). For messages; consumed by a panic.
    Weigh,
    /// For a message, under the conditions of `Run`: return `Waits` if its guard says that it has to wait, else
    /// `Continue`, and consume nothing. Consumed by a panic.
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
    /// Stores the answer of a thunk that is asked.
    pub(crate) fn answer(self) -> Outcome {
        DESCRIBED.set(Some(self));
        Outcome::Waits
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Outcome {
    /// The worker goes on.
    #[default]
    Continue = 0,
    /// The actor stops.
    Stop,
    /// The actor was killed: it stops without the hooks.
    Kill,
    /// The actor may run its deferred messages again.
    Resume,
    /// The actor failed by `Cx::fail`: the error is in its cold part.
    Fail,
    /// The record was moved before, or had no payload any more: it does not count.
    Passed,
    /// The cell is frozen, and the request does not pass it; or the message's guard does not hold. The record was not
    /// consumed.
    Waits,
}

/// Consumes the record. Called exactly once for each record, except for one that [waits](Outcome::Waits).
pub(crate) type Thunk = unsafe fn(NonNull<Record>, Op) -> Outcome;

/// Payloads up to this size travel inline; larger ones (and over-aligned ones) are boxed once at the send.
pub const INLINE_BYTES_MAX: usize = 256;

pub(crate) const WORDS: u64 = 0x07ff;
/// A dead-letter hook has sent the message.
const FROM_HOOK: u64 = 0x0800;
/// The last word is the cause of the message: see `run_observed.rs`.
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
    pub(crate) fn follow(&mut self, other: &Record) {
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
    Outcome::Passed
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
pub(crate) unsafe fn write<E: Send>(
    target: *mut u8,
    thunk: Thunk,
    cell: NonNull<Cell>,
    identity: u64,
    control: u64,
    envelope: E,
) {
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
