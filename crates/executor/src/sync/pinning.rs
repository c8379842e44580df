//! The cores that the process may use, and binding threads to them.

#[cfg(target_os = "linux")]
use std::sync::OnceLock;

/// Returns the cores that the calling thread may use; none if they cannot be found out.
#[cfg(target_os = "linux")]
fn cores() -> Vec<usize> {
    // SAFETY: cpu_set_t is plain data; the call gets its true size.
    unsafe {
        let mut allowed: libc::cpu_set_t = std::mem::zeroed();
        if libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &raw mut allowed) != 0 {
            return Vec::new();
        }
        (0..libc::CPU_SETSIZE as usize).filter(|core| libc::CPU_ISSET(*core, &allowed)).collect()
    }
}

/// Returns whether the process has less processor time than its cores have. `available_parallelism` reads the quotas of
/// control groups.
#[cfg(target_os = "linux")]
pub(crate) fn has_quota() -> bool {
    // The value is that of the first system's start, because the kernel tells it in some ten files.
    static HAS_QUOTA: OnceLock<bool> = OnceLock::new();
    let look = || std::thread::available_parallelism().is_ok_and(|available| available.get() < cores().len());
    *HAS_QUOTA.get_or_init(look)
}

/// Returns false, because it is not known on this platform.
#[cfg(not(target_os = "linux"))]
pub(crate) fn has_quota() -> bool {
    false
}

/// Binds the calling thread to the `index`-th core that the process may use; does nothing if that is not possible.
#[cfg(target_os = "linux")]
pub(crate) fn pin_to_core(index: usize) {
    let cores = cores();
    if cores.is_empty() {
        return;
    }
    // SAFETY: cpu_set_t is plain data; the call gets its true size.
    unsafe {
        let mut wanted: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cores[index % cores.len()], &mut wanted);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const wanted);
    }
}

/// Does nothing on this platform. On Linux, it binds the calling thread to the `index`-th core.
#[cfg(not(target_os = "linux"))]
pub(crate) fn pin_to_core(_index: usize) {}
