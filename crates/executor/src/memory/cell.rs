//! Cells: the memory of actors.
//!
//! A cell is a header of 32 bytes and the actor's state behind it, in one allocation of type-stable memory
//! ([`crate::memory::slab`]). Cell memory stays cell memory for ever, and a stale address may therefore always look at
//! the header. The tag in the header tells whether the actor of the address still exists.

use std::any::Any;
use std::cell::UnsafeCell;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};

use crate::memory::deferred::Deferred;
use crate::memory::raw_address::RawAddress;
use crate::memory::record::Outcome;
use crate::memory::slab::is_inline;
use crate::memory::stub_route::StubRoute;
use crate::memory::suspended::{Suspended, WakeTarget};
use crate::user_code::crash::{Crash, Ending};

/// Status bits, the low 16 of a cell's tag. Zero: the cell holds an actor that takes messages.
pub(crate) mod status {
    /// The cell holds no actor.
    pub(crate) const VACANT: u64 = 1;
    /// An async handler waits: ordinary messages go to the deferred list.
    pub(crate) const SUSPENDED: u64 = 2;
    /// The actor crashed and waits for its supervisor: messages go to the deferred list.
    pub(crate) const CRASHED: u64 = 4;
    /// The actor's first message is under way: messages that overtake it go to the deferred list.
    pub(crate) const NEW: u64 = 8;
    /// The cell is a stub: the actor is in another theater, no state is behind the header, and messages are forwarded
    /// (`stub.rs`).
    pub(crate) const AWAY: u64 = 16;
    /// The actor is migrating, or forwarded messages change their route. All messages go to the deferred list, except
    /// requests that [pass](crate::Control::passes).
    pub(crate) const FROZEN: u64 = 32;
    /// Messages wait on the deferred list for their guards, which are asked again after each message that is run. Set
    /// on an actor that is otherwise ready if and only if the guards of some of its deferred messages have refused
    /// them.
    pub(crate) const GUARDED: u64 = 64;
    /// The time of each message is noted ([`Cell::note_handled`](super::Cell::note_handled)).
    pub(crate) const NOTED: u64 = 128;
    /// With NEW: the actor's start may be deferred (`deferred_starts.rs`).
    pub(crate) const DEFERRABLE: u64 = 256;
    /// Deferred messages of an actor that is otherwise ready come before new messages, which go to the deferred list
    /// too. A [`GoOn`](crate::dispatch::control::GoOn) is under way, behind other actors' messages.
    pub(crate) const BEHIND: u64 = 512;
    /// With these, the actor still takes messages.
    pub(crate) const OPEN: u64 = GUARDED | NOTED;
    pub(crate) const MASK: u64 = 0xffff;
}

/// Type-erased operations on the state.
pub(crate) struct Kind {
    pub(crate) class: u16,
    /// The type of the state.
    pub(crate) type_id: fn() -> std::any::TypeId,
    /// The name of the type, for people.
    pub(crate) name: fn() -> &'static str,
    pub(crate) stop: unsafe fn(NonNull<Cell>, Ending),
    pub(crate) crash: unsafe fn(NonNull<Cell>, Crash) -> Outcome,
    /// Sends a [`GoOn`](crate::dispatch::control::GoOn).
    pub(crate) go_on: fn(RawAddress),
}

/// The header of a cell.
///
/// All zero bytes are a vacant cell that was never used.
///
/// INVARIANT: between `occupy` and `vacate` the state behind the header is an initialised value of the type that
/// `kind` belongs to. Only the thread that runs the cell's stage touches `cold` and the state (I1).
#[repr(C)]
pub(crate) struct Cell {
    /// `generation:32 | stage:16 | status:16`. Written by the spawner and then by the stage's worker; read by any
    /// thread with an address.
    tag: AtomicU64,
    kind: AtomicPtr<Kind>,
    cold: UnsafeCell<Option<Box<Cold>>>,
    /// The id of the system, and whether the actor's mailbox is [`BOUNDED`].
    system: AtomicU32,
    /// A number of the layer above. It is 0 in a new cell, and stays when the actor ends.
    pub(crate) number: AtomicU32,
}

