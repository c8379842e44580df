//! Suspended handlers: the futures of `async` handlers that were not ready at once, in blocks of memory.
//!
//! Each thread keeps some blocks of up to 4 KiB for later handlers.

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::cell::RefCell;
use std::mem::ManuallyDrop;
use std::pin::Pin;
use std::ptr::NonNull;
use std::sync::atomic::AtomicBool;
use std::task::{Context, Poll as TaskPoll};

use crate::memory::cell::Cell;
use crate::memory::raw_address::RawAddress;
use crate::memory::record::Outcome;
use crate::user_code::contained;

/// The least alignment of a block: a cache line, because the actors of two blocks may be on different workers. Blocks
/// with a larger one are not kept.
const BLOCK_ALIGN: usize = 64;
/// The least size of a block. All sizes are powers of 2.
const BLOCK_BYTES_MIN: usize = 128;
/// The size of the largest blocks that a thread keeps.
const BLOCK_BYTES_KEPT: usize = 4096;
/// The number of sizes of blocks that a thread keeps.
const SIZES: usize = (BLOCK_BYTES_KEPT / BLOCK_BYTES_MIN).ilog2() as usize + 1;
/// The largest number of blocks of one size that a thread keeps.
const KEPT_MAX: usize = 64;

/// A block of memory for one future.
pub(crate) struct Block {
    at: NonNull<u8>,
    layout: Layout,
}

impl Block {
    /// Returns a block with room for `needed`: one that this thread has kept, or a new one.
    fn with_room_for(needed: Layout) -> Block {
        let size = needed.size().next_power_of_two().max(BLOCK_BYTES_MIN);
        let align = needed.align().max(BLOCK_ALIGN);
        if let Some(kept) = Block::place(size, align)
            && let Ok(Some(block)) = KEPT.try_with(|spare| spare.borrow_mut()[kept].pop())
        {
            return block;
        }
        let layout = Layout::from_size_align(size, align).expect("the layout of a future, rounded up");
        // SAFETY: the size is not zero.
        let at = NonNull::new(unsafe { alloc(layout) }).unwrap_or_else(|| handle_alloc_error(layout));
        Block { at, layout }
    }

    /// Returns the index in [`KEPT`] for blocks of this size and alignment. Returns `None` if such blocks are not kept.
    fn place(size: usize, align: usize) -> Option<usize> {
        (size <= BLOCK_BYTES_KEPT && align == BLOCK_ALIGN).then(|| (size / BLOCK_BYTES_MIN).ilog2() as usize)
    }

    /// Keeps the block for a later handler of this thread, or frees it.
    fn keep(self) {
        // At thread exit `KEPT` may be gone. The block is then freed.
        if let Some(kept) = Block::place(self.layout.size(), self.layout.align()) {
            let mut block = Some(self);
            let _ = KEPT.try_with(|spare| {
                let blocks = &mut spare.borrow_mut()[kept];
                if blocks.len() < KEPT_MAX {
                    blocks.extend(block.take());
                }
            });
        }
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        // SAFETY: `with_room_for` has allocated the block with this layout.
        unsafe { dealloc(self.at.as_ptr(), self.layout) };
    }
}

thread_local! {
    /// Free blocks for the async handlers of this thread, by size.
    static KEPT: RefCell<[Vec<Block>; SIZES]> = const { RefCell::new([const { Vec::new() }; SIZES]) };
}

/// A pinned future in its block.
pub(crate) struct Suspended {
    block: ManuallyDrop<Block>,
    poll: unsafe fn(NonNull<u8>, &mut Context<'_>) -> TaskPoll<Outcome>,
    drop: unsafe fn(NonNull<u8>),
    /// Sends the mail that polls the handler.
    pub(crate) send: fn(RawAddress),
}

// SAFETY: the future inside is Send (bound of `AsyncEnvelope::run`), and so is a block of memory.
unsafe impl Send for Suspended {}

impl Suspended {
    /// Builds the future that `make` returns in a block.
    ///
    /// # Safety
    /// All borrows of the future must live until the Suspended is dropped.
    pub(crate) unsafe fn new<F: Future<Output = Outcome> + Send>(
        send: fn(RawAddress),
        make: impl FnOnce() -> F,
    ) -> Suspended {
        unsafe fn poll<F: Future<Output = Outcome>>(at: NonNull<u8>, cx: &mut Context<'_>) -> TaskPoll<Outcome> {
            // SAFETY: `at` holds an F that does not move until it is dropped.
            unsafe { Pin::new_unchecked(at.cast::<F>().as_mut()) }.poll(cx)
        }
        unsafe fn drop<F>(at: NonNull<u8>) {
            // SAFETY: `at` holds an F that is not used afterwards.
            unsafe { at.cast::<F>().drop_in_place() };
        }
        let block = Block::with_room_for(Layout::new::<F>());
        // SAFETY: the block is large enough and aligned for an F.
        unsafe { block.at.cast::<F>().write(make()) };
        Suspended { block: ManuallyDrop::new(block), poll: poll::<F>, drop: drop::<F>, send }
    }

    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> TaskPoll<Outcome> {
        // SAFETY: the block holds the future that `poll` was made for.
        unsafe { (self.poll)(self.block.at, cx) }
    }
}

impl Drop for Suspended {
    fn drop(&mut self) {
        struct Recycle<'a>(&'a mut ManuallyDrop<Block>);
        impl Drop for Recycle<'_> {
            fn drop(&mut self) {
                // SAFETY: the Suspended is being dropped, and its block is therefore taken once.
                unsafe { ManuallyDrop::take(self.0) }.keep();
            }
        }
        let at = self.block.at;
        let _recycle = Recycle(&mut self.block);
        // SAFETY: the block holds the future that `drop` was made for; it is not used afterwards.
        let drop = || unsafe { (self.drop)(at) };
        if std::thread::panicking() {
            // The poll has panicked. A second panic, in the drop of the rest, would abort the process.
            contained(drop);
        } else {
            drop();
        }
    }
}

/// The actor that a waker wakes.
pub(crate) struct WakeTarget {
    pub(crate) address: RawAddress,
    pub(crate) send: fn(RawAddress),
    /// Mail for a poll is under way already.
    pub(crate) queued: AtomicBool,
}

/// # Safety
/// This thread runs the cell's stage, and holds no other reference to the cold part.
#[inline(never)]
pub(crate) unsafe fn drop_suspended(cell: NonNull<Cell>) {
    // SAFETY: this thread runs the cell's stage, and holds no other reference to the cold part.
    if let Some(suspended) = unsafe { Cell::cold(cell) }.as_mut().and_then(|cold| cold.suspended.take()) {
        contained(|| drop(suspended));
    }
}
