//! Pinning a thread to a core.

/// Keeps this thread on the `nth` of its allowed cores, modulo their number. If pinning is not allowed, the operating system
/// places the thread: slower, but not wrong.
#[cfg(target_os = "linux")]
pub(super) fn pin(nth: usize) {
    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

    let Ok(allowed) = sched_getaffinity(None) else { return };
    let cores: Vec<_> = (0..CpuSet::MAX_CPU).filter(|&core| allowed.is_set(core)).collect();
    if let Some(&core) = cores.get(nth % cores.len().max(1)) {
        let mut one = CpuSet::new();
        one.set(core);
        let _ = sched_setaffinity(None, &one);
    }
}

/// Does nothing: this operating system has no pinning.
#[cfg(not(target_os = "linux"))]
pub(super) fn pin(_: usize) {}
