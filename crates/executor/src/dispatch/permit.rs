//! Records of messages with a permit of their receiver's mailbox.

use std::ptr::NonNull;

use crate::memory::record::{Op, Outcome, Record, Thunk, drop_on_panic, peek, unwrap};
use crate::message::mailbox_bound::{WithPermit, behind_permit};
use crate::worker::current;

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
            Op::Run if drop_on_panic(record, |permitted: &mut WithPermit| permitted.ask(record)) == Outcome::Waits => {
                return Outcome::Waits;
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
                None => Outcome::Passed,
            },
        }
    }
}

/// Applies `op`, the operation for `record`, to the message in `own`, which came in `record`.
///
/// # Safety
/// `own` is a whole record, and fulfils the conditions of its thunk on the cell of `record`.
unsafe fn run_own(mut own: NonNull<Record>, record: NonNull<Record>, op: Op) -> Outcome {
    // SAFETY: `own` fulfils the conditions of its thunk; the thunk consumes it, or it is moved to the list of those
    // that wait.
    unsafe {
        own.as_mut().follow(record.as_ref());
        let outcome = (own.as_ref().thunk)(own, op);
        if outcome != Outcome::Waits {
            return outcome;
        }
        // The guard has changed its answer since it was asked.
        current().expect("mail is run on a worker").wait_for_guard(own);
        Outcome::Passed
    }
}
