//! Delays at the seams of the protocols, for tests: in a build with debug assertions, where `PLAYHOUSE_JITTER` is set, threads sleep now and
//! then where another one may come in between, and the monitor takes a handler for stuck after a fraction of a millisecond. So what happens once in hours under heavy load happens several times a second: see
//! CONTRIBUTING.md. A release build has none of it.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

static IS_ON: LazyLock<bool> = LazyLock::new(|| std::env::var_os("PLAYHOUSE_JITTER").is_some());

/// Whether threads sleep at the seams.
#[inline(always)]
pub fn is_on() -> bool {
    cfg!(debug_assertions) && *IS_ON
}

/// Here another thread may come in between. Sleeps once in about `one_in` calls.
#[inline(always)]
pub fn seam(one_in: u64) {
    if is_on() {
        delay(one_in);
    }
}

#[cold]
fn delay(one_in: u64) {
    const SLEEP_MICROS_MAX: u64 = 3_000;

    static THREADS: AtomicU64 = AtomicU64::new(1);
    thread_local! {
        static RANDOM: std::cell::Cell<u64> = std::cell::Cell::new(
            THREADS.fetch_add(1, Ordering::Relaxed).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ u64::from(std::process::id()),
        );
    }
    // A thread that ends has nobody to come in between.
    let _ = RANDOM.try_with(|random| {
        let mut next = random.get() | 1;
        next ^= next << 13;
        next ^= next >> 7;
        next ^= next << 17;
        random.set(next);
        if (next >> 20).is_multiple_of(one_in) {
            std::thread::sleep(Duration::from_micros((next >> 40) % SLEEP_MICROS_MAX));
        }
    });
}
