//! Records of messages with a permit of their receiver's mailbox.

use std::ptr::NonNull;

use crate::memory::record::{
    Op, Outcome, PASSED, Record, Thunk, WAITS, behind_permit, drop_on_panic, peek, run_own, unwrap,
};
use crate::message::mailbox_bound::WithPermit;

/// The thunk of records with a [`WithPermit`]; behind it lies the message's own record, unless that is droppable.
pub(crate) const PERMITTED: Thunk = run_with_permit;

/// Applies the operation to the message as if it were in a record of its own.
///
/// # Safety
/// A thunk, for a record with a `WithPermit`, and behind that the message's own record unless that is droppable.
unsafe fn run_with_permit(record: NonNull<Record>, op: Op) -> Outcome {
    // SAFETY: the record holds a `WithPermit`; the payload is consumed unless it waits.
    unsafe {
        match op {
            Op::Describe | Op::Weigh => return peek::<WithPermit>(record).describe(record).answer(),
            Op::Run if drop_on_panic(record, |permitted: &mut WithPermit| permitted.ask(record)) == WAITS => {
                return WAITS;
            }
            _ => {}
        }
        // The permit is free before the message is handled.
        match unwrap::<WithPermit>(record) {
            WithPermit::Inline(permit) => {
                drop(permit);
                run_own(behind_permit(record), record, op)
            }
            WithPermit::Droppable(droppable) => match droppable.take() {
                Some(mut kept) => run_own(kept.record(), record, op),
                // The message was dropped for another one, and counted as dropped.
                None => PASSED,
            },
        }
    }
}
