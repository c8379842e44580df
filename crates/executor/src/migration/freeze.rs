//! Actors that come and go: a cell with a state becomes a place of an actor that is elsewhere, and the other way round.
//!
//! A *frozen* cell takes nothing but requests that pass. All else goes to its deferred list, in order, and is run (or sent
//! on) when it thaws, before anything that comes later. So whatever is changed at a frozen cell is changed between two of
//! its messages. All this is done in requests to the cell, by the worker that runs its stage (I1).
//!
//! An *antechamber* is a second place of an actor that has just come, in the same stage, frozen from the beginning: what is
//! to be handled before that which waits at the actor's own cell is sent there. [`ControlCx::admit`] puts it first. It needs
//! no lock, since one worker runs both cells.
//!
//! Actors that are to leave *together* are frozen at one moment ([`ControlCx::freeze_together`]), in a request to one of them:
//! they share a stage, so the worker that runs it may look at all their cells (I1), and none of them is in a handler that runs
//! just then. If one of them awaits something, none is frozen: it may wait for what another would have to answer.

use std::ptr::NonNull;
use std::sync::Arc;

use crate::memory::cell::{Cell, status};
use crate::memory::record::RESUME;
use crate::message::address::{Address, RawAddress};
use crate::message::envelope::{ControlCx, Resident};
use crate::migration::stub::{AwayCx, StubRoute};
use crate::system::SystemCore;
use crate::worker::user_code::contained;
use crate::worker::{current, note_suspended};

/// # Safety
/// The caller runs the cell's stage.
pub(crate) unsafe fn freeze(cell: NonNull<Cell>) {
    // SAFETY: cells are never freed; its status is written by this thread only (I1).
    let cell = unsafe { cell.as_ref() };
    if !cell.has_status(status::FROZEN) {
        cell.set_status(status::FROZEN, true);
        note_suspended(true);
    }
}

/// Whether messages wait on the cell's deferred list, other than those that guards have refused.
///
/// # Safety
/// This thread runs the stage of the cell.
unsafe fn has_deferred(cell: NonNull<Cell>) -> bool {
    // SAFETY: by the contract; the list is used by the thread that runs the stage.
    unsafe { Cell::cold(cell).as_ref() }.is_some_and(|cold| cold.deferred.has_later())
}

/// True: it was frozen.
///
/// # Safety
/// As [`freeze`].
unsafe fn thaw(cell: NonNull<Cell>) -> bool {
    // SAFETY: as in `freeze`.
    let cell = unsafe { cell.as_ref() };
    let frozen = cell.has_status(status::FROZEN);
    if frozen {
        cell.set_status(status::FROZEN, false);
        note_suspended(false);
    }
    frozen
}

/// # Safety
/// The caller runs the stage of the cell `here`, and no handler of that stage is running.
unsafe fn freeze_together(here: NonNull<Cell>, actors: &[RawAddress]) -> Result<Vec<RawAddress>, RawAddress> {
    // SAFETY: cells are never freed.
    let stage = unsafe { here.as_ref() }.stage();
    assert!(actors.iter().all(|actor| actor.stage() == stage), "only actors of one stage are frozen together");
    // Of this stage, none begins or ends meanwhile but by who starts it.
    let present: Vec<RawAddress> = actors.iter().copied().filter(|actor| !actor.is_stale()).collect();
    // SAFETY: as above.
    if let Some(busy) = present.iter().find(|actor| !unsafe { actor.cell.as_ref() }.is_ready()) {
        return Err(*busy);
    }
    for actor in &present {
        // SAFETY: by the contract.
        unsafe { freeze(actor.cell) };
    }
    Ok(present)
}

impl<S: Resident> ControlCx<S> {
    /// Whether the actor has started, has not crashed, awaits nothing and is not frozen: only then it can be frozen.
    pub fn is_calm(&self) -> bool {
        // SAFETY: the cell is alive while the control runs.
        unsafe { self.cell().as_ref() }.is_ready()
    }

    /// Whether messages to the actor are deferred that came before. (Those are not meant that its guards have refused.)
    pub fn has_deferred(&self) -> bool {
        // SAFETY: as above.
        unsafe { has_deferred(self.cell()) }
    }

    /// Whether the cell is frozen.
    pub fn is_frozen(&self) -> bool {
        // SAFETY: as above.
        unsafe { self.cell().as_ref() }.has_status(status::FROZEN)
    }

    /// Whatever comes waits, but for requests that [pass](crate::Control::passes).
    ///
    /// # Panics
    /// Where the actor is not [calm](ControlCx::is_calm).
    pub fn freeze(&mut self) {
        assert!(self.is_calm(), "only an actor between two messages can be frozen");
        // SAFETY: a control runs, so this thread runs the stage.
        unsafe { freeze(self.cell()) };
    }

    /// What has waited is handled, and all goes on.
    pub fn thaw(&mut self) {
        // SAFETY: as above.
        if unsafe { thaw(self.cell()) } && !self.is_ending() {
            self.set_outcome(RESUME);
        }
    }

