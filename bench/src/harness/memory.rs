//! This process's memory, as the operating system sees it.

use super::outcome::Failure;

/// Returns the largest resident set of this process, in MiB; `None` where the operating system does not report it.
///
/// Linux: `VmHWM` of `/proc/self/status`, which only [`reset_peak`] lowers.
pub fn peak_rss_mb() -> Option<f64> {
    peak_of("self")
}

/// Returns the peak of another process, by its number, while that process runs.
pub(crate) fn peak_of(process: &str) -> Option<f64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    kib("VmHWM:", &status).map(|kib| kib as f64 / 1024.0)
}

/// Returns the resident bytes of this process; `None` where the operating system does not report them.
///
/// Linux: `VmRSS` of `/proc/self/status`. The kernel counts per thread and sums up in batches; the figure may be off by some
/// pages per thread.
pub fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    kib("VmRSS:", &status).map(|kib| kib * 1024)
}

/// Sets the peak to the resident memory of now, to exclude earlier work. Does nothing where that is not allowed.
pub fn reset_peak() {
    let _ = std::fs::write("/proc/self/clear_refs", "5");
}

/// Compares the peak with the limit of a workload.
///
/// # Errors
///
/// If it is more than `most_mb` MiB.
pub(crate) fn check_peak(most_mb: f64) -> Result<(), Failure> {
    match peak_rss_mb() {
        Some(peak_mb) if peak_mb > most_mb => {
            Err(Failure::new(format!("peak memory should be at most {most_mb:.0} MiB and is {peak_mb:.0} MiB")))
        }
        _ => Ok(()),
    }
}

/// Returns memory that was freed to the operating system.
///
/// Runs in one process would otherwise differ from the same runs in separate processes: a later run finds memory that an earlier
/// one has already touched. Creating a million actors takes a third less time then, which is no property of the runtime. Does
/// nothing where the allocator is not glibc's.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[allow(unsafe_code)]
pub fn release_freed() {
    // SAFETY: no preconditions; it takes the allocator's own locks.
    unsafe { libc::malloc_trim(0) };
}

/// Returns memory that was freed to the operating system: not on this platform.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub fn release_freed() {}

/// The line of `status` that begins with `name`, in KiB.
fn kib(name: &str, status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim().strip_suffix("kB")?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_read_from_their_lines() {
        let status = "Name:\tx\nVmPeak:\t 9000 kB\nVmHWM:\t    2048 kB\nVmRSS:\t 1 kB\n";
        assert_eq!((kib("VmHWM:", status), kib("VmRSS:", status)), (Some(2048), Some(1)));
        assert_eq!(kib("VmHWM:", "Name:\tx\n"), None);
        assert_eq!(kib("VmHWM:", "VmHWM:\t none\n"), None);
    }
}
