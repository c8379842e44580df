//! Type-stable memory for cells.
//!
//! Memory that once held a cell is never used for anything else, not even after its system has ended. An address is
//! copyable and keeps nothing alive, and may therefore outlive everything. Cells are cut from chunks by size class.
//! Vacant cells wait on lists, first in the worker that saw the actor end, then in the process.

use std::alloc::{Layout, alloc_zeroed, handle_alloc_error};
use std::collections::BTreeMap;
use std::ptr::{self, NonNull};
use std::sync::Mutex;
use std::sync::atomic::{AtomicPtr, Ordering};

use crate::memory::cell::{CELL_HEADER_BYTES, Cell};
use crate::memory::prefetch::prefetch;
use crate::sync::locks::lock;

/// States up to this size lie in the cell; larger (or over-aligned) ones are boxed once at the spawn.
pub const STATE_BYTES_MAX: usize = 480;
const CLASSES: usize = STATE_BYTES_MAX / 8 + 1;
/// With what the allocator adds, 64 pages. Under Miri, 4, because the end of a system visits each cell. Miri takes 10 s
/// for that with 64 pages.
const CHUNK_BYTES: usize = if cfg!(miri) { 16 } else { 256 } * 1024 - 2 * CHUNK_ALIGN;
/// A cell of 64 bytes is one cache line.
const CHUNK_ALIGN: usize = 64;
/// The layout that a chunk is cut from. It has the alignment of any memory, and not that of a chunk. Memory of a larger
/// alignment is zeroed by hand, and then all of it is resident, however few cells are used. A system whose actors are
/// of many sizes has a chunk for each.
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
/// The approximate bytes of unused cells that a list cuts from its chunk for one stage at a time. The cells of a stage
/// move between workers together. Neighbours of different stages would share cache lines that several workers write.
/// Runs of a power of 2 would put the first actors of all stages into the same cache sets.
const RUN_BYTES: usize = 19 * CHUNK_ALIGN;
/// The number of steps before its use at which a vacant cell is fetched into the cache.
const FETCHED_AHEAD: usize = 6;

pub(crate) const fn is_inline<S>() -> bool {
    size_of::<S>() <= STATE_BYTES_MAX && align_of::<S>() <= 8
}

/// Returns the class of cells for an `S`: the number of words behind the header.
pub(crate) const fn class_of<S>() -> u16 {
    if is_inline::<S>() { size_of::<S>().div_ceil(8) as u16 } else { 1 }
}

/// Returns the number of cells in a run: about [`RUN_BYTES`], and whole cache lines.
const fn run_cells(class: u16) -> usize {
    let bytes = cell_bytes(class);
    // The largest power of 2 in the bytes.
    let even = bytes & bytes.wrapping_neg();
    let whole = if even < CHUNK_ALIGN { CHUNK_ALIGN / even } else { 1 };
    let runs = RUN_BYTES / bytes / whole;
    if runs > 0 { runs * whole } else { whole }
}

const fn cell_bytes(class: u16) -> usize {
    CELL_HEADER_BYTES + class as usize * 8
}

/// Vacant cells of a class. They are not linked through the cells themselves, because those lie anywhere by the time
/// they are used again. Each step along such a link would wait for memory (60 of the 125 ns that an actor of `fib`
/// took). The list therefore knows the next cells some steps ahead, and fetches them.
struct List {
    vacant: Vec<NonNull<Cell>>,
    /// The chunk that is being cut.
    fresh: Option<Chunk>,
    /// Remainders of the runs that were cut from it, in the order of their stages.
    runs: Vec<(u16, Run)>,
    /// The index of the run that was used last. Children go to one stage after the other.
    last: usize,
}

/// Unused cells, one behind the other.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Run {
    at: *mut u8,
    end: *mut u8,
}

impl Run {
    const EMPTY: Run = Run { at: ptr::null_mut(), end: ptr::null_mut() };

    fn is_empty(self) -> bool {
        self.at == self.end
    }

    /// Takes `bytes` bytes off the front, or all bytes if there are fewer.
    fn cut(&mut self, bytes: usize) -> Run {
        let cut = Run { at: self.at, end: self.at.wrapping_add(bytes.min(self.end.addr() - self.at.addr())) };
        self.at = cut.end;
        cut
    }
}

impl List {
    const fn new() -> List {
        List { vacant: Vec::new(), fresh: None, runs: Vec::new(), last: 0 }
    }

    /// Returns the run of a stage, which may be empty.
    #[inline]
    fn run_of(&mut self, stage: u16) -> &mut Run {
        let next = if self.last + 1 < self.runs.len() { self.last + 1 } else { 0 };
        let found = [next, self.last].into_iter().find(|at| self.runs.get(*at).is_some_and(|(of, _)| *of == stage));
        self.last = found.unwrap_or_else(|| self.place_of(stage));
        &mut self.runs[self.last].1
    }

    #[cold]
    fn place_of(&mut self, stage: u16) -> usize {
        self.runs.binary_search_by_key(&stage, |(of, _)| *of).unwrap_or_else(|at| {
            self.runs.insert(at, (stage, Run::EMPTY));
            at
        })
    }

