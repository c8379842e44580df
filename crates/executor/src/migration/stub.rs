//! Places of actors that live elsewhere.
//!
//! Such a cell looks to senders like any other: sending costs the same, and the order of messages comes from the cell's
//! stage. Only its tag has the status AWAY, so that the run loop finds the tags different, and asks the envelope to send
//! itself on instead of running it. Where to is in the extra part of the resident, for the layers above.
//!
//! What cannot be sent on for now (the window of a link is full) is put aside like the messages of a muted stage, by
//! [`pause_stage`]: then who sends more than fits is muted as for any other receiver.

use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use crate::backpressure::overload::OVERLOADED_BYTES;
use crate::memory::cell::{BOUNDED, Cell, status};
use crate::memory::record::{CONTINUE, KILL, KindOf, Outcome, Record};
use crate::memory::slab::CellAllocator;
use crate::message::address::{Address, Lane, RawAddress};
use crate::message::envelope::{Resident, extra_of};
use crate::sync::locks::lock;
use crate::sync::signal::Signal;
use crate::system::SystemCore;
use crate::worker::core::Reason;
use crate::worker::current;
use crate::worker::exchange::RECORD_BYTES;

/// The address of an actor that has ended: nobody ever lives in its cell.
static NOWHERE: OnceLock<RawAddress> = OnceLock::new();

/// Bits of a [life](RawAddress::life) without the one that tells whether the mailbox is bounded.
const LIFE_BITS: u32 = 48;

/// What an envelope is given that is to be sent on.
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
        AwayCx { cell, lane, outcome: CONTINUE, state: PhantomData }
    }

    /// The lane that the message was sent in.
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

    /// The address that the message was sent to.
    pub fn address(&self) -> Address<S> {
        // SAFETY: the cell is occupied by an S, though it is away, while an AwayCx for it exists.
        unsafe { Address::of_resident(self.cell) }
    }

    /// What is known of the actor.
    pub fn extra(&mut self) -> &mut S::Extra {
        // SAFETY: this thread runs the cell's stage; the borrow of `self` keeps others away.
        unsafe { extra_of::<S>(self.cell) }
    }

    /// The place is given up: its address is stale from now on.
    pub fn forget(&mut self) {
        self.outcome = KILL;
    }
}

/// Whether what some stages send on has to wait. Shared by them and by who knows when they may go on.
#[derive(Debug, Default)]
pub struct Gate {
    closed: AtomicBool,
    /// With more bytes of records waiting behind it a stage is full.
    bytes_max: AtomicUsize,
    /// Stages that were put aside behind it.
    waiting: Mutex<Vec<u16>>,
}

impl Gate {
    /// What comes has to wait. Who sends is slowed when more than about `messages_max` wait in a stage: in envelopes of 32 bytes,
    /// of which 2 MiB may wait at most.
    pub fn close(&self, messages_max: usize) {
        let bytes_max = messages_max.saturating_mul(RECORD_BYTES as usize).min(OVERLOADED_BYTES);
        // Relaxed: who sees it closed and an older bound slows a little sooner or later.
        self.bytes_max.store(bytes_max, Ordering::Relaxed);
        self.closed.store(true, Ordering::SeqCst);
    }

    pub(crate) fn bytes_max(&self) -> usize {
        self.bytes_max.load(Ordering::Relaxed)
    }

    /// Whether it is closed.
    pub fn is_closed(&self) -> bool {
        self.closed.load(Ordering::SeqCst)
    }

    /// `stage` waits behind it. False: it is open.
    pub(crate) fn wait(&self, stage: u16) -> bool {
        // Under the lock: either it is seen open, or who opens it finds the stage.
        let mut waiting = lock(&self.waiting);
        let closed = self.is_closed();
        if closed {
            waiting.push(stage);
        }
        closed
    }

    /// What waits behind it goes on.
    pub fn open(&self, system: &SystemCore) {
        if self.closed.swap(false, Ordering::SeqCst) {
            for stage in std::mem::take(&mut *lock(&self.waiting)) {
                system.return_stage(stage, Reason::Paused);
            }
        }
    }
}

/// Whether mail was sent on from the place of an actor since it left: shared by the place and by who lets actors in.
///
/// While nothing was, nothing is under way that an actor who comes back would have to wait for. The worker that runs the
/// place's stage takes the way for the first message, or who lets the actor in closes it ([`Way::close`]); one
/// of the two is first. On a closed way nothing is sent on: it waits for the actor.
#[derive(Debug, Default)]
pub struct StubRoute(AtomicU8);

const FREE: u8 = 0;
const TAKEN: u8 = 1;
const CLOSED: u8 = 2;

