//! The context of an envelope that is forwarded to another theater.

use std::marker::PhantomData;
use std::ptr::NonNull;

use crate::memory::cell::Cell;
use crate::memory::raw_address::Lane;
use crate::memory::record::{Outcome, Record};
use crate::message::address::Address;
use crate::message::envelope::{Resident, extra_of};

/// The context of an envelope that is to be forwarded.
pub struct AwayCx<S> {
    cell: NonNull<Cell>,
    lane: Lane,
    outcome: Outcome,
    state: PhantomData<fn(S)>,
}

impl<S: Resident> AwayCx<S> {
    pub(crate) fn new(record: NonNull<Record>) -> Self {
        // SAFETY: the caller has a whole record.
        let (cell, lane) = unsafe { (record.as_ref().cell, record.as_ref().lane()) };
        AwayCx { cell, lane, outcome: Outcome::Continue, state: PhantomData }
    }

    /// Returns the lane that the message was sent in.
    pub fn lane(&self) -> Lane {
        self.lane
    }

    pub(crate) fn outcome(&self) -> Outcome {
        self.outcome
    }

    pub(crate) fn cell(&self) -> NonNull<Cell> {
        self.cell
    }

    pub(crate) fn set_outcome(&mut self, outcome: Outcome) {
        self.outcome = outcome;
    }

    /// Returns the address that the message was sent to.
    pub fn address(&self) -> Address<S> {
        // SAFETY: the cell is the stub of an S while an AwayCx for it exists.
        unsafe { Address::of_resident(self.cell) }
    }

    /// Returns the extra part of the stub.
    pub fn extra(&mut self) -> &mut S::Extra {
        // SAFETY: this thread runs the cell's stage; the borrow of `self` excludes a second reference.
        unsafe { extra_of::<S>(self.cell) }
    }

    /// Gives up the stub: its address is stale from now on.
    pub fn forget(&mut self) {
        self.outcome = Outcome::Kill;
    }
}
