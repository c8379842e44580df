//! Standing backlogs: mail that waits although no source has sent it.
//!
//! A program with a fixed number of messages may hold more mail than a worker may have without being pressed. Its
//! senders would keep accounts for ever and mute no stage. In a *turnover*, a worker runs as many bytes of mail as
//! waited at its start. A worker that was pressed for a whole turnover without a sign of a source raises its bounds
//! above the largest backlog of that turnover. After a sign of a source, one turnover is passed over, because the
//! source has sent a part of what waits. A program with a fixed number of messages thus pays for accounts during a few
//! turnovers.
//!
//! A source that was admitted beside the backlog is no sign, because it may go on beside a standing backlog. But a
//! turnover in which more than 1 byte was admitted for [`RUN_PER_ADMITTED_MAX`] bytes that were run raises no bounds.
//! The waiting mail may then be the source's, which many actors pass on.
//!
//! A source that is slowed down is a sign for all workers of the system ([`Sources`]). Its messages may be passed on
//! over any number of them, and only one of these slows it down.
//!
//! A source that comes later is slowed down when the backlog has become [`TIMES_STANDING`] times as large. A source too
//! slow to be found within a turnover is found later, because turnovers become longer and sources owe more in longer
//! ones. The bounds fall when the backlog is small for [`SHRUNK_NS`].

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

/// The bounds of a worker as a multiple of its standing backlog. Half of a bound is above the backlog, and the worker
/// is therefore relieved.
const TIMES_STANDING: u64 = 3;
/// At least this number of bytes of mail is run for 1 admitted byte of a source, if the backlog is not to be the
/// source's.
const RUN_PER_ADMITTED_MAX: u64 = 1024;
/// The largest backlog of the last [`SHRUNK_NS`] replaces the standing one if it is smaller by more than this factor.
const SHRUNK: u64 = 4;
/// 100 ms in nanoseconds. Workers that pass a backlog to each other often have none for a shorter time.
const SHRUNK_NS: u64 = 100_000_000;

/// The standing backlog of a worker, as other threads see it.
#[derive(Default)]
pub(crate) struct Standing {
    bytes: AtomicU64,
    /// A sign of a source since the worker's last look: a source was muted or refused, the worker has admitted more
    /// than it has run enough for, or a sender without an account has sent mail.
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

    /// Notes the worker's backlog.
    pub(crate) fn look(&self, turnover: &mut Turnover, look: BacklogView) {
        let found = self.found.load(Ordering::Relaxed) && self.found.swap(false, Ordering::Relaxed);
        let before = self.bytes.load(Ordering::Relaxed);
        let bytes = turnover.look(before, found || self.waiting.load(Ordering::Relaxed) > 0, look);
        if bytes != before {
            self.bytes.store(bytes, Ordering::Relaxed);
        }
    }
}

/// The time at which a source was slowed down last, on any worker of the system, in nanoseconds of the system's clock.
#[derive(Default)]
pub(crate) struct Sources(AtomicU64);

impl Sources {
    /// Notes that a source is slowed down now.
    pub(crate) fn note(&self, now_ns: u64) {
        /// 1 ms. The time is not written more often, because all workers read it.
        const GRAIN_NS: u64 = 1_000_000;
        // Relaxed: no other data depends on the time.
        if self.0.load(Ordering::Relaxed) + GRAIN_NS < now_ns {
            self.0.store(now_ns, Ordering::Relaxed);
        }
    }

