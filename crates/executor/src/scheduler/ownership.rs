//! Whose a worker's work is: the words that its thread and the monitor share, and the order in which they are written.
//!
//! The protocol and its proof are in `monitor.rs`. It is model-checked in `tests/loom.rs`, which compiles this very file
//! with loom's atomics.

use crate::sync::barrier::{heavy, light};
use crate::sync::primitives::{Arc, AtomicPtr, AtomicU32, Ordering};
use crate::sync::signal::Signal;

const RUNTIME: u32 = 0;
const USER: u32 = 1;

/// The thread's side is used by the worker's thread only. `revoke` is used by the monitor, and by who asks which actor the thread is at (`stuck.rs`): one
/// at a time, under the lease.
pub(crate) struct Ownership<T> {
    /// The record that was claimed last.
    claimed: AtomicPtr<T>,
    phase: AtomicU32,
    pub(crate) signal: Arc<Signal>,
}

impl<T> Ownership<T> {
    /// In RUNTIME, with nothing claimed.
    pub(crate) fn new(signal: Arc<Signal>) -> Self {
        Ownership { claimed: AtomicPtr::new(std::ptr::null_mut()), phase: AtomicU32::new(RUNTIME), signal }
    }

    // -- the thread's side ----------------------------------------------------------------------------------------------

    /// From RUNTIME to USER, with nothing claimed.
    #[inline(always)]
    pub(crate) fn begin(&self) {
        // The claim first: the monitor that sees USER (Release, below) sees no claim from before.
        self.claimed.store(std::ptr::null_mut(), Ordering::Relaxed);
        self.leave();
    }

    /// Claims `record` and returns the signal: only if it is zero may the record be run without asking.
    #[inline(always)]
    pub(crate) fn claim<const FULL: bool>(&self, record: *mut T) -> u32 {
        // Release: the monitor that sees the claim sees the record. Then the fence that pairs with `revoke`'s.
        self.claimed.store(record, Ordering::Release);
        light::<FULL>();
        self.signal.get()
    }

    /// From USER to RUNTIME. False: REVOKED is raised, so it must be asked (under the lease) whose the work is.
    #[inline(always)]
    pub(crate) fn enter<const FULL: bool>(&self) -> bool {
        self.phase.store(RUNTIME, Ordering::Relaxed);
        light::<FULL>();
        self.signal.get() & Signal::REVOKED == 0
    }

    /// From RUNTIME to USER; what was claimed stays claimed.
    #[inline(always)]
    pub(crate) fn leave(&self) {
        // Release: what was done in RUNTIME is whole before the monitor may take it.
        self.phase.store(USER, Ordering::Release);
    }

    /// Whether this thread is in USER.
    #[inline(always)]
    pub(crate) fn is_user(&self) -> bool {
        self.phase.load(Ordering::Relaxed) == USER
    }

    // -- the monitor's side ---------------------------------------------------------------------------------------------

    /// What was claimed last; for the thread itself. For others a hint only, which may be another one the next moment:
    /// what [`Tenure::revoke`] has returned is the claim to go by.
    #[inline(always)]
    pub(crate) fn claimed(&self) -> *mut T {
        self.claimed.load(Ordering::Relaxed)
    }

    /// Raises REVOKED and tells which record the thread has claimed; it will claim no other and not enter RUNTIME
    /// without asking. None, with REVOKED lowered again: the thread is in RUNTIME or about to be, or the kernel has refused the barrier.
    /// `full`: the thread has full fences. Under the lease.
    pub(crate) fn revoke(&self, full: bool) -> Option<std::ptr::NonNull<T>> {
        self.signal.raise(Signal::REVOKED);
        if !heavy(full) {
            // What is read here could be old: nothing is decided by it.
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