    /// As [`ControlCx::freeze`], at once for all these actors of this one's stage. Those that have ended are left out.
    ///
    /// # Errors
    /// One that is not [calm](ControlCx::is_calm): nobody was frozen.
    ///
    /// # Panics
    /// Where one of them is in another stage.
    pub fn freeze_together(&mut self, actors: &[RawAddress]) -> Result<Vec<RawAddress>, RawAddress> {
        // SAFETY: a control runs, so this thread runs the stage, and no handler of it is on the stack.
        unsafe { freeze_together(self.cell(), actors) }
    }

    /// The frozen actor is elsewhere from now on: its state is dropped here, without its hooks, and this is its place.
    ///
    /// Mail is sent on from here as long as nobody closes `route`.
    ///
    /// # Panics
    /// Where it is not frozen.
    pub fn depart(&mut self, route: Arc<StubRoute>) {
        assert!(self.is_frozen(), "only a frozen actor leaves");
        let cell = self.cell();
        // SAFETY: this thread runs the stage; a short borrow.
        unsafe { Cell::cold_mut(cell) }.route = Some(route);
        // SAFETY: a control runs on a frozen cell: nobody borrows the state, and from here on nobody takes it for one.
        unsafe {
            cell.as_ref().set_status(status::NOTED, false);
            cell.as_ref().set_status(status::AWAY, true);
            // The actor has left even if this panics.
            contained(|| Cell::drop_state::<S>(cell));
        }
    }

    /// What was sent to `arrival_buffer` comes before all that waits here; the antechamber is no more.
    ///
    /// # Panics
    /// Where that is no antechamber of this cell.
    pub fn admit(&mut self, arrival_buffer: Address<S>) {
        let (cell, other) = (self.cell(), arrival_buffer.raw());
        // SAFETY: cells are never freed.
        let (here, there) = unsafe { (cell.as_ref(), other.cell.as_ref()) };
        assert!(
            here.has_status(status::FROZEN) && !other.is_stale() && there.has_status(status::FROZEN),
            "both are frozen"
        );
        assert_eq!(here.stage(), there.stage(), "an antechamber is in the stage of its actor");
        let identity = here.tag() & !status::MASK;
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
        current().expect("a control runs on a worker").end(other.cell, crate::message::envelope::Ending::Killed);
    }
}

impl<S: Resident> AwayCx<S> {
    /// Does the same as [`ControlCx::has_deferred`].
    pub fn has_deferred(&self) -> bool {
        // SAFETY: something is sent on, so this thread runs the stage.
        unsafe { has_deferred(self.cell()) }
    }

    /// Whether the place is frozen.
    pub fn is_frozen(&self) -> bool {
        // SAFETY: the cell is alive while something is sent on from it.
        unsafe { self.cell().as_ref() }.has_status(status::FROZEN)
    }

    /// As [`ControlCx::freeze`].
    pub fn freeze(&mut self) {
        // SAFETY: something is sent on, so this thread runs the stage.
        unsafe { freeze(self.cell()) };
    }

    /// As [`ControlCx::freeze_together`].
    ///
    /// # Errors
    /// As there.
    ///
    /// # Panics
    /// As there.
    pub fn freeze_together(&mut self, actors: &[RawAddress]) -> Result<Vec<RawAddress>, RawAddress> {
        // SAFETY: something is sent on, so this thread runs the stage, and no handler of it is on the stack.
        unsafe { freeze_together(self.cell(), actors) }
    }

    /// What has waited is sent on, and all that comes later.
    pub fn thaw(&mut self) {
        // SAFETY: as above.
        if unsafe { thaw(self.cell()) } {
            self.set_outcome(RESUME);
        }
    }

    /// Mail goes another way from now on, or none: nobody closes it.
    pub fn reroute(&mut self) {
        // SAFETY: something is sent on, so this thread runs the stage; a short borrow.
        unsafe { Cell::cold_mut(self.cell()) }.route = None;
    }

    /// Whether its way was closed: nothing is sent on any more, and the actor is about to be here.
    pub fn is_closed(&self) -> bool {
        // SAFETY: as above.
        unsafe { Cell::cold(self.cell()) }
            .as_ref()
            .and_then(|cold| cold.route.as_ref())
            .is_some_and(|route| route.is_closed())
    }

    /// The actor lives here from now on. The place is frozen, and has to be thawed.
    pub fn arrive(&mut self, state: S) {
        self.freeze();
        self.reroute();
        // SAFETY: this thread runs the stage; a place holds no state, and has room for one (its class is that of S).
        unsafe {
            Cell::put_state(self.cell(), state);
            self.cell().as_ref().set_status(status::AWAY, false);
        }
    }
}

impl SystemCore {
    /// An antechamber of the actor at `address`.
    pub fn arrival_buffer<S: Resident>(&self, address: Address<S>) -> Address<S> {
        self.open_more();
        self.settle_away(address.raw().stage(), S::Extra::default(), None, status::AWAY | status::FROZEN)
    }

    /// Calls `visit` with the addresses of all actors that live in this system now and are not away, with their types. Those
    /// that come, go or end meanwhile are visited or not.
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
    /// Whether the actor lives elsewhere, as far as is known here.
    pub fn is_away(self) -> bool {
        // SAFETY: cells are never freed.
        unsafe { self.cell.as_ref() }.has_status(status::AWAY)
    }
}
