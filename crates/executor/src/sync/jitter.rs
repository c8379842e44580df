//! Delays at the seams of the protocols, for tests. In a build with debug assertions, with `PLAYHOUSE_JITTER` set,
//! threads sleep now and then at points where another thread may come in between. The monitor then takes a handler for
//! stuck after a fraction of a millisecond. An interleaving that happens once in hours under heavy load then happens
//! several times a second: see CONTRIBUTING.md. A release build contains none of this.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

static IS_ON: LazyLock<bool> = LazyLock::new(|| std::env::var_os("PLAYHOUSE_JITTER").is_some());

/// Whether threads sleep at the seams.
#[inline(always)]
pub fn is_on() -> bool {
    cfg!(debug_assertions) && *IS_ON
}

/// Marks a point where another thread may come in between. Sleeps once in about `one_in` calls.
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
    // In a thread that ends, the generator is gone.
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
