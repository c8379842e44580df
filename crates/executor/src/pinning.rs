//! Binding threads to cores.

/// Binds the calling thread to the `index`-th core that the process may use; does nothing where that is not possible.
#[cfg(target_os = "linux")]
pub(crate) fn pin_to_core(index: usize) {
    // SAFETY: cpu_set_t is plain data; both calls get its true size.
    unsafe {
        let mut allowed: libc::cpu_set_t = std::mem::zeroed();
        if libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &raw mut allowed) != 0 {
            return;
        }
        let cores: Vec<usize> =
            (0..libc::CPU_SETSIZE as usize).filter(|core| libc::CPU_ISSET(*core, &allowed)).collect();
        if cores.is_empty() {
            return;
        }
        let mut wanted: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cores[index % cores.len()], &mut wanted);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const wanted);
    }
}

/// Binds the calling thread to the `index`-th core: not on this platform.
#[cfg(not(target_os = "linux"))]
pub(crate) fn pin_to_core(_index: usize) {}
