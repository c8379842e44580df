//! Suspended handlers: the futures of `async` handlers that were not ready at once.
//!
//! The handler's future is built in a block that belongs to the worker and is polled there. If it is ready (most
//! are), it is dropped in place: nothing was allocated. If it is not, the block becomes the actor's and the worker
//! gets a new one at the next need; the actor is *suspended*: its state is borrowed by the future, so ordinary
//! messages are put on its deferred list until the future is done. Wake-ups arrive as control mail.

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::cell::Cell as StdCell;
use std::mem::ManuallyDrop;
use std::pin::Pin;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll as TaskPoll, RawWaker, RawWakerVTable, Wake, Waker};

use crate::address::RawAddress;
use crate::cell::{Cell, status};
use crate::record::{CONTINUE, Outcome, RESUME, STOP};
use crate::resident::{AsyncEnvelope, Cx, Poll, Resident};
use crate::worker;

/// Block for a future: alignment and size.
const BLOCK_ALIGN: usize = 16;
const BLOCK_BYTES: usize = 1024;

/// A block of memory for one future.
pub(crate) struct Block {
    at: NonNull<u8>,
    layout: Layout,
}

impl Block {
    fn new(layout: Layout) -> Block {
        // SAFETY: the size is not zero (at least BLOCK_BYTES).
        let at = NonNull::new(unsafe { alloc(layout) }).unwrap_or_else(|| handle_alloc_error(layout));
        Block { at, layout }
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        // SAFETY: allocated in `new` with this layout.
        unsafe { dealloc(self.at.as_ptr(), self.layout) };
    }
}

thread_local! {
    /// The block that the next async handler of this thread is tried in.
    static SPARE: StdCell<Option<Block>> = const { StdCell::new(None) };
}

/// A pinned future in its block.
pub(crate) struct Suspended {
    block: ManuallyDrop<Block>,
    poll: unsafe fn(NonNull<u8>, &mut Context<'_>) -> TaskPoll<Outcome>,
    drop: unsafe fn(NonNull<u8>),
}

// SAFETY: the future inside is Send (bound of `AsyncEnvelope::run`), and so is a block of memory.
unsafe impl Send for Suspended {}

impl Suspended {
    /// Builds the future that `make` returns, in the spare block of this thread.
    ///
    /// # Safety
    /// What the future borrows must live until the Suspended is dropped.
    unsafe fn new<S: Resident, F: Future<Output = Cx<S>> + Send>(make: impl FnOnce() -> F) -> Suspended {
        unsafe fn poll<S: Resident, F: Future<Output = Cx<S>>>(
            at: NonNull<u8>,
            cx: &mut Context<'_>,
        ) -> TaskPoll<Outcome> {
            // SAFETY: `at` holds an F that does not move until it is dropped.
            unsafe { Pin::new_unchecked(at.cast::<F>().as_mut()) }.poll(cx).map(Cx::outcome)
        }
        unsafe fn drop<F>(at: NonNull<u8>) {
            // SAFETY: `at` holds an F that is not used afterwards.
            unsafe { at.cast::<F>().drop_in_place() };
        }
        let needed = Layout::new::<F>();
        let block = match SPARE.take() {
            Some(block) if block.layout.size() >= needed.size() && block.layout.align() >= needed.align() => block,
            _ => {
                let size = needed.size().max(BLOCK_BYTES);
                Block::new(Layout::from_size_align(size, needed.align().max(BLOCK_ALIGN)).expect("layout of a future"))
            }
        };
        // SAFETY: the block is large enough and aligned for an F.
        unsafe { block.at.cast::<F>().write(make()) };
        Suspended { block: ManuallyDrop::new(block), poll: poll::<S, F>, drop: drop::<F> }
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> TaskPoll<Outcome> {
        // SAFETY: the block holds the future that `poll` was made for.
        unsafe { (self.poll)(self.block.at, cx) }
    }
}

impl Drop for Suspended {
    fn drop(&mut self) {
        struct Recycle<'a>(&'a mut ManuallyDrop<Block>);
        impl Drop for Recycle<'_> {
            fn drop(&mut self) {
                // SAFETY: the Suspended is being dropped, so its block is taken once.
                let block = unsafe { ManuallyDrop::take(self.0) };
                // At thread exit the spare is gone already; then the block is just freed.
                let _ = SPARE.try_with(|spare| spare.set(Some(block)));
            }
        }
        let at = self.block.at;
        let _recycle = Recycle(&mut self.block);
        // SAFETY: the block holds the future that `drop` was made for; it is not used afterwards.
        unsafe { (self.drop)(at) };
    }
}

