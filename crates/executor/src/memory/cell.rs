//! Cells: the place of an actor in memory.
//!
//! A cell is a header of 32 bytes and the actor's state behind it, in one allocation of type-stable memory
//! ([`crate::memory::slab`]): once a cell, always a cell, so a stale address may always look at the header. What it finds
//! there, the tag, tells it whether the actor it means still lives.

use std::any::Any;
use std::cell::UnsafeCell;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};

use crate::memory::future::Suspended;
use crate::memory::record::Outcome;
use crate::message::address::RawAddress;
use crate::message::deferred::Deferred;
use crate::message::envelope::{Crash, Ending, Resident};

/// Status bits, the low 16 of a cell's tag. Zero: the actor is here and takes messages.
pub(crate) mod status {
    /// No actor here.
    pub(crate) const VACANT: u64 = 1;
    /// An async handler waits: ordinary messages go to the deferred list.
    pub(crate) const SUSPENDED: u64 = 2;
    /// It crashed and waits for its supervisor: messages go to the deferred list.
    pub(crate) const CRASHED: u64 = 4;
    /// Its first message is under way: whatever overtakes that goes to the deferred list.
    pub(crate) const NEW: u64 = 8;
    /// The actor is elsewhere, and there is no state behind the header: what comes is sent on (`stub.rs`).
    pub(crate) const AWAY: u64 = 16;
    /// The actor is on its way between two places, or what is sent on from here changes its way: whatever comes goes to
    /// the deferred list, but for requests that [pass](crate::Control::passes).
    pub(crate) const FROZEN: u64 = 32;
    /// Messages wait on the deferred list for their guards: they are looked at again after each message that is run.
    /// Set on an actor that is otherwise ready if and only if the guards of some of its deferred messages have refused them.
    pub(crate) const GUARDED: u64 = 64;
    /// It is noted when a message was handled last ([`Cell::note_handled`](super::Cell::note_handled)).
    pub(crate) const NOTED: u64 = 128;
    /// With NEW: its start may be put off (`deferred_starts.rs`).
    pub(crate) const LATE: u64 = 256;
    /// Deferred messages of an actor that is otherwise ready come before whatever comes now, which goes to the deferred list too. A
    /// [`GoOn`](crate::message::envelope::GoOn) is on its way, behind other actors' messages.
    pub(crate) const BEHIND: u64 = 512;
    /// With these, the actor still takes messages.
    pub(crate) const OPEN: u64 = GUARDED | NOTED;
    pub(crate) const MASK: u64 = 0xffff;
}

/// Type-erased operations on the state.
pub(crate) struct Kind {
    pub(crate) class: u16,
    /// Which type it belongs to.
    pub(crate) type_id: fn() -> std::any::TypeId,
    /// The name of the type, for people.
    pub(crate) name: fn() -> &'static str,
    pub(crate) stop: unsafe fn(NonNull<Cell>, Ending),
    pub(crate) crash: unsafe fn(NonNull<Cell>, Crash) -> Outcome,
    /// Sends a [`GoOn`](crate::message::envelope::GoOn).
    pub(crate) go_on: fn(RawAddress),
}

/// The header of a cell.
///
/// All zero bytes are a vacant cell that was never used.
///
/// INVARIANT: between `occupy` and `vacate` the state behind the header is an initialised value of the type that
/// `kind` belongs to, and only the thread that runs the cell's stage touches `cold` and the state (I1).
#[repr(C)]
pub(crate) struct Cell {
    /// `generation:32 | stage:16 | status:16`. Written by the spawner and then by the stage's worker; read by anyone
    /// who holds an address.
    tag: AtomicU64,
    kind: AtomicPtr<Kind>,
    cold: UnsafeCell<Option<Box<Cold>>>,
    /// The id of the system, and whether the actor's mailbox is [`BOUNDED`].
    system: AtomicU32,
    /// A number of the layer above. It is 0 in a new cell, and stays when the actor ends.
    pub(crate) number: AtomicU32,
}

/// Beside the id of its system, in a cell and in an address: the actor's mailbox is bounded (`mailbox.rs`). No system has such
/// an id, so who compares the two finds that they differ.
pub(crate) const BOUNDED: u16 = 0x8000;

pub(crate) const CELL_HEADER_BYTES: usize = size_of::<Cell>();
const _: () = assert!(CELL_HEADER_BYTES <= 32);

