//! Migrating actors: a cell with a state becomes the stub of an actor in another theater, and the other way round.
//!
//! A *frozen* cell takes nothing but requests that pass. All other mail goes to its deferred list, in order, and is run
//! (or forwarded) when the cell thaws, before all later mail. A change of a frozen cell therefore happens between two
//! of its messages. All this is done in requests to the cell, by the worker that runs its stage (I1).
//!
//! An *arrival buffer* is a second cell of an incoming actor, in the same stage, frozen from the beginning. Messages
//! that are to be handled before those at the actor's own cell are sent to it. [`ControlCx::admit`] puts them first. It
//! needs no lock, because one worker runs both cells.
//!
//! Actors that are to migrate as a *group* are frozen at one moment ([`ControlCx::freeze_together`]), in a request to
//! one of them. They share a stage, and the worker that runs it may therefore look at all their cells (I1). None of
//! them is in a handler that runs just then. If one of them awaits an event, none is frozen, because it may wait for an
//! answer of another member.

use std::ptr::NonNull;
use std::sync::Arc;

use crate::memory::cell::{Cell, status};
use crate::memory::raw_address::RawAddress;
use crate::memory::record::Outcome;
use crate::memory::stub_route::StubRoute;
use crate::message::address::Address;
use crate::message::away::AwayCx;
use crate::message::envelope::{ControlCx, Resident};
use crate::user_code::contained;
use crate::worker::frozen::freeze;
use crate::worker::system_core::SystemCore;
use crate::worker::{current, note_suspended};

/// Returns whether messages wait on the cell's deferred list, other than those that guards have refused.
///
/// # Safety
/// This thread runs the stage of the cell.
unsafe fn has_deferred(cell: NonNull<Cell>) -> bool {
    // SAFETY: this thread runs the stage, and it alone uses the list.
    unsafe { Cell::cold(cell).as_ref() }.is_some_and(|cold| cold.deferred.has_later())
}

/// Thaws the cell. Returns whether it was frozen.
///
/// # Safety
/// The same as for [`freeze`].
unsafe fn thaw(cell: NonNull<Cell>) -> bool {
    // SAFETY: cells are never freed; its status is written by this thread only (I1).
    let cell = unsafe { cell.as_ref() };
    let frozen = cell.has_status(status::FROZEN);
    if frozen {
        cell.set_status(status::FROZEN, false);
        note_suspended(false);
    }
    frozen
}

/// # Safety
/// The caller runs the stage of the cell `this`, and no handler of that stage is running.
unsafe fn freeze_together(this: NonNull<Cell>, actors: &[RawAddress]) -> Result<Vec<RawAddress>, RawAddress> {
    // SAFETY: cells are never freed.
    let stage = unsafe { this.as_ref() }.stage();
    assert!(
        actors.iter().all(|actor| actor.stage() == stage),
        "the actors are in several stages: only actors of one stage can be frozen together"
    );
    // No actor of this stage begins or ends during this call, except by the threads that start them.
    let present: Vec<RawAddress> = actors.iter().copied().filter(|actor| !actor.is_stale()).collect();
    // SAFETY: cells are never freed.
    if let Some(busy) = present.iter().find(|actor| !unsafe { actor.cell.as_ref() }.is_ready()) {
        return Err(*busy);
    }
    for actor in &present {
        // SAFETY: this thread runs the stage of all these cells.
        unsafe { freeze(actor.cell) };
    }
    Ok(present)
}

impl<S: Resident> ControlCx<S> {
    /// Returns whether the actor has started, has not crashed, awaits nothing and is not frozen. It can be frozen only
    /// then.
    pub fn is_calm(&self) -> bool {
        // SAFETY: the cell is alive while the control runs.
        unsafe { self.cell().as_ref() }.is_ready()
    }

    /// Returns whether earlier messages to the actor are deferred. (Messages that its guards have refused do not
    /// count.)
    pub fn has_deferred(&self) -> bool {
        // SAFETY: a control runs, and this thread therefore runs the stage.
        unsafe { has_deferred(self.cell()) }
    }

