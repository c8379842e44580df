//! Addresses without types, and the lanes.

use std::fmt;
use std::hash::Hasher;
use std::ptr::NonNull;
use std::sync::atomic::AtomicU32;

use crate::memory::cell::{BOUNDED, Cell, status};

/// The lanes of a stage, in the order of their rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Lane {
    /// Stop, kill, restart, death notices. Never refused, never dropped.
    System = 0,
    /// Messages that overtake normal ones.
    Urgent = 1,
    /// All other messages.
    Normal = 2,
}

/// An address without its type: the cell and `generation:32 | stage:16 | system:16`.
///
/// The stage is in the address, and a sender therefore never touches the cell of the receiver.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RawAddress {
    pub(crate) cell: NonNull<Cell>,
    pub(crate) tag: u64,
}

// SAFETY: an address only names a cell of type-stable memory; every use of it goes through the cell's atomics.
unsafe impl Send for RawAddress {}
// SAFETY: an address only names a cell of type-stable memory; it has no interior of its own.
unsafe impl Sync for RawAddress {}

// A panic in other code cannot leave an address broken.
impl std::panic::UnwindSafe for RawAddress {}
impl std::panic::RefUnwindSafe for RawAddress {}

/// Hashes addresses, which no attacker chooses to make them collide.
#[derive(Debug, Default)]
pub struct Spread(u64);

impl Hasher for Spread {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_usize(&mut self, n: usize) {
        self.write_u64(n as u64);
    }

    fn write_u64(&mut self, n: u64) {
        let mixed = (self.0 ^ n).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ (mixed >> 32);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

impl RawAddress {
    /// Returns the address of the actor in `cell`.
    #[inline(always)]
    pub(crate) fn of(cell: NonNull<Cell>) -> RawAddress {
        // SAFETY: cells are never freed.
        let header = unsafe { cell.as_ref() };
        RawAddress { cell, tag: (header.tag() & !status::MASK) | u64::from(header.system_word()) }
    }

    /// Returns the id of the actor's system.
    #[inline(always)]
    pub fn system(self) -> u16 {
        self.system_word() & !BOUNDED
    }

    /// Returns the id of the system with [`BOUNDED`]. If the actor's mailbox is bounded, it differs from the id of any
    /// system.
    #[inline(always)]
    pub(crate) fn system_word(self) -> u16 {
        self.tag as u16
    }

    /// Returns a number that the layer above keeps for the cell of the actor. It is 0 in a new cell, and stays when the
    /// actor ends.
    pub fn cell_number(self) -> &'static AtomicU32 {
        // SAFETY: cells are never freed.
        let cell: &'static Cell = unsafe { self.cell.as_ref() };
        &cell.number
    }

    /// Returns whether the actor's mailbox is bounded.
    pub fn is_bounded(self) -> bool {
        self.system_word() & BOUNDED != 0
    }

    /// Returns the stage of the actor.
    #[inline(always)]
    pub fn stage(self) -> u16 {
        (self.tag >> 16) as u16
    }

    #[inline(always)]
    pub(crate) fn identity(self) -> u64 {
        self.tag & !status::MASK
    }

    /// Returns the type of the actor at the address. Returns `None` if the actor has ended.
    pub fn resident_type(self) -> Option<std::any::TypeId> {
        // A cell whose actor has ended may have no kind.
        if self.is_stale() {
            return None;
        }
        // SAFETY: cells are never freed. The kind is that of the address's own incarnation, or of a later one; the
        // address is then stale.
        let kind = unsafe { self.cell.as_ref() }.kind();
        let id = (kind.type_id)();
        (!self.is_stale()).then_some(id)
    }

    /// Returns the name of the type of the actor at the address, for reports. Returns `None` if the actor has ended.
    pub fn resident_name(self) -> Option<&'static str> {
        if self.is_stale() {
            return None;
        }
        // SAFETY: cells are never freed. The kind is that of the address's own incarnation, or of a later one; the
        // address is then stale.
        let kind = unsafe { self.cell.as_ref() }.kind();
        let name = (kind.name)();
        (!self.is_stale()).then_some(name)
    }

    /// Returns whether the actor is known to have ended. False may be out of date at once; true stays true.
    pub fn is_stale(self) -> bool {
        // SAFETY: cells are never freed.
        let tag = unsafe { self.cell.as_ref() }.tag();
        tag >> 16 != self.tag >> 16 || tag & status::VACANT != 0
    }
}

impl fmt::Debug for RawAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:x}.{}", self.system(), self.cell.as_ptr() as usize, self.tag >> 32)
    }
}
