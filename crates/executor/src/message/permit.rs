//! Mail that has a place in its receiver's mailbox, as it lies in a record.

use std::ptr::NonNull;

use crate::memory::record::{Op, Outcome, PASSED, Record, Thunk, WAITS, carried, or_lose, peek, run_own, unwrap};
use crate::message::mailbox::WithPermit;

/// The thunk of records with a [`Placed`]; behind it lies the message's own record, unless that is on a shelf.
pub(crate) const PERMITTED: Thunk = run_with_permit;

/// Does with the message what would be done with it in a record of its own.
///
/// # Safety
/// A thunk, for a record with a `Placed`, and behind that the message's own record unless that is on a shelf.
unsafe fn run_with_permit(record: NonNull<Record>, op: Op) -> Outcome {
    // SAFETY: by the contract; the payload is consumed unless it waits.
    unsafe {
        match op {
            Op::Describe | Op::Weigh => return peek::<WithPermit>(record).describe(record).say(),
            Op::Run if or_lose(record, |permitted: &mut WithPermit| permitted.ask(record)) == WAITS => return WAITS,
            _ => {}
        }
        // Its place is free before it is handled.
        match unwrap::<WithPermit>(record) {
            WithPermit::Here(permit) => {
                drop(permit);
                run_own(carried(record), record, op)
            }
            WithPermit::Shelved(droppable) => match droppable.take() {
                Some(mut kept) => run_own(kept.record(), record, op),
                // It was dropped for another one, and counted as that.
                None => PASSED,
            },
        }
    }
}