/// The part of a cell that few actors need. It is allocated at first use, and has cache lines of its own: another worker may run the actor
/// that the next one belongs to.
#[repr(align(64))]
pub(crate) struct Cold {
    /// The future of a suspended handler; borrows the state.
    pub(crate) suspended: Option<Suspended>,
    /// The target of the wakers that the suspended handler has cloned.
    pub(crate) waking: Option<std::sync::Arc<crate::memory::future::WakeTarget>>,
    /// Messages that arrived while suspended or crashed, or whose guards did not hold, in order.
    pub(crate) deferred: Deferred,
    /// Of an actor that has left.
    pub(crate) route: Option<std::sync::Arc<crate::migration::stub::StubRoute>>,
    pub(crate) stop_after: bool,
    /// When a message was handled last, where that is [noted](status::NOTED).
    pub(crate) handled_ns: u64,
    pub(crate) failure: Option<Crash>,
    /// The resident's own cold part.
    pub(crate) extra: Option<Box<dyn Any + Send>>,
}

impl Cell {
    /// Whether an actor of `system` lives here; false for a cell that was never used.
    pub(crate) fn is_occupied_in(&self, system: u16) -> bool {
        !self.kind.load(Ordering::Relaxed).is_null() && self.tag() & status::VACANT == 0 && self.system() == system
    }

    #[inline(always)]
    pub(crate) fn tag(&self) -> u64 {
        // Relaxed: the worker that runs the stage reads its own writes; anyone else only learns "same" or "gone",
        // and what is behind the header is reached only after a hand-over through a lock or a log.
        self.tag.load(Ordering::Relaxed)
    }

    #[inline(always)]
    pub(crate) fn set_tag(&self, tag: u64) {
        self.tag.store(tag, Ordering::Relaxed);
    }

    pub(crate) fn set_status(&self, bits: u64, on: bool) {
        let tag = self.tag();
        self.set_tag(if on { tag | bits } else { tag & !bits });
    }

    pub(crate) fn has_status(&self, bits: u64) -> bool {
        self.tag() & bits != 0
    }

    /// Whether ordinary messages are run when they come; the guards of some may make them wait.
    pub(crate) fn is_ready(&self) -> bool {
        self.tag() & status::MASK & !status::OPEN == 0
    }

    /// Whether it would be [ready](Cell::is_ready) if it were not [behind](status::BEHIND).
    pub(crate) fn is_behind(&self) -> bool {
        self.tag() & status::MASK & !status::OPEN == status::BEHIND
    }

    #[inline(always)]
    pub(crate) fn stage(&self) -> u16 {
        (self.tag() >> 16) as u16
    }

    pub(crate) fn system(&self) -> u16 {
        self.system_word() & !BOUNDED
    }

    /// The id of the system as it is in addresses: with [`BOUNDED`].
    pub(crate) fn system_word(&self) -> u16 {
        self.system.load(Ordering::Relaxed) as u16
    }

    /// The actor's mailbox is bounded. Before anybody knows its address.
    pub(crate) fn set_bounded(&self) {
        self.system.store(u32::from(self.system_word() | BOUNDED), Ordering::Relaxed);
    }

