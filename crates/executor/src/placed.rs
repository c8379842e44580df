//! Mail that has a place in its receiver's mailbox, as it lies in a record.

use std::ptr::NonNull;
use std::sync::Arc;

use crate::address::Lane;
use crate::mailbox::{Placed, Room, Rooms};
use crate::record::{
    Deliverable, Described, Loose, Op, Outcome, PASSED, Record, Thunk, WAITS, peek, turn_away, unwrap,
};
use crate::resident::Resident;

/// Mail with its place in the mailbox of its receiver.
#[repr(transparent)]
pub(crate) struct PlacedMail<D>(Placed<D>);

impl<D> PlacedMail<D> {
    pub(crate) fn new(placed: Placed<D>) -> PlacedMail<D> {
        PlacedMail(placed)
    }
}

impl<S: Resident, D: Deliverable<S>> Deliverable<S> for PlacedMail<D> {
    const THUNK: Thunk = run_placed::<S, D>;
    const IS_CONTROL: bool = false;
    type Placed = Self;

    fn find_place(self, _: &Arc<Room>, _: Lane, _: &Rooms) -> Result<Self, Self> {
        Ok(self)
    }
}

/// # Safety
/// A thunk, for a record with a `PlacedMail<D>`, which is one with a `Placed<D>`.
unsafe fn run_placed<S: Resident, D: Deliverable<S>>(record: NonNull<Record>, op: Op) -> Outcome {
    /// Does with the mail what would be done with it in a record of its own.
    ///
    /// # Safety
    /// As for the record that it has come out of, but for its payload.
    #[inline(never)]
    unsafe fn go_on<S: Resident, D: Deliverable<S>>(record: NonNull<Record>, mail: D, op: Op) -> Outcome {
        let mut loose = Loose::new();
        // SAFETY: by the contract; the record in `loose` is consumed by its thunk, or moved to the list of those that wait.
        unsafe {
            let (mut own, _) = loose.write(mail, record.as_ref().cell, record.as_ref().resident_tag());
            own.as_mut().set_lane(record.as_ref().lane());
            let outcome = D::THUNK(own, op);
            if outcome != WAITS {
                return outcome;
            }
            // Its guard has changed its mind since it was asked.
            crate::worker::current().expect("mail is run on a worker").wait_for_guard(own);
            PASSED
        }
    }
    // SAFETY: by the contract; the payload is consumed unless it waits.
    unsafe {
        let cell = record.as_ref().cell;
        match op {
            Op::Describe => {
                let placed = peek::<Placed<D>>(record);
                return Described::note_placed::<S>(placed.about(D::describe), D::MAY_WAIT, placed.is_gone());
            }
            Op::Run => {
                let admission = |placed: &Placed<D>| placed.admission(|mail| mail.admission(cell));
                let bounce = |placed: Placed<D>, why| {
                    if let Some(mail) = placed.take() {
                        go_on::<S, D>(record, mail, Op::Bounce(why));
                    }
                };
                if let Some(outcome) = turn_away(record, admission, bounce) {
                    return outcome;
                }
            }
            _ => {}
        }
        match unwrap::<Placed<D>>(record).take() {
            Some(mail) => go_on::<S, D>(record, mail, op),
            // It was dropped for another one, and counted as that.
            None => PASSED,
        }
    }
}
