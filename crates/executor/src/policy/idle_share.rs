//! The share of a worker's time in which it was idle lately.
//!
//! A worker that is idle at this moment tells little, because its next messages may be under way. The share tells
//! whether it lacks work.

/// The time over which the idle share of a worker is measured, in nanoseconds.
pub(crate) const IDLE_WINDOW_NS: u64 = 1_000_000;

/// The share of a worker's time in which it was idle lately, as other threads see it: an average over
/// [`IDLE_WINDOW_NS`] that is as of the last time at which the worker became idle or busy.
///
/// Bits: 16 for the share, 1 for whether the worker is idle now, 47 for the time in nanoseconds, which may overflow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IdleShare(pub(crate) u64);

impl IdleShare {
    /// The share of a worker that has not begun yet.
    pub(crate) const BEGIN: IdleShare = IdleShare(0xffff << 48 | IdleShare::IDLE);
    const TIME: u64 = (1 << 47) - 1;
    const IDLE: u64 = 1 << 47;

    /// Returns the nanoseconds since the last change. Another thread may have read its clock before that change.
    fn age_ns(self, now_ns: u64) -> u64 {
        let age_ns = now_ns.wrapping_sub(self.0) & IdleShare::TIME;
        if age_ns > IdleShare::TIME / 2 { 0 } else { age_ns }
    }

    /// Returns the share at this time, from 0 to 1.
    pub(crate) fn at(self, now_ns: u64) -> f64 {
        let share = (self.0 >> 48) as f64 / f64::from(u16::MAX);
        let kept = (-(self.age_ns(now_ns) as f64) / IDLE_WINDOW_NS as f64).exp();
        if self.0 & IdleShare::IDLE != 0 { 1.0 - (1.0 - share) * kept } else { share * kept }
    }

    /// Returns the share of a worker that becomes idle, or busy, at this time.
    pub(crate) fn changed(self, now_ns: u64, is_idle: bool) -> IdleShare {
        let share = (self.at(now_ns) * f64::from(u16::MAX)).round() as u64;
        IdleShare(share << 48 | if is_idle { IdleShare::IDLE } else { 0 } | now_ns & IdleShare::TIME)
    }
}

#[cfg(test)]
mod tests {
    use super::IdleShare;

    #[test]
    fn the_idle_share_is_an_average_over_a_while() {
        let begun = IdleShare::BEGIN;
        assert_eq!(begun.at(1_000), 1.0);
        let busy = begun.changed(1_000_000, false);
        assert!(busy.at(1_000_001) > 0.99 && busy.at(11_000_000) < 0.01);
        let turns = (0..1_000).fold(busy, |share, turn| share.changed(2_000_000 + turn * 10_000, turn % 2 == 0));
        assert!((turns.at(12_000_000) - 0.5).abs() < 0.02);
        assert_eq!(busy.at(999_000), busy.at(1_000_000), "a clock that was read earlier");
        // The clock overflows.
        let late = IdleShare::BEGIN.changed((1 << 47) - 1_000_000, false);
        assert!(late.at((1 << 47) + 9_000_000) < 0.01);
    }
}
