//! Standing backlogs: mail that waits although no source has sent it.
//!
//! A program with a fixed number of messages may hold more mail than a worker may have without being pressed. Its senders would keep
//! accounts for ever and mute nobody. In a *turnover*, a worker runs as many bytes of mail as waited at its start. A worker that was
//! pressed for a whole turnover raises its bounds above its present backlog, unless it has found a source. A program
//! with a fixed number of messages thus pays for accounts during a few turnovers.
//!
//! A source that comes later is slowed down when the backlog has become [`TIMES_STANDING`] times as large. A source too slow to be found
//! within a turnover is found later, because turnovers become longer and sources owe more in longer ones.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

/// The bounds of a worker as a multiple of its standing backlog. Half of a bound is above the backlog, so the worker is relieved.
const TIMES_STANDING: u64 = 3;
/// A backlog replaces the standing one if it is smaller by more than this factor.
const SHRUNK: u64 = 4;

/// The standing backlog of a worker, as other threads see it.
#[derive(Default)]
pub(crate) struct Standing {
    bytes: AtomicU64,
    /// A sign of a source since the worker's last look: a source was muted, admission was closed, a worker without accounts has sent mail,
    /// or a sender was refused.
    found: AtomicBool,
    /// Threads outside that wait.
    waiting: AtomicUsize,
}

impl Standing {
    /// Returns `bound`, or a larger one because of the standing backlog.
    pub(crate) fn raised(&self, bound: u64) -> u64 {
        // Relaxed: a sender that reads an old number presses the worker slightly too early or too late.
        bound.max(TIMES_STANDING * self.bytes.load(Ordering::Relaxed))
    }

    /// Notes that the backlog may be that of a source.
    pub(crate) fn note_source(&self) {
        // The flag is read before it is written, because all senders to the worker have its cache line.
        if !self.found.load(Ordering::Relaxed) {
            self.found.store(true, Ordering::Relaxed);
        }
    }

    /// Notes that a thread outside waits, until the returned value is dropped.
    pub(crate) fn note_waiting(&self) -> impl Drop + '_ {
        struct Waiting<'a>(&'a AtomicUsize);
        impl Drop for Waiting<'_> {
            fn drop(&mut self) {
                self.0.fetch_sub(1, Ordering::Relaxed);
            }
        }
        self.waiting.fetch_add(1, Ordering::Relaxed);
        Waiting(&self.waiting)
    }

    /// Notes the worker's backlog at a look: `mail` bytes wait, and the worker has run `run` bytes of mail in all.
    pub(crate) fn look(&self, turnover: &mut Turnover, pressed: bool, mail: u64, run: u64) {
        let found = self.found.load(Ordering::Relaxed) && self.found.swap(false, Ordering::Relaxed);
        let before = self.bytes.load(Ordering::Relaxed);
        let bytes = turnover.look(before, pressed, found || self.waiting.load(Ordering::Relaxed) > 0, (mail, run));
        if bytes != before {
            self.bytes.store(bytes, Ordering::Relaxed);
        }
    }
}

/// The turnovers of a worker's mail. All positions are bytes of mail that the worker has run in all.
#[derive(Default)]
pub(crate) struct Turnover {
    /// The end of the present turnover, and the largest backlog in it. `None` while the worker is not pressed.
    pressed: Option<(u64, u64)>,
    /// The end of the present turnover of the standing backlog, and the largest backlog in it. The backlog goes to and fro between workers.
    standing: (u64, u64),
}

impl Turnover {
    /// Returns the standing backlog after a look, in bytes. It was `standing` before.
    fn look(&mut self, standing: u64, pressed: bool, found: bool, (mail, run): (u64, u64)) -> u64 {
        let standing = self.shrunk(standing, mail, run);
        if !pressed {
            self.pressed = None;
            return standing;
        }
        if found {
            self.pressed = Some((run + mail, mail));
            // A later turnover without a source finds the standing part again.
            return standing / 2;
        }
        let (end, largest) = self.pressed.unwrap_or((run + mail, mail));
        let largest = largest.max(mail);
        if run < end {
            self.pressed = Some((end, largest));
            return standing;
        }
        self.pressed = None;
        self.standing = (run + largest, largest);
        standing.max(largest)
    }

    /// Returns the standing backlog, or a smaller one if the backlog was small for as long as the standing one takes.
    fn shrunk(&mut self, standing: u64, mail: u64, run: u64) -> u64 {
        let (end, largest) = self.standing;
        let largest = largest.max(mail);
        if run < end {
            self.standing = (end, largest);
            return standing;
        }
        let standing = if largest < standing / SHRUNK { largest } else { standing };
        self.standing = (run + standing, mail);
        standing
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backlog_stands_if_no_source_was_found_while_it_was_turned_over() {
        let (standing, mut turnover) = (Standing::default(), Turnover::default());
        standing.look(&mut turnover, true, 1_000, 500);
        standing.look(&mut turnover, true, 1_200, 1_499);
        assert_eq!(standing.raised(10), 10);
        standing.look(&mut turnover, true, 100, 1_500);
        assert_eq!((standing.raised(10), standing.raised(10_000)), (3_600, 10_000));
    }

    #[test]
    fn the_bounds_fall_when_the_backlog_is_small_for_a_whole_turnover() {
        let (standing, mut turnover) = (Standing::default(), Turnover::default());
        standing.look(&mut turnover, true, 1_000, 0);
        standing.look(&mut turnover, true, 1_000, 1_000);
        // It goes to and fro between two workers.
        for run in (1_000..10_000).step_by(100) {
            standing.look(&mut turnover, false, if run % 500 == 0 { 1_000 } else { 0 }, run);
            assert_eq!(standing.raised(10), 3_000);
        }
        for run in (10_000..12_000).step_by(100) {
            standing.look(&mut turnover, false, 200, run);
        }
        assert_eq!(standing.raised(10), 600);
    }

    #[test]
    fn a_backlog_with_a_source_does_not_stand() {
        let (standing, mut turnover) = (Standing::default(), Turnover::default());
        for run in (0..100_000).step_by(500) {
            standing.note_source();
            standing.look(&mut turnover, true, 1_000, run);
        }
        let waiting = standing.note_waiting();
        for run in (100_000..200_000).step_by(500) {
            standing.look(&mut turnover, true, 1_000, run);
        }
        assert_eq!(standing.raised(10), 10);
        drop(waiting);
        standing.look(&mut turnover, true, 1_000, 200_000);
        standing.look(&mut turnover, true, 1_000, 201_000);
        assert_eq!(standing.raised(10), 3_000);
        // The bound falls again if a source has sent what waits now.
        for run in (210_000..220_000).step_by(500) {
            standing.note_source();
            standing.look(&mut turnover, true, 3_000, run);
        }
        assert_eq!(standing.raised(10), 10);
    }
}
