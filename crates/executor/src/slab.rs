//! Type-stable memory for cells.
//!
//! Memory that once held a cell is never anything else again, not even after its system is gone: an address is
//! copyable and keeps nothing alive, so it may outlive everything. Cells are cut from chunks by size class; vacant
//! cells wait on lists, first in the worker that saw the actor end, then in the process.

use std::alloc::{Layout, alloc_zeroed, handle_alloc_error};
use std::collections::BTreeMap;
use std::ptr::{self, NonNull};
use std::sync::Mutex;

use crate::cell::{CELL_HEADER_BYTES, Cell};
use crate::locks::lock;

/// States up to this size lie in the cell; larger (or over-aligned) ones are boxed once at the spawn.
pub const STATE_BYTES_MAX: usize = 480;
const CLASSES: usize = STATE_BYTES_MAX / 8 + 1;
/// With what the allocator adds, 64 pages.
const CHUNK_BYTES: usize = 256 * 1024 - 2 * CHUNK_ALIGN;
/// A cell of 64 bytes is one cache line.
const CHUNK_ALIGN: usize = 64;
/// What a chunk is cut from. Aligned as any memory is, and not as a chunk: what is aligned further is zeroed by hand, and then
/// all of it takes memory, however few cells are used. A system whose actors are of many sizes has a chunk for each.
const CHUNK_LAYOUT: Layout = match Layout::from_size_align(CHUNK_BYTES + CHUNK_ALIGN - ANY_ALIGN, ANY_ALIGN) {
    Ok(layout) => layout,
    Err(_) => panic!("chunk layout"),
};
const ANY_ALIGN: usize = 2 * size_of::<usize>();
/// A chunk has fewer cells than 2 to this.
const SLOT_INDEX_BITS: u32 = 16;
const _: () = assert!(CHUNK_BYTES / CELL_HEADER_BYTES < 1 << SLOT_INDEX_BITS);
/// Vacant cells of a class that a worker keeps before it gives them to the process.
const KEPT_MAX: usize = 8192;
/// How many steps before its use a vacant cell is fetched into the cache.
const FETCHED_AHEAD: usize = 6;

pub(crate) const fn is_inline<S>() -> bool {
    size_of::<S>() <= STATE_BYTES_MAX && align_of::<S>() <= 8
}

/// The class of cells for an `S`: the number of words behind the header.
pub(crate) const fn class_of<S>() -> u16 {
    if is_inline::<S>() { size_of::<S>().div_ceil(8) as u16 } else { 1 }
}

const fn cell_bytes(class: u16) -> usize {
    CELL_HEADER_BYTES + class as usize * 8
}

/// Vacant cells of a class. Not linked through the cells themselves: those lie anywhere by the time they are used again,
/// and following a link from one to the next waits for memory each time (60 of the 125 ns that an actor of `fib` took).
/// So it is known some steps ahead which cell comes, and it is fetched.
struct List {
    vacant: Vec<NonNull<Cell>>,
    /// Rest of the chunk that is being cut.
    fresh: *mut u8,
    fresh_end: *mut u8,
}

impl List {
    const fn new() -> List {
        List { vacant: Vec::new(), fresh: ptr::null_mut(), fresh_end: ptr::null_mut() }
    }
}

/// Vacant cells of all classes, owned by one worker (or kept under a lock).
pub(crate) struct Nursery {
    lists: Box<[List; CLASSES]>,
}

// SAFETY: a nursery owns the cells on its lists; it is only a bag of memory.
unsafe impl Send for Nursery {}

/// A run of cells of one class.
#[derive(Clone, Copy)]
struct Chunk {
    base: *mut u8,
    class: u16,
}

/// What no worker owns: left-over cells, and where all chunks are.
struct Commons {
    lists: Vec<(u16, List)>,
    chunks: Vec<Chunk>,
    /// Where in `chunks` the chunk at an address is.
    numbers: BTreeMap<usize, usize>,
}

// SAFETY: chunks are immortal, type-stable memory; cells synchronise access to themselves.
unsafe impl Send for Commons {}

static COMMONS: Mutex<Commons> =
    Mutex::new(Commons { lists: Vec::new(), chunks: Vec::new(), numbers: BTreeMap::new() });

fn commons() -> std::sync::MutexGuard<'static, Commons> {
    lock(&COMMONS)
}

impl Nursery {
    pub(crate) fn new() -> Self {
        Nursery { lists: Box::new([const { List::new() }; CLASSES]) }
    }