    /// Returns whether the cell is frozen.
    pub fn is_frozen(&self) -> bool {
        // SAFETY: the cell is alive while the control runs.
        unsafe { self.cell().as_ref() }.has_status(status::FROZEN)
    }

    /// Freezes the cell. All mail waits, except requests that [pass](crate::Control::passes).
    ///
    /// # Panics
    /// If the actor is not [calm](ControlCx::is_calm).
    pub fn freeze(&mut self) {
        assert!(self.is_calm(), "the actor is not calm: only an actor between two messages can be frozen");
        // SAFETY: a control runs, and this thread therefore runs the stage.
        unsafe { freeze(self.cell()) };
    }

    /// Thaws the cell: the waiting mail is handled, and the actor goes on.
    pub fn thaw(&mut self) {
        // SAFETY: a control runs, and this thread therefore runs the stage.
        if unsafe { thaw(self.cell()) } && !self.is_ending() {
            self.set_outcome(Outcome::Resume);
        }
    }

    /// Does the same as [`ControlCx::freeze`], at once for all these actors of this one's stage. Actors that have ended
    /// are left out.
    ///
    /// # Errors
    /// An actor that is not [calm](ControlCx::is_calm); none was frozen.
    ///
    /// # Panics
    /// If one of them is in another stage.
    pub fn freeze_together(&mut self, actors: &[RawAddress]) -> Result<Vec<RawAddress>, RawAddress> {
        // SAFETY: a control runs; this thread therefore runs the stage, and no handler of it is on the stack.
        unsafe { freeze_together(self.cell(), actors) }
    }

    /// Turns the cell of the frozen actor, which has migrated, into its stub. The state is dropped by this call,
    /// without its hooks.
    ///
    /// The stub forwards mail as long as no thread closes `route`.
    ///
    /// # Panics
    /// If the actor is not frozen.
    pub fn depart(&mut self, route: Arc<StubRoute>) {
        assert!(self.is_frozen(), "the actor is not frozen: only a frozen actor can migrate");
        let cell = self.cell();
        // SAFETY: this thread runs the stage; a short borrow.
        unsafe { Cell::cold_mut(cell) }.route = Some(route);
        // SAFETY: a control runs on a frozen cell: nothing borrows the state, and from this point on the status says
        // that there is none.
        unsafe {
            cell.as_ref().set_status(status::NOTED, false);
            cell.as_ref().set_status(status::AWAY, true);
            // The actor has left even if this panics.
            contained(|| Cell::drop_state::<S>(cell));
        }
    }

    /// Puts the messages that were sent to `arrival_buffer` before all that wait at this cell, and ends the buffer.
    ///
    /// # Panics
    /// If the address is no arrival buffer of this cell.
    pub fn admit(&mut self, arrival_buffer: Address<S>) {
        let (cell, other) = (self.cell(), arrival_buffer.raw());
        // SAFETY: cells are never freed.
        let (own, buffer) = unsafe { (cell.as_ref(), other.cell.as_ref()) };
        assert!(
            own.has_status(status::FROZEN) && !other.is_stale() && buffer.has_status(status::FROZEN),
            "the actor's cell and its arrival buffer must be frozen, and the buffer must exist"
        );
        assert_eq!(
            own.stage(),
            buffer.stage(),
            "the arrival buffer is in another stage than its actor: it must be in the same one"
        );
        let identity = own.tag() & !status::MASK;
        // SAFETY: this thread runs the stage of both cells; the references to the cold parts do not overlap.
        unsafe {
            let first = std::mem::take(&mut Cell::cold_mut(other.cell).deferred);
            first.for_each(|mut record| {
                let record = record.as_mut();
                record.cell = cell;
                record.tag = identity | (record.tag & status::MASK);
            });
            Cell::cold_mut(cell).deferred.put_first(first);
        }
        current().expect("a control runs on a worker").end(other.cell, crate::user_code::crash::Ending::Killed);
    }
}

