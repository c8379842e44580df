//! The costs of this machine: a wake-up, and the number of threads that run at one time.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

/// The least time that a wake-up counts as. A measurement on a busy machine may be far from the truth.
const WAKE_NS_MIN: u64 = 2_000;
/// The largest time that a wake-up counts as.
const WAKE_NS_MAX: u64 = 50_000;
/// The number of rounds of the measurement.
const ROUNDS: u32 = 8;

/// Returns the nanoseconds from the call that wakes a parked thread until that thread runs. The value is that of the
/// fastest round, measured once per process.
pub(crate) fn wake_ns() -> u64 {
    static WAKE_NS: OnceLock<u64> = OnceLock::new();
    *WAKE_NS.get_or_init(|| if cfg!(miri) { WAKE_NS_MAX } else { measure().clamp(WAKE_NS_MIN, WAKE_NS_MAX) })
}

/// Measures the time in which two threads wake each other in turn.
fn measure() -> u64 {
    let turn = AtomicU32::new(0);
    let me = std::thread::current();
    std::thread::scope(|scope| {
        let other = std::thread::Builder::new().stack_size(64 << 10).spawn_scoped(scope, || {
            for round in 0..ROUNDS {
                while turn.load(Ordering::Acquire) != 2 * round + 1 {
                    std::thread::park();
                }
                turn.store(2 * round + 2, Ordering::Release);
                me.unpark();
            }
        });
        let Ok(other) = other else { return WAKE_NS_MAX };
        let mut fastest = u64::MAX;
        for round in 0..ROUNDS {
            let begun = Instant::now();
            turn.store(2 * round + 1, Ordering::Release);
            other.thread().unpark();
            while turn.load(Ordering::Acquire) != 2 * round + 2 {
                std::thread::park();
            }
            fastest = fastest.min(begun.elapsed().as_nanos() as u64 / 2);
        }
        fastest
    })
}

/// Returns the number of threads of this process that can run at one time: the CPUs that it may use. Counts them once
/// per process.
pub(crate) fn cores() -> usize {
    static CORES: OnceLock<usize> = OnceLock::new();
    *CORES.get_or_init(count_cores)
}

#[cfg(all(target_os = "linux", not(miri)))]
fn count_cores() -> usize {
    // Makes 1 system call. `available_parallelism` reads about 10 files, too.
    // SAFETY: cpu_set_t is plain data, and the call gets its true size.
    unsafe {
        let mut allowed: libc::cpu_set_t = std::mem::zeroed();
        if libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &raw mut allowed) == 0 {
            return (libc::CPU_COUNT(&allowed) as usize).max(1);
        }
    }
    std::thread::available_parallelism().map_or(1, usize::from)
}

#[cfg(not(all(target_os = "linux", not(miri))))]
fn count_cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_wake_up_takes_time_and_is_measured_once() {
        let measured = super::wake_ns();
        assert!((super::WAKE_NS_MIN..=super::WAKE_NS_MAX).contains(&measured));
        assert_eq!(measured, super::wake_ns());
        assert!(super::cores() >= 1);
    }
}
