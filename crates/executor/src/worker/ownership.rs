//! The ownership of a worker's work: the words that its thread and the monitor share, and the order in which they are
//! written.
//!
//! The protocol and its proof are in `monitor.rs`. `tests/loom.rs` model-checks it, and compiles this very file with
//! loom's atomics.

use crate::sync::asymmetric_fence::{heavy, light};
use crate::sync::primitives::{Arc, AtomicPtr, AtomicU32, Ordering};
use crate::sync::worker_requests::Signal;

const RUNTIME: u32 = 0;
const USER: u32 = 1;

/// The words of one worker. Only the worker's thread uses the thread's side. The monitor uses `revoke`, and so does a
/// thread that asks for the actor that the worker runs (`actors_at_work.rs`): one at a time, under the handoff lock.
pub(crate) struct Ownership<T> {
    /// The record that was claimed last.
    claimed: AtomicPtr<T>,
    phase: AtomicU32,
    pub(crate) signal: Arc<Signal>,
}

impl<T> Ownership<T> {
    /// Creates the words of a thread in RUNTIME, with no record claimed.
    pub(crate) fn new(signal: Arc<Signal>) -> Self {
        Ownership { claimed: AtomicPtr::new(std::ptr::null_mut()), phase: AtomicU32::new(RUNTIME), signal }
    }

    // -- the thread's side
    // ----------------------------------------------------------------------------------------------

    /// Goes from RUNTIME to USER, with no record claimed.
    #[inline(always)]
    pub(crate) fn begin(&self) {
        // The claim first: a monitor that sees USER (Release, below) sees no earlier claim.
        self.claimed.store(std::ptr::null_mut(), Ordering::Relaxed);
        self.leave();
    }

    /// Claims `record` and returns the signal: only if it is zero may the thread run the record without asking for the
    /// lock.
    #[inline(always)]
    pub(crate) fn claim<const FULL: bool>(&self, record: *mut T) -> u32 {
        // Release: a monitor that sees the claim sees the record. Then the fence that pairs with `revoke`'s.
        self.claimed.store(record, Ordering::Release);
        light::<FULL>();
        self.signal.get()
    }

    /// Goes from USER to RUNTIME. Returns false if REVOKED is raised: the thread must then ask (under the handoff lock)
    /// whether it still has the work.
    #[inline(always)]
    pub(crate) fn enter<const FULL: bool>(&self) -> bool {
        self.phase.store(RUNTIME, Ordering::Relaxed);
        light::<FULL>();
        self.signal.get() & Signal::REVOKED == 0
    }

    /// Goes from RUNTIME to USER; the claimed record stays claimed.
    #[inline(always)]
    pub(crate) fn leave(&self) {
        // Release: all changes in RUNTIME are complete before the monitor may take the work.
        self.phase.store(USER, Ordering::Release);
    }

    /// Returns whether this thread is in USER.
    #[inline(always)]
    pub(crate) fn is_user(&self) -> bool {
        self.phase.load(Ordering::Relaxed) == USER
    }

    // -- the monitor's side
    // ---------------------------------------------------------------------------------------------

    /// Returns the last claim, for the thread itself. For other threads it is a hint only, because it may change at any
    /// moment. They decide by the claim that [`Ownership::revoke`] returns.
    #[inline(always)]
    pub(crate) fn claimed(&self) -> *mut T {
        self.claimed.load(Ordering::Relaxed)
    }

    /// Raises REVOKED and returns the record that the thread has claimed. The thread will claim no other record and not
    /// enter RUNTIME without asking. Returns `None`, with REVOKED lowered again, if the thread is in RUNTIME or about
    /// to be, or if the kernel has refused the barrier. `full`: the thread has full fences. Under the handoff lock.
    pub(crate) fn revoke(&self, full: bool) -> Option<std::ptr::NonNull<T>> {
        self.signal.raise(Signal::REVOKED);
        if !heavy(full) {
            // The words that are read may be old: no decision is taken by them.
            self.signal.clear(Signal::REVOKED);
            return None;
        }
        // The phase first: a claim read before it could be an old one, of a thread that is about to start a gulp.
        let phase = self.phase.load(Ordering::Acquire);
        let claimed = self.claimed.load(Ordering::Acquire);
        let claimed = std::ptr::NonNull::new(claimed).filter(|_| phase == USER);
        if claimed.is_none() {
            self.signal.clear(Signal::REVOKED);
        }
        claimed
    }
}