/// A bit beside the id of the system, in a cell and in an address: the actor's mailbox is bounded (`mailbox_bound.rs`).
/// No system has an id with this bit, and a comparison of the two words therefore finds that they differ.
pub(crate) const BOUNDED: u16 = 0x8000;

pub(crate) const CELL_HEADER_BYTES: usize = size_of::<Cell>();
const _: () = assert!(CELL_HEADER_BYTES <= 32);

/// The part of a cell that few actors need. It is allocated at first use, and has cache lines of its own, because
/// another worker may run the actor of the next one.
#[repr(align(64))]
pub(crate) struct Cold {
    /// The future of a suspended handler; borrows the state.
    pub(crate) suspended: Option<Suspended>,
    /// The target of the wakers that the suspended handler has cloned.
    pub(crate) waking: Option<Arc<WakeTarget>>,
    /// Messages that arrived while suspended or crashed, or whose guards did not hold, in order.
    pub(crate) deferred: Deferred,
    /// The route of a stub.
    pub(crate) route: Option<Arc<StubRoute>>,
    pub(crate) stop_after: bool,
    /// The time of the last message, if that is [noted](status::NOTED).
    pub(crate) handled_ns: u64,
    pub(crate) failure: Option<Crash>,
    /// The resident's own cold part.
    pub(crate) extra: Option<Box<dyn Any + Send>>,
}

impl Cell {
    /// Returns whether the cell holds an actor of `system`; false for a cell that was never used.
    pub(crate) fn is_occupied_in(&self, system: u16) -> bool {
        !self.kind.load(Ordering::Relaxed).is_null() && self.tag() & status::VACANT == 0 && self.system() == system
    }

    #[inline(always)]
    pub(crate) fn tag(&self) -> u64 {
        // Relaxed: the worker that runs the stage reads its own writes. Any other thread only learns "same" or "gone",
        // and reaches the state only after a hand-over through a lock or a log.
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

    /// Returns whether ordinary messages are run when they come; the guards of some may make them wait.
    pub(crate) fn is_ready(&self) -> bool {
        self.tag() & status::MASK & !status::OPEN == 0
    }

    /// Returns whether the cell would be [ready](Cell::is_ready) if it were not [behind](status::BEHIND).
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

    /// Returns the id of the system as it is in addresses: with [`BOUNDED`].
    pub(crate) fn system_word(&self) -> u16 {
        self.system.load(Ordering::Relaxed) as u16
    }

    /// Notes that the actor's mailbox is bounded. Called before any other thread has its address.
    pub(crate) fn set_bounded(&self) {
        self.system.store(u32::from(self.system_word() | BOUNDED), Ordering::Relaxed);
    }

    pub(crate) fn kind(&self) -> &'static Kind {
        let kind = self.kind.load(Ordering::Relaxed);
        debug_assert!(!kind.is_null());
        // SAFETY: an occupied cell's kind points to a static.
        unsafe { &*kind }
    }

