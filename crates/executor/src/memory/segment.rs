//! Segments and chains: the memory in which records wait.
//!
//! The copy queue of C∀ (cforall-actors, "Copy Queue") without its doubling and without its high watermark. Records are
//! written in place into fixed segments that are chained. Growth therefore never copies, and consumed segments go back
//! to a small pool, which gives the memory of a burst back.

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::cell::Cell;
use std::ptr::{self, NonNull};

use crate::memory::record::Record;

/// Bytes of one segment, its header included: about 500 small messages; two fit into the L1 cache.
pub(crate) const SEGMENT_BYTES: usize = 16 * 1024;
const HEADER_BYTES: usize = 16;
/// Bytes of one segment that hold records.
pub(crate) const BODY_BYTES: usize = SEGMENT_BYTES - HEADER_BYTES;
/// A chain of one segment with at most this many bytes is copied behind a short queue, if there is room in its last
/// segment.
const COPY_BYTES_MAX: usize = 1024;
/// Behind a queue with more bytes than this, a chain of one segment is copied whatever its size is.
const SHORT_QUEUE_BYTES: usize = 64 * 1024;

/// Returns the largest number of bytes that are copied into the last segment of a queue with `queued` bytes. Larger
/// chains are linked to it, with all their segments.
///
/// Behind a long queue all copies save memory, because the records are not run soon: two segments in a row are then at
/// least half full together. If the segments of starved workers held 1 KiB each, their queues would take 16 times the
/// memory of their messages.
pub(crate) fn copy_bytes_max(queued: usize) -> usize {
    if queued > SHORT_QUEUE_BYTES { BODY_BYTES } else { COPY_BYTES_MAX }
}

const LAYOUT: Layout = match Layout::from_size_align(SEGMENT_BYTES, 64) {
    Ok(layout) => layout,
    Err(_) => panic!("segment layout"),
};

/// One block of records. INVARIANT: `[body, body + used)` is a sequence of whole, initialised records.
#[repr(C)]
pub(crate) struct Segment {
    pub(crate) next: *mut Segment,
    pub(crate) used: usize,
}

#[cfg(target_pointer_width = "64")]
const _: () = assert!(size_of::<Segment>() == HEADER_BYTES);

impl Segment {
    fn allocate() -> *mut Segment {
        // SAFETY: LAYOUT has a non-zero size.
        let raw = unsafe { alloc(LAYOUT) }.cast::<Segment>();
        if raw.is_null() {
            handle_alloc_error(LAYOUT);
        }
        // SAFETY: freshly allocated, large enough and aligned for the header.
        unsafe { raw.write(Segment { next: ptr::null_mut(), used: 0 }) };
        raw
    }

    /// # Safety
    /// `segment` came from [`Segment::allocate`] and is no longer used.
    unsafe fn free(segment: *mut Segment) {
        // SAFETY: the segment was allocated with the same layout, and is no longer used.
        unsafe { dealloc(segment.cast(), LAYOUT) };
    }

    #[inline(always)]
    pub(crate) fn body(segment: *mut Segment) -> *mut u8 {
        segment.cast::<u8>().wrapping_add(HEADER_BYTES)
    }

    #[inline(always)]
    pub(crate) fn limit(segment: *mut Segment) -> *mut u8 {
        segment.cast::<u8>().wrapping_add(SEGMENT_BYTES)
    }
}

/// A last-in-first-out pool of empty segments that belongs to one worker. The same two or three segments serve a steady
/// load and stay in its cache.
pub(crate) struct Pool {
    free: Cell<*mut Segment>,
    count: Cell<usize>,
}

// SAFETY: a pool owns its segments, which are empty.
unsafe impl Send for Pool {}

/// The largest number of segments that a worker keeps; further ones go back to the allocator.
const POOL_MAX: usize = 64;

impl Pool {
    pub(crate) const fn new() -> Self {
        Pool { free: Cell::new(ptr::null_mut()), count: Cell::new(0) }
    }

    pub(crate) fn len(&self) -> usize {
        self.count.get()
    }

    #[inline]
    pub(crate) fn take(&self) -> *mut Segment {
        let segment = self.free.get();
        if segment.is_null() {
            return Segment::allocate();
        }
        // SAFETY: segments in the pool are live and owned by it.
        unsafe {
            self.free.set((*segment).next);
            (*segment).next = ptr::null_mut();
            (*segment).used = 0;
        }
        self.count.set(self.count.get() - 1);
        segment
    }

    /// # Safety
    /// `segment` is owned by the caller, and the payloads in it were moved out or dropped.
    #[inline]
    pub(crate) unsafe fn put(&self, segment: *mut Segment) {
        if self.count.get() >= POOL_MAX {
            // SAFETY: owned by the caller, which gives it up.
            unsafe { Segment::free(segment) };
            return;
        }
        // SAFETY: the caller owns the segment and gives it up.
        unsafe { (*segment).next = self.free.get() };
        self.free.set(segment);
        self.count.set(self.count.get() + 1);
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        let mut segment = self.free.get();
        while !segment.is_null() {
            // SAFETY: the pool owns the segments on its list.
            unsafe {
                let next = (*segment).next;
                Segment::free(segment);
                segment = next;
            }
        }
    }
}

/// A queue of records in order of arrival: a list of segments, each with `used` bytes of records.
///
/// A chain owns the payloads of its records: its owner runs them or bounces them. Dropping a chain that still has
/// records is a bug (payloads would leak), which debug builds assert against.
pub(crate) struct Chain {
    pub(crate) first: *mut Segment,
    pub(crate) last: *mut Segment,
    /// Bytes of records in all segments together.
    pub(crate) bytes: usize,
}

