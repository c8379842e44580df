//! Rules by which sources go on at a worker whose backlog does not end.
//!
//! A worker with a standing backlog may never be relieved, because its messages go round. Sources therefore do not wait
//! for that. They share a part of the worker's throughput: for 2 bytes of mail that it has run, it admits 1 byte. A
//! flood thus becomes slower than its receiver; its backlog therefore ends, and a source goes on beside a standing
//! backlog.
//!
//! Only mail from others counts. A worker may run many messages of its own actors while the backlog stays as it is.
//!
//! A message may pass many actors before it is worked off, on two workers in turn. Each pass is mail that a worker
//! runs, and half of that would be many times as much as the workers can do. The more the backlog exceeds the
//! high-water mark, the more each admitted byte therefore costs: the fourth power of the excess. A chain of `n` actors
//! settles at a backlog of about the fourth root of `n / 2` times the mark.

use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes of mail that a worker has to run for 1 byte that it admits.
const RUN_PER_ADMITTED: u64 = 2;
/// The largest number of bytes that are saved for sources while none comes.
const SAVED_BYTES_MAX: u64 = 64 * 1024;
/// The largest cost of one admission, in bytes: a source that is admitted at the largest excess holds the others up for
/// as long as the worker runs twice as much.
const COST_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// The bytes of sources that a worker has admitted while it was pressed, as a position in all that it may admit.
#[derive(Default)]
pub(crate) struct Admission {
    position: AtomicU64,
    /// All bytes that were ever admitted.
    bytes: AtomicU64,
}

impl Admission {
    /// Begins when the worker becomes pressed: nothing is saved of what it has run before.
    pub(crate) fn begin(&self, run: u64) {
        self.position.fetch_max(run / RUN_PER_ADMITTED, Ordering::Relaxed);
    }

    /// Returns the bytes that were ever admitted.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Returns whether the last source was admitted more than the worker has run enough for.
    pub(crate) fn is_ahead(&self, run: u64) -> bool {
        self.position.load(Ordering::Relaxed) > run / RUN_PER_ADMITTED
    }

    /// Returns whether the worker has run enough to admit a source.
    pub(crate) fn is_open(&self, run: u64) -> bool {
        self.position.load(Ordering::Relaxed) < run / RUN_PER_ADMITTED
    }

    /// Admits `bytes` bytes, if the worker has run enough since the last ones. `excess`: the backlog as a multiple of
    /// the high-water mark. `run`: the bytes of mail that it has run in all.
    pub(crate) fn admits(&self, bytes: u64, excess: u64, run: u64) -> bool {
        let earned = run / RUN_PER_ADMITTED;
        let cost = bytes.saturating_mul(excess.max(1).saturating_pow(4)).min(COST_BYTES_MAX);
        let take = |taken: u64| {
            let from = taken.max(earned.saturating_sub(SAVED_BYTES_MAX));
            // The position may pass the earned bytes, because a source may owe more than is ever saved. The next one
            // then waits longer.
            (from < earned).then_some(from + cost)
        };
        // Relaxed: no other data depends on the number.
        let admits = self.position.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok();
        if admits {
            self.bytes.fetch_add(bytes, Ordering::Relaxed);
        }
        admits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_byte_of_any_sender_is_admitted_for_two_that_were_run() {
        let admission = Admission::default();
        let admitted = (0..100_000).filter(|run| admission.admits(1, 0, *run)).count();
        assert_eq!(admitted, 49_999);
        let admission = Admission::default();
        let admitted = (0..100_000).filter(|run| admission.admits(500, 1, *run)).count();
        assert_eq!(admitted, 100);
    }

    #[test]
    fn each_byte_costs_more_the_more_waits() {
        for (excess, admitted) in [(2, 100_000 / 2 / 16), (3, 100_000 / 2 / 81 + 1), (5, 100_000 / 2 / 625)] {
            let admission = Admission::default();
            assert_eq!((0..100_000).filter(|run| admission.admits(1, excess, *run)).count(), admitted, "{excess}");
        }
    }

    #[test]
    fn little_is_saved_while_nobody_comes() {
        let admission = Admission::default();
        assert!(admission.admits(SAVED_BYTES_MAX, 1, 1_000_000));
        assert!(!admission.admits(1, 1, 1_000_000));
        admission.begin(2_000_000);
        assert!(!admission.admits(1, 1, 2_000_000));
    }

    #[test]
    fn a_source_that_owes_more_than_is_saved_goes_on_and_the_next_one_waits_for_it() {
        let admission = Admission::default();
        assert!(admission.admits(10 * SAVED_BYTES_MAX, 1, 2));
        assert!(!admission.admits(1, 1, 20 * SAVED_BYTES_MAX));
        assert!(admission.admits(1, 1, 20 * SAVED_BYTES_MAX + 2));
    }
}
