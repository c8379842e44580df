//! Whether a stage is full: one byte for each stage. `backpressure/full_stages.rs` says when a stage is full.

use std::sync::atomic::{AtomicU8, Ordering};

/// The state of one stage: whether it is full, and the reasons.
#[derive(Default)]
pub(crate) struct StageBackpressure(AtomicU8);

impl StageBackpressure {
    /// The parked records wait for a gate to open.
    pub(crate) const WAITS: u8 = 1;
    /// The parked records wait for a stuck handler to return.
    pub(crate) const STUCK: u8 = 2;
    /// A marker is under way.
    const MARKED: u8 = 4;
    /// A worker has a stage that is muted for this one.
    const WAITED_FOR: u8 = 8;
    const FULL: u8 = StageBackpressure::WAITS | StageBackpressure::STUCK;

    pub(crate) fn is_full(&self) -> bool {
        self.0.load(Ordering::SeqCst) & StageBackpressure::FULL != 0
    }

    /// Returns whether the stage is full. If it is, the worker that lowers it learns that others wait for that.
    pub(crate) fn wait_for(&self) -> bool {
        let waited_for = StageBackpressure::WAITED_FOR;
        // Most often others wait already. The worker that lowers the byte later finds that, and nothing has to be
        // written.
        let is_noted = |was: u8| was & StageBackpressure::FULL != 0 && was & waited_for != 0;
        is_noted(self.0.load(Ordering::SeqCst))
            || self.change(|was| (was & StageBackpressure::FULL != 0).then_some(was | waited_for)).is_some()
    }

    /// Returns whether a stuck handler has to return before the stage is no longer full.
    pub(crate) fn is_stuck(&self) -> bool {
        // Relaxed: the caller looks again.
        self.0.load(Ordering::Relaxed) & StageBackpressure::STUCK != 0
    }

    /// Marks the stage as full. Returns whether it was not full before.
    pub(crate) fn raise(&self, why: u8) -> bool {
        self.0.fetch_or(why, Ordering::SeqCst) & StageBackpressure::FULL == 0
    }

    /// Notes that a handler of the stage is stuck. If the stage is full, that is now the reason.
    pub(crate) fn note_stuck(&self) {
        if self.is_full() {
            self.0.fetch_or(StageBackpressure::STUCK, Ordering::SeqCst);
        }
    }

    /// Notes that the stage goes on; called by its worker. Returns true if the stage is full and has no marker yet.
    pub(crate) fn mark(&self) -> bool {
        let marked = StageBackpressure::WAITS | StageBackpressure::MARKED;
        let was = self
            .change(|was| (was & StageBackpressure::FULL != 0).then_some(was & StageBackpressure::WAITED_FOR | marked));
        was.is_some_and(|was| was & StageBackpressure::MARKED == 0)
    }

    /// Marks the stage as no longer full. Returns whether others wait for that, or `None` if it was not full.
    pub(crate) fn lower(&self) -> Option<bool> {
        let was = self.0.swap(0, Ordering::SeqCst);
        (was & StageBackpressure::FULL != 0).then_some(was & StageBackpressure::WAITED_FOR != 0)
    }

    /// Changes the byte and returns what it was, or `None` if `to` leaves it.
    fn change(&self, to: impl Fn(u8) -> Option<u8>) -> Option<u8> {
        self.0.fetch_update(Ordering::SeqCst, Ordering::SeqCst, to).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_senders_that_wait_for_a_full_stage_are_found_when_it_is_lowered() {
        let full = StageBackpressure::default();
        assert!(!full.wait_for(), "it is not full");
        assert!(full.raise(StageBackpressure::WAITS));
        assert_eq!(full.lower(), Some(false), "nobody has waited since it is full");

        assert!(full.raise(StageBackpressure::STUCK));
        assert!(full.wait_for());
        assert!(full.mark(), "the first marker");
        assert!(!full.raise(StageBackpressure::WAITS), "held again before the marker was run");
        assert!(!full.mark(), "the marker is under way");
        assert!(full.wait_for());
        assert_eq!(full.lower(), Some(true));
        assert!(!full.is_full());
        assert_eq!(full.lower(), None);
        assert!(!full.mark(), "it is not full");
    }
}