impl StubRoute {
    /// Nothing is sent on any more. False: something was.
    pub fn close(&self) -> bool {
        // What is decided by it goes through the mail of the place, which brings the rest: no order is needed here.
        self.0.compare_exchange(FREE, CLOSED, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.0.load(Ordering::Relaxed) == CLOSED
    }

    /// Something is sent on. False: it has to wait.
    fn take(&self) -> bool {
        match self.0.load(Ordering::Relaxed) {
            TAKEN => true,
            CLOSED => false,
            _ => self.0.compare_exchange(FREE, TAKEN, Ordering::Relaxed, Ordering::Relaxed).is_ok(),
        }
    }
}

/// Whether mail of this place may be sent on. False: the actor is about to be here; the cell is frozen, and it waits.
///
/// # Safety
/// The cell is that of an actor that is away, and this thread runs its stage.
pub(crate) unsafe fn may_pass(cell: NonNull<Cell>) -> bool {
    // SAFETY: by the contract; a short borrow.
    let passes =
        unsafe { Cell::cold(cell) }.as_ref().and_then(|cold| cold.route.as_ref()).is_none_or(|route| route.take());
    if !passes {
        // SAFETY: by the contract.
        unsafe { crate::migration::freeze::freeze(cell) };
    }
    passes
}

/// From within [`send_on`](crate::Envelope::send_on): puts the stage of the message aside before the next message, as long as
/// `gate` is closed.
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
    // Ends the gulp.
    worker.ownership.signal.raise(Signal::TICK);
}

impl SystemCore {
    /// The `nth` of the stages that are only for places of actors that live elsewhere (by turns, if there are fewer).
    ///
    /// # Panics
    /// In a system without such stages.
    pub fn link_stage(&self, nth: usize) -> u16 {
        assert!(self.config.links > 0, "a system whose `Config::links` is 0 has no stages for links");
        (self.config.stages + nth % self.config.links) as u16
    }

    /// A place in `stage` for an `S` that lives elsewhere. If `route` is given, mail is sent on from it as long as nobody closes that.
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
        // In a system that has ended, nobody would end it.
        let Some(_spawning) = self.begin_to_spawn() else { return RawAddress::nowhere() };
        let owner = self.route[stage as usize].load(Ordering::Relaxed) as usize;
        let cell = self.outside.take(owner, stage, kind.class);
        let mut cold = crate::memory::cell::Cold::new();
        cold.extra = Some(Box::new(extra));
        cold.route = route;
        // SAFETY: a vacant cell of the right class, owned by this thread.
        unsafe { Cell::occupy_away(cell, kind, cold, stage, self.id, status) };
        self.outside.spawned.fetch_add(1, Ordering::Relaxed);
        RawAddress::of(cell).typed()
    }

    /// The actor of this system whose address has this [slot](RawAddress::slot) and this [life](RawAddress::life), if it
    /// lives. Any numbers may be given.
    pub fn find(&self, slot: u64, life: u64) -> Option<RawAddress> {
        let address = self.address_in(slot, life)?;
        // SAFETY: cells are never freed.
        let header = unsafe { address.cell.as_ref() };
        let lives = header.is_occupied_in(self.id)
            && header.tag() >> 16 == address.tag >> 16
            && header.system_word() == address.system_word();
        lives.then_some(address)
    }

    /// The address of an actor of this system that had this slot and this life, and has ended. Any numbers may be given; the caller knows that there
    /// was such an actor.
    pub fn find_ended(&self, slot: u64, life: u64) -> Option<RawAddress> {
        let address = self.address_in(slot, life).filter(|address| address.is_stale())?;
        let nowhere = NOWHERE.get().filter(|nowhere| nowhere.cell == address.cell);
        Some(nowhere.copied().unwrap_or(address))
    }

    fn address_in(&self, slot: u64, life: u64) -> Option<RawAddress> {
        let cell = crate::memory::slab::cell_in(slot)?;
        let bounded = match life >> LIFE_BITS {
            0 => 0,
            1 => BOUNDED,
            _ => return None,
        };
        Some(RawAddress { cell, tag: (life << 16) | u64::from(self.id | bounded) })
    }
}

impl RawAddress {
    /// The address of an `S` that has ended.
    pub fn nowhere<S: Resident>() -> Address<S> {
        let address = NOWHERE.get_or_init(|| {
            let cell = CellAllocator::new().take(0, 0);
            let address = RawAddress { cell, tag: 0 };
            // SAFETY: cells are never freed; this one is nobody's, and now never will be.
            unsafe { cell.as_ref() }.vacate();
            address
        });
        // Nothing lives there, so it may be said to have been of any type.
        address.typed()
    }

    /// Whether this is the address that stands for actors that have ended, of whichever system.
    pub fn is_nowhere(self) -> bool {
        NOWHERE.get() == Some(&self)
    }

    /// A number for the actor's place in memory. Not unique over time: another actor may have it later, with another
    /// [life](RawAddress::life).
    pub fn slot(self) -> u64 {
        crate::memory::slab::slot_of(self.cell)
    }

    /// A number for the life that the address belongs to. It tells, too, whether the mailbox is bounded.
    pub fn incarnation(self) -> u64 {
        (self.tag >> 16) | (u64::from(self.is_bounded()) << LIFE_BITS)
    }
}
