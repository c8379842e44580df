//! Stubs: local cells of actors in other theaters.
//!
//! A stub looks to senders like any other cell: sending costs the same, and the order of messages comes from the cell's
//! stage. Only its tag has the status AWAY. The run loop therefore finds the tags different, and asks the envelope to
//! forward itself instead of running it. The extra part of the resident holds the destination, for the layers above.
//!
//! Mail that cannot be forwarded for now (the window of a link is full) is parked like the messages of a muted stage,
//! by [`pause_stage`]. A sender of more than fits is then muted like for any other receiver.

use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};

use crate::dispatch::actor_end::KindOf;
use crate::memory::cell::{BOUNDED, Cell, status};
use crate::memory::raw_address::RawAddress;
use crate::memory::slab::CellAllocator;
use crate::memory::stub_route::StubRoute;
use crate::message::address::Address;
use crate::message::envelope::Resident;
use crate::sync::worker_requests::Signal;
use crate::worker::current;
use crate::worker::gate::Gate;
use crate::worker::system_core::SystemCore;

/// The address of an actor that has ended: its cell never holds an actor.
static NOWHERE: OnceLock<RawAddress> = OnceLock::new();

/// The bits of an [incarnation](RawAddress::incarnation) without the one that tells whether the mailbox is bounded.
const INCARNATION_BITS: u32 = 48;

/// Parks the stage of the message before the next message, as long as `gate` is closed. Called from within
/// [`send_on`](crate::Envelope::send_on).
pub fn pause_stage(gate: &Arc<Gate>) {
    let Some(worker) = current() else { return };
    let claimed = worker.ownership.claimed();
    if claimed.is_null() {
        return;
    }
    // SAFETY: the claimed record stays readable until the next one is claimed.
    let stage = unsafe { (*claimed).stage() };
    worker.with_core(|core| {
        if !core.pauses.iter().any(|(known, _)| *known == stage) {
            core.pauses.push((stage, Arc::clone(gate)));
        }
    });
    // The signal ends the gulp.
    worker.ownership.signal.raise(Signal::TICK);
}

impl SystemCore {
    /// Returns the `nth` of the stages that are only for stubs (in turn, if there are fewer).
    ///
    /// # Panics
    /// In a system without such stages.
    pub fn link_stage(&self, nth: usize) -> u16 {
        assert!(self.config.links > 0, "the system has no stages for links: `Config::links` must be at least 1");
        (self.config.stages + nth % self.config.links) as u16
    }

    /// Creates a stub in `stage` for an `S` in another theater. If `route` is given, the stub forwards mail as long as
    /// no thread closes the route.
    pub fn spawn_away<S: Resident>(&self, stage: u16, extra: S::Extra, route: Option<Arc<StubRoute>>) -> Address<S> {
        self.settle_away(stage, extra, route, status::AWAY)
    }

    pub(crate) fn settle_away<S: Resident>(
        &self,
        stage: u16,
        extra: S::Extra,
        route: Option<Arc<StubRoute>>,
        status: u64,
    ) -> Address<S> {
        let kind = KindOf::<S>::KIND;
        // In a system that has ended, no sweep would end it.
        let Some(_spawning) = self.begin_to_spawn() else { return RawAddress::nowhere() };
        let owner = self.routing.route[stage as usize].load(Ordering::Relaxed) as usize;
        let cell = self.outside.take(owner, stage, kind.class);
        let mut cold = crate::memory::cell::Cold::new();
        cold.extra = Some(Box::new(extra));
        cold.route = route;
        // SAFETY: a vacant cell of the right class, owned by this thread.
        unsafe { Cell::occupy_away(cell, kind, cold, stage, self.id, status) };
        self.outside.spawned.fetch_add(1, Ordering::Relaxed);
        RawAddress::of(cell).typed()
    }

    /// Returns the actor of this system whose address has this [slot](RawAddress::slot) and this
    /// [incarnation](RawAddress::incarnation), if it has not ended. Any numbers may be given.
    pub fn find(&self, slot: u64, incarnation: u64) -> Option<RawAddress> {
        let address = self.address_in(slot, incarnation)?;
        // SAFETY: cells are never freed.
        let header = unsafe { address.cell.as_ref() };
        let lives = header.is_occupied_in(self.id)
            && header.tag() >> 16 == address.tag >> 16
            && header.system_word() == address.system_word();
        lives.then_some(address)
    }

    /// Returns the address of an actor of this system that had this slot and this incarnation, and has ended. Any
    /// numbers may be given; the caller knows that there was such an actor.
    pub fn find_ended(&self, slot: u64, incarnation: u64) -> Option<RawAddress> {
        let address = self.address_in(slot, incarnation).filter(|address| address.is_stale())?;
        let nowhere = NOWHERE.get().filter(|nowhere| nowhere.cell == address.cell);
        Some(nowhere.copied().unwrap_or(address))
    }

    fn address_in(&self, slot: u64, incarnation: u64) -> Option<RawAddress> {
        let cell = crate::memory::slab::cell_in(slot)?;
        let bounded = match incarnation >> INCARNATION_BITS {
            0 => 0,
            1 => BOUNDED,
            _ => return None,
        };
        Some(RawAddress { cell, tag: (incarnation << 16) | u64::from(self.id | bounded) })
    }
}

impl RawAddress {
    /// Returns the address of an `S` that has ended.
    pub fn nowhere<S: Resident>() -> Address<S> {
        let address = NOWHERE.get_or_init(|| {
            let cell = CellAllocator::new().take(0, 0);
            let address = RawAddress { cell, tag: 0 };
            // SAFETY: cells are never freed; this one belongs to no actor, and never will.
            unsafe { cell.as_ref() }.vacate();
            address
        });
        // No actor has this address, and any type therefore fits.
        address.typed()
    }

    /// Returns whether this is the address that stands for actors that have ended, of any system.
    pub fn is_nowhere(self) -> bool {
        NOWHERE.get() == Some(&self)
    }

    /// Returns a number for the actor's cell. Not unique over time: another actor may have it later, with another
    /// [incarnation](RawAddress::incarnation).
    pub fn slot(self) -> u64 {
        crate::memory::slab::slot_of(self.cell)
    }

    /// Returns the number of the incarnation that the address belongs to. It also tells whether the mailbox is bounded.
    pub fn incarnation(self) -> u64 {
        (self.tag >> 16) | (u64::from(self.is_bounded()) << INCARNATION_BITS)
    }
}