/// Starts an async handler: one poll on the spot; suspends the actor if it is not done.
///
/// # Safety
/// As for a thunk with `Op::Run`.
pub(crate) unsafe fn start<S: Resident, E: AsyncEnvelope<S>>(cell: NonNull<Cell>, envelope: E) -> Outcome {
    // SAFETY: nobody else touches the state while the future lives: ordinary mail is deferred while the actor is
    // suspended, control mail gets no state, and `stop` drops the future first.
    let mut suspended = unsafe { Suspended::new(|| envelope.run(Cell::state::<S>(cell), Cx::new(cell))) };
    let first = FirstWaker::new(cell, poll_address::<S>);
    let waker = first.waker();
    match suspended.poll(&mut Context::from_waker(&waker)) {
        TaskPoll::Ready(outcome) => outcome,
        TaskPoll::Pending => {
            // SAFETY: this thread runs the cell's stage.
            let cold = unsafe { Cell::cold_mut(cell) };
            cold.suspended = Some(suspended);
            // SAFETY: the cell is alive; its status is written by this thread only (I1).
            unsafe { cell.as_ref() }.set_status(status::SUSPENDED, true);
            worker::note_suspended(true);
            CONTINUE
        }
    }
}

/// Polls the suspended handler of `cell`, if there is one still.
pub(crate) fn poll(cell: NonNull<Cell>, settle: &mut dyn FnMut(Outcome)) {
    // SAFETY: called from control mail, by the thread that runs the cell's stage.
    let cold = unsafe { Cell::cold_mut(cell) };
    let Some(target) = cold.waker.clone() else { return };
    // Release what the wakers wrote before they woke us; from here on a new wake-up sends new mail.
    target.queued.swap(false, Ordering::AcqRel);
    // Taken out for the poll: the handler may look at its cold part while it runs.
    let Some(mut suspended) = cold.suspended.take() else { return };
    let waker = Waker::from(target);
    let polled = suspended.poll(&mut Context::from_waker(&waker));
    // SAFETY: as above; the earlier reference is not used any more.
    let cold = unsafe { Cell::cold_mut(cell) };
    match polled {
        TaskPoll::Pending => cold.suspended = Some(suspended),
        TaskPoll::Ready(outcome) => {
            drop(suspended);
            let stop_after = std::mem::take(&mut cold.stop_after);
            // SAFETY: the cell is alive; its status is written by this thread only (I1), and the reference to the cold part is
            // not used any more.
            unsafe {
                cell.as_ref().set_status(status::SUSPENDED, false);
                Cell::note_handled(cell);
            }
            worker::note_suspended(false);
            settle(match outcome {
                CONTINUE if stop_after => STOP,
                CONTINUE => RESUME,
                decided => decided,
            });
        }
    }
}

/// Whom a waker wakes.
pub(crate) struct WakeTarget {
    address: RawAddress,
    send: fn(RawAddress),
    /// A poll is on its way already.
    queued: AtomicBool,
}

impl Wake for WakeTarget {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        // AcqRel: what was written before the wake is seen by the poll that follows (pairs with the swap in `poll`).
        if !self.queued.swap(true, Ordering::AcqRel) || worker::runs_single_deliveries() {
            (self.send)(self.address);
        }
    }
}

/// From a worker behind what it has sent before, so a handler that yields lets others go on; from outside in the system
/// lane, which never makes the waker wait.
fn poll_address<S: Resident>(address: RawAddress) {
    match worker::current() {
        Some(worker) if worker.system_id == address.system() => address.typed::<S>().send_control_behind(Poll),
        _ => address.typed::<S>().send_control(Poll),
    }
}

/// The waker of the first poll: it lives on the stack and becomes a [`WakeTarget`] only when it is cloned.
struct FirstWaker {
    cell: NonNull<Cell>,
    send: fn(RawAddress),
}

impl FirstWaker {
    fn new(cell: NonNull<Cell>, send: fn(RawAddress)) -> Self {
        FirstWaker { cell, send }
    }

    fn waker(&self) -> ManuallyDrop<Waker> {
        // SAFETY: the vtable functions treat the data as a FirstWaker, which outlives the borrowed waker; clones are
        // wakers of their own.
        ManuallyDrop::new(unsafe { Waker::from_raw(RawWaker::new(std::ptr::from_ref(self).cast(), &FIRST)) })
    }

    fn target(&self) -> Arc<WakeTarget> {
        // SAFETY: the first poll runs on the thread that runs the cell's stage.
        let cold = unsafe { Cell::cold_mut(self.cell) };
        Arc::clone(cold.waker.get_or_insert_with(|| {
            let address = RawAddress::of(self.cell);
            Arc::new(WakeTarget { address, send: self.send, queued: AtomicBool::new(false) })
        }))
    }
}

static FIRST: RawWakerVTable = RawWakerVTable::new(
    |data| {
        // SAFETY: see `FirstWaker::waker`.
        let first = unsafe { &*data.cast::<FirstWaker>() };
        let waker = ManuallyDrop::new(Waker::from(first.target()));
        RawWaker::new(waker.data(), waker.vtable())
    },
    // SAFETY: see `FirstWaker::waker`.
    |data| unsafe { &*data.cast::<FirstWaker>() }.target().wake(),
    // SAFETY: see `FirstWaker::waker`.
    |data| unsafe { &*data.cast::<FirstWaker>() }.target().wake(),
    |_| {},
);
