//! Counts the bytes that are allocated and not freed.

use std::alloc::{GlobalAlloc, Layout, System as Heap};
use std::sync::atomic::{AtomicIsize, Ordering};

static LIVE: AtomicIsize = AtomicIsize::new(0);

/// The memory of cells is never freed. It is cut from blocks of this size (`crates/executor/src/memory/slab.rs`).
const CELLS_BYTES: std::ops::Range<usize> = 256 * 1024 - 256..256 * 1024;

struct Counting;

fn counted(layout: Layout) -> isize {
    if CELLS_BYTES.contains(&layout.size()) { 0 } else { layout.size() as isize }
}

// SAFETY: every call goes to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LIVE.fetch_add(counted(layout), Ordering::Relaxed);
        // SAFETY: the caller keeps `GlobalAlloc`'s contract, and `System` gets the same arguments.
        unsafe { Heap.alloc(layout) }
    }
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        LIVE.fetch_add(counted(layout), Ordering::Relaxed);
        // SAFETY: the caller keeps `GlobalAlloc`'s contract, and `System` gets the same arguments.
        unsafe { Heap.alloc_zeroed(layout) }
    }
    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        LIVE.fetch_sub(counted(layout), Ordering::Relaxed);
        // SAFETY: the caller keeps `GlobalAlloc`'s contract, and `System` gets the same arguments.
        unsafe { Heap.dealloc(at, layout) }
    }
}

#[global_allocator]
static HEAP: Counting = Counting;

/// Returns the number of bytes that are allocated now, other than cells.
pub fn live_bytes() -> isize {
    LIVE.load(Ordering::Relaxed)
}
