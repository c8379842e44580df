//! The asymmetric fence: free for the side that runs all the time, dear for the side that runs rarely.
//!
//! A worker claims every message with a plain store followed by a plain load ([`light`]); the monitor, which
//! looks once in a few milliseconds, pays for both with [`heavy`]. Together they give Dekker's guarantee: of a
//! `light` side that stores X then loads Y, and a `heavy` side that stores Y then loads X, at least one sees the
//! other's store. Linux: `membarrier(2)` with a private expedited command (0.2 µs measured on two cores, against
//! 4 to 8 ns for a full fence on each message). On other platforms both sides are full fences.
//!
//! The kernel may refuse the barrier later, although it has granted it before: the program may install a seccomp
//! filter. [`heavy`] then returns false and gives no guarantee against light sides without full fences. From then on
//! [`asymmetric`] returns false. The workers notice that and change to full fences (`Worker::check_fence`).

#[cfg(all(target_os = "linux", not(miri)))]
mod imp {
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicBool, Ordering, compiler_fence, fence};

    const REGISTER_PRIVATE_EXPEDITED: libc::c_int = 1 << 4;
    const PRIVATE_EXPEDITED: libc::c_int = 1 << 3;

    fn membarrier(command: libc::c_int) -> bool {
        // SAFETY: membarrier(2) takes two integers (and a third that is ignored without a CPU flag) and touches no
        // memory of ours.
        unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) == 0 }
    }

    /// The kernel has refused a barrier that it had granted.
    static REFUSED: AtomicBool = AtomicBool::new(false);

    /// Returns whether the kernel offers the expedited barrier. Asked (and registered for) once per process; false for
    /// good after a refusal.
    pub(crate) fn asymmetric() -> bool {
        static GRANTED: OnceLock<bool> = OnceLock::new();
        *GRANTED.get_or_init(|| membarrier(REGISTER_PRIVATE_EXPEDITED) && membarrier(PRIVATE_EXPEDITED))
            && !REFUSED.load(Ordering::Relaxed)
    }

    #[inline(always)]
    pub(crate) fn light<const FULL: bool>() {
        if FULL {
            fence(Ordering::SeqCst);
        } else {
            compiler_fence(Ordering::SeqCst);
        }
    }

    /// Makes the heavy side's fence. `full`: the light side has full fences. Returns false if the kernel refuses the
    /// barrier: the two sides are then not ordered.
    pub(crate) fn heavy(full: bool) -> bool {
        fence(Ordering::SeqCst);
        if full {
            return true;
        }
        let granted = membarrier(PRIVATE_EXPEDITED);
        if !granted {
            // Relaxed: no earlier write is read through it. The workers and the monitors see it at their next look.
            REFUSED.store(true, Ordering::Relaxed);
        }
        granted
    }
}

#[cfg(any(not(target_os = "linux"), miri))]
mod imp {
    use std::sync::atomic::{Ordering, fence};

    pub(crate) fn asymmetric() -> bool {
        false
    }

    #[inline(always)]
    pub(crate) fn light<const FULL: bool>() {
        fence(Ordering::SeqCst);
    }

    pub(crate) fn heavy(_full: bool) -> bool {
        fence(Ordering::SeqCst);
        true
    }
}

pub(crate) use imp::{asymmetric, heavy, light};