impl<S: Resident> AwayCx<S> {
    /// Does the same as [`ControlCx::has_deferred`].
    pub fn has_deferred(&self) -> bool {
        // SAFETY: a message is forwarded, and this thread therefore runs the stage.
        unsafe { has_deferred(self.cell()) }
    }

    /// Returns whether the stub is frozen.
    pub fn is_frozen(&self) -> bool {
        // SAFETY: the cell is alive while a message is forwarded from it.
        unsafe { self.cell().as_ref() }.has_status(status::FROZEN)
    }

    /// Does the same as [`ControlCx::freeze`].
    pub fn freeze(&mut self) {
        // SAFETY: a message is forwarded, and this thread therefore runs the stage.
        unsafe { freeze(self.cell()) };
    }

    /// Does the same as [`ControlCx::freeze_together`].
    ///
    /// # Errors
    /// The same as for [`ControlCx::freeze_together`].
    ///
    /// # Panics
    /// The same as for [`ControlCx::freeze_together`].
    pub fn freeze_together(&mut self, actors: &[RawAddress]) -> Result<Vec<RawAddress>, RawAddress> {
        // SAFETY: a message is forwarded; this thread therefore runs the stage, and no handler of it is on the stack.
        unsafe { freeze_together(self.cell(), actors) }
    }

    /// Thaws the stub: the waiting mail is forwarded, and all later mail.
    pub fn thaw(&mut self) {
        // SAFETY: a message is forwarded, and this thread therefore runs the stage.
        if unsafe { thaw(self.cell()) } {
            self.set_outcome(Outcome::Resume);
        }
    }

    /// Removes the stub's route, because mail takes another one from now on, or none that a thread could close.
    pub fn reroute(&mut self) {
        // SAFETY: a message is forwarded, and this thread therefore runs the stage; a short borrow.
        unsafe { Cell::cold_mut(self.cell()) }.route = None;
    }

    /// Returns whether the stub's route was closed: no mail is forwarded any more, and the actor is about to arrive.
    pub fn is_closed(&self) -> bool {
        // SAFETY: a message is forwarded, and this thread therefore runs the stage; a short borrow.
        unsafe { Cell::cold(self.cell()) }
            .as_ref()
            .and_then(|cold| cold.route.as_ref())
            .is_some_and(|route| route.is_closed())
    }

    /// Puts the state of the actor, which has arrived, into the stub's cell. The stub is frozen, and has to be thawed.
    pub fn arrive(&mut self, state: S) {
        self.freeze();
        self.reroute();
        // SAFETY: this thread runs the stage; a stub holds no state, and has room for one (its class is that of S).
        unsafe {
            Cell::put_state(self.cell(), state);
            self.cell().as_ref().set_status(status::AWAY, false);
        }
    }
}

impl SystemCore {
    /// Creates an arrival buffer of the actor at `address`.
    pub fn arrival_buffer<S: Resident>(&self, address: Address<S>) -> Address<S> {
        self.open_more();
        self.settle_away(address.raw().stage(), S::Extra::default(), None, status::AWAY | status::FROZEN)
    }

    /// Calls `visit` with the addresses of all actors that are in this system now and are not stubs, with their types.
    /// Actors that arrive, migrate or end during the call may or may not be visited.
    pub fn each_resident(&self, mut visit: impl FnMut(RawAddress, std::any::TypeId)) {
        crate::memory::slab::sweep(self.id, u64::MAX, |cell| {
            // SAFETY: cells are never freed.
            if !unsafe { cell.as_ref() }.has_status(status::AWAY) {
                let address = RawAddress::of(cell);
                if let Some(resident) = address.resident_type() {
                    visit(address, resident);
                }
            }
        });
    }
}

impl RawAddress {
    /// Returns whether the actor is in another theater, as far as this one knows.
    pub fn is_away(self) -> bool {
        // SAFETY: cells are never freed.
        unsafe { self.cell.as_ref() }.has_status(status::AWAY)
    }
}
