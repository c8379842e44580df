//! Relays: stages that pass messages on to an overloaded worker.
//!
//! A stage that handles as many messages as it sends is not muted, even if its receiver's worker is overloaded. It is
//! noted as a relay instead. While the worker is overloaded, a stage that sends to a relay counts as a sender to that
//! worker, and becomes a relay, too. The overload thus reaches the source over any number of stages, and only the
//! source is muted.
//!
//! If both the receiver's worker and the one that gets the messages next are pressed, the one with the larger backlog
//! slows down the source (`SystemCore::more_pressed`).

use std::sync::atomic::{AtomicU16, Ordering};

const NONE: u16 = u16::MAX;

/// For each stage, the overloaded worker that it has sent to last. A note holds as long as that worker is overloaded.
pub(crate) struct Relays(Box<[AtomicU16]>);

impl Relays {
    pub(crate) fn new(stages: usize) -> Relays {
        Relays((0..stages).map(|_| AtomicU16::new(NONE)).collect())
    }

    /// Notes that `stage` has sent to the overloaded `worker`.
    pub(crate) fn note(&self, stage: u16, worker: u16) {
        // Relaxed: a sender that sees the note late is slowed down late. The note is read before it is written, because
        // other workers read the same cache line.
        if self.0[usize::from(stage)].load(Ordering::Relaxed) != worker {
            self.0[usize::from(stage)].store(worker, Ordering::Relaxed);
        }
    }

    /// Returns the worker to which `stage` passes messages on, if `is_overloaded` holds for that worker. Otherwise
    /// deletes the note.
    pub(crate) fn passes_on_to(&self, stage: u16, is_overloaded: impl FnOnce(u16) -> bool) -> Option<u16> {
        let worker = self.0[usize::from(stage)].load(Ordering::Relaxed);
        if worker == NONE {
            return None;
        }
        if is_overloaded(worker) {
            return Some(worker);
        }
        self.0[usize::from(stage)].store(NONE, Ordering::Relaxed);
        None
    }
}

#[cfg(test)]
mod tests {
    use super::Relays;

    #[test]
    fn a_note_ends_with_the_overload() {
        let relays = Relays::new(2);
        relays.note(1, 7);
        assert_eq!(relays.passes_on_to(0, |_| true), None);
        assert_eq!(relays.passes_on_to(1, |worker| worker == 7), Some(7));
        assert_eq!(relays.passes_on_to(1, |_| false), None);
        assert_eq!(relays.passes_on_to(1, |_| true), None);
    }
}
