//! The pauses between calls that are refused.
//!
//! A theater of another cluster may have taken the address of a peer. Each call then costs that theater a handshake, and its log a line.

use std::time::Duration;

use playhouse_executor::Choices;

/// The pause after the first refusal.
const PAUSE_MIN: Duration = Duration::from_millis(100);
/// Maximum pause.
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// The pause before a theater that refuses this one is called again.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Backoff {
    /// Number of refusals in a row.
    refusals: u32,
    /// The rest of the pause.
    left: Duration,
}

impl Backoff {
    /// Begins the pause after one more refusal. Each may take twice as long as the one before. Its second half is drawn from `seed`, because several
    /// theaters may have lost the same peer at one moment.
    pub(super) fn note_refusal(&mut self, seed: u64) {
        let longest = PAUSE_MIN.saturating_mul(1 << self.refusals.min(10)).min(PAUSE_MAX);
        let half = longest / 2;
        let drawn = Choices::new(seed.wrapping_add(self.refusals.into())).below(half.as_nanos() as usize);
        self.left = half + Duration::from_nanos(drawn as u64);
        self.refusals += 1;
    }

    /// Subtracts the time that has `passed`. Returns whether the pause is over.
    pub(super) fn is_over(&mut self, passed: Duration) -> bool {
        self.left = self.left.saturating_sub(passed);
        self.left.is_zero()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_a_bound_and_differ_between_theaters() {
        let pauses = |seed| {
            let mut backoff = Backoff::default();
            (0..20)
                .map(|_| {
                    backoff.note_refusal(seed);
                    backoff.left
                })
                .collect::<Vec<_>>()
        };
        for (refusals, pause) in pauses(1).into_iter().enumerate() {
            let longest = (PAUSE_MIN * (1 << refusals.min(10))).min(PAUSE_MAX);
            assert!((longest / 2..longest).contains(&pause), "{refusals}: {pause:?}");
        }
        assert_ne!(pauses(1), pauses(2));
        let mut backoff = Backoff::default();
        assert!(backoff.is_over(Duration::ZERO));
        backoff.note_refusal(1);
        assert!(!backoff.is_over(PAUSE_MIN / 4) && backoff.is_over(PAUSE_MIN));
    }
}
