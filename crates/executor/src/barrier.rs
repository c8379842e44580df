//! The asymmetric fence: free for the side that runs all the time, dear for the side that runs rarely.
//!
//! A worker claims every message with a plain store followed by a plain load ([`light`]); the monitor, which
//! looks once in a few milliseconds, pays for both with [`heavy`]. Together they give Dekker's guarantee: of a
//! `light` side that stores X then loads Y, and a `heavy` side that stores Y then loads X, at least one sees the
//! other's store. Linux: `membarrier(2)` with a private expedited command (0.2 µs measured on two cores, against
//! 4 to 8 ns for a full fence on each message). Elsewhere both sides are full fences.

#[cfg(all(target_os = "linux", not(miri)))]
mod imp {
    use std::sync::OnceLock;
    use std::sync::atomic::{Ordering, compiler_fence, fence};

    const REGISTER_PRIVATE_EXPEDITED: libc::c_int = 1 << 4;
    const PRIVATE_EXPEDITED: libc::c_int = 1 << 3;

    fn membarrier(command: libc::c_int) -> bool {
        // SAFETY: membarrier(2) takes two integers (and a third that is ignored without a CPU flag) and touches no
        // memory of ours.
        unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) == 0 }
    }

    /// Whether the kernel offers the expedited barrier; asked (and registered for) once per process.
    pub(crate) fn asymmetric() -> bool {
        static REGISTERED: OnceLock<bool> = OnceLock::new();
        *REGISTERED.get_or_init(|| membarrier(REGISTER_PRIVATE_EXPEDITED))
    }

    #[inline(always)]
    pub(crate) fn light<const FULL: bool>() {
        if FULL {
            fence(Ordering::SeqCst);
        } else {
            compiler_fence(Ordering::SeqCst);
        }
    }

    pub(crate) fn heavy() {
        fence(Ordering::SeqCst);
        if asymmetric() {
            assert!(membarrier(PRIVATE_EXPEDITED), "membarrier(2) was registered but failed");
        }
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

    pub(crate) fn heavy() {
        fence(Ordering::SeqCst);
    }
}

pub(crate) use imp::{asymmetric, heavy, light};