    /// Returns the time that was noted last.
    pub(crate) fn last_ns(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// A worker's view of its backlog.
#[derive(Clone, Copy)]
pub(crate) struct BacklogView {
    pub(crate) pressed: bool,
    /// Bytes of mail that wait.
    pub(crate) mail: u64,
    /// Bytes of mail that the worker has run in all.
    pub(crate) run: u64,
    /// Bytes of sources that the worker has admitted in all while it was pressed.
    pub(crate) admitted: u64,
    /// Nanoseconds of the system's clock.
    pub(crate) now_ns: u64,
    /// The time of the last sign of a source ([`Sources::last_ns`]).
    pub(crate) source_ns: u64,
}

/// The turnovers of a worker's mail.
#[derive(Default)]
pub(crate) struct Turnover {
    /// The end of the present turnover, in bytes of mail that were run, and the largest backlog in it. The backlog is
    /// `None` in a turnover of the mail that waited at a sign of a source. All is `None` while the worker is not
    /// pressed.
    pressed: Option<(u64, Option<u64>)>,
    /// The bytes that were run and admitted in all when the present turnover began.
    begun: (u64, u64),
    /// The time since which the backlog has been small, and the largest one since then.
    small: (u64, u64),
    /// The last `source_ns` that was seen.
    source_ns: u64,
}

impl Turnover {
    /// Returns the standing backlog after a look, in bytes. It was `standing` before.
    fn look(&mut self, standing: u64, found: bool, look: BacklogView) -> u64 {
        let BacklogView { pressed, mail, run, admitted, .. } = look;
        let standing = self.shrunk(standing, look);
        let found = found | (std::mem::replace(&mut self.source_ns, look.source_ns) != look.source_ns);
        if !pressed {
            self.pressed = None;
            return standing;
        }
        if found {
            self.pressed = Some((run + mail, None));
            // A later turnover without a source finds the standing part again.
            return standing / 2;
        }
        match self.pressed {
            Some((end, largest)) if run < end => {
                self.pressed = Some((end, largest.map(|largest| largest.max(mail))));
                standing
            }
            Some((_, Some(largest))) => {
                self.pressed = None;
                let (begun_run, begun_admitted) = self.begun;
                if (admitted - begun_admitted).saturating_mul(RUN_PER_ADMITTED_MAX) > run - begun_run {
                    return standing;
                }
                standing.max(largest).max(mail)
            }
            Some((_, None)) | None => {
                self.pressed = Some((run + mail, Some(mail)));
                self.begun = (run, admitted);
                standing
            }
        }
    }

    /// Returns the standing backlog, or a smaller one if the backlog has been small for a while.
    fn shrunk(&mut self, standing: u64, BacklogView { mail, now_ns, .. }: BacklogView) -> u64 {
        let (since_ns, largest) = self.small;
        let largest = largest.max(mail);
        if standing == 0 || largest >= standing / SHRUNK {
            self.small = (now_ns, 0);
            return standing;
        }
        if now_ns - since_ns < SHRUNK_NS {
            self.small = (since_ns, largest);
            return standing;
        }
        self.small = (now_ns, mail);
        largest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A standing backlog with its turnover.
    #[derive(Default)]
    struct Looks {
        standing: Standing,
        turnover: Turnover,
        now_ns: u64,
        sources: Sources,
        admitted: u64,
    }

    impl Looks {
        /// Looks with `mail` bytes that wait, after `run` bytes were run. Returns the bound that was 10.
        fn look(&mut self, pressed: bool, mail: u64, run: u64) -> u64 {
            let source_ns = self.sources.last_ns();
            let look = BacklogView { pressed, mail, run, admitted: self.admitted, now_ns: self.now_ns, source_ns };
            self.standing.look(&mut self.turnover, look);
            self.standing.raised(10)
        }
    }

    #[test]
    fn a_backlog_stands_if_no_source_was_found_while_it_was_turned_over() {
        let mut looks = Looks::default();
        assert_eq!(looks.look(true, 1_000, 500), 10);
        assert_eq!(looks.look(true, 1_200, 1_499), 10);
        assert_eq!(looks.look(true, 100, 1_500), 3_600);
        assert_eq!(looks.standing.raised(10_000), 10_000);
    }

    #[test]
    fn a_backlog_that_a_source_has_sent_is_not_a_standing_one() {
        let mut looks = Looks::default();
        looks.standing.note_source();
        assert_eq!(looks.look(true, 100_000, 0), 10);
        // The backlog that waits when the source's mail was run is the standing one.
        assert_eq!(looks.look(true, 50_000, 50_000), 10);
        assert_eq!(looks.look(true, 300, 100_000), 10);
        assert_eq!(looks.look(true, 300, 100_299), 10);
        assert_eq!(looks.look(true, 300, 100_300), 900);
    }

    #[test]
    fn a_source_that_another_worker_slows_down_is_a_sign() {
        let mut looks = Looks::default();
        assert_eq!(looks.look(true, 1_000, 0), 10);
        looks.sources.note(2_000_000);
        assert_eq!(looks.look(true, 1_000, 1_000), 10);
        // The turnover that has begun with the sign is passed over.
        assert_eq!(looks.look(true, 1_000, 2_000), 10);
        assert_eq!(looks.look(true, 1_000, 3_000), 3_000);
    }

    #[test]
    fn a_backlog_does_not_stand_while_much_is_admitted_beside_it() {
        let mut looks = Looks::default();
        for turn in 0..10 {
            looks.admitted += 100;
            assert_eq!(looks.look(true, 1_000, 1_000 * turn), 10);
        }
        // 1 byte for 1,000 that were run.
        for turn in 10..20 {
            looks.admitted += 1;
            assert_eq!(looks.look(true, 1_000, 1_000 * turn), 10);
        }
        for turn in 20..24 {
            looks.look(true, 1_000, 1_000 * turn);
        }
        assert_eq!(looks.standing.raised(10), 3_000);
        // A backlog that stands already goes on to stand beside a source.
        for turn in 24..30 {
            looks.admitted += 500;
            assert_eq!(looks.look(true, 9_000, 1_000 * turn), 3_000);
        }
    }

    // GUARANTEE: A standing backlog is not a flood
    #[test]
    fn the_bounds_fall_when_the_backlog_is_small_for_a_while() {
        let mut looks = Looks::default();
        looks.look(true, 1_000, 0);
        looks.look(true, 1_000, 1_000);
        // The backlog goes to and fro between two workers.
        for turn in 0..50 {
            looks.now_ns += SHRUNK_NS / 10;
            assert_eq!(looks.look(false, if turn % 5 == 0 { 1_000 } else { 0 }, 1_000), 3_000);
        }
        // The backlog has ended, and new mail is run at once.
        looks.now_ns += SHRUNK_NS / 2;
        assert_eq!(looks.look(false, 200, 1_000), 3_000);
        looks.now_ns += SHRUNK_NS;
        assert_eq!(looks.look(false, 0, 1_000), 600);
        // An idle worker does not look.
        looks.now_ns += 2 * SHRUNK_NS;
        assert_eq!(looks.look(false, 0, 1_000), 10);
    }

    #[test]
    fn a_backlog_with_a_source_does_not_stand() {
        let mut looks = Looks::default();
        for run in (0..100_000).step_by(500) {
            looks.standing.note_source();
            looks.look(true, 1_000, run);
        }
        looks.standing.waiting.fetch_add(1, Ordering::Relaxed);
        for run in (100_000..200_000).step_by(500) {
            assert_eq!(looks.look(true, 1_000, run), 10);
        }
        looks.standing.waiting.fetch_sub(1, Ordering::Relaxed);
        for run in [200_000, 201_000, 202_000] {
            looks.look(true, 1_000, run);
        }
        assert_eq!(looks.standing.raised(10), 3_000);
        // The bound falls again if a source has sent the mail that waits now.
        for run in (210_000..220_000).step_by(500) {
            looks.standing.note_source();
            looks.look(true, 3_000, run);
        }
        assert_eq!(looks.standing.raised(10), 10);
    }
}