    /// A vacant cell of `class`, owned by the caller.
    #[inline]
    pub(crate) fn take(&mut self, class: u16) -> NonNull<Cell> {
        let list = &mut self.lists[class as usize];
        if let Some(cell) = list.vacant.pop() {
            if let Some(ahead) = list.vacant.len().checked_sub(FETCHED_AHEAD) {
                let ahead = list.vacant[ahead].as_ptr();
                crate::run::prefetch(ahead);
                // The state may reach into the next cache line.
                crate::run::prefetch(ahead.wrapping_byte_add(CELL_HEADER_BYTES + 32));
            }
            return cell;
        }
        if list.fresh == list.fresh_end {
            self.refill(class);
            return self.take(class);
        }
        let at = list.fresh;
        list.fresh = at.wrapping_add(cell_bytes(class));
        // SAFETY: `at` is inside a zeroed chunk, aligned to 8; an all-zero header is a vacant cell of generation 0.
        unsafe { NonNull::new_unchecked(at.cast()) }
    }

    #[cold]
    fn refill(&mut self, class: u16) {
        let mut commons = commons();
        if let Some(at) = commons.lists.iter().rposition(|(c, _)| *c == class) {
            self.lists[class as usize] = commons.lists.swap_remove(at).1;
            return;
        }
        // SAFETY: the size is not zero. Never freed: see the module text.
        let raw = unsafe { alloc_zeroed(CHUNK_LAYOUT) };
        if raw.is_null() {
            handle_alloc_error(CHUNK_LAYOUT);
        }
        // At most what the layout has besides a chunk.
        let base = raw.wrapping_add(raw.addr().next_multiple_of(CHUNK_ALIGN) - raw.addr());
        let chunk = Chunk { base, class };
        let number = commons.chunks.len();
        commons.numbers.insert(base.addr(), number);
        commons.chunks.push(chunk);
        let list = &mut self.lists[class as usize];
        list.fresh = base;
        list.fresh_end = chunk.end();
    }

    /// Takes back a vacant cell.
    #[inline]
    pub(crate) fn put(&mut self, cell: NonNull<Cell>, class: u16) {
        let list = &mut self.lists[class as usize];
        list.vacant.push(cell);
        if list.vacant.len() >= KEPT_MAX {
            // All to the process: a worker that only ends actors feeds one that only spawns.
            let vacant = std::mem::replace(&mut list.vacant, Vec::with_capacity(KEPT_MAX));
            commons().lists.push((class, List { vacant, ..List::new() }));
        }
    }
}

impl Chunk {
    fn end(self) -> *mut u8 {
        self.base.wrapping_add((CHUNK_BYTES / cell_bytes(self.class)) * cell_bytes(self.class))
    }
}

/// A number for the cell: where its chunk is among all, and where it is in that.
pub(crate) fn slot_of(cell: NonNull<Cell>) -> u64 {
    let address = cell.as_ptr().addr();
    let commons = commons();
    let (&base, &number) = commons.numbers.range(..=address).next_back().expect("every cell lies in a chunk");
    let index = (address - base) / cell_bytes(commons.chunks[number].class);
    (number as u64) << SLOT_INDEX_BITS | index as u64
}

/// The cell with this number, if there is one.
pub(crate) fn cell_in(slot: u64) -> Option<NonNull<Cell>> {
    let chunk = *commons().chunks.get(usize::try_from(slot >> SLOT_INDEX_BITS).ok()?)?;
    let at = chunk.base.wrapping_add((slot & ((1 << SLOT_INDEX_BITS) - 1)) as usize * cell_bytes(chunk.class));
    (at < chunk.end()).then(|| NonNull::new(at.cast())).flatten()
}

/// Calls `visit` with every cell that is occupied by an actor of `system`, as far as this thread sees.
pub(crate) fn sweep(system: u16, mut visit: impl FnMut(NonNull<Cell>)) {
    let chunks: Vec<Chunk> = commons().chunks.clone();
    for chunk in chunks {
        let mut at = chunk.base;
        while at != chunk.end() {
            // SAFETY: every `cell_bytes` of a chunk start with a header (all zero if it was never used), whose fields
            // are atomic, so cells of other systems may be looked at.
            let cell = unsafe { NonNull::new_unchecked(at.cast::<Cell>()) };
            // SAFETY: as above.
            if unsafe { cell.as_ref() }.is_occupied_in(system) {
                visit(cell);
            }
            at = at.wrapping_add(cell_bytes(chunk.class));
        }
    }
}

impl Drop for Nursery {
    fn drop(&mut self) {
        let mut commons = commons();
        for (class, list) in self.lists.iter_mut().enumerate() {
            if !list.vacant.is_empty() || list.fresh != list.fresh_end {
                commons.lists.push((class as u16, std::mem::replace(list, List::new())));
            }
        }
    }
}