    fn is_empty(&self) -> bool {
        let is_cut = self.fresh.is_none_or(|fresh| fresh.uncut().is_empty());
        self.vacant.is_empty() && is_cut && self.runs.iter().all(|(_, run)| run.is_empty())
    }
}

/// Vacant cells of all classes, owned by one worker (or kept under a lock).
pub(crate) struct CellAllocator {
    lists: Box<[List; CLASSES]>,
}

// SAFETY: an allocator owns the cells on its lists, and shares none with other threads.
unsafe impl Send for CellAllocator {}

/// A run of cells of one class.
#[derive(Clone, Copy)]
struct Chunk {
    base: *mut u8,
    class: u16,
    /// The cells before this address were cut from the chunk, by the owner of the list that it is in. The others were
    /// never used.
    cut: &'static AtomicPtr<u8>,
}

/// The memory that no worker owns: left-over cells, and the list of all chunks.
struct CellReserve {
    lists: Vec<(u16, List)>,
    chunks: Vec<Chunk>,
    /// The index in `chunks` of the chunk at an address.
    numbers: BTreeMap<usize, usize>,
}

// SAFETY: chunks are immortal, type-stable memory; cells synchronise access to themselves.
unsafe impl Send for CellReserve {}

static COMMONS: Mutex<CellReserve> =
    Mutex::new(CellReserve { lists: Vec::new(), chunks: Vec::new(), numbers: BTreeMap::new() });

fn reserve() -> std::sync::MutexGuard<'static, CellReserve> {
    lock(&COMMONS)
}

impl CellAllocator {
    pub(crate) fn new() -> Self {
        CellAllocator { lists: Box::new([const { List::new() }; CLASSES]) }
    }

    /// Returns a vacant cell of `class` for an actor of `stage`, owned by the caller.
    #[inline]
    pub(crate) fn take(&mut self, class: u16, stage: u16) -> NonNull<Cell> {
        let list = &mut self.lists[class as usize];
        if let Some(cell) = list.vacant.pop() {
            if let Some(ahead) = list.vacant.len().checked_sub(FETCHED_AHEAD) {
                let ahead = list.vacant[ahead].as_ptr();
                prefetch(ahead);
                // The state may reach into the next cache line.
                prefetch(ahead.wrapping_byte_add(CELL_HEADER_BYTES + 32));
            }
            return cell;
        }
        let run = list.run_of(stage);
        if run.is_empty() {
            self.refill(class, stage);
            return self.take(class, stage);
        }
        let cell = run.cut(cell_bytes(class)).at;
        // SAFETY: `cell` is inside a zeroed chunk, aligned to 8; an all-zero header is a vacant cell of generation 0.
        unsafe { NonNull::new_unchecked(cell.cast()) }
    }

    #[cold]
    fn refill(&mut self, class: u16, stage: u16) {
        let list = &mut self.lists[class as usize];
        if let Some(fresh) = list.fresh {
            let mut uncut = fresh.uncut();
            if !uncut.is_empty() {
                *list.run_of(stage) = uncut.cut(run_cells(class) * cell_bytes(class));
                fresh.cut.store(uncut.at, Ordering::Relaxed);
                return;
            }
        }
        let mut reserve = reserve();
        if let Some(at) = reserve.lists.iter().rposition(|(c, _)| *c == class) {
            let found = reserve.lists.swap_remove(at).1;
            (list.vacant, list.fresh) = (found.vacant, found.fresh);
            for (stage, mut run) in found.runs {
                let own = list.run_of(stage);
                if own.is_empty() {
                    *own = run;
                    continue;
                }
                while !run.is_empty() {
                    // SAFETY: `cut` returns an address inside a zeroed chunk; an all-zero header is a vacant cell of
                    // generation 0.
                    list.vacant.push(unsafe { NonNull::new_unchecked(run.cut(cell_bytes(class)).at.cast()) });
                }
            }
            return;
        }
        // SAFETY: the size is not zero. The memory is never freed: see the module text.
        let raw = unsafe { alloc_zeroed(CHUNK_LAYOUT) };
        if raw.is_null() {
            handle_alloc_error(CHUNK_LAYOUT);
        }
        // At most the bytes that the layout has besides a chunk.
        let base = raw.wrapping_add(raw.addr().next_multiple_of(CHUNK_ALIGN) - raw.addr());
        let chunk = Chunk { base, class, cut: Box::leak(Box::new(AtomicPtr::new(base))) };
        let number = reserve.chunks.len();
        reserve.numbers.insert(base.addr(), number);
        reserve.chunks.push(chunk);
        list.fresh = Some(chunk);
    }

    /// Takes back a vacant cell.
    #[inline]
    pub(crate) fn put(&mut self, cell: NonNull<Cell>, class: u16) {
        let list = &mut self.lists[class as usize];
        list.vacant.push(cell);
        if list.vacant.len() >= KEPT_MAX {
            // All cells go to the process: a worker that only ends actors feeds one that only spawns.
            let vacant = std::mem::replace(&mut list.vacant, Vec::with_capacity(KEPT_MAX));
            reserve().lists.push((class, List { vacant, ..List::new() }));
        }
    }
}