    pub(crate) fn kind(&self) -> &'static Kind {
        let kind = self.kind.load(Ordering::Relaxed);
        debug_assert!(!kind.is_null());
        // SAFETY: an occupied cell's kind points to a static.
        unsafe { &*kind }
    }

    /// The kind of who lives here, or did last.
    pub(crate) fn kind_if_any(&self) -> Option<&'static Kind> {
        let kind = self.kind.load(Ordering::Relaxed);
        // SAFETY: a kind is a static.
        unsafe { kind.cast_const().as_ref() }
    }

    /// Where the state lies.
    #[inline(always)]
    fn room<S>(cell: NonNull<Cell>) -> *mut S {
        // SAFETY: the class of the cell was chosen with room for an `S` (or a `Box<S>`) behind the header.
        unsafe { cell.as_ptr().cast::<u8>().add(CELL_HEADER_BYTES).cast() }
    }

    /// Moves `state` in.
    ///
    /// # Safety
    /// The cell is vacant, owned by the caller and of the class for `S`.
    #[inline(always)]
    pub(crate) unsafe fn occupy<S: Resident>(
        cell: NonNull<Cell>,
        state: S,
        kind: &'static Kind,
        stage: u16,
        system: u16,
    ) -> u64 {
        // SAFETY: by the contract.
        unsafe {
            Cell::put_state(cell, state);
            let this = cell.as_ref();
            this.kind.store(std::ptr::from_ref(kind).cast_mut(), Ordering::Relaxed);
            this.system.store(u32::from(system), Ordering::Relaxed);
            let identity = (this.tag() & 0xffff_ffff_0000_0000) | (u64::from(stage) << 16);
            this.set_tag(identity);
            identity
        }
    }

    /// # Safety
    /// The cell is of the class for `S`, holds no state, and the caller owns it or runs its stage (I1).
    #[inline(always)]
    pub(crate) unsafe fn put_state<S: Resident>(cell: NonNull<Cell>, state: S) {
        // SAFETY: by the contract.
        unsafe {
            if crate::memory::slab::is_inline::<S>() {
                Cell::room::<S>(cell).write(state);
            } else {
                Cell::room::<Box<S>>(cell).write(Box::new(state));
            }
        }
    }

    /// Makes it the place of an `S` that lives elsewhere, with these bits in its status.
    ///
    /// # Safety
    /// As [`Cell::occupy`].
    pub(crate) unsafe fn occupy_away(
        cell: NonNull<Cell>,
        kind: &'static Kind,
        cold: Box<Cold>,
        stage: u16,
        system: u16,
        status: u64,
    ) {
        // SAFETY: by the contract.
        unsafe {
            *Cell::cold(cell) = Some(cold);
            let this = cell.as_ref();
            this.kind.store(std::ptr::from_ref(kind).cast_mut(), Ordering::Relaxed);
            this.system.store(u32::from(system), Ordering::Relaxed);
            this.set_tag((this.tag() & 0xffff_ffff_0000_0000) | (u64::from(stage) << 16) | status);
        }
    }

    /// Ends the occupation: the generation moves on, so every address to the former actor is stale. Returns false
    /// where the generations of this cell are used up: then it must never be used again.
    pub(crate) fn vacate(&self) -> bool {
        let generation = (self.tag() >> 32) as u32;
        self.set_tag((u64::from(generation.wrapping_add(1)) << 32) | status::VACANT);
        generation != u32::MAX
    }

    /// # Safety
    /// The cell is occupied by an `S` and the caller runs its stage (I1), and nothing else borrows the state.
    #[inline(always)]
    pub(crate) unsafe fn state<'a, S: Resident>(cell: NonNull<Cell>) -> &'a mut S {
        // SAFETY: by the contract.
        unsafe {
            if crate::memory::slab::is_inline::<S>() {
                &mut *Cell::room::<S>(cell)
            } else {
                &mut *(*Cell::room::<Box<S>>(cell)).as_mut()
            }
        }
    }

    /// # Safety
    /// As [`Cell::state`]; afterwards the state is gone.
    pub(crate) unsafe fn drop_state<S: Resident>(cell: NonNull<Cell>) {
        // SAFETY: by the contract.
        unsafe {
            if crate::memory::slab::is_inline::<S>() {
                Cell::room::<S>(cell).drop_in_place();
            } else {
                Cell::room::<Box<S>>(cell).drop_in_place();
            }
        }
    }

    /// The cold part, if there is one.
    ///
    /// # Safety
    /// The caller runs the cell's stage (I1) and holds no other reference to the cold part.
    #[inline(always)]
    pub(crate) unsafe fn cold<'a>(cell: NonNull<Cell>) -> &'a mut Option<Box<Cold>> {
        // SAFETY: by the contract.
        unsafe { &mut *cell.as_ref().cold.get() }
    }

    /// A message was handled: if that is to be noted, it is.
    ///
    /// # Safety
    /// As [`Cell::cold`].
    #[cold]
    pub(crate) unsafe fn note_handled(cell: NonNull<Cell>) {
        // SAFETY: cells are never freed; by the contract.
        unsafe {
            if cell.as_ref().has_status(status::NOTED)
                && let Some(worker) = crate::worker::current()
            {
                Cell::cold_mut(cell).handled_ns = worker.system.now_ns();
            }
        }
    }

    /// # Safety
    /// As [`Cell::cold`].
    pub(crate) unsafe fn cold_mut<'a>(cell: NonNull<Cell>) -> &'a mut Cold {
        // SAFETY: by the contract.
        unsafe { Cell::cold(cell).get_or_insert_with(Cold::new) }
    }
}
