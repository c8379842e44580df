//! The figures of a trial, which measures whether a second worker helps with short messages.
//! `scheduler/trial.rs` makes the trials.

/// Work is short if most of its time is spent on messages that take less than this, in nanoseconds.
pub(crate) const SHORT_NS: u64 = 600;
/// The time of half a trial in nanoseconds. In the first half, the other worker fetches the actors into its caches. The
/// verdict comes from the second half.
pub(crate) const HALF_NS: u64 = 75_000;
/// The least speed of two workers in a trial that was not in vain, as a multiple of the speed of one.
pub(crate) const GAIN_MIN: f64 = 1.1;
/// If two workers are slower than this in the first half, the trial ends with it, because the second half would only
/// cost time.
pub(crate) const GAIN_MIN_AT_FIRST: f64 = 0.7;
/// The least and the largest time for which a verdict holds, in nanoseconds.
pub(crate) const HOLDS_NS_MIN: u64 = 16_000_000;
pub(crate) const HOLDS_NS_MAX: u64 = 1_000_000_000;

/// A trial: this worker has given short work to another worker, and measures whether that helps.
pub(crate) struct Trial {
    /// The worker that was given the work.
    pub(crate) worker: u16,
    /// The start of the trial's present half (nanoseconds of the system's clock).
    pub(crate) since_ns: u64,
    /// The number of messages that both workers had handled at that time.
    pub(crate) handled: u64,
    pub(crate) is_second_half: bool,
    /// The average time of a message before the trial, in nanoseconds.
    pub(crate) average_ns: u64,
    /// The time until which both workers were told at the start to keep their stages apart.
    pub(crate) apart_until_ns: u64,
}

/// The verdict of the last trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Verdict {
    pub(crate) in_vain: bool,
    /// The nanoseconds for which the verdict holds.
    pub(crate) holds_ns: u64,
}

impl Verdict {
    /// Returns the verdict of a trial after `last`, the verdict of the trial before.
    pub(crate) fn after(last: Option<Verdict>, in_vain: bool) -> Verdict {
        let holds_ns = match last {
            Some(last) if last.in_vain == in_vain => (last.holds_ns * 4).min(HOLDS_NS_MAX),
            _ => HOLDS_NS_MIN,
        };
        Verdict { in_vain, holds_ns }
    }
}

/// Returns whether a worker has lately done all of the work that another one might have shared. The arguments are their
/// idle shares.
pub(crate) fn does_all(mine: f64, theirs: f64) -> bool {
    mine < 0.1 && theirs > 0.5
}

/// Returns the speed of two workers as a multiple of the speed of one. `before_ns` is the time of a message before the
/// trial, and `handled` counts the messages of both workers in a half that took `ns`.
pub(crate) fn gain(before_ns: u64, handled: u64, ns: u64) -> f64 {
    handled as f64 * before_ns as f64 / ns as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_that_is_confirmed_holds_longer() {
        let in_vain = |last, _| Some(Verdict::after(last, true));
        assert_eq!((0..20).fold(None, in_vain), Some(Verdict { in_vain: true, holds_ns: HOLDS_NS_MAX }));
        assert_eq!((0..2).fold(None, in_vain), Some(Verdict { in_vain: true, holds_ns: 4 * HOLDS_NS_MIN }));
        let helped = Verdict::after((0..20).fold(None, in_vain), false);
        assert_eq!(helped, Verdict { in_vain: false, holds_ns: HOLDS_NS_MIN });
    }

    #[test]
    fn two_workers_have_to_do_more_than_one() {
        assert_eq!([9_000, 18_000].map(|handled| gain(50, handled, 500_000)), [0.9, 1.8]);
        assert!(does_all(0.05, 0.9) && !does_all(0.05, 0.3) && !does_all(0.2, 0.9));
    }
}