    /// Returns the kind of the present actor, or of the last one.
    pub(crate) fn kind_if_any(&self) -> Option<&'static Kind> {
        let kind = self.kind.load(Ordering::Relaxed);
        // SAFETY: a kind is a static.
        unsafe { kind.cast_const().as_ref() }
    }

    /// Returns the address of the state.
    #[inline(always)]
    fn room<S>(cell: NonNull<Cell>) -> *mut S {
        // SAFETY: the class of the cell was chosen with room for an `S` (or a `Box<S>`) behind the header.
        unsafe { cell.as_ptr().cast::<u8>().add(CELL_HEADER_BYTES).cast() }
    }

    /// Moves `state` into the cell.
    ///
    /// # Safety
    /// The cell is vacant, owned by the caller and of the class for `S`.
    #[inline(always)]
    pub(crate) unsafe fn occupy<S>(cell: NonNull<Cell>, state: S, kind: &'static Kind, stage: u16, system: u16) -> u64 {
        // SAFETY: the cell is vacant, owned by the caller and of the class for `S`.
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
    pub(crate) unsafe fn put_state<S>(cell: NonNull<Cell>, state: S) {
        // SAFETY: the cell has room for an `S`, and this thread alone touches its state.
        unsafe {
            if is_inline::<S>() {
                Cell::room::<S>(cell).write(state);
            } else {
                Cell::room::<Box<S>>(cell).write(Box::new(state));
            }
        }
    }

    /// Makes the cell the stub of an `S` in another theater, with these bits in its status.
    ///
    /// # Safety
    /// The same as for [`Cell::occupy`].
    pub(crate) unsafe fn occupy_away(
        cell: NonNull<Cell>,
        kind: &'static Kind,
        cold: Box<Cold>,
        stage: u16,
        system: u16,
        status: u64,
    ) {
        // SAFETY: the cell is vacant, owned by the caller and of the class for `S`.
        unsafe {
            *Cell::cold(cell) = Some(cold);
            let this = cell.as_ref();
            this.kind.store(std::ptr::from_ref(kind).cast_mut(), Ordering::Relaxed);
            this.system.store(u32::from(system), Ordering::Relaxed);
            this.set_tag((this.tag() & 0xffff_ffff_0000_0000) | (u64::from(stage) << 16) | status);
        }
    }

    /// Ends the occupation. The generation moves on, and every address of the former actor becomes stale. Returns false
    /// if the generations of this cell are used up: the cell must then never be used again.
    pub(crate) fn vacate(&self) -> bool {
        let generation = (self.tag() >> 32) as u32;
        self.set_tag((u64::from(generation.wrapping_add(1)) << 32) | status::VACANT);
        generation != u32::MAX
    }

    /// # Safety
    /// The cell is occupied by an `S` and the caller runs its stage (I1), and nothing else borrows the state.
    #[inline(always)]
    pub(crate) unsafe fn state<'a, S>(cell: NonNull<Cell>) -> &'a mut S {
        // SAFETY: the cell holds an `S`, which nothing else borrows, and the caller runs its stage.
        unsafe {
            if is_inline::<S>() { &mut *Cell::room::<S>(cell) } else { &mut *(*Cell::room::<Box<S>>(cell)).as_mut() }
        }
    }

    /// # Safety
    /// The same as for [`Cell::state`]; afterwards the state is gone.
    pub(crate) unsafe fn drop_state<S>(cell: NonNull<Cell>) {
        // SAFETY: the cell holds an `S`, which nothing else borrows, and the caller runs its stage.
        unsafe {
            if is_inline::<S>() {
                Cell::room::<S>(cell).drop_in_place();
            } else {
                Cell::room::<Box<S>>(cell).drop_in_place();
            }
        }
    }

    /// Returns the cold part, if there is one.
    ///
    /// # Safety
    /// The caller runs the cell's stage (I1) and holds no other reference to the cold part.
    #[inline(always)]
    pub(crate) unsafe fn cold<'a>(cell: NonNull<Cell>) -> &'a mut Option<Box<Cold>> {
        // SAFETY: the caller runs the cell's stage and holds no other reference to the cold part.
        unsafe { &mut *cell.as_ref().cold.get() }
    }

    /// # Safety
    /// The same as for [`Cell::cold`].
    pub(crate) unsafe fn cold_mut<'a>(cell: NonNull<Cell>) -> &'a mut Cold {
        // SAFETY: the caller runs the cell's stage and holds no other reference to the cold part.
        unsafe { Cell::cold(cell).get_or_insert_with(Cold::new) }
    }
}

impl Cold {
    pub(crate) fn new() -> Box<Cold> {
        Box::new(Cold {
            suspended: None,
            waking: None,
            deferred: Deferred::default(),
            route: None,
            stop_after: false,
            handled_ns: 0,
            failure: None,
            extra: None,
        })
    }
}