// SAFETY: a chain owns its segments, and every payload in them is Send (see `record::write`).
unsafe impl Send for Chain {}

impl Chain {
    pub(crate) const fn new() -> Self {
        Chain { first: ptr::null_mut(), last: ptr::null_mut(), bytes: 0 }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    pub(crate) fn take(&mut self) -> Chain {
        std::mem::take(self)
    }

    /// Moves the `size` bytes of whole records at `source` to the end.
    ///
    /// # Safety
    /// `[source, source + size)` are whole records whose payloads the caller gives up; `size <= BODY_BYTES`.
    pub(crate) unsafe fn push_bytes(&mut self, source: *const u8, size: usize, pool: Option<&Pool>) {
        #[cfg(test)]
        steps::count();
        debug_assert!(size <= BODY_BYTES);
        // SAFETY: `last` is null or a live segment of this chain; `used + size <= BODY_BYTES` is checked before the
        // copy.
        unsafe {
            if self.last.is_null() || (*self.last).used + size > BODY_BYTES {
                let segment = pool.map_or_else(Segment::allocate, Pool::take);
                if self.last.is_null() {
                    self.first = segment;
                } else {
                    (*self.last).next = segment;
                }
                self.last = segment;
            }
            let target = Segment::body(self.last).add((*self.last).used);
            ptr::copy_nonoverlapping(source, target, size);
            (*self.last).used += size;
        }
        self.bytes += size;
    }

    /// Returns the bytes for which the last segment has room.
    pub(crate) fn room(&self) -> usize {
        // SAFETY: `last` is null or a live segment of this chain.
        if self.last.is_null() { 0 } else { BODY_BYTES - unsafe { (*self.last).used } }
    }

    /// Appends `other` without copying.
    pub(crate) fn append(&mut self, mut other: Chain) {
        if other.first.is_null() {
            return;
        }
        if self.last.is_null() {
            *self = other.take();
            return;
        }
        // SAFETY: `last` is a live segment of this chain.
        unsafe { (*self.last).next = other.first };
        self.last = other.last;
        self.bytes += other.bytes;
        other.forget();
    }

    /// Forgets the segments, which another owner has taken over.
    pub(crate) fn forget(&mut self) {
        self.first = ptr::null_mut();
        self.last = ptr::null_mut();
        self.bytes = 0;
    }

    /// Returns the first record.
    pub(crate) fn first_record(&self) -> Option<NonNull<Record>> {
        // SAFETY: the chain owns its segments; one that is not empty begins with a whole record.
        (!self.is_empty()).then(|| unsafe { NonNull::new_unchecked(Segment::body(self.first).cast()) })
    }

    /// Calls `visit` with each record in order. The record may be rewritten in place but not resized.
    pub(crate) fn for_each(&self, mut visit: impl FnMut(NonNull<Record>)) {
        let mut segment = self.first;
        while !segment.is_null() {
            // SAFETY: the chain owns its segments, and a segment holds whole records up to `used`.
            unsafe {
                for_each_between(Segment::body(segment), Segment::body(segment).add((*segment).used), &mut visit);
                segment = (*segment).next;
            }
        }
    }

    /// Gives each record to `visit`, in order, which runs it, bounces it or moves it on. Gives the segments back.
    pub(crate) fn consume(self, pool: Option<&Pool>, visit: impl FnMut(NonNull<Record>)) {
        self.for_each(visit);
        self.recycle_spent(pool);
    }

    /// Gives the segments back. Their records were all consumed, or copied to other memory.
    pub(crate) fn recycle_spent(mut self, pool: Option<&Pool>) {
        self.bytes = 0;
        self.recycle(pool);
    }

    /// Gives the segments of a chain without records back.
    pub(crate) fn recycle(mut self, pool: Option<&Pool>) {
        debug_assert!(self.is_empty(), "a chain with records was recycled");
        let mut segment = self.first;
        while !segment.is_null() {
            // SAFETY: owned by this chain, which is consumed.
            unsafe {
                let next = (*segment).next;
                match pool {
                    Some(pool) => pool.put(segment),
                    None => Segment::free(segment),
                }
                segment = next;
            }
        }
        self.forget();
    }
}

impl Default for Chain {
    fn default() -> Self {
        Chain::new()
    }
}

impl Drop for Chain {
    fn drop(&mut self) {
        debug_assert!(self.bytes == 0 || std::thread::panicking(), "a chain with records was dropped");
        let mut segment = self.first;
        while !segment.is_null() {
            // SAFETY: without records there is no payload; the segments are owned by this chain.
            unsafe {
                let next = (*segment).next;
                Segment::free(segment);
                segment = next;
            }
        }
    }
}

/// Calls `visit` with each record of `[from, to)` in order.
///
/// # Safety
/// `[from, to)` is a sequence of whole, initialised records.
pub(crate) unsafe fn for_each_between(from: *mut u8, to: *mut u8, visit: &mut impl FnMut(NonNull<Record>)) {
    let mut at = from;
    while at < to {
        // SAFETY: the caller guarantees that a whole record starts at `at`, and segments are never null.
        unsafe {
            let record = NonNull::new_unchecked(at.cast::<Record>());
            let size = record.as_ref().bytes();
            visit(record);
            at = at.add(size);
        }
    }
}

#[cfg(test)]
pub(crate) mod steps {
    use std::cell::Cell;

    thread_local! {
        static STEPS: Cell<u64> = const { Cell::new(0) };
    }

    /// Counts a record that this thread moves to a chain, or visits among deferred ones.
    pub(crate) fn count() {
        STEPS.set(STEPS.get() + 1);
    }

    pub(crate) fn so_far() -> u64 {
        STEPS.get()
    }
}
