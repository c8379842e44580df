//! Room on the stack for one record.

use std::mem::{ManuallyDrop, MaybeUninit};
use std::ptr::{self, NonNull};

use crate::dispatch::permit::PERMITTED;
use crate::dispatch::thunks::Deliverable;
use crate::memory::cell::Cell;
use crate::memory::record::{CAUSE_BYTES, HEAD_BYTES, INLINE_BYTES_MAX, Record, WORDS, record_bytes, write};
use crate::message::envelope::Resident;
use crate::message::mailbox_bound::{WithPermit, behind_permit};

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