impl Chunk {
    fn end(self) -> *mut u8 {
        self.base.wrapping_add((CHUNK_BYTES / cell_bytes(self.class)) * cell_bytes(self.class))
    }

    /// Returns the cells that were never used.
    fn uncut(self) -> Run {
        // Relaxed: the owner of the list reads its own writes. A thread that looks for an actor knows of it only after
        // its cell was cut.
        Run { at: self.cut.load(Ordering::Relaxed), end: self.end() }
    }
}

/// Returns a number for the cell: the index of its chunk among all, and its index in the chunk.
pub(crate) fn slot_of(cell: NonNull<Cell>) -> u64 {
    let address = cell.as_ptr().addr();
    let reserve = reserve();
    let (&base, &number) = reserve.numbers.range(..=address).next_back().expect("every cell lies in a chunk");
    let index = (address - base) / cell_bytes(reserve.chunks[number].class);
    (number as u64) << SLOT_INDEX_BITS | index as u64
}

/// Returns the cell with this number, if there is one.
pub(crate) fn cell_in(slot: u64) -> Option<NonNull<Cell>> {
    let chunk = *reserve().chunks.get(usize::try_from(slot >> SLOT_INDEX_BITS).ok()?)?;
    let at = chunk.base.wrapping_add((slot & ((1 << SLOT_INDEX_BITS) - 1)) as usize * cell_bytes(chunk.class));
    (at < chunk.end()).then(|| NonNull::new(at.cast())).flatten()
}

/// Calls `visit` with cells that are occupied by actors of `system`, as far as this thread sees: with at most `count`
/// cells, or with every one if there are fewer.
///
/// The cells are those of the process. Cells that were never used are not visited.
pub(crate) fn sweep(system: u16, mut count: u64, mut visit: impl FnMut(NonNull<Cell>)) {
    if count == 0 {
        return;
    }
    let chunks: Vec<Chunk> = reserve().chunks.clone();
    for chunk in chunks {
        let (end, bytes) = (chunk.uncut().at, cell_bytes(chunk.class));
        let mut at = chunk.base;
        while at != end {
            // SAFETY: every `cell_bytes` of a chunk start with a header (all zero if it was never used), whose fields
            // are atomic; cells of other systems may therefore be read.
            let cell = unsafe { NonNull::new_unchecked(at.cast::<Cell>()) };
            // SAFETY: the header lies in a chunk, and all fields that are read are atomic.
            if unsafe { cell.as_ref() }.is_occupied_in(system) {
                visit(cell);
                count -= 1;
                if count == 0 {
                    return;
                }
            }
            at = at.wrapping_add(bytes);
        }
    }
}

impl Drop for CellAllocator {
    fn drop(&mut self) {
        let mut reserve = reserve();
        for (class, list) in self.lists.iter_mut().enumerate() {
            if !list.is_empty() {
                reserve.lists.push((class as u16, std::mem::replace(list, List::new())));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    /// A class that no other test uses.
    const CLASS: u16 = 59;

    #[test]
    fn neighbours_in_memory_are_of_one_stage_and_no_cell_is_given_twice() {
        let mut all = HashSet::new();
        let chunk_cells = CHUNK_BYTES / cell_bytes(CLASS);
        // The unused cells of an allocator go to the next one.
        for _ in 0..3 {
            let mut allocator = CellAllocator::new();
            let mut of_stage = [const { Vec::new() }; 3];
            for turn in 0..chunk_cells / 2 {
                let stage = turn % 3;
                let cell = allocator.take(CLASS, stage as u16);
                assert!(all.insert(cell), "the cell was given twice");
                of_stage[stage].push(cell.as_ptr().addr());
            }
            for addresses in of_stage {
                let neighbours = addresses.windows(2).filter(|pair| pair[1] == pair[0] + cell_bytes(CLASS)).count();
                let runs = addresses.len() - neighbours;
                assert!(runs <= addresses.len().div_ceil(run_cells(CLASS)) + 3, "{runs} runs");
            }
        }
        // 3 halves of a chunk, and the rest of 1 run for each stage: no memory is lost.
        let chunks = reserve().chunks.iter().filter(|chunk| chunk.class == CLASS).count();
        assert_eq!(chunks, 2);
    }

    #[test]
    fn runs_are_whole_cache_lines() {
        for class in 0..CLASSES as u16 {
            let bytes = run_cells(class) * cell_bytes(class);
            assert!(bytes.is_multiple_of(CHUNK_ALIGN) && (512..=8 * 512).contains(&bytes), "{class}: {bytes}");
        }
    }

    #[test]
    fn a_cell_that_is_given_back_is_taken_again_by_any_stage() {
        let mut allocator = CellAllocator::new();
        let cell = allocator.take(CLASS - 1, 5);
        allocator.put(cell, CLASS - 1);
        assert_eq!(allocator.take(CLASS - 1, 7), cell);
    }
}
